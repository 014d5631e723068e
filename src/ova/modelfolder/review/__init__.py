"""What a model refused, in groups that a person can name: read, grouped, described, shown."""
