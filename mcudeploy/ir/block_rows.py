"""The division of a tensor's rows into blocks."""

from __future__ import annotations

from typing import NamedTuple

from mcudeploy.ir.interval import Interval


class BlockRows(NamedTuple):
    """Blocks of `rows` rows. The first one lacks `lead` rows at its start, the last one may be shorter.

    With a lead, blocks end where the windows of their reader end, so that a window reads fewer blocks. In
    memory the first block has the size of the others; the `lead` rows are unused.
    """

    rows: int
    lead: int = 0

    def count(self, total: int) -> int:
        """Return the number of blocks of `total` rows."""
        return -(-(total + self.lead) // self.rows)

    def start(self, block: int) -> int:
        """Return the row at a block's address; it is negative in a first block with a lead."""
        return block * self.rows - self.lead

    def interval(self, block: int, total: int) -> Interval:
        """Return the rows of a block, in a tensor with `total` rows."""
        start = self.start(block)
        return Interval(max(0, start), min(total, start + self.rows))

    def rows_held(self, block: int, total: int) -> int:
        """Return the number of rows that a block takes in memory, including the unused ones of a lead."""
        return min(self.rows, total - self.start(block))

    def block_of(self, row: int) -> int:
        """Return the number of the block that contains a row."""
        return (row + self.lead) // self.rows

    def blocks(self, rows: Interval) -> range:
        """Return the numbers of the blocks that contain `rows`, which must not be empty."""
        return range(self.block_of(rows.lo), self.block_of(rows.hi - 1) + 1)
