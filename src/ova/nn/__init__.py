"""Last layers: heads, links, losses, and the formulations that bind them; PyTorch and nothing else."""
