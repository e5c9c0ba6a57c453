"""The flash and memory footprint of a plan, and the limits that it exceeds, with the missing bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from mcudeploy.boards.board import Board
from mcudeploy.ir.engine import CPU
from mcudeploy.ir.opdef import CallTable, KernelCall
from mcudeploy.ir.plan import Plan
from mcudeploy.planner.tape.core_tables import LaneTables
from mcudeploy.planner.tape.plan_view import PlanView
from mcudeploy.planner.tape.tape import WORD_BYTES, NamedRange, Tape, handed_over, integer_bits


def weights_bytes(calls: Mapping[str, KernelCall]) -> int:
    """Return the bytes of constants in flash; equal ones count once, as they are stored."""
    arrays = {(array.dtype.name, array.tobytes()) for call in calls.values() for array in call.arrays()}
    return sum(len(data) for _, data in arrays)


def tables_bytes(view: PlanView, board: Board) -> int:
    """Return the bytes of flash that a plan takes in addition to code and weights.

    These are records, offset tables and schedule, as the linker reports them, up to a few bytes of padding.
    """
    plan, tape, lanes = view.plan, view.tape, view.lanes
    pointer_bytes, handed = 8 if board.is_host else 4, len(handed_over(plan, board))
    # An operator of another unit has a second record, which shares its inputs, and one that points to it.
    size = Counter(pointers=(5 + 1) * handed, words=(2 + 1 + 1 % (pointer_bytes // WORD_BYTES)) * handed)
    named: set[tuple[NamedRange, int]] = set()
    for record in tape.records:
        operator = plan.graph.operators[record.operator]
        size.update(pointers=5 + len(operator.inputs), words=2)  # kernel, parameters, inputs, output, scratch
        named |= set(record.touched)
        if not record.number:  # else the parameters are those of the first record
            size += _params_size(view.calls[operator.name], pointer_bytes)
    size.update(tensors=len(named))
    size += _slices_size(tape, lanes, pointer_bytes)
    for moves in tape.moves:  # a record, its input and its parameters, two tensors of places, bytes of each
        words = 2 + len(moves.sizes) + (moves.engine != CPU)
        size.update(pointers=5 + 1 + 1, words=words, tensors=2)
    for waits in tape.waits:  # a record and its parameters, a number for each
        size.update(pointers=5 + 1, words=2 + 1, halves=len(waits.pending))
    steps = len(tape.codes)
    if view.streams:  # a record, its parameters and arenas; firmware has the steps of the tape as well
        count = len(view.streams.memories)
        words = 2 + 2 + 2 * count + view.streams.table_bytes // WORD_BYTES
        size.update(pointers=5 + 4 + 2 * count, words=words, tensors=count)
        steps += len(view.streams.items(steps))
    if plan.parameters.parameters:  # the record of the table: three pointers, the size, the hash
        size.update(pointers=3, words=3 + 3 % (pointer_bytes // WORD_BYTES))
    # An arena's size and a lead are padded to a pointer.
    size.update(pointers=3 * size["tensors"] + 2 * len(plan.layout.arenas) + 4)
    size.update(words=2 * size["tensors"] + 3 + 3 % (pointer_bytes // WORD_BYTES))
    return (
        size["pointers"] * pointer_bytes
        + size["words"] * WORD_BYTES
        + size["halves"] * WORD_BYTES // 2
        + sum(state.initial.nbytes for state in plan.graph.states if state.initial.any())
        + _offsets_bytes(tape, board.offset_unit)
        + (steps + lanes.codes) * integer_bits(max(int(tape.codes.max(initial=0)), lanes.largest)) // 8
    )


def _params_size(call: KernelCall, pointer_bytes: int) -> Counter[str]:
    """Return the pointers and words of a kernel's parameters, and of those of the calls that it makes."""
    values = call.params.values()
    scalars = sum(isinstance(value, int | float | np.generic) for value in values)
    padding = scalars % (pointer_bytes // WORD_BYTES) if scalars < len(values) else 0
    size = Counter(pointers=len(values) - scalars, words=scalars + padding)
    for table in values:
        for stage in table.calls if isinstance(table, CallTable) else ():
            size.update(pointers=2)
            size += _params_size(stage, pointer_bytes)
    return size


def _slices_size(tape: Tape, lanes: LaneTables, pointer_bytes: int) -> Counter[str]:
    """Return the pointers, words and tensors that several cores need in addition to their tapes."""
    if not lanes.lanes:
        return Counter()
    cores, pad = len(lanes.lanes), pointer_bytes // WORD_BYTES - 1
    size = Counter(pointers=cores + 4, words=cores * (1 + pad) + 1 + pad)
    tensors: set[tuple[object, ...]] = set()
    calls: dict[tuple[object, ...], KernelCall] = {}
    for part in lanes.records:
        record = tape.records[part.base]
        operator = tape.plan.graph.operators[record.operator]
        inputs = len(operator.inputs)
        size.update(pointers=5 + inputs, words=2)
        shifts = [*[part.input_shift] * inputs, part.output_shift, part.scratch_shift]
        for role, (shift, touched) in enumerate(zip(shifts, record.touched, strict=False)):
            if shift:
                tensors.add((part.core, part.columns, min(role, inputs), touched))
        if part.call:
            calls[part.core, part.columns, operator.name] = part.call
    for call in calls.values():
        size += _params_size(call, pointer_bytes)
    size.update(tensors=len(tensors))
    return size


def _offsets_bytes(tape: Tape, alignment: int) -> int:
    stored = [offset for each in tape.all_stored() for offset in each.offsets]
    return len(stored) * integer_bits(max(stored, default=0) // alignment) // 8


def missing(
    view: PlanView, board: Board, ram_limit: int | None, least_weights: float | None = None
) -> list[str]:
    """Describe each limit of the board or the user that a plan exceeds, and by how much; empty if it fits.

    If the weights alone exceed the flash, the arena is omitted. No other plan helps, unless
    `least_weights`, the bytes by the kernels with the smallest constants, fit.
    """
    plan, board = view.plan, board.with_more_stack(view.plan.form.stack_bytes)
    weights, tables = weights_bytes(view.calls), tables_bytes(view, board)
    flash = board.flash_room
    limit, way_out = f"the flash of {board.name} has", "take a smaller model or another board"
    if flash < board.flash_bytes:
        limit, way_out = "the limit is", "take a smaller model or a higher --flash-limit"
    if weights > (most := board.weights_room):
        helps = f"No plan helps: {way_out}."
        if least_weights is not None and least_weights <= most:
            helps = f"Other kernels need {least_weights:,.0f}: plan again, under this limit."
        return [f"weights need {weights:,} bytes, {limit} {most:,}: {weights - most:,} too many. {helps}"]
    arena = plan.layout.arena_bytes
    short = shortages(view, board)
    if ram_limit is not None and arena > ram_limit:
        short.append(
            f"arena needs {arena:,} bytes, the limit is {ram_limit:,}: {arena - ram_limit:,} too many; "
            f"the peak is at {step_text(plan, plan.estimate.peak_step)}."
        )
    if weights + tables > flash:
        short.append(
            f"weights need {weights:,} bytes and the plan's tables {tables:,}, {limit} {flash:,}: "
            f"{weights + tables - flash:,} too many."
        )
    return short


def shortages(view: PlanView, board: Board) -> list[str]:
    """Describe every memory that is too small for its arena, then those that have room for theirs."""
    plan, arenas = view.plan, view.plan.layout.arenas
    parameters, first = plan.parameters.ram_bytes, board.memories[0]
    free = board.free_bytes(first)
    if parameters > free:
        return [
            f"parameters need {parameters:,} bytes, {first.name} of {board.name} has room for {free:,}: "
            f"{parameters - free:,} too many. Name fewer operators with --replaceable."
        ]
    board = board.reserving(parameters)
    rooms = {memory.name: board.room(memory) for memory in board.memories}
    short = [name for name, size in arenas.items() if size > rooms[name]]
    if not short:
        return []
    sentences = []
    for name in short:
        step = view.loads[name].index(max(view.loads[name]))
        sentences.append(
            f"arena needs {arenas[name]:,} bytes, {name} of {board.name} has room for {rooms[name]:,}: "
            f"{arenas[name] - rooms[name]:,} too many; the peak is at {step_text(plan, step)}."
        )
    if board.keeps_reach:
        sentences.append(f"Inputs and outputs stay out of {board.unreached_text}; --no-dma-io lets them in.")
    if parameters:
        sentences.append(f"Parameters take {parameters:,} bytes of {first.name} (--replaceable).")
    closed = {it.name: it.bytes for it in board.memories if not rooms[it.name] and it.arena_limit == 0}
    left = [name for name in rooms if name not in short and name not in closed]
    if left:
        others = (f"{name} has {arenas.get(name, 0):,} of {rooms[name]:,}" for name in left)
        sentences.append(f"Of the other memories {', '.join(others)}.")
    for name, size in closed.items():
        sentences.append(f"{name} is left out: --memory {name}=BYTES lets in an arena, of {size:,} at most.")
    return sentences


def step_text(plan: Plan, step: int) -> str:
    """Describe a step with its operator."""
    if step >= len(plan.schedule.steps):
        return f"step {step}"
    return f"step {step} ({plan.graph.operators[plan.schedule.steps[step].operator].name})"
