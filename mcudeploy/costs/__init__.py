"""Times of tiles: measured, estimated, stored."""
