"""mcudeploy: runs an ONNX model on a microcontroller in the least RAM at full speed."""

__version__ = "0.1.0"
