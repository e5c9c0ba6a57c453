"""Names of the engines that copy bytes between memories."""

CPU = "cpu"
"""The name of the engine that is the first compute unit itself; it copies synchronously."""
