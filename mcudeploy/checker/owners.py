"""Arena bytes that record their owners; the checker runs the tape of a plan on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mcudeploy.common.errors import DeployError
from mcudeploy.ir.block_rows import BlockRows
from mcudeploy.ir.engine import FLASH
from mcudeploy.ir.graph import Operator, State
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.plan import Plan, Residence, Transfer, constants_name

_NOBODY, _SCRATCH, _STALE, _IN_FLIGHT = -1, -2, -3, -4
"""Owners of bytes that no residence owns. `_STALE` stands for an invalid copy: no byte has this owner."""


class PlanFaultError(DeployError):
    """A plan that would compute garbage: a bug of mcudeploy or of a plan file."""


def transfer_text(transfer: Transfer) -> str:
    """Describe a transfer for a message."""
    way = f"from its residence {transfer.source} to {transfer.to}"
    return f"transfer of block {transfer.block} of {transfer.tensor} {way}"


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes of a memory's arena."""

    memory: str
    bytes: Interval

    def shares(self, other: Span) -> bool:
        """Return True if both have a byte in common."""
        return self.memory == other.memory and self.bytes.overlaps(other.bytes)


class Shapes:
    """The rows and bytes of blocks. `work`: bytes of scratch and of state, by operator.

    `steps` counts the steps of the schedule, at least 1.
    """

    def __init__(self, plan: Plan, work: Mapping[str, tuple[int, int]]) -> None:
        self.work, self.steps = work, max(len(plan.schedule.steps), 1)
        self._plan = plan
        self.roots = {name: name for name in plan.graph.tensors}
        self._block_rows: dict[str, BlockRows] = {}
        for operator in plan.graph.operators:
            rows = plan.graph.tensors[operator.output].shape[0]
            if operator.op.is_view:
                self.roots[operator.output] = self.roots[operator.inputs[0]]
            else:
                size = plan.rows_of(operator.name)
                whole = operator.op.accumulates or size.rows >= rows
                self._block_rows[operator.output] = BlockRows(rows) if whole else size

    def block_rows(self, tensor: str) -> BlockRows:
        """Return how steps divide a tensor into blocks; a graph input has blocks of one row, or one block."""
        rows = self._plan.graph.tensors[tensor].shape[0]
        of_input = 1 if len(self._plan.layout.blocks[tensor]) > 1 else rows
        return self._block_rows.get(tensor, BlockRows(of_input))

    def count(self, tensor: str) -> int:
        """Return the number of blocks of a tensor."""
        return self.block_rows(tensor).count(self._plan.graph.tensors[tensor].shape[0])

    def block_bytes(self, tensor: str, block: int) -> int:
        """Return the bytes of a block in memory; the last one may have fewer rows."""
        whole = self._plan.graph.tensors[tensor]
        return self.block_rows(tensor).rows_held(block, whole.shape[0]) * whole.row_bytes


class Owners:
    """The owner of every byte of every arena: the number of the residence or state written there last.

    A state is block -1 of its operator. A transfer in flight owns its target by `_IN_FLIGHT` minus its
    number. `time` is the current step: a residence that has ended by then does not exist any more.
    """

    def __init__(self, plan: Plan, shapes: Shapes) -> None:
        self.time = 0
        self._plan, self._shapes = plan, shapes
        self._next_block: dict[str, int] = {}
        self._bytes: dict[str, NDArray[np.int32]] = {
            memory: np.full(size, _NOBODY, np.int32) for memory, size in plan.layout.arenas.items()
        }
        self._numbers: dict[tuple[str, int, int], int] = {}
        self._last_number = 0
        self._sources: dict[int, int] = {}  # the owner's number at the start of each transfer
        self._targets = {(each.tensor, each.block, each.to) for each in plan.layout.transfers}
        constants = plan.layout.constants.items()
        self._loaded = {constants_name(name): it for name, it in constants if it.pieces is None}
        homes = (it.home + it.size_bytes for it in self._loaded.values())
        self._bytes[FLASH] = np.full(max(homes, default=0), _NOBODY, np.int32)
        for name in self._loaded:
            self._mark(name, 0, 0)

    def place(self, tensor: str, block: int, where: str) -> tuple[int, Span]:
        """Return the number and bytes of the residence into which a step writes a block.

        This is the latest current residence that no transfer fills. If there is none, it is the one in the
        first memory that contains the block.
        """
        residences = enumerate(self._plan.layout.blocks[tensor][block])
        here = [at for at, each in residences if self.time in each.life]
        numbers = [at for at in here if (tensor, block, at) not in self._targets][-1:]
        numbers += [
            at for it in self._plan.layout.arenas if (at := self._ready(tensor, block, it)) is not None
        ]
        if numbers:
            return numbers[0], self._span(tensor, block, numbers[0])
        raise PlanFaultError(f"{where}: block {block} of {tensor} resides nowhere at step {self.time}")

    def lead(self, tensor: str) -> int:
        """Return the rows that the first block of a tensor's memory lacks."""
        return self._shapes.block_rows(self._shapes.roots[tensor]).lead

    def write(self, tensor: str, block: int, at: int) -> None:
        """Write a block into one of its residences. Its other copies become invalid."""
        for other in range(len(self._plan.layout.blocks[tensor][block])):
            if (tensor, block, other) in self._numbers:
                self._numbers[tensor, block, other] = _STALE
        self._mark(tensor, block, at)

    def rewrite(self, tensor: str) -> None:
        """Write the only block of a tensor where a step has read it."""
        for memory in self._plan.layout.arenas:
            at = self._ready(tensor, 0, memory)
            if at is not None:
                return self.write(tensor, 0, at)
        raise AssertionError("the step has read it")

    def expect_home(self, state: State) -> None:
        """Check that a state is left where the next run reads it. Raises PlanFaultError."""
        before, after = self._shapes.roots[state.tensor], self._shapes.roots[state.after.tensor]
        home = self._plan.layout.blocks[before][0][0]
        for at, each in enumerate(self._plan.layout.blocks[after][0]):
            there = (each.memory, each.offset) == (home.memory, home.offset) and self.time in each.life
            if there and self._holds(self._span(after, 0, at), (after, 0, at)):
                return
        last = self._plan.layout.blocks[after][0][-1]
        raise PlanFaultError(
            f"state {state.tensor} is left at {last.offset} in {last.memory}, the next run reads it at "
            f"{home.offset} in {home.memory}"
        )

    def fill(self, tensor: str) -> None:
        """Fill a graph input as the application does: whole, at its first residences."""
        for block, residences in enumerate(self._plan.layout.blocks[tensor]):
            if residences[0].life.lo or (tensor, block, 0) in self._targets:
                raise PlanFaultError(f"block {block} of input {tensor} resides nowhere at the start")
            self._mark(tensor, block, 0)

    def begin(self, number: int, transfer: Transfer) -> None:
        """Begin a transfer from an intact residence to a disjoint one, which nothing may access meanwhile."""
        source = self._intact(transfer)
        target = self._span(transfer.tensor, transfer.block, transfer.to)
        if source.shares(target):
            raise PlanFaultError(f"{transfer_text(transfer)} before step {self.time}: the places overlap")
        self._cells(target)[:] = _IN_FLIGHT - number
        self._sources[number] = self._numbers[transfer.tensor, transfer.block, transfer.source]

    def finish(self, number: int, transfer: Transfer) -> None:
        """End a transfer; its target is valid if nobody accessed either place in the meantime."""
        self._intact(transfer)
        if self._numbers[transfer.tensor, transfer.block, transfer.source] != self._sources[number]:
            raise PlanFaultError(f"{transfer_text(transfer)}: its source is recomputed in flight")
        if not bool((self._cells(self._span(*_target(transfer))) == _IN_FLIGHT - number).all()):
            raise PlanFaultError(f"{transfer_text(transfer)}: its target is overwritten in flight")
        self._mark(*_target(transfer))

    def move(self, transfer: Transfer) -> None:
        """Copy a block's bytes to its next residence at once; the two may overlap."""
        source = self._intact(transfer)
        stays = self._plan.layout.way(transfer)[0].life.hi > self.time
        if not stays:
            self._cells(source)[:] = _NOBODY
        elif source.shares(self._span(*_target(transfer))):
            raise PlanFaultError(f"{transfer_text(transfer)} goes over a place where the block stays")
        self._mark(*_target(transfer))

    def _intact(self, transfer: Transfer) -> Span:
        """Return the bytes of a transfer's source, which contain the block."""
        source = transfer.tensor, transfer.block, transfer.source
        span = self._span(*source)
        if not self._holds(span, source):
            raise PlanFaultError(
                f"{transfer_text(transfer)} before step {self.time}: its source does not contain the block"
            )
        return span

    def expect(self, tensor: str, rows: Interval, where: str) -> list[Span]:
        """Return the spans that contain rows of a tensor, each checked to be intact.

        They lie in the first memory that contains all the rows. Of a view with another number of rows, they
        are the whole tensor.
        """
        root = self._shapes.roots[tensor]
        blocks, size = self._plan.layout.blocks[root], self._shapes.block_rows(root)
        if len(rows) == 0:
            return []
        if not self._plan.graph.same_rows(tensor, root):
            if len(blocks) > 1:
                raise PlanFaultError(f"{where} looks at {root} through view {tensor}, but it is in blocks")
            rows = Interval(0, size.rows)
        needed = size.blocks(rows)
        for memory in self._plan.layout.arenas:
            ready = [self._ready(root, block, memory) for block in needed]
            if all(at is not None for at in ready):
                break
        else:
            raise PlanFaultError(f"{where} needs {self._missing(root, needed)}")
        spans = []
        for block, at in zip(needed, ready, strict=True):
            assert at is not None
            span = self._span(root, block, at)
            if not self._holds(span, (root, block, at)):
                raise PlanFaultError(f"{where} needs block {block} of {root}, which is overwritten")
            spans.append(span)
        return spans

    def _ready(self, tensor: str, block: int, memory: str) -> int | None:
        """Return the number of the current, filled residence in a memory."""
        for at, each in enumerate(self._plan.layout.blocks[tensor][block]):
            if each.memory == memory and self.time in each.life and (tensor, block, at) in self._numbers:
                return at
        return None

    def _missing(self, tensor: str, blocks: range) -> str:
        """Describe the fault of blocks that no memory contains completely."""
        for block in blocks:
            if not any(self.time in each.life for each in self._plan.layout.blocks[tensor][block]):
                return f"block {block} of {tensor}, which resides nowhere at step {self.time}"
            if all(self._ready(tensor, block, memory) is None for memory in self._plan.layout.arenas):
                return f"block {block} of {tensor}, which is not written yet"
        return f"blocks {blocks[0]} to {blocks[-1]} of {tensor} in one memory"

    def expect_constants(self, operator: str, where: str) -> list[Span]:
        """Return the span of an operator's loaded constants, checked to be intact; none if it loads none.

        Constants in pieces come during the step: it overwrites their place as it does scratch.
        """
        name, constants = constants_name(operator), self._plan.layout.constants.get(operator)
        if constants is None:
            return []
        place = constants.place
        span = Span(place.memory, Interval(place.offset, place.offset + constants.size_bytes))
        if self.time not in place.life:
            raise PlanFaultError(f"{where}: its constants reside nowhere at step {self.time}")
        if constants.pieces is not None:
            self._cells(span)[:] = _SCRATCH
        elif not self._holds(span, (name, 0, 1)):
            raise PlanFaultError(f"{where} needs its constants, which are not loaded yet or overwritten")
        return [span]

    def use_scratch(self, operator: Operator, block: int, busy: Sequence[Span], where: str) -> None:
        """Use the scratch or state of one step; it must be disjoint from all that the step reads and writes.

        A state must be as the operator's previous step left it.
        """
        scratch, state = self._shapes.work[operator.name]
        expected = self._next_block.get(operator.name, 0)
        if operator.op.accumulates and block != expected:
            raise PlanFaultError(f"{where} adds block {block} to its sums, expected block {expected}")
        self._next_block[operator.name] = expected + 1
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
            self._numbers[operator.name, -1, 0] = self._last_number = self._last_number + 1
        owner = self._numbers[operator.name, -1, 0]
        if state and block > 0 and not bool((cells == owner).all()):
            raise PlanFaultError(f"{where} needs its state, which is overwritten")
        cells[:] = owner if state else _SCRATCH

    def _span(self, tensor: str, block: int, at: int) -> Span:
        place, size = self._place_of(tensor, block, at)
        return Span(place.memory, Interval(place.offset, place.offset + size))

    def _place_of(self, tensor: str, block: int, at: int) -> tuple[Residence, int]:
        """Return a residence of a block or of loaded constants, and their bytes."""
        constants = self._loaded.get(tensor)
        if constants is not None:
            return (constants.home_place, constants.place)[at], constants.size_bytes
        return self._plan.layout.blocks[tensor][block][at], self._shapes.block_bytes(tensor, block)

    def _cells(self, span: Span) -> NDArray[np.int32]:
        return self._bytes[span.memory][span.bytes.lo : span.bytes.hi]

    def _holds(self, span: Span, owner: tuple[str, int, int]) -> bool:
        return owner in self._numbers and bool((self._cells(span) == self._numbers[owner]).all())

    def _mark(self, tensor: str, block: int, at: int) -> None:
        self._numbers[tensor, block, at] = self._last_number = self._last_number + 1
        self._cells(self._span(tensor, block, at))[:] = self._last_number


def _target(transfer: Transfer) -> tuple[str, int, int]:
    """Return the target residence of a transfer, as tensor, block and number."""
    return transfer.tensor, transfer.block, transfer.to
