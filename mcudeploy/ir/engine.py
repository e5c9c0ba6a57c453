"""Names of engines that copy bytes between memories, and of the memory that has no arena."""

CPU = "cpu"
"""The name of the engine that copies synchronously: the first compute unit itself."""

FLASH = "flash"
"""The name of the memory that holds the program and its constants."""
