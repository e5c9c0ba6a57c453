"""How the rows of a tensor are divided into blocks."""

from __future__ import annotations

from typing import NamedTuple

from mcudeploy.ir.interval import Interval


class BlockRows(NamedTuple):
    """Blocks of `rows` rows; the first one lacks `lead` rows at its start, the last one may be shorter.

    A lead makes blocks end where the windows of their reader end, so a window touches fewer blocks. In memory
    the first block is as large as the others; the rows that it lacks are unused.
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
        """Return the rows of a block, of a tensor with `total` rows."""
        start = self.start(block)
        return Interval(max(0, start), min(total, start + self.rows))

    def rows_held(self, block: int, total: int) -> int:
        """Return the rows that a block has in memory, including those that the first one lacks."""
        return min(self.rows, total - self.start(block))

    def block_of(self, row: int) -> int:
        """Return the number of the block that contains a row."""
        return (row + self.lead) // self.rows

    def blocks(self, rows: Interval) -> range:
        """Return the numbers of the blocks that contain `rows`, at least one row."""
        return range(self.block_of(rows.lo), self.block_of(rows.hi - 1) + 1)
