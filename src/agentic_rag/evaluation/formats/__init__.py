"""Datasets in the forms they are published in, and tables of one's own: each becomes questions
with gold answers, and chunks where the corpus comes with them."""
