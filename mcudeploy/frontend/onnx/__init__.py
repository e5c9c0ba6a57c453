"""ONNX files: parsed, checked and represented as nodes."""
