"""From .tflite files to ONNX models in memory, for the rest of the front end. The only importer of tflite."""
