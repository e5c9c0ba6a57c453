"""Records of the generated program, and their size in flash."""
