"""Pure functions over text: tokens, language, words, sentences, chunks."""
