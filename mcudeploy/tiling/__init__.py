"""Tensors in row blocks: dataflow, liveness and traffic."""
