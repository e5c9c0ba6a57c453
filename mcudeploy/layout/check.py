"""The independent judge of a plan. It shares no code with `schedule`, `memory`, or the rest of `layout`
but `owners`: it looks at every place, then runs the tape on arenas whose bytes remember whose they are, and
looks at every read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from math import lcm

from mcudeploy.boards.board import Board, Unit
from mcudeploy.ir.graph import Operator
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.plan import CPU, Plan, Residence, Run, Transfer
from mcudeploy.layout.owners import Owners, PlanFaultError, Shapes, Span, transfer_text

__all__ = ["PlanFaultError", "check"]

Users = Mapping[str, Mapping[str, Unit]]
"""By tensor that owns memory the units that touch it, by name."""


def check(plan: Plan, work: Mapping[str, tuple[int, int]], board: Board) -> None:
    """Judges a plan for a board, given the bytes of scratch and state of each operator.

    Raises PlanFaultError where a block resides outside its arena, off the alignment of its memory and of the
    units that touch it, or where one of them does not reach it, an arena is larger than its memory has room
    for, a graph input or output is not in one piece, a step runs before what it reads is made, what it needs
    resides nowhere then, a block or a state it reads was overwritten, it writes over one of its own inputs
    without leave, steps that accumulate are out of order, or an output is not whole at the end. A step may be
    repeated, to make a block again. A transfer takes a block from the residence before, where it is intact,
    to the one that begins then.
    """
    rooms = {memory.name: board.room(memory) for memory in board.memories}
    for memory, size in plan.layout.arenas.items():
        if memory not in rooms:
            raise PlanFaultError(f"the board has no memory {memory}")
        if size > rooms[memory]:
            raise PlanFaultError(
                f"the arena in {memory} has {size} bytes, {board.name} room for {rooms[memory]}"
            )
    shapes = Shapes(plan, work)
    _require_residences(plan, shapes)
    _require_transfers(plan)
    unit_of = {
        plan.graph.operators[entry.operator].name: board.unit(entry.unit) if entry.unit else board.units[0]
        for entry in plan.tape
        if isinstance(entry, Run)
    }
    users = _users(plan, board, shapes, unit_of)
    _require_movable(plan, board, shapes, users)
    _require_places(plan, shapes, _alignments(plan, board, users, unit_of))
    _replay(plan, shapes)


def _require_residences(plan: Plan, shapes: Shapes) -> None:
    """Raises PlanFaultError where blocks are not those of the graph, or do not reside in one memory, one time
    after the other.
    """
    wrong = set(plan.layout.blocks) ^ set(shapes.roots.values())
    if wrong:
        raise PlanFaultError(f"the plan has too many or no residences of {', '.join(sorted(wrong))}")
    for name, blocks in plan.layout.blocks.items():
        if len(blocks) != shapes.count(name):
            raise PlanFaultError(f"{name} comes in {shapes.count(name)} blocks, the plan has {len(blocks)}")
        if not all(blocks):
            raise PlanFaultError(f"block {blocks.index(())} of {name} resides nowhere")
    of_work = ((f"scratch of {name}", steps) for name, steps in plan.layout.scratch.items())
    for name, blocks in (*plan.layout.blocks.items(), *of_work):
        if len({each.memory for block in blocks for each in block}) != 1:
            raise PlanFaultError(f"{name} does not reside in one memory: the tape has one address for it")
        for number, block in enumerate(blocks):
            times = [0, *(at for each in block for at in (each.life.lo, each.life.hi)), shapes.steps]
            if times != sorted(times):
                raise PlanFaultError(
                    f"block {number} of {name} resides at {times[1:-1]} of {shapes.steps} steps"
                )


def _require_transfers(plan: Plan) -> None:
    """Raises PlanFaultError where transfers are out of order or do not join two residences."""
    latest = 0
    for transfer in plan.layout.transfers:
        where, blocks = transfer_text(transfer), plan.layout.blocks.get(transfer.tensor)
        if transfer.engine != CPU:
            raise PlanFaultError(f"{where}: there is no engine {transfer.engine}")
        if blocks is None:
            raise PlanFaultError(f"{where}: no tensor of this name owns memory")
        if not 0 <= transfer.block < len(blocks):
            raise PlanFaultError(f"{where}: {transfer.tensor} has no block {transfer.block}")
        if not 0 < transfer.to < len(blocks[transfer.block]):
            raise PlanFaultError(f"{where}: the block has no residence before, or none of this number")
        old, new = plan.layout.way(transfer)
        if not latest <= new.life.lo < len(plan.schedule.steps):
            raise PlanFaultError(f"{where} is out of order, or not before a step")
        if old.life.hi != new.life.lo:
            raise PlanFaultError(f"{where} at step {new.life.lo}: the residence before ends at {old.life.hi}")
        if old.offset == new.offset:
            raise PlanFaultError(f"{where}, where it lies already")
        latest = new.life.lo


def _require_movable(plan: Plan, board: Board, shapes: Shapes, users: Users) -> None:
    """Raises PlanFaultError where a block may not lie elsewhere later, or the first unit not transfer it."""
    first = board.units[0]
    cached = any(unit.cached for used in users.values() for unit in used.values())
    fixed = {shapes.roots[border.tensor]: "a graph output" for border in plan.graph.outputs}
    for border in plan.graph.resident_inputs():
        if len(plan.layout.blocks[border.tensor]) > 1:
            fixed[border.tensor] = "a graph input in blocks"
    for name, what in fixed.items():
        if any(each.offset != block[0].offset for block in plan.layout.blocks[name] for each in block):
            raise PlanFaultError(f"{name}, {what}, lies elsewhere later: the application knows its place")
    for transfer in plan.layout.transfers:
        where, memory = transfer_text(transfer), plan.layout.way(transfer)[1].memory
        if first.memories and memory not in first.memories:
            raise PlanFaultError(f"{where}: {first.name}, which moves blocks, does not reach {memory}")
        if cached and set(users[transfer.tensor]) != {first.name}:
            raise PlanFaultError(f"{where}: a cache may hold it, and another unit touches it")


def _require_places(plan: Plan, shapes: Shapes, alignments: Mapping[str, int]) -> None:
    """Raises PlanFaultError where a residence leaves its arena or is not aligned, or a graph input or output,
    which the application sees as an array, is not in one piece.
    """
    for name, blocks in plan.layout.blocks.items():
        sizes = [shapes.block_bytes(name, block) for block in range(len(blocks))]
        stays = all(each.offset == block[0].offset for block in blocks for each in block)
        ends = [block[0].offset + size for block, size in zip(blocks, sizes, strict=True)]
        one_piece = stays and all(
            block[0].offset == end for block, end in zip(blocks[1:], ends, strict=False)
        )
        for number, (block, size) in enumerate(zip(blocks, sizes, strict=True)):
            # Of a tensor in one piece the tape has the first offset only.
            alignment = 1 if one_piece and number else alignments[name]
            for each in block:
                _require_place(plan, each, size, alignment, f"block {number} of {name}")
    for name, steps in plan.layout.scratch.items():
        what, size = f"scratch of {name}", sum(shapes.work.get(name, (0, 0)))
        for number, step in enumerate(steps):
            for each in step:
                _require_place(plan, each, size, alignments[what], f"block {number} of {what}")
    inputs = [("input", border.tensor) for border in plan.graph.resident_inputs()]
    outputs = [("output", shapes.roots[border.tensor]) for border in plan.graph.outputs]
    for kind, name in inputs + outputs:
        places = [block[0].offset for block in plan.layout.blocks[name]]
        for number, (low, high) in enumerate(pairwise(places)):
            if low + shapes.block_bytes(name, number) != high:
                raise PlanFaultError(
                    f"block {number + 1} of {kind} {name} is at {high}, apart from the others"
                )


def _require_place(plan: Plan, place: Residence, size_bytes: int, alignment: int, what: str) -> None:
    arena = plan.layout.arenas.get(place.memory)
    if arena is None:
        raise PlanFaultError(f"{what} lies in {place.memory}, where the plan has no arena")
    if place.offset < 0 or place.offset + size_bytes > arena:
        raise PlanFaultError(f"{what} at {place.offset} + {size_bytes} leaves its arena of {arena}")
    if place.offset % alignment:
        raise PlanFaultError(f"{what} at {place.offset} is not aligned to {alignment}")


def _replay(plan: Plan, shapes: Shapes) -> None:
    """Runs the tape on bytes that remember whose they are."""
    owners = Owners(plan, shapes)
    for border in plan.graph.resident_inputs():
        owners.fill(border.tensor)
    fed: set[Run] = set()
    for entry in plan.tape:
        if isinstance(entry, Transfer):
            owners.transfer(entry)
            continue
        operator = plan.graph.operators[entry.operator]
        where = f"step {owners.time} ({operator.name}, block {entry.block})"
        if not operator.inputs and entry in fed:
            raise PlanFaultError(f"{where} asks the application for the same rows again")
        fed.add(entry)
        _run_step(plan, owners, operator, entry.block, where)
        owners.time += 1
    owners.time = shapes.steps - 1
    for border in plan.graph.outputs:
        rows = plan.graph.tensors[border.tensor].shape[0]
        owners.expect(border.tensor, Interval(0, rows), f"the end, output {border.tensor}")


def _run_step(plan: Plan, owners: Owners, operator: Operator, block: int, where: str) -> None:
    inputs = plan.graph.input_tensors(operator)
    accumulates = operator.op.accumulates
    size = plan.block_rows[operator.name]
    total = inputs[0].shape[0] if accumulates else plan.graph.tensors[operator.output].shape[0]
    if not 0 <= block * size < total:
        raise PlanFaultError(f"{where}: the operator has no block {block}")
    rows = Interval(block * size, min(total, (block + 1) * size))
    made = 0 if accumulates else block
    written: Span | None = None
    if not accumulates or rows.hi == total:  # the last step writes the output
        written = owners.span(operator.output, made, where)
    allowed = operator.op.overwrites(inputs, plan.graph.tensors[operator.output])
    nest = plan.graph.loops(operator)
    busy = [] if written is None else [written]
    for operand, tensor in enumerate(inputs):
        needed = rows if accumulates else nest.rows_read(operand, rows, tensor.shape[0])
        for read in owners.expect(tensor.name, needed, where):
            same_place = read == written and operand in allowed
            if written is not None and read.shares(written) and not same_place:
                raise PlanFaultError(f"{where}: the output overlaps input {tensor.name} at {read.bytes}")
            busy.append(read)
    owners.use_scratch(operator, block, busy, where)
    if written is not None:
        owners.write(operator.output, made, where)


def _users(plan: Plan, board: Board, shapes: Shapes, unit_of: Mapping[str, Unit]) -> Users:
    """The units that touch each tensor: the first one inputs and outputs, for the application."""
    first, users = board.units[0], dict[str, dict[str, Unit]]()
    for border in (*plan.graph.inputs, *plan.graph.outputs):
        users.setdefault(shapes.roots[border.tensor], {})[first.name] = first
    for operator in plan.graph.operators:
        if operator.name in unit_of:
            unit = unit_of[operator.name]
            for tensor in (operator.output, *operator.inputs):
                users.setdefault(shapes.roots[tensor], {})[unit.name] = unit
    return {name: users.get(name, {}) for name in plan.layout.blocks}


def _alignments(plan: Plan, board: Board, users: Users, unit_of: Mapping[str, Unit]) -> dict[str, int]:
    """What offsets are multiples of, by tensor and "scratch of" operator: of what its memory and all units
    that touch it ask. Each of these has to reach the memory.
    """
    used = {unit.name: unit for unit in (board.units[0], *unit_of.values())}.values()
    lines = {  # where several units work, one behind a cache, no two blocks may share a line
        memory.name: lcm(*(unit.cache_line for unit in used if memory.name in unit.cached))
        for memory in board.memories
        if sum(not unit.memories or memory.name in unit.memories for unit in used) > 1
    }
    found = {}
    for name, blocks in plan.layout.blocks.items():
        found[name] = _asked(board, lines, name, blocks[0][0].memory, users[name].values())
    for name, steps in plan.layout.scratch.items():
        what, memory = f"scratch of {name}", next(each.memory for step in steps for each in step)
        found[what] = _asked(board, lines, what, memory, [unit_of[name]] if name in unit_of else [])
    return found


def _asked(board: Board, lines: Mapping[str, int], what: str, memory: str, units: Iterable[Unit]) -> int:
    alignment = next((it.alignment for it in board.memories if it.name == memory), 1)
    alignment = lcm(alignment, lines.get(memory, 1))
    for unit in units:
        if unit.memories and memory not in unit.memories:
            raise PlanFaultError(f"{what} lies in {memory}, which unit {unit.name} does not reach")
        alignment = lcm(alignment, unit.alignment)
    return alignment
