"""Accuracy of a model over a test set: by its reference, by its float model, and on devices."""
