"""Bytes that remember whose they are: what the judge of a plan runs the tape on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mcudeploy.common.errors import DeployError
from mcudeploy.ir.graph import Operator
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.plan import Plan, Transfer

_NOBODY, _SCRATCH, _STALE, _IN_FLIGHT = -1, -2, -3, -4


class PlanFaultError(DeployError):
    """A plan that would compute garbage; a defect of mcudeploy or of a plan file."""


def transfer_text(transfer: Transfer) -> str:
    """What a transfer is called in a message."""
    way = f"from its residence {transfer.source} to {transfer.to}"
    return f"transfer of block {transfer.block} of {transfer.tensor} {way}"


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
    written there; the bytes that a transfer in flight is to fill have a number of their own, below -3.

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
        self._next = 0
        self._sent: dict[int, int] = {}
        self._targets = {(each.tensor, each.block, each.to) for each in plan.layout.transfers}

    def place(self, tensor: str, block: int, where: str) -> tuple[int, Span]:
        """The residence that a step makes a block in, by number, and its bytes: of those that no transfer
        fills the latest; where there is none, in the first memory that has the block.
        """
        found = enumerate(self._plan.layout.blocks[tensor][block])
        here = [at for at, each in found if self.time in each.life]
        made = [at for at in here if (tensor, block, at) not in self._targets][-1:]
        made += [at for it in self._plan.layout.arenas if (at := self._ready(tensor, block, it)) is not None]
        if made:
            return made[0], self._span(tensor, block, made[0])
        raise PlanFaultError(f"{where}: block {block} of {tensor} resides nowhere at step {self.time}")

    def write(self, tensor: str, block: int, at: int) -> None:
        """Makes a block in one of its residences. What is elsewhere of it is of no use any more."""
        for other in range(len(self._plan.layout.blocks[tensor][block])):
            if (tensor, block, other) in self._numbers:
                self._numbers[tensor, block, other] = _STALE
        self._mark(tensor, block, at)

    def fill(self, tensor: str) -> None:
        """A graph input as the application fills it: whole, where it resides at first."""
        for block, residences in enumerate(self._plan.layout.blocks[tensor]):
            if residences[0].life.lo or (tensor, block, 0) in self._targets:
                raise PlanFaultError(f"block {block} of input {tensor} resides nowhere at the start")
            self._mark(tensor, block, 0)

    def begin(self, number: int, transfer: Transfer) -> None:
        """An engine takes a block from a residence that is intact to another one, apart from it, whose bytes
        nobody may touch before the end.
        """
        source = self._intact(transfer)
        target = self._span(transfer.tensor, transfer.block, transfer.to)
        if source.shares(target):
            raise PlanFaultError(f"{transfer_text(transfer)} before step {self.time}: the places overlap")
        self._cells(target)[:] = _IN_FLIGHT - number
        self._sent[number] = self._numbers[transfer.tensor, transfer.block, transfer.source]

    def finish(self, number: int, transfer: Transfer) -> None:
        """The block has come to its residence, if nobody has touched either place meanwhile."""
        self._intact(transfer)
        if self._numbers[transfer.tensor, transfer.block, transfer.source] != self._sent[number]:
            raise PlanFaultError(f"{transfer_text(transfer)}: its source is made again in flight")
        if not bool((self._cells(self._span(*_goal(transfer))) == _IN_FLIGHT - number).all()):
            raise PlanFaultError(f"{transfer_text(transfer)}: its target is overwritten in flight")
        self._mark(*_goal(transfer))

    def move(self, transfer: Transfer) -> None:
        """Gives a block its bytes in the next residence at once; that may overlap the one that it has."""
        source = self._intact(transfer)
        stays = self._plan.layout.way(transfer)[0].life.hi > self.time
        if not stays:
            self._cells(source)[:] = _NOBODY
        elif source.shares(self._span(*_goal(transfer))):
            raise PlanFaultError(f"{transfer_text(transfer)} goes over a place where the block stays")
        self._mark(*_goal(transfer))

    def _intact(self, transfer: Transfer) -> Span:
        """The bytes that a transfer is from, which hold the block."""
        source = transfer.tensor, transfer.block, transfer.source
        span = self._span(*source)
        if not self._holds(span, source):
            raise PlanFaultError(
                f"{transfer_text(transfer)} before step {self.time}: it is not in the one that it comes from"
            )
        return span

    def expect(self, tensor: str, rows: Interval, where: str) -> list[Span]:
        """The spans that hold rows of a tensor (all of it for a view), each checked to be intact: those in
        the first memory that has all of them.
        """
        root = self._shapes.roots[tensor]
        blocks, size = self._plan.layout.blocks[root], self._shapes.block_rows(root)
        if len(rows) == 0:
            return []
        if root != tensor:
            if len(blocks) > 1:
                raise PlanFaultError(f"{where} looks at {root} through view {tensor}, but it is in blocks")
            rows = Interval(0, size)
        needed = range(rows.lo // size, (rows.hi - 1) // size + 1)
        for memory in self._plan.layout.arenas:
            found = [self._ready(root, block, memory) for block in needed]
            if all(at is not None for at in found):
                break
        else:
            raise PlanFaultError(f"{where} needs {self._missing(root, needed)}")
        spans = []
        for block, at in zip(needed, found, strict=True):
            assert at is not None
            span = self._span(root, block, at)
            if not self._holds(span, (root, block, at)):
                raise PlanFaultError(f"{where} needs block {block} of {root}, which is overwritten")
            spans.append(span)
        return spans

    def _ready(self, tensor: str, block: int, memory: str) -> int | None:
        """The residence of the time in a memory that has been filled, by number."""
        for at, each in enumerate(self._plan.layout.blocks[tensor][block]):
            if each.memory == memory and self.time in each.life and (tensor, block, at) in self._numbers:
                return at
        return None

    def _missing(self, tensor: str, blocks: range) -> str:
        """What is wrong with blocks that no memory has all of."""
        for block in blocks:
            if not any(self.time in each.life for each in self._plan.layout.blocks[tensor][block]):
                return f"block {block} of {tensor}, which resides nowhere at step {self.time}"
            if all(self._ready(tensor, block, memory) is None for memory in self._plan.layout.arenas):
                return f"block {block} of {tensor}, which is not made yet"
        return f"blocks {blocks[0]} to {blocks[-1]} of {tensor} in one memory"

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
        place = next((each for each in steps[number] if self.time in each.life), None)
        if place is None:
            raise PlanFaultError(f"{where}: its scratch resides nowhere at step {self.time}")
        span = Span(place.memory, Interval(place.offset, place.offset + scratch + state))
        for other in busy:
            if span.shares(other):
                raise PlanFaultError(f"{where}: scratch {span.bytes} overlaps {other.bytes}")
        cells = self._cells(span)
        if (operator.name, -1, 0) not in self._numbers:
            self._numbers[operator.name, -1, 0] = self._next = self._next + 1
        owner = self._numbers[operator.name, -1, 0]
        if state and block > 0 and not bool((cells == owner).all()):
            raise PlanFaultError(f"{where} needs its state, which is overwritten")
        cells[:] = owner if state else _SCRATCH

    def _span(self, tensor: str, block: int, at: int) -> Span:
        place = self._plan.layout.blocks[tensor][block][at]
        size = self._shapes.block_bytes(tensor, block)
        return Span(place.memory, Interval(place.offset, place.offset + size))

    def _cells(self, span: Span) -> NDArray[np.int32]:
        return self._bytes[span.memory][span.bytes.lo : span.bytes.hi]

    def _holds(self, span: Span, owner: tuple[str, int, int]) -> bool:
        return owner in self._numbers and bool((self._cells(span) == self._numbers[owner]).all())

    def _mark(self, tensor: str, block: int, at: int) -> None:
        self._numbers[tensor, block, at] = self._next = self._next + 1
        self._cells(self._span(tensor, block, at))[:] = self._next


def _goal(transfer: Transfer) -> tuple[str, int, int]:
    """The residence that a transfer goes to."""
    return transfer.tensor, transfer.block, transfer.to
