"""Several operators as one, whose intermediate rows live in scratch."""
