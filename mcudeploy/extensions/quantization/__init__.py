"""Quantisation of float models to int8, by ONNX Runtime's quantiser."""
