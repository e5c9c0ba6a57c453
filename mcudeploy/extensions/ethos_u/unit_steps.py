"""Steps of the unit in a plan, divided into parts as its kernels do; the words of each part."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from mcudeploy.extensions.ethos_u.registers import ADDRESSES, Stream
from mcudeploy.extensions.ethos_u.unit_blocks import even_rows
from mcudeploy.extensions.ethos_u.unit_copies import COPY_KERNEL
from mcudeploy.extensions.ethos_u.unit_elementwise import ELEMENTWISE_KERNEL
from mcudeploy.extensions.ethos_u.unit_pools import MEAN_KERNEL
from mcudeploy.ir.block_rows import BlockRows
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import KernelCall, Operator
from mcudeploy.ir.plan import Plan, Run
from mcudeploy.tiling.blocks import TiledGraph
from mcudeploy.tiling.dataflow import RowAccess
from mcudeploy.tiling.locations import BlockTable, Locations

Address = Callable[[int], int]
"""The byte at which a row of a tensor begins, in its arena."""


@dataclass(frozen=True, slots=True)
class UnitRows:
    """The output rows of one stream, and the input rows that it reads, in one run or two.

    `middle`: the input row after the first run. `above`, `below`: rows of padding. `number`: of the
    copied input. `step`: the bytes from row to row of both runs, 0 if the rows are contiguous.
    """

    rows: Interval
    reads: Interval
    middle: int
    above: int = 0
    below: int = 0
    number: int = 0
    step: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class UnitStep:
    """A step of an operator that the unit computes.

    `parts`: in sequence, the rows of a stream, or the number of an output row that the core computes.
    `sources`, `output`: places of rows. `memories`: of each input, then of the output. `entry`: its place on
    the tape.
    """

    operator: Operator
    call: KernelCall
    sources: tuple[Address, ...]
    output: Address
    parts: tuple[UnitRows | int, ...]
    memories: tuple[str, ...] = ()
    entry: int = 0

    @property
    def needs_core(self) -> bool:
        """Whether the core computes a row."""
        return any(isinstance(part, int) for part in self.parts)


def window_parts(
    call: KernelCall, rows: Interval, source: Address, row_bytes: int
) -> Iterator[UnitRows | int]:
    """Yield the parts of a step of windows; `source`: the address of an input row.

    A part has the most output rows whose input rows lie in two contiguous runs. A single row that has more
    runs is computed by `_spaced` runs, or by the core.
    """
    params: dict[str, Any] = dict(call.params)
    stride, top, span = params["stride_rows"], params["pad_top"], params["window_rows"]

    def run_end(row: int, end: int) -> int:
        while row + 1 < end and source(row + 1) == source(row) + row_bytes:
            row += 1
        return row + 1

    def two_runs(first: int, end: int) -> tuple[UnitRows, int]:
        """The part of these output rows, and the input row after its second run."""
        lo, hi = first * stride - top, (end - 1) * stride - top + span
        above, below = max(0, -lo), max(0, hi - params["input_rows"])
        reads = Interval(lo + above, hi - below)
        middle = run_end(reads.lo, reads.hi)
        second_end = run_end(middle, reads.hi) if middle < reads.hi else reads.hi
        return UnitRows(Interval(first, end), reads, middle, above, below), second_end

    row = rows.lo
    while row < rows.hi:
        part, second_end = two_runs(row, rows.hi)
        if second_end < part.reads.hi:
            spare_rows = second_end + top - span - row * stride  # input rows beyond the first output row
            if spare_rows < 0:
                part, _ = two_runs(row, row + 1)
                yield _spaced(part, [source(it) for it in range(part.reads.lo, part.reads.hi)]) or row
                row += 1
                continue
            part, _ = two_runs(row, row + spare_rows // stride + 1)
        yield part
        row = part.rows.hi


def _spaced(part: UnitRows, places: Sequence[int]) -> UnitRows | None:
    """Return the part with its rows in two runs, in both of which rows have the same distance; None if there
    are no such runs. Three rows always have them. A positive distance is preferred.
    """
    steps, first = [after - before for before, after in pairwise(places)], part.reads.lo
    choices = list[UnitRows]()
    if len(steps) > 1:
        equal = next((at for at, step in enumerate(steps) if step != steps[0]), len(steps))
        if set(steps[equal + 1 :]) <= {steps[0]}:
            choices.append(replace(part, middle=first + equal + 1, step=steps[0]))
        if len(set(steps[1:])) == 1:
            choices.append(replace(part, middle=first + 1, step=steps[1]))
    return next((it for it in choices if it.step > 0), choices[0] if choices else None)


def elementwise_parts(
    call: KernelCall, rows: Interval, sources: tuple[Address, ...], output: Address
) -> Iterator[UnitRows | int]:
    """Yield the parts of an elementwise step: rows that are contiguous in all operands.

    The core computes rows whose result overlaps an operand, unless it takes exactly its place.
    """
    params: dict[str, Any] = dict(call.params)
    size, first, other = params["row_bytes"], *_operands(call, sources)
    in_runs = [first] if other is None or not params["second_row_bytes"] else [first, other]
    row = rows.lo
    while row < rows.hi:
        end = row + 1
        while end < rows.hi and all(it(end) == it(row) + (end - row) * size for it in in_runs):
            end += 1
        written = _bytes(output(row), (end - row) * size)
        read = [_bytes(it(row), (end - row) * size) for it in in_runs]
        if other is not None and len(in_runs) == 1:
            read.append(_bytes(other(row), params["second_bytes"]))
        if any(it != written and it.overlaps(written) for it in read):
            yield from range(row, end)
        else:
            yield UnitRows(Interval(row, end), Interval(row, end), end)
        row = end


def copy_parts(
    call: KernelCall, rows: Interval, sources: tuple[Address, ...], row_bytes: tuple[int, ...]
) -> Iterator[UnitRows]:
    """Yield the parts of a step that copies inputs: contiguous rows of each input in turn."""
    params: dict[str, Any] = dict(call.params)
    first = params["first_row"]
    for number, (source, size) in enumerate(zip(sources, row_bytes, strict=True)):
        row = rows.lo + first
        while row < rows.hi + first:
            end = row + 1
            while end < rows.hi + first and source(end) == source(row) + (end - row) * size:
                end += 1
            yield UnitRows(Interval(row - first, end - first), Interval(row, end), end, number=number)
            row = end


def _bytes(begin: int, size: int) -> Interval:
    return Interval(begin, begin + size)


def _operands(call: KernelCall, sources: tuple[Address, ...]) -> tuple[Address, Address | None]:
    """Return the addresses of rows of the first operand, and of the second operand if it is an input."""
    params: dict[str, Any] = dict(call.params)
    first = sources[params["first"]]
    if len(sources) == 1:
        return first, None
    other = sources[1 - params["first"]]
    return first, other if params["second_row_bytes"] else lambda row: other(0)


def block_of(call: KernelCall, rows: int) -> tuple[int, list[int]]:
    """Return the most rows of a block of an output of `rows` rows, and the commands that set its place."""
    params: dict[str, Any] = dict(call.params)
    blocks = params["commands"][params["command_words"] :].reshape(params["blocks"], -1).tolist()
    most, *place = blocks[min(rows, len(blocks)) - 1]
    return most, place


def words_of(call: KernelCall, part: UnitRows, sources: tuple[Address, ...], output: Address) -> list[int]:
    """Return the words of the stream of a part; addresses are offsets in arenas."""
    params: dict[str, Any] = dict(call.params)
    commands, rows = params["commands"].tolist()[: params["command_words"]], part.rows
    if call.kernel == COPY_KERNEL:
        commands = params["commands"].reshape(params["inputs"], -1)[part.number].tolist()
    stream, height, begin = Stream(commands), len(rows) - 1, output(rows.lo)
    if call.kernel == ELEMENTWISE_KERNEL:
        _set_operands(stream, call, part, sources)
    elif call.kernel == COPY_KERNEL:
        source = sources[part.number](part.reads.lo) + params["read_at"]
        stream.set(IFM_BASE0=source, IFM_HEIGHT0_M1=height)
        begin += int(params["written_at"][part.number])
    else:
        source = sources[0]
        stream.set(
            IFM_BASE0=source(part.reads.lo),
            IFM_BASE2=source(part.middle if part.middle < part.reads.hi else part.reads.lo),
            IFM_HEIGHT0_M1=part.middle - part.reads.lo - 1,
            IFM_PAD_TOP=part.above,
            IFM_PAD_BOTTOM=part.below,
        )
        if part.step:
            stream.set(IFM_STRIDE_Y=part.step % ADDRESSES)
    stream.set(OFM_BASE0=begin, OFM_HEIGHT_M1=height, OFM_HEIGHT0_M1=height)
    if "blocks" in params:
        most, place = block_of(call, len(rows))
        stream.words += place
        stream.set(OFM_BLK_HEIGHT_M1=even_rows(params["granule_rows"], most, len(rows)) - 1)
    stream.words.append(params["operation"])
    stream.stop()
    return stream.words


def _set_operands(stream: Stream, call: KernelCall, part: UnitRows, sources: tuple[Address, ...]) -> None:
    """Set the registers of an elementwise operation that differ from part to part."""
    params: dict[str, Any] = dict(call.params)
    (first, other), row, step = _operands(call, sources), part.rows.lo, params["second_row_bytes"]
    stream.set(IFM_BASE0=first(row), IFM_HEIGHT0_M1=len(part.rows) - 1)
    if params["second_bytes"]:
        begin = row * step if other is None else other(row)
        stream.set(IFM2_BASE0=begin, IFM2_HEIGHT0_M1=len(part.rows) - 1 if step else 0)


def unit_steps(plan: Plan, calls: Mapping[str, KernelCall]) -> Iterator[UnitStep]:
    """Yield the steps of a plan that the unit computes, in the order of the tape."""
    if not any(call.isa.unit for call in calls.values()):
        return
    tiled, places = TiledGraph.of(plan), Locations.of(plan.layout)
    time = 0
    for at, entry in enumerate(plan.tape):
        if not isinstance(entry, Run):
            continue
        call = calls.get(plan.graph.operators[entry.operator].name)
        if call is not None and call.isa.unit:
            yield replace(_step(tiled, places, call, entry, time), entry=at)
        time += 1


def inputs_of(call: KernelCall, part: UnitRows) -> tuple[int, ...]:
    """Return the numbers of the inputs that a stream reads, in the order of its operands.

    An elementwise operation always has two numbers, even if its second operand is a constant.
    """
    params: dict[str, Any] = dict(call.params)
    if call.kernel == COPY_KERNEL:
        return (part.number,)
    return (params["first"], 1 - params["first"]) if call.kernel == ELEMENTWISE_KERNEL else (0,)


def _step(tiled: TiledGraph, places: Locations, call: KernelCall, entry: Run, time: int) -> UnitStep:
    """Return the step of an entry of the tape, with the call of its operator."""
    graph, block = tiled.graph, entry.block
    operator = graph.operators[entry.operator]
    output = graph.tensors[operator.output]
    total = tiled.flow.iteration_rows[entry.operator]
    rows = tiled.step_rows[entry.operator].interval(block, total)
    read = [
        _source(tiled, places, needed, (rows, graph.tensors[name].row_bytes, time))
        for needed, name in zip(tiled.flow.readings[entry.operator], operator.inputs, strict=True)
    ]
    sources = tuple(source for source, _ in read)
    if call.kernel == MEAN_KERNEL:
        if len(rows) < total:
            return UnitStep(operator, call, sources, sources[0], ())  # the core computes it
        call, rows = call.params["calls"].calls[0], Interval(0, 1)  # type: ignore[union-attr]
    target = places.destination((operator.output, 0 if operator.op.accumulates else block), time)
    start = tiled.tensor_block_rows(operator.output).start(block)

    def result(row: int) -> int:
        return target.offset + (row - start) * output.row_bytes

    if call.kernel == ELEMENTWISE_KERNEL:
        parts = elementwise_parts(call, rows, sources, result)
    elif call.kernel == COPY_KERNEL:
        row_bytes = tuple(graph.tensors[name].row_bytes for name in operator.inputs)
        parts = copy_parts(call, rows, sources, row_bytes)
    else:
        parts = window_parts(call, rows, sources[0], graph.tensors[operator.inputs[0]].row_bytes)
    if operator.op.accumulates:  # the core adds up rows in more than two runs
        parts = (it for it in parts if isinstance(it, UnitRows) and not it.step)
    memories = (*(memory for _, memory in read), target.memory)
    return UnitStep(operator, call, sources, result, tuple(parts), memories)


def _source(
    tiled: TiledGraph, places: Locations, needed: RowAccess, step: tuple[Interval, int, int]
) -> tuple[Address, str]:
    """Return the addresses of an input's rows that a step reads, and their memory. `step`: its output rows,
    the bytes of an input row, its time.
    """
    rows, row_bytes, time = step
    blocks = BlockRows(needed.rows) if needed.whole else tiled.tensor_block_rows(needed.root)
    lo, hi = (0, needed.rows) if needed.whole else needed.reach(rows.lo, rows.hi)
    memory = places.read(needed.root, blocks.blocks(Interval(lo, hi)), time)

    def source(row: int) -> int:
        number = blocks.block_of(row)
        begin = places.offset(BlockTable(needed.root, memory), number, time)
        return begin + (row - blocks.start(number)) * row_bytes

    return source, memory
