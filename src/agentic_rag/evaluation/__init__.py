"""Evaluation: datasets, runs of strategies over them, measures, and reports."""
