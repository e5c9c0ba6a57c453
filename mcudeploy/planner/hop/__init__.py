"""Windows that move by a hop: the rows of every tensor that a run computes, and those it keeps."""
