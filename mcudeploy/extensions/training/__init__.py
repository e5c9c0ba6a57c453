"""Training steps: a float32 model with its loss, the gradients of chosen parameters and their update."""
