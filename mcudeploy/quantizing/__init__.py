"""Float models to int8: a thin layer over onnxruntime.quantization that says what was lost where."""
