"""The independent judge of a plan. It shares no code with the scheduler, the solver or the simulator: it
runs the tape on an arena whose bytes remember who wrote them, and looks at every read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import lcm

import numpy as np
from numpy.typing import NDArray

from mcudeploy.board import Board, Unit
from mcudeploy.errors import DeployError
from mcudeploy.graph import Graph, Operator
from mcudeploy.interval import Interval
from mcudeploy.plan import Move, Placement, Plan, Step

_NOBODY, _SCRATCH = -1, -2


class PlanFaultError(DeployError):
    """A plan that would compute garbage; a defect of mcudeploy or of a plan file."""


def check(plan: Plan, work: Mapping[str, tuple[int, int]], board: Board) -> None:
    """Judges a plan for a board, given the bytes of scratch and state of each operator.

    Raises PlanFaultError where a block lies outside its arena, off the alignment of its memory and of the
    units that touch it, or where one of them does not reach it, an arena is larger than its memory has room
    for, a graph input is not in one piece, a step runs before what it reads is made, a block or a
    state it reads was overwritten, it writes over one of its own inputs without leave, steps that
    accumulate are out of order, or an output is not whole at the end. A step may be repeated, to make a
    block again that was overwritten. Moves of blocks are made as the tape has them: from where a block lies
    intact to a place that would do for it.
    """
    rooms = {memory.name: board.room(memory) for memory in board.memories}
    for memory, size in plan.layout.arenas.items():
        if memory not in rooms:
            raise PlanFaultError(f"the board has no memory {memory}")
        if size > rooms[memory]:
            raise PlanFaultError(
                f"the arena in {memory} has {size} bytes, {board.name} room for {rooms[memory]}"
            )
    _require_movable(plan, board)
    owners = _Owners(plan, work, _alignments(plan, board))
    for border in plan.graph.resident_inputs():
        owners.fill(border.tensor)
    fed: set[Step] = set()
    time = 0
    for entry in plan.tape:
        if isinstance(entry, Move):
            owners.move(entry)
            continue
        operator = plan.graph.operators[entry.operator]
        where = f"step {time} ({operator.name}, block {entry.block})"
        if not operator.inputs and entry in fed:
            raise PlanFaultError(f"{where} asks the application for the same rows again")
        fed.add(entry)
        _run_step(plan, owners, operator, entry.block, where)
        time += 1
    for border in plan.graph.outputs:
        owners.in_one_piece(border.tensor, "output")
        rows = plan.graph.tensors[border.tensor].shape[0]
        owners.expect(border.tensor, Interval(0, rows), f"the end, output {border.tensor}")


def _require_movable(plan: Plan, board: Board) -> None:
    """Raises PlanFaultError where the tape cannot have the moves of a plan: the first unit makes them."""
    moves, roots, first = plan.layout.moves, _roots(plan.graph), board.units[0]
    units = {name: board.unit(each.unit) for each in plan.functions for name in each.operators}
    touched: dict[str, set[str]] = {}
    for operator in plan.graph.operators:
        for tensor in (operator.output, *operator.inputs):
            touched.setdefault(roots[tensor], set()).add(units.get(operator.name, first).name)
    cached = any(unit.cached for unit in (first, *units.values()))
    fixed = {roots[border.tensor]: "a graph output" for border in plan.graph.outputs}
    for border in plan.graph.resident_inputs():
        if len(plan.layout.tensors[border.tensor].offsets) > 1:
            fixed[border.tensor] = "a graph input in blocks"
    latest = 0
    for move in moves:
        where = _move_text(move)
        if not latest <= move.before < len(plan.schedule.steps):
            raise PlanFaultError(f"{where} is out of order, or not before a step")
        if roots.get(move.tensor) != move.tensor:
            raise PlanFaultError(f"{where}: no tensor of this name owns memory")
        if not 0 <= move.block < len(plan.layout.tensors[move.tensor].offsets):
            raise PlanFaultError(f"{where}: {move.tensor} has no block {move.block}")
        if move.tensor in fixed:
            raise PlanFaultError(f"{where}, which is {fixed[move.tensor]}: the application knows its place")
        memory = plan.layout.tensors[move.tensor].memory
        if first.memories and memory not in first.memories:
            raise PlanFaultError(f"{where}: {first.name}, which moves blocks, does not reach {memory}")
        if cached and touched[move.tensor] != {first.name}:
            raise PlanFaultError(f"{where}: a cache may hold it, and another unit touches it")
        latest = move.before


def _move_text(move: Move) -> str:
    return f"move of block {move.block} of {move.tensor} before step {move.before}"


def _run_step(plan: Plan, owners: _Owners, operator: Operator, block: int, where: str) -> None:
    inputs = plan.graph.input_tensors(operator)
    accumulates = operator.op.accumulates
    size = plan.block_rows[operator.name]
    total = inputs[0].shape[0] if accumulates else plan.graph.tensors[operator.output].shape[0]
    if not 0 <= block * size < total:
        raise PlanFaultError(f"{where}: the operator has no block {block}")
    rows = Interval(block * size, min(total, (block + 1) * size))
    made = 0 if accumulates else block
    if size != plan.layout.tensors[operator.output].block_rows and not accumulates:
        raise PlanFaultError(f"{where}: the operator makes other blocks than its output has")
    memory, written = owners.span(operator.output, made)
    allowed = operator.op.overwrites(inputs, plan.graph.tensors[operator.output])
    nest = plan.graph.loops(operator)
    if accumulates and rows.hi < total:
        written = Interval(written.lo, written.lo)  # the last step writes the output
    busy: list[tuple[str, Interval]] = [(memory, written)]
    for operand, tensor in enumerate(inputs):
        needed = rows if accumulates else nest.rows_read(operand, rows, tensor.shape[0])
        for read in owners.expect(tensor.name, needed, where):
            same_place = read == (memory, written) and operand in allowed
            if read[0] == memory and read[1].overlaps(written) and not same_place:
                raise PlanFaultError(f"{where}: the output overlaps input {tensor.name} at {read[1]}")
            busy.append(read)
    owners.use_scratch(operator, block, busy, where)
    if not accumulates or rows.hi == total:
        owners.write(operator.output, made)


class _Owners:
    """For every byte of every arena the number of the block that was last written there."""

    def __init__(
        self, plan: Plan, work: Mapping[str, tuple[int, int]], alignments: Mapping[str, int]
    ) -> None:
        self._plan, self._work, self._alignments = plan, work, alignments
        self._taken: dict[str, int] = {}
        self._bytes: dict[str, NDArray[np.int32]] = {
            memory: np.full(size, _NOBODY, np.int32) for memory, size in plan.layout.arenas.items()
        }
        self._roots = _roots(plan.graph)
        self._moved: dict[tuple[str, int], int] = {}
        moving = {move.tensor for move in plan.layout.moves}
        self._in_one_piece = {
            name
            for name, placement in plan.layout.tensors.items()
            if name not in moving
            and all(
                at == placement.offsets[0] + i * placement.block_rows * plan.graph.tensors[name].row_bytes
                for i, at in enumerate(placement.offsets)
            )
        }
        self._numbers: dict[tuple[str, int], int] = {}

    def block_rows(self, tensor: str, block: int) -> Interval:
        size, rows = self._plan.layout.tensors[tensor].block_rows, self._plan.graph.tensors[tensor].shape[0]
        return Interval(block * size, min(rows, (block + 1) * size))

    def span(self, tensor: str, block: int) -> tuple[str, Interval]:
        """Memory and bytes of a block, inside the arena and aligned."""
        placement = self._plan.layout.tensors[tensor]
        size = len(self.block_rows(tensor, block)) * self._plan.graph.tensors[tensor].row_bytes
        return placement.memory, self._inside(placement, block, size, tensor)

    def _inside(self, placement: Placement, block: int, size: int, name: str) -> Interval:
        if not 0 <= block < len(placement.offsets):
            raise PlanFaultError(f"{name} has no block {block}")
        offset = self._moved.get((name, block), placement.offsets[block])
        # Of a tensor in one piece the tape has the first offset only.
        tabled = placement.offsets[0] if name in self._in_one_piece else offset
        alignment = self._alignments[name]
        if tabled % alignment:
            raise PlanFaultError(f"block {block} of {name} at {offset} is not aligned to {alignment}")
        arena = self._plan.layout.arenas.get(placement.memory)
        if arena is None:
            raise PlanFaultError(f"{name} lies in {placement.memory}, where the plan has no arena")
        if offset < 0 or offset + size > arena:
            raise PlanFaultError(f"block {block} of {name} at {offset} + {size} leaves its arena of {arena}")
        return Interval(offset, offset + size)

    def write(self, tensor: str, block: int) -> None:
        memory, span = self.span(tensor, block)
        number = self._numbers.setdefault((tensor, block), len(self._numbers))
        self._bytes[memory][span.lo : span.hi] = number

    def move(self, move: Move) -> None:
        """Gives a block its bytes at another place, which may overlap the one that it has."""
        key, where = (move.tensor, move.block), _move_text(move)
        memory, old = self.span(*key)
        if key not in self._numbers or not bool(
            (self._bytes[memory][old.lo : old.hi] == self._numbers[key]).all()
        ):
            raise PlanFaultError(f"{where}, which is not there")
        if move.offset == old.lo:
            raise PlanFaultError(f"{where}, which lies there already")
        self._moved[key] = move.offset
        _, new = self.span(*key)
        self._bytes[memory][old.lo : old.hi] = _NOBODY
        self._bytes[memory][new.lo : new.hi] = self._numbers[key]

    def fill(self, tensor: str) -> None:
        """A graph input as the application fills it: whole, and in one piece."""
        self.in_one_piece(tensor, "input")
        for block in range(len(self._plan.layout.tensors[tensor].offsets)):
            self.write(tensor, block)

    def in_one_piece(self, tensor: str, what: str) -> None:
        """The application sees inputs and outputs as arrays: their blocks lie one behind the other."""
        end = None
        for block in range(len(self._plan.layout.tensors[tensor].offsets)):
            _, span = self.span(tensor, block)
            if end is not None and span.lo != end:
                raise PlanFaultError(
                    f"block {block} of {what} {tensor} is at {span.lo}, apart from the others"
                )
            end = span.hi

    def expect(self, tensor: str, rows: Interval, where: str) -> list[tuple[str, Interval]]:
        """The spans that hold rows of a tensor (all of it for a view), each checked to be intact."""
        root = self._roots[tensor]
        placement = self._plan.layout.tensors[root]
        if len(rows) == 0:
            return []
        if root != tensor:
            view = self._plan.layout.tensors[tensor]
            if (view.memory, view.offsets) != (placement.memory, placement.offsets) or len(view.offsets) > 1:
                raise PlanFaultError(f"{where}: view {tensor} does not lie where {root} does, in one piece")
            rows = Interval(0, self._plan.graph.tensors[root].shape[0])
        spans = []
        for block in range(rows.lo // placement.block_rows, (rows.hi - 1) // placement.block_rows + 1):
            memory, span = self.span(root, block)
            number = self._numbers.get((root, block))
            if number is None:
                raise PlanFaultError(f"{where} needs block {block} of {root}, which is not made yet")
            if not bool((self._bytes[memory][span.lo : span.hi] == number).all()):
                raise PlanFaultError(f"{where} needs block {block} of {root}, which is overwritten")
            spans.append((memory, span))
        return spans

    def use_scratch(
        self, operator: Operator, block: int, busy: list[tuple[str, Interval]], where: str
    ) -> None:
        """Scratch or state of one step: inside its arena, and apart from all that the step reads and writes.

        A state must be as the operator's step before has left it.
        """
        scratch, state = self._work[operator.name]
        taken = self._taken.get(operator.name, 0)
        if operator.op.accumulates and block != taken:
            raise PlanFaultError(f"{where} comes when {taken} blocks are taken in")
        self._taken[operator.name] = taken + 1
        if scratch + state == 0:
            return
        placement = self._plan.layout.scratch.get(operator.name)
        if placement is None:
            raise PlanFaultError(f"{where} needs {scratch + state} bytes of scratch and has none")
        span = self._inside(placement, 0 if state else block, scratch + state, f"scratch of {operator.name}")
        for memory, other in busy:
            if memory == placement.memory and span.overlaps(other):
                raise PlanFaultError(f"{where}: scratch {span} overlaps {other}")
        cells = self._bytes[placement.memory][span.lo : span.hi]
        number = self._numbers.setdefault((f"state of {operator.name}", 0), len(self._numbers))
        if state and block > 0 and not bool((cells == number).all()):
            raise PlanFaultError(f"{where} needs its state, which is overwritten")
        cells[:] = number if state else _SCRATCH


def _alignments(plan: Plan, board: Board) -> dict[str, int]:
    """What offsets are multiples of, by tensor and "scratch of" operator: of what its memory and all units
    that touch it ask. Each of these has to reach the memory.
    """
    first, graph, roots = board.units[0], plan.graph, _roots(plan.graph)
    unit_of = {name: board.unit(each.unit) for each in plan.functions for name in each.operators}
    used = {unit.name: unit for unit in (first, *unit_of.values())}.values()
    lines = {  # where several units work, one behind a cache, no two blocks may share a line
        memory.name: lcm(*(unit.cache_line for unit in used if memory.name in unit.cached))
        for memory in board.memories
        if sum(not unit.memories or memory.name in unit.memories for unit in used) > 1
    }
    users: dict[str, list[Unit]] = {name: [] for name in roots}
    for border in (*graph.inputs, *graph.outputs):
        users[roots[border.tensor]].append(first)  # the application's
    for operator in graph.operators:
        if not operator.op.is_view:
            for tensor in (operator.output, *operator.inputs):
                users[roots[tensor]].append(unit_of.get(operator.name, first))
    asked = {
        name: _asked(board, lines, name, plan.layout.tensors[name].memory, users[root])
        for name, root in roots.items()
    }
    return asked | {
        f"scratch of {name}": _asked(
            board, lines, f"scratch of {name}", found.memory, [unit_of.get(name, first)]
        )
        for name, found in plan.layout.scratch.items()
    }


def _asked(board: Board, lines: Mapping[str, int], what: str, memory: str, units: Iterable[Unit]) -> int:
    alignment = next((it.alignment for it in board.memories if it.name == memory), 1)
    alignment = lcm(alignment, lines.get(memory, 1))
    for unit in units:
        if unit.memories and memory not in unit.memories:
            raise PlanFaultError(f"{what} lies in {memory}, which unit {unit.name} does not reach")
        alignment = lcm(alignment, unit.alignment)
    return alignment


def _roots(graph: Graph) -> dict[str, str]:
    roots = {name: name for name in graph.tensors}
    for operator in graph.operators:
        if operator.op.is_view:
            roots[operator.output] = roots[operator.inputs[0]]
    return roots
