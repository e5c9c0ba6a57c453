"""Classifiers that learn on the device, and the exchange of their parameters."""
