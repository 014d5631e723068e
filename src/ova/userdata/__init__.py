"""From the user's files to a task: images, texts and tables, read, checked, split and prepared."""
