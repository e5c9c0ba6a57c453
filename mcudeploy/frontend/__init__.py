"""The front end: ONNX and TFLite files in, graphs out. The only importer of onnx."""
