"""`.tflite` files in, ONNX models in memory out; the rest of the front end reads those. The only importer of tflite."""
