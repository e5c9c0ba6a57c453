"""A problem and what is known of its orders as arrays, for compiled code (`flow`, which is to be changed with
their fields).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mcudeploy.scheduler.problem import Problem
from mcudeploy.scheduler.slack import Slack, mask_of

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Bits = NDArray[np.uint64]

_SETS, _SETS_BYTES = 100, 64_000_000
"""How many sets of done steps are kept for each step, and the memory for all of them."""


class Given(NamedTuple):
    """A problem: which steps touch a buffer and which buffers a step touches, as rows one behind the other;
    by buffer the steps that touch it as bits, its size, whether it is there before, stays, counts by a cut,
    or is there for one step alone; by step bytes that are there besides.
    """

    touched_at: Ints
    touched: Ints
    touches_at: Ints
    touches: Ints
    touching: Bits
    size: Ints
    initial: Flags
    kept: Flags
    inner: Flags
    alone: Flags
    fixed: Ints

    @classmethod
    def of(cls, problem: Problem) -> Given:
        """The arrays of a problem."""
        buffers = problem.buffers
        always = [b.kept and (b.initial or not b.touched_by) for b in buffers]
        alone = [len(b.touched_by) == 1 and not (b.initial or b.kept) for b in buffers]
        inner = [
            bool(b.touched_by) and not one and not each
            for b, one, each in zip(buffers, alone, always, strict=True)
        ]
        base = sum(b.size_bytes for b, each in zip(buffers, always, strict=True) if each)
        return cls(
            *_rows([buffer.touched_by for buffer in buffers]),
            *_rows(problem.touches),
            bits([mask_of(buffer.touched_by) for buffer in buffers], problem.steps),
            np.array([buffer.size_bytes for buffer in buffers], np.int64),
            np.array([buffer.initial for buffer in buffers], np.bool_),
            np.array([buffer.kept for buffer in buffers], np.bool_),
            np.array(inner, np.bool_),
            np.array(alone, np.bool_),
            np.array([base - problem.most_saved(step) for step in range(problem.steps)], np.int64),
        )


class Known(NamedTuple):
    """What is known of the orders within a bound.

    By step, as bits, the steps `before` and `behind` it. `needs`: the least bytes while a step runs, as far
    as they were worked out. `sets`: for each step `held` sets of done steps with which it takes `values`
    bytes, within the bound, that respect the pairs known when they were `looked_through`. `checked`: how many
    pairs were known when all was tried that cuts can tell of a step. `direct`: pairs of steps from which all
    that is known follows; `pairs`: the last ones learned, one behind the other and then anew from the first
    place. `counts`: see `flow`.
    """

    before: Bits
    behind: Bits
    needs: Ints
    sets: Bits
    values: Ints
    held: Ints
    looked_through: Ints
    checked: Ints
    direct: Ints
    pairs: Ints
    counts: Ints

    @classmethod
    def of(cls, problem: Problem) -> Known:
        """What the dependences say."""
        steps, slack = problem.steps, Slack.of(problem)
        before, behind = bits(slack.ancestors, steps), bits(slack.descendants, steps)
        words = before.shape[1]
        sets = max(4, min(_SETS, _SETS_BYTES // max(1, 8 * words * steps)))
        direct = [(other, step) for step, needed in enumerate(problem.before) for other in needed]
        room = np.zeros((len(direct) + 8 * steps + 8, 2), np.int64)
        room[: len(direct)] = np.array(direct, np.int64).reshape(-1, 2)
        return cls(
            before,
            behind,
            np.zeros(steps, np.int64),
            np.zeros((steps, sets, words), np.uint64),
            np.zeros((steps, sets), np.int64),
            np.zeros(steps, np.int64),
            np.zeros(steps, np.int64),
            np.full(steps, -1, np.int64),
            room,
            np.zeros((4 * steps, 2), np.int64),
            np.array([len(direct), 0, 0], np.int64),
        )

    def copy(self) -> Known:
        """The same, to be changed."""
        return Known(*(array.copy() for array in self))  # type: ignore[arg-type]


def bits(sets: Sequence[int], members: int) -> Bits:
    """Sets as rows of 64 bits each."""
    words = (members + 63) // 64
    raw = b"".join(each.to_bytes(8 * words, "little") for each in sets)
    return np.frombuffer(raw, "<u8").astype(np.uint64).reshape(-1, words)


def counts(sets: Bits) -> Ints:
    """How many members sets have (numpy has a function for it from 2.0 on)."""
    found: Ints = np.unpackbits(sets.view(np.uint8), axis=1).sum(1, dtype=np.int64)
    return found


def _rows(lists: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    """Where each list begins, and all of them in a row."""
    begin = np.cumsum([0, *map(len, lists)])
    return begin.astype(np.int64), np.array([one for row in lists for one in row], np.int64)
