"""From a plan to C."""
