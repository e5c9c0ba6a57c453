"""Boards: their memories, cores and flashers, read from `boards/*.toml`."""
