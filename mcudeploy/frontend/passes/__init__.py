"""Passes that rewrite the model before lowering."""
