"""Names of engines that copy bytes between memories, and of a memory that is none of arenas."""

CPU = "cpu"
"""The name of the engine that is the first compute unit itself; it copies synchronously."""

FLASH = "flash"
"""The name of the memory that holds the program and its constants."""
