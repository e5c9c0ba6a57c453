"""What searches for offsets do in a second of a desktop computer, each in its own measure. Seconds become so
much effort, so that offsets hang on no clock.
"""

SWEPT = 40_000_000
"""Rectangles that sweeps look at."""

SLID = 30_000_000
"""Rectangles that the search for moves looks at."""

VISITED = 5_000_000
"""Pairs of units that ejection looks at."""

LOOKED_AT = 100_000_000
"""Rectangles and sections that the canonical search looks at."""

SOLVED = 0.035
"""Deterministic time of CP-SAT with rectangles of bytes."""

CELLS_COVERED = 2_500_000
"""Cells that literals cover when a model is built; to make a literal counts as some more."""

CLAUSES = 1.8
"""Deterministic time of CP-SAT where it learns clauses alone."""

BRAKE = 10
"""Where the computer is so many times slower, the clock ends the search after all. The canonical search alone
it ends at the limit itself, which is about twice what the whole effort takes.
"""
