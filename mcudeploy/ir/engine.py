"""Names of engines that copy bytes between memories, and of the memory that has no arena."""

CPU = "cpu"
"""The name of the engine that is the first compute unit itself; it copies synchronously."""

FLASH = "flash"
"""The name of the memory that holds the program and its constants."""
