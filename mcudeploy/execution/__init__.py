"""Programs on boards: building, running, observing and counting."""
