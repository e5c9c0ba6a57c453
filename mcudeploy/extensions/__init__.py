"""Features beside the core: each folder is an extension, which the core does not import."""
