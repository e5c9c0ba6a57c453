"""The least arena for each latency overhead."""
