"""Ways to answer: each yields events and ends in an Answer."""
