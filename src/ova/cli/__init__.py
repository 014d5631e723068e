"""The commands of `ova`, one file each; heavy imports stay inside them."""
