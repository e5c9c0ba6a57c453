"""Plain dependency graphs and rectangle files."""
