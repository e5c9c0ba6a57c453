"""mcudeploy: runs an ONNX model on a microcontroller."""

__version__ = "0.1.0"
