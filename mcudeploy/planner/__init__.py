"""From a model and a board to plans: cut, ordered, placed, and passed by the checker."""
