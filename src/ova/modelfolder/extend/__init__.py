"""A model with other classes: new ones, fewer, some put together; what it knows stays as it is."""
