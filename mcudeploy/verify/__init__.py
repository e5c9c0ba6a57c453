"""Outputs against ONNX Runtime."""
