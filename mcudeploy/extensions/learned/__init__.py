"""Models of scikit-learn and similar libraries, in the domain ai.onnx.ml."""
