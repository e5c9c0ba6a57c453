"""What tiles of operators take: measured, estimated, stored."""
