"""The operator families."""
