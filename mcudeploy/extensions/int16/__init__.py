"""Activations of 16 bits with weights of 8 bits, from .tflite and QDQ files."""
