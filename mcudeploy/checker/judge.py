"""The independent checker of a plan. Apart from `owners` it shares no code with the planner.

It checks every place, then runs the tape on arenas whose bytes record their owners, and checks every read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import lcm

from mcudeploy.boards.board import Board, Unit
from mcudeploy.checker.owners import PlanFaultError, Shapes, transfer_text
from mcudeploy.checker.races import require_no_races
from mcudeploy.checker.replay import replay
from mcudeploy.ir.engine import CPU, FLASH
from mcudeploy.ir.parameter_table import PARAMETER_ALIGNMENT
from mcudeploy.ir.plan import Pieces, Plan, Residence, Run, Transfer, constants_name

__all__ = ["PlanFaultError", "check"]

Users = Mapping[str, Mapping[str, Unit]]
"""The units that access each tensor that owns memory, by tensor name."""


def check(plan: Plan, work: Mapping[str, tuple[int, int]], board: Board) -> None:
    """Check a plan for a board, given the bytes of scratch and state of each operator.

    Raises PlanFaultError in these cases:
    - A block lies outside its arena, or not aligned for its memory and the units that access it.
    - A unit does not reach a block that it accesses.
    - An arena is larger than its memory has room for, or the first one with the parameters beside it.
    - Parameters overlap, are misaligned or outside of their table, or belong to an operator without a step.
    - A graph input or output is not contiguous, or an output is not whole at the end.
    - An input, an output or a state does not begin at a line of the application's cache.
    - The next run does not find a state where this one leaves it.
    - A step runs before its input is computed, or its input resides nowhere at that time.
    - A block or a state that a step reads was overwritten.
    - A step writes over one of its inputs without permission.
    - Steps that accumulate are out of order.
    - Loaded constants are not whole before their first reader, or overwritten before their last one.

    A step may be repeated, to rematerialise a block. A transfer copies a block from a residence in which it
    is intact to one that begins then. Until it ends, nothing may access either place, except to read the
    source. `races` checks the tapes of several cores.
    """
    rooms = {memory.name: board.room(memory) for memory in board.memories}
    for memory, size in plan.layout.arenas.items():
        if memory not in rooms:
            raise PlanFaultError(f"the board has no memory {memory}")
        if size > rooms[memory]:
            raise PlanFaultError(
                f"the arena in {memory} has {size} bytes, {board.name} has room for {rooms[memory]}"
            )
    _require_parameters(plan, board)
    _require_constants(plan, board)
    shapes = Shapes(plan, work)
    _require_leads(plan, shapes)
    _require_residences(plan, shapes)
    _require_transfers(plan, board)
    unit_of = {
        plan.graph.operators[entry.operator].name: board.unit(entry.unit) if entry.unit else board.units[0]
        for entry in plan.tape
        if isinstance(entry, Run)
    }
    users = _users(plan, board, shapes, unit_of)
    _require_movable(plan, board, shapes, users)
    _require_places(plan, shapes, _alignments(plan, board, users, unit_of))
    _require_lines(plan, board, shapes)
    replay(plan, shapes)
    if plan.lanes:
        _require_cores(plan, board)
        require_no_races(plan, shapes)


def _require_parameters(plan: Plan, board: Board) -> None:
    """Check that every parameter has bytes that no other has, in a table beside the first memory's arena.

    They live from run to run: no step writes outside of the arenas. Raises PlanFaultError.
    """
    table, first = plan.parameters, board.memories[0]
    run = {plan.graph.operators[step.operator].name for step in plan.schedule.steps}
    end = 0
    for it in sorted(table.parameters, key=lambda each: each.offset):
        label = f"parameter {it.name} of {it.operator}"
        if it.operator not in run:
            raise PlanFaultError(f"{label} belongs to no step")
        if it.offset < end:
            raise PlanFaultError(f"{label} at {it.offset} overlaps another, which ends at {end}")
        if it.offset % max(PARAMETER_ALIGNMENT, it.values.itemsize):
            raise PlanFaultError(f"{label} at {it.offset} is not aligned to {PARAMETER_ALIGNMENT}")
        end = it.offset + it.values.size * it.values.itemsize
    if end > table.size_bytes:
        raise PlanFaultError(f"parameters end at {end}, their table has {table.size_bytes} bytes")
    arena, free = plan.layout.arenas.get(first.name, 0), board.free_bytes(first)
    if table.parameters and arena + table.ram_bytes > free:
        raise PlanFaultError(
            f"the arena in {first.name} has {arena} bytes and the parameters {table.ram_bytes}, "
            f"{board.name} has room for {free}"
        )


def _require_constants(plan: Plan, board: Board) -> None:
    """Check where loaded constants lie, and what loads them: one transfer, or a step that loads pieces.

    Raises PlanFaultError.
    """
    constants = plan.layout.constants
    if constants and (plan.lanes or plan.functions):
        raise PlanFaultError("a plan loads constants for one core on one unit, and this one has several")
    run = {plan.graph.operators[step.operator].name for step in plan.schedule.steps}
    loads = [it.tensor for it in plan.layout.transfers if plan.layout.loaded_by(it)]
    end = 0
    for name, it in sorted(constants.items(), key=lambda each: each[1].home):
        label, place = constants_name(name), it.place
        if name not in run or name in plan.parameters.operators:
            raise PlanFaultError(f"{label}: no step reads them in flash")
        if loads.count(label) != (it.pieces is None):
            wanted = "one" if it.pieces is None else "pieces alone"
            raise PlanFaultError(f"{label} have {loads.count(label)} transfers, not {wanted}")
        if it.pieces is not None:
            _require_pieces(plan, board, name, it.pieces)
        elif it.home < end or it.home % PARAMETER_ALIGNMENT:
            raise PlanFaultError(f"{label} at {it.home} in flash are misaligned, or overlap others at {end}")
        else:
            end = it.home + it.size_bytes
        line = board.cache_line_of(place.memory)
        line_alignment = 1 if it.pieces is None and _engine_of(plan, label) == CPU else line
        alignment = lcm(PARAMETER_ALIGNMENT, board.memory(place.memory).alignment, line_alignment)
        _require_times(label, [place], max(len(plan.schedule.steps), 1))
        _require_place(plan, place, it.size_bytes, alignment, label)
        if it.size_bytes % line_alignment:
            raise PlanFaultError(f"{label} end within a line of the cache, {it.size_bytes} bytes of {line}")


def _require_pieces(plan: Plan, board: Board, name: str, pieces: Pieces) -> None:
    """Raises PlanFaultError unless an engine brings the pieces, which are the channels of one vector."""
    memories = {FLASH, plan.layout.constants[name].place.memory}
    link = next((it for it in board.links if it.engine == pieces.engine), None)
    label = f"{name}, {pieces.count} pieces of {pieces.channels} channels"
    if link is None or not memories <= set(link.memories):
        raise PlanFaultError(f"{label}: {pieces.engine} does not join {' and '.join(sorted(memories))}")
    operator = next(it for it in plan.graph.operators if it.name == name)
    shape = plan.graph.tensors[operator.output].shape
    if shape[:2] != (1, 1) or not 0 <= pieces.count * pieces.channels - shape[2] < pieces.channels < shape[2]:
        raise PlanFaultError(f"{label}: these are not a vector of {shape}")


def _engine_of(plan: Plan, label: str) -> str:
    return next(it.engine for it in plan.layout.transfers if it.tensor == label)


def _require_leads(plan: Plan, shapes: Shapes) -> None:
    """Raises PlanFaultError for a lead of a whole block, or of an output, a view, a sum or a whole tensor."""
    outputs = {shapes.roots[io.tensor] for io in plan.graph.outputs}
    for operator in plan.graph.operators:
        rows, lead = plan.rows_of(operator.name)
        total = plan.graph.tensors[operator.output].shape[0]
        is_free = operator.output not in outputs and not operator.op.accumulates and not operator.op.is_view
        if lead and not (is_free and 0 < lead < rows < total):
            raise PlanFaultError(f"{operator.name}, {total} rows in blocks of {rows}, has a lead of {lead}")


def _require_cores(plan: Plan, board: Board) -> None:
    """Raises PlanFaultError if the board has fewer cores, or if a core does not reach an arena's memory."""
    if len(plan.lanes) > board.cores:
        raise PlanFaultError(f"tapes for {len(plan.lanes)} cores, {board.name} has {board.cores}")
    if plan.functions:
        raise PlanFaultError("a plan has operators on other units or tapes for several cores, not both")
    used = {name for name, size in plan.layout.arenas.items() if size}
    if plan.parameters.parameters:
        used.add(board.memories[0].name)
    for memory in sorted(used):
        for unit in board.units:
            if unit.memories and memory not in unit.memories:
                raise PlanFaultError(f"arena or parameters in {memory}, which {unit.name} does not reach")


def _require_residences(plan: Plan, shapes: Shapes) -> None:
    """Check that every block has residences, in order of time, and at most one in a memory at a time.

    Scratch of an operator must lie in one memory. Raises PlanFaultError.
    """
    wrong = set(plan.layout.blocks) ^ set(shapes.roots.values())
    if wrong:
        raise PlanFaultError(f"the plan has too many or no residences of {', '.join(sorted(wrong))}")
    for name, blocks in plan.layout.blocks.items():
        if len(blocks) != shapes.count(name):
            raise PlanFaultError(f"{name} comes in {shapes.count(name)} blocks, the plan has {len(blocks)}")
        if not all(blocks):
            raise PlanFaultError(f"block {blocks.index(())} of {name} resides nowhere")
    scratch = ((f"scratch of {name}", steps) for name, steps in plan.layout.scratch.items())
    for name, blocks in (*plan.layout.blocks.items(), *scratch):
        for number, block in enumerate(blocks):
            _require_times(f"block {number} of {name}", block, shapes.steps)
    for name, steps in plan.layout.scratch.items():
        if len({each.memory for step in steps for each in step}) != 1:
            raise PlanFaultError(f"scratch of {name} does not reside in one memory: it has one address")


def _require_times(label: str, residences: Sequence[Residence], steps: int) -> None:
    starts = [each.life.lo for each in residences]
    by_memory: dict[str, list[int]] = {}
    for each in residences:
        by_memory.setdefault(each.memory, [0]).extend((each.life.lo, each.life.hi))
    sequences = (starts, *([*times, steps] for times in by_memory.values()))
    if any(list(times) != sorted(times) for times in sequences):
        raise PlanFaultError(
            f"{label} resides at {', '.join(str(each.life) for each in residences)} of {steps} steps"
        )


def _require_transfers(plan: Plan, board: Board) -> None:
    """Check that transfers are in order, join two residences, and use an engine that reaches both.

    Raises PlanFaultError.
    """
    latest, steps = 0, len(plan.schedule.steps)
    links = {link.engine: link.memories for link in board.links}
    for transfer in plan.layout.transfers:
        where, blocks = transfer_text(transfer), _moved(plan, transfer)
        if transfer.engine not in (CPU, *links):
            raise PlanFaultError(f"{where}: there is no engine {transfer.engine!r}")
        if blocks is None:
            raise PlanFaultError(f"{where}: no tensor of this name owns memory")
        if not 0 <= transfer.block < len(blocks):
            raise PlanFaultError(f"{where}: {transfer.tensor} has no block {transfer.block}")
        count = len(blocks[transfer.block])
        if not (0 <= transfer.source < count and 0 < transfer.to < count):
            raise PlanFaultError(f"{where}: expected residences below {count}, and a target above 0")
        old, new = plan.layout.way(transfer)
        begin = new.life.lo
        if not (latest <= begin < steps and begin <= transfer.end <= steps):
            raise PlanFaultError(f"{where} is out of order, or not before a step")
        if not (old.life.lo <= begin and transfer.end <= old.life.hi and transfer.end <= new.life.hi):
            raise PlanFaultError(
                f"{where} from step {begin} to {transfer.end}: the residence before is that of {old.life}"
            )
        if (old.memory, old.offset) == (new.memory, new.offset):
            raise PlanFaultError(f"{where}: both have the same offset")
        if transfer.engine == CPU and transfer.end != begin:
            raise PlanFaultError(f"{where}: the CPU does not transfer while it runs steps")
        if transfer.engine != CPU and not {old.memory, new.memory} <= set(links[transfer.engine]):
            raise PlanFaultError(f"{where}: {transfer.engine} does not join {old.memory} and {new.memory}")
        latest = begin


def _moved(plan: Plan, transfer: Transfer) -> Sequence[Sequence[Residence]] | None:
    """Return the residences by block of what a transfer moves; None if the plan does not have it."""
    constants = plan.layout.loaded_by(transfer)
    if constants is not None:
        return [(constants.home_place, constants.place)]
    return plan.layout.blocks.get(transfer.tensor)


def _require_movable(plan: Plan, board: Board, shapes: Shapes, users: Users) -> None:
    """Raises PlanFaultError if a block moves that must not move, or that the first unit cannot transfer."""
    first = board.units[0]
    cached = any(unit.cached for used in users.values() for unit in used.values())
    fixed = {shapes.roots[io.tensor]: "a graph output" for io in plan.graph.own_outputs()}
    for io in plan.graph.resident_inputs():
        if len(plan.layout.blocks[io.tensor]) > 1:
            fixed[io.tensor] = "a graph input in blocks"
    for name, label in fixed.items():
        for block in plan.layout.blocks[name]:
            home = block[0]  # rows of an input may additionally be copied to other memories
            others = (each for each in block if label == "a graph output" or each.memory == home.memory)
            if any((each.memory, each.offset) != (home.memory, home.offset) for each in others):
                raise PlanFaultError(
                    f"{name}, {label}, lies elsewhere later: the application knows its place"
                )
    for transfer in plan.layout.transfers:
        if plan.layout.loaded_by(transfer):
            continue
        where, memories = transfer_text(transfer), {each.memory for each in plan.layout.way(transfer)}
        if transfer.engine == CPU and first.memories and not memories.issubset(first.memories):
            raise PlanFaultError(f"{where}: {first.name} does not reach {' and '.join(sorted(memories))}")
        if cached and set(users[transfer.tensor]) != {first.name}:
            raise PlanFaultError(f"{where}: a cache may hold it, and another unit touches it")


def _require_places(plan: Plan, shapes: Shapes, alignments: Mapping[tuple[str, str], int]) -> None:
    """Check that residences are aligned and inside their arenas, and that inputs and outputs are contiguous.

    The application sees a graph input or output as an array. Raises PlanFaultError.
    """
    transferred = {
        (each.tensor, each.block, number)
        for each in plan.layout.transfers
        for number in (each.source, each.to)
    }
    for name, blocks in plan.layout.blocks.items():
        sizes = [shapes.block_bytes(name, block) for block in range(len(blocks))]
        for memory in {each.memory for block in blocks for each in block}:
            numbers = [[at for at, each in enumerate(it) if each.memory == memory] for it in blocks]
            places = [[block[at] for at in here] for block, here in zip(blocks, numbers, strict=True)]
            # For a contiguous tensor, the tape has only the first offset, and those of its transfers.
            contiguous = _is_contiguous([{each.offset for each in block} for block in places], sizes)
            for number, (residences, here, size) in enumerate(zip(places, numbers, sizes, strict=True)):
                for each, at in zip(residences, here, strict=True):
                    listed = not (contiguous and number) or (name, number, at) in transferred
                    alignment = alignments[name, memory] if listed else 1
                    _require_place(plan, each, size, alignment, f"block {number} of {name}")
    for name, steps in plan.layout.scratch.items():
        label, size = f"scratch of {name}", sum(shapes.work.get(name, (0, 0)))
        for number, step in enumerate(steps):
            for each in step:
                _require_place(plan, each, size, alignments[label, each.memory], f"block {number} of {label}")
    inputs = [("input", io.tensor) for io in plan.graph.resident_inputs()]
    outputs = [("output", shapes.roots[io.tensor]) for io in plan.graph.outputs]
    for kind, name in inputs + outputs:
        homes = [(block[0].memory, block[0].offset) for block in plan.layout.blocks[name]]
        for number, ((memory, low), high) in enumerate(pairwise(homes)):
            if (memory, low + shapes.block_bytes(name, number)) != high:
                raise PlanFaultError(
                    f"block {number + 1} of {kind} {name} is at {high[1]}, apart from the others"
                )


def _require_lines(plan: Plan, board: Board, shapes: Shapes) -> None:
    """Raises PlanFaultError if an input, an output or a state does not begin at a line of the cache."""
    for io in (*plan.graph.resident_inputs(), *plan.graph.outputs):
        offset = plan.layout.blocks[shapes.roots[io.tensor]][0][0].offset
        if offset % board.io_alignment:
            raise PlanFaultError(f"{io.name} at {offset} is not aligned to {board.io_alignment}")


def _is_contiguous(offsets: Sequence[set[int]], sizes: Sequence[int]) -> bool:
    """Return whether each block has one offset, where the block before it ends."""
    if any(len(of_block) != 1 for of_block in offsets):
        return False
    places = [next(iter(of_block)) for of_block in offsets]
    return all(low + size == high for low, high, size in zip(places, places[1:], sizes, strict=False))


def _require_place(plan: Plan, place: Residence, size_bytes: int, alignment: int, label: str) -> None:
    arena = plan.layout.arenas.get(place.memory)
    if arena is None:
        raise PlanFaultError(f"{label} lies in {place.memory}, where the plan has no arena")
    if place.offset < 0 or place.offset + size_bytes > arena:
        raise PlanFaultError(f"{label} at {place.offset} + {size_bytes} leaves its arena of {arena}")
    if place.offset % alignment:
        raise PlanFaultError(f"{label} at {place.offset} is not aligned to {alignment}")


def _users(plan: Plan, board: Board, shapes: Shapes, unit_of: Mapping[str, Unit]) -> Users:
    """Return the units that access each tensor; the application accesses inputs and outputs on the first."""
    first, users = board.units[0], dict[str, dict[str, Unit]]()
    for io in (*plan.graph.inputs, *plan.graph.outputs):
        users.setdefault(shapes.roots[io.tensor], {})[first.name] = first
    for operator in plan.graph.operators:
        if operator.name in unit_of:
            unit = unit_of[operator.name]
            for tensor in (operator.output, *operator.inputs):
                users.setdefault(shapes.roots[tensor], {})[unit.name] = unit
    return {name: users.get(name, {}) for name in plan.layout.blocks}


def _alignments(
    plan: Plan, board: Board, users: Users, unit_of: Mapping[str, Unit]
) -> dict[tuple[str, str], int]:
    """Return the alignment of offsets, by (tensor or "scratch of" operator) and memory.

    It satisfies the memory and all units that access the tensor or scratch. Raises PlanFaultError if one of
    these units does not reach the memory.
    """
    used = {unit.name: unit for unit in (board.units[0], *unit_of.values())}.values()
    lines = {  # if several units share memory, one through a cache, no two blocks may share a line
        memory.name: lcm(*(unit.cache_line for unit in used if memory.name in unit.cached))
        for memory in board.memories
        if sum(not unit.memories or memory.name in unit.memories for unit in used) > 1
    }
    touched = {name: (blocks, list(users[name].values())) for name, blocks in plan.layout.blocks.items()}
    touched |= {
        f"scratch of {name}": (steps, [unit_of[name]] if name in unit_of else [])
        for name, steps in plan.layout.scratch.items()
    }
    return {
        (name, memory): _alignment(board, lines, name, memory, units)
        for name, (blocks, units) in touched.items()
        for memory in {each.memory for block in blocks for each in block}
    }


def _alignment(board: Board, lines: Mapping[str, int], label: str, memory: str, units: Iterable[Unit]) -> int:
    alignment = next((it.alignment for it in board.memories if it.name == memory), 1)
    alignment = lcm(alignment, lines.get(memory, 1))
    for unit in units:
        if unit.memories and memory not in unit.memories:
            raise PlanFaultError(f"{label} lies in {memory}, which unit {unit.name} does not reach")
        alignment = lcm(alignment, unit.alignment)
    return alignment
