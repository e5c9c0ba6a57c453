"""Where each block of a tensor lies as the tape goes on: at the offset it is born at, until it is moved."""

from __future__ import annotations

from bisect import bisect_right

from mcudeploy.interval import Interval
from mcudeploy.plan import Layout, Move
from mcudeploy.simulator.blocks import BlockId


class Whereabouts:
    """The places of the blocks of tensors that own memory.

    Version v of a tensor has its places after the first v moves of its blocks. Times are steps of the
    schedule: at time t all moves before step t are made, at time -1 none.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._moves: dict[str, list[Move]] = {}
        self._moves_of: dict[BlockId, list[Move]] = {}
        self._versions_of: dict[BlockId, list[int]] = {}
        for move in layout.moves:
            block_id, earlier = (move.tensor, move.block), self._moves.setdefault(move.tensor, [])
            earlier.append(move)
            self._moves_of.setdefault(block_id, []).append(move)
            self._versions_of.setdefault(block_id, []).append(len(earlier))

    def moves(self, tensor: str) -> int:
        """How many moves there are of blocks of a tensor."""
        return len(self._moves.get(tensor, ()))

    def offset(self, block_id: BlockId, time: int) -> int:
        """Where a block lies in step `time`."""
        moves = self._moves_of.get(block_id, [])
        made = bisect_right(moves, time, key=lambda move: move.before)
        return moves[made - 1].offset if made else self._birth(block_id)

    def pieces(self, block_id: BlockId, life: Interval) -> list[tuple[Interval, int]]:
        """A life of a block (in steps), cut where it is moved: each part with the offset in it."""
        moves = self._moves_of.get(block_id, ())
        cuts = sorted({move.before for move in moves if life.lo < move.before < life.hi})
        ends = zip([life.lo, *cuts], [*cuts, life.hi], strict=True)
        return [(Interval(lo, hi), self.offset(block_id, lo)) for lo, hi in ends]

    def version(self, tensor: str, time: int) -> int:
        """The version of a tensor that holds in step `time`."""
        return bisect_right(self._moves.get(tensor, []), time, key=lambda move: move.before)

    def unmoved(self, block_id: BlockId, version: int) -> Interval:
        """The versions of its tensor, among them this one, that have a block in one place."""
        changes = self._versions_of.get(block_id, [])
        at = bisect_right(changes, version)
        ends = [0, *changes, self.moves(block_id[0]) + 1]
        return Interval(ends[at], ends[at + 1])

    def offsets(self, tensor: str, version: int) -> tuple[int, ...]:
        """The places of all blocks of a tensor in one of its versions."""
        offsets = list(self._layout.tensors[tensor].offsets)
        for move in self._moves.get(tensor, [])[:version]:
            offsets[move.block] = move.offset
        return tuple(offsets)

    def ways(self) -> list[tuple[int, int]]:
        """Of every move, in order, the place before it and the place after it."""
        found, now = [], dict[BlockId, int]()
        for move in self._layout.moves:
            block_id = move.tensor, move.block
            found.append((now.get(block_id, self._birth(block_id)), move.offset))
            now[block_id] = move.offset
        return found

    def _birth(self, block_id: BlockId) -> int:
        return self._layout.tensors[block_id[0]].offsets[block_id[1]]
