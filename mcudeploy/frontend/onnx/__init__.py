"""ONNX files: parsed, checked and held as nodes."""
