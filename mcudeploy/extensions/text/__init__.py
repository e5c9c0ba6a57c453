"""Language models: tokenizers, the loop that generates text, and its run on a device."""
