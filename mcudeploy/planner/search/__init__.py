"""The search for cuts, and the stages that follow it."""
