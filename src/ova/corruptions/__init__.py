"""The nineteen corruptions, seeded and whole-batch."""
