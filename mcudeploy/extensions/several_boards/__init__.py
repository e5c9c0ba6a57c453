"""Parts of a model on boards in a row."""
