"""What the searches find, and how fast: see README.md in this folder."""
