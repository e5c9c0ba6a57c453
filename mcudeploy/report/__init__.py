"""What commands say: JSON objects and charts."""
