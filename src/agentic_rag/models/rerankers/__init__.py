"""Rerankers: each module is one way to run a model that scores texts against a query."""
