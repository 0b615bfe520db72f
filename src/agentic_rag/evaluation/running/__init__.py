"""Running: every question of a dataset to every variant, each result on disk at once."""
