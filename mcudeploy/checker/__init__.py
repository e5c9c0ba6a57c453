"""The independent checker of plans; it shares no code with the planner."""
