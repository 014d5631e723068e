"""A classifier from the user's own data: read, train, promise, predict, export."""
