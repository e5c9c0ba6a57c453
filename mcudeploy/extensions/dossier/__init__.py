"""The dossier of a library: its plan, an independent checker of it, and what was verified."""
