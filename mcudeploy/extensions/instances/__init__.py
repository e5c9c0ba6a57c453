"""Several instances of a model in one library: each has its own states, the rest is shared."""
