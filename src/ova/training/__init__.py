"""From a recipe to a run folder: train, predict, measure, each stage resumable."""
