"""Rewriting of the model before lowering."""
