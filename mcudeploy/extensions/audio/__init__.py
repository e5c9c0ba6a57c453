"""Sound: front ends that compute features from samples, signal operators, wake words."""
