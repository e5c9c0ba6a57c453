"""Costs of the networks of an architecture search, and the plans of many models."""
