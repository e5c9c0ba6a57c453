"""Reading of ONNX files: checks, repairs, plain forms, and a representation without protobufs."""
