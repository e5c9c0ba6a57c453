"""Plans on disk: their file, what a cache keeps of a search, and the layout of parameters."""
