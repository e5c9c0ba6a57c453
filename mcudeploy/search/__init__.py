"""From a model and a board to plans: candidates, the budgeted search, and what finishes its plans."""
