"""Operators on compute units: functions, what each needs, the routes between them."""
