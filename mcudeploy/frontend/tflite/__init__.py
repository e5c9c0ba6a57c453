"""Translation of .tflite files to ONNX models in memory. The only importer of the package tflite."""
