"""Verification of outputs against ONNX Runtime."""
