"""Embedders beside the embedded one: behind a server, or run by sentence-transformers."""
