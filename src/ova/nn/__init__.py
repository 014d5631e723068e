"""Last layers, links and losses in PyTorch, and the formulations that bind one of each."""
