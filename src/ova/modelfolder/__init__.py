"""The folder that `ova train` writes: train, load, predict, export, and the promise it carries."""
