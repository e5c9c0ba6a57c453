"""Programs on boards: built, run, observed and counted."""
