"""Memory tags, as their source defines them."""
