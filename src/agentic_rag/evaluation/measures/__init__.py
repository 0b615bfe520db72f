"""Measures: what one answer is worth, and what a variant is worth over all its questions.

`scoring.score` gives the `Scores` of one result, `summary.summarise` the `Summary` of a variant,
`run_scores.score_run` both for a run's directory.
"""
