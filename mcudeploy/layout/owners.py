"""Bytes that remember whose they are: what the judge of a plan runs the tape on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mcudeploy.common.errors import DeployError
from mcudeploy.ir.graph import Operator
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.plan import Plan, Residence, Transfer

_NOBODY, _SCRATCH = -1, -2


class PlanFaultError(DeployError):
    """A plan that would compute garbage; a defect of mcudeploy or of a plan file."""


def transfer_text(transfer: Transfer) -> str:
    """What a transfer is called in a message."""
    return f"transfer of block {transfer.block} of {transfer.tensor} to its residence {transfer.to}"


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes of a memory's arena."""

    memory: str
    bytes: Interval

    def shares(self, other: Span) -> bool:
        """True where both have a byte in common."""
        return self.memory == other.memory and self.bytes.overlaps(other.bytes)


class Shapes:
    """What blocks are: rows and bytes. `steps` are those of the schedule, at least 1."""

    def __init__(self, plan: Plan, work: Mapping[str, tuple[int, int]]) -> None:
        self.work, self.steps = work, max(len(plan.schedule.steps), 1)
        self._plan = plan
        self.roots = {name: name for name in plan.graph.tensors}
        self._made_rows: dict[str, int] = {}
        for operator in plan.graph.operators:
            rows = plan.graph.tensors[operator.output].shape[0]
            if operator.op.is_view:
                self.roots[operator.output] = self.roots[operator.inputs[0]]
            else:
                size = rows if operator.op.accumulates else plan.block_rows[operator.name]
                self._made_rows[operator.output] = min(size, rows)

    def block_rows(self, tensor: str) -> int:
        """Rows in a block: those that a step makes; of a graph input one, or all."""
        rows = self._plan.graph.tensors[tensor].shape[0]
        return self._made_rows.get(tensor, 1 if len(self._plan.layout.blocks[tensor]) > 1 else rows)

    def count(self, tensor: str) -> int:
        """Blocks of a tensor."""
        return -(-self._plan.graph.tensors[tensor].shape[0] // self.block_rows(tensor))

    def block_bytes(self, tensor: str, block: int) -> int:
        """Bytes of a block; of the last one those of the rows that are left."""
        size, found = self.block_rows(tensor), self._plan.graph.tensors[tensor]
        return (min(found.shape[0], (block + 1) * size) - block * size) * found.row_bytes


class Owners:
    """For every byte of every arena the number of the residence, or of the state (block -1), that was last
    written there.

    `time`: the step that runs. Residences that end by then are as if they were not.
    """

    def __init__(self, plan: Plan, shapes: Shapes) -> None:
        self.time = 0
        self._plan, self._shapes = plan, shapes
        self._taken: dict[str, int] = {}
        self._bytes: dict[str, NDArray[np.int32]] = {
            memory: np.full(size, _NOBODY, np.int32) for memory, size in plan.layout.arenas.items()
        }
        self._numbers: dict[tuple[str, int, int], int] = {}

    def span(self, tensor: str, block: int, where: str) -> Span:
        """The bytes of a block in its residence of the time."""
        residences = self._plan.layout.blocks[tensor][block]
        return self._span(
            tensor, block, residences[self._now(residences, f"{where}: block {block} of {tensor}")]
        )

    def write(self, tensor: str, block: int, where: str) -> None:
        """Makes a block, in its residence of the time."""
        at = self._now(self._plan.layout.blocks[tensor][block], f"{where}: block {block} of {tensor}")
        self._mark(tensor, block, at)

    def fill(self, tensor: str) -> None:
        """A graph input as the application fills it: whole, where it resides at first."""
        for block, residences in enumerate(self._plan.layout.blocks[tensor]):
            if residences[0].life.lo:
                raise PlanFaultError(f"block {block} of input {tensor} resides nowhere at the start")
            self._mark(tensor, block, 0)

    def transfer(self, transfer: Transfer) -> None:
        """Gives a block its bytes in the next residence, which may overlap the one that it has."""
        tensor, block, to = transfer.tensor, transfer.block, transfer.to
        old = self._span(tensor, block, self._plan.layout.blocks[tensor][block][to - 1])
        if not self._holds(old, (tensor, block, to - 1)):
            raise PlanFaultError(
                f"{transfer_text(transfer)} before step {self.time}: it is not in the one before"
            )
        self._bytes[old.memory][old.bytes.lo : old.bytes.hi] = _NOBODY
        self._mark(tensor, block, to)

    def expect(self, tensor: str, rows: Interval, where: str) -> list[Span]:
        """The spans that hold rows of a tensor (all of it for a view), each checked to be intact."""
        root = self._shapes.roots[tensor]
        blocks, size = self._plan.layout.blocks[root], self._shapes.block_rows(root)
        if len(rows) == 0:
            return []
        if root != tensor:
            if len(blocks) > 1:
                raise PlanFaultError(f"{where} looks at {root} through view {tensor}, but it is in blocks")
            rows = Interval(0, size)
        spans = []
        for block in range(rows.lo // size, (rows.hi - 1) // size + 1):
            at = self._now(blocks[block], f"{where} needs block {block} of {root}, which")
            span = self._span(root, block, blocks[block][at])
            if (root, block, at) not in self._numbers:
                raise PlanFaultError(f"{where} needs block {block} of {root}, which is not made yet")
            if not self._holds(span, (root, block, at)):
                raise PlanFaultError(f"{where} needs block {block} of {root}, which is overwritten")
            spans.append(span)
        return spans

    def use_scratch(self, operator: Operator, block: int, busy: Sequence[Span], where: str) -> None:
        """Scratch or state of one step: apart from all that the step reads and writes.

        A state must be as the operator's step before has left it.
        """
        scratch, state = self._shapes.work[operator.name]
        taken = self._taken.get(operator.name, 0)
        if operator.op.accumulates and block != taken:
            raise PlanFaultError(f"{where} comes when {taken} blocks are taken in")
        self._taken[operator.name] = taken + 1
        if scratch + state == 0:
            return
        steps, number = self._plan.layout.scratch.get(operator.name, ()), 0 if state else block
        if number >= len(steps):
            raise PlanFaultError(f"{where} needs {scratch + state} bytes of scratch and has none")
        place = steps[number][self._now(steps[number], f"{where}: its scratch")]
        span = Span(place.memory, Interval(place.offset, place.offset + scratch + state))
        for other in busy:
            if span.shares(other):
                raise PlanFaultError(f"{where}: scratch {span.bytes} overlaps {other.bytes}")
        cells = self._bytes[span.memory][span.bytes.lo : span.bytes.hi]
        owner = self._numbers.setdefault((operator.name, -1, 0), len(self._numbers))
        if state and block > 0 and not bool((cells == owner).all()):
            raise PlanFaultError(f"{where} needs its state, which is overwritten")
        cells[:] = owner if state else _SCRATCH

    def _now(self, residences: Sequence[Residence], what: str) -> int:
        """The number of the residence of the time."""
        for at, each in enumerate(residences):
            if self.time in each.life:
                return at
        raise PlanFaultError(f"{what} resides nowhere at step {self.time}")

    def _span(self, tensor: str, block: int, place: Residence) -> Span:
        size = self._shapes.block_bytes(tensor, block)
        return Span(place.memory, Interval(place.offset, place.offset + size))

    def _holds(self, span: Span, owner: tuple[str, int, int]) -> bool:
        cells = self._bytes[span.memory][span.bytes.lo : span.bytes.hi]
        return owner in self._numbers and bool((cells == self._numbers[owner]).all())

    def _mark(self, tensor: str, block: int, at: int) -> None:
        span = self._span(tensor, block, self._plan.layout.blocks[tensor][block][at])
        number = self._numbers.setdefault((tensor, block, at), len(self._numbers))
        self._bytes[span.memory][span.bytes.lo : span.bytes.hi] = number
