"""Memory tags, as their source has them."""
