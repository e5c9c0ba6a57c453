"""The checker of streams: it decodes their words, and compares the bytes that they touch with the plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mcudeploy.checker.owners import PlanFaultError
from mcudeploy.extensions.ethos_u.registers import ADDRESSES, CODE_BITS, OPERATIONS, RegisterCommand, decode
from mcudeploy.extensions.ethos_u.unit_blocks import MOST_BLOCK
from mcudeploy.extensions.ethos_u.unit_calls import (
    FLASH,
    GLOBAL_SCALE,
    MEAN,
    OUTPUT,
    SECOND,
    SOURCE,
    read_precision,
    written_precision,
)
from mcudeploy.extensions.ethos_u.unit_elementwise import BROADCAST, SCALAR
from mcudeploy.extensions.ethos_u.unit_int16 import curve_of
from mcudeploy.extensions.ethos_u.unit_steps import UnitRows, UnitStep, block_of, unit_steps, words_of
from mcudeploy.extensions.int16.int16 import BinaryInt16, SigmoidInt16
from mcudeploy.ir.graph import Operator, Shape, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import UNIT_ALIGNMENT, Index, LoopNest
from mcudeploy.ir.plan import Plan
from mcudeploy.ops.move.concat import Concat
from mcudeploy.ops.move.move import Slice
from mcudeploy.ops.scalar.elementwise import Binary
from mcudeploy.planner.model.model import Model

_RECORD_BYTES = 10
_ROUNDING = 3 << 14
_STRIDES = 3 | 7 << 6 | 7 << 9 | 1 << 2
"""Bits of KERNEL_STRIDE: the strides of windows, and the order of weights."""
_OPERAND = 3 << 8
"""Bits of IFM_PRECISION that name the operand of a sum with a factor."""

Rows = tuple[Interval, ...]
"""The bytes of some rows, an interval for each."""


@dataclass(frozen=True, slots=True)
class Touched:
    """The bytes that a stream of a convolution or pool may touch: the first `columns` of each of the rows
    `reads`, the rows `writes`, and the constants.
    `block_rows`: the most rows of a block; `dilation`: of the window; `operation`: its name, "" for any.
    `value_bytes`: of a value of input and output. `curve`: the unit's number of an activation function.
    """

    reads: Rows
    columns: int
    writes: Rows
    constant_bytes: int
    block_rows: int
    dilation: tuple[int, int] = (1, 1)
    operation: str = ""
    value_bytes: int = 1
    curve: int = 0


@dataclass(frozen=True, slots=True)
class TouchedPair:
    """The bytes that an elementwise stream may touch: the rows `writes` of its output, `reads` of its first
    operand and `others` of its second. There are no `others` if the stream contains the operand's only value.

    `shape`: of the output; `second`: of the second operand. `constant`: whether the second operand is in
    flash. `value_bytes`: of a value of all three.
    """

    writes: Rows
    reads: Rows
    others: Rows
    shape: Shape
    second: Shape
    constant: bool
    value_bytes: int = 1


@dataclass(frozen=True, slots=True)
class TouchedCopy:
    """The bytes that a stream may touch if it copies a part of an input, of `cols` and `channels`.

    `reads`, `writes`: the first byte of each row of the part; `source`, `output`: shapes of both tensors.
    """

    reads: tuple[int, ...]
    writes: tuple[int, ...]
    cols: int
    channels: int
    source: Shape
    output: Shape


def columns_read(loops: LoopNest, source: Shape) -> int:
    """Return the number of leading columns that an operator reads."""
    reach = loops.reads[0][1].reach({axis.name: axis for axis in loops.axes}, {})
    return reach.clip(0, source[1]).hi


def check_streams(plan: Plan, model: Model) -> None:
    """Check the streams of a plan. Raises PlanFaultError for a stream that touches other bytes than its step,
    and for a row that the core must compute without a kernel.
    """
    for step in unit_steps(plan, model.calls):
        for part in step.parts:
            if isinstance(part, int):
                reason = None if step.call.params["core"] else "the core has no kernel for it"
                rows = Interval(part, part + 1)
            else:
                words = words_of(step.call, part, step.sources, step.output)
                reason, rows = fault_of_rows(plan, step, part, words), part.rows
            if reason is not None:
                where = f"the stream of {step.operator.name}, rows {rows.lo} to {rows.hi - 1}"
                raise PlanFaultError(f"{where}: {reason}")


def rows_touched(plan: Plan, step: UnitStep, part: UnitRows) -> tuple[list[Rows], Rows]:
    """Return the bytes of the rows that a part of a step reads, by input, and of the rows that it writes."""
    rows, inputs = part.rows, plan.graph.input_tensors(step.operator)
    loops, output = plan.graph.loops(step.operator), plan.graph.tensors[step.operator.output]
    reads = [
        tuple(_row(source(row), tensor.row_bytes) for row in range(needed.lo, needed.hi))
        for source, tensor, needed in (
            (source, tensor, loops.rows_read(number, rows, tensor.shape[0]))
            for number, (source, tensor) in enumerate(zip(step.sources, inputs, strict=True))
        )
    ]
    return reads, tuple(_row(step.output(row), output.row_bytes) for row in range(rows.lo, rows.hi))


def fault_of_rows(plan: Plan, step: UnitStep, part: UnitRows, words: Sequence[int]) -> str | None:
    """Return what is wrong with the stream for some output rows of a step; None if nothing is."""
    rows, inputs = part.rows, plan.graph.input_tensors(step.operator)
    loops, output = plan.graph.loops(step.operator), plan.graph.tensors[step.operator.output]
    reads, writes = rows_touched(plan, step, part)
    if isinstance(step.operator.op, Binary | BinaryInt16):
        return elementwise_fault(words, _touched_pair(plan, step, (rows, reads, writes)))
    if isinstance(step.operator.op, Concat | Slice):
        row_bytes = reads[part.number], writes
        return copy_fault(words, touched_copy(loops, part.number, row_bytes, (inputs, output)))
    params: dict[str, Any] = dict(step.call.params)
    columns = columns_read(loops, inputs[0].shape)
    block_rows = block_of(step.call, len(rows))[0] if "blocks" in params else MOST_BLOCK[0]
    dilation = getattr(step.operator.op, "dilation", (1, 1))
    operation = OPERATIONS[params["operation"] & CODE_BITS]
    touched = Touched(reads[0], columns, writes, params["constant_bytes"], block_rows, dilation, operation)
    touched = replace(touched, value_bytes=output.dtype.size_bytes, curve=_curve(step.operator))
    return fault_of(words, touched, inputs[0].shape, output.shape)


def _curve(operator: Operator) -> int:
    return curve_of(operator.op) if isinstance(operator.op, SigmoidInt16) else 0


def touched_copy(
    loops: LoopNest, number: int, row_bytes: tuple[Rows, Rows], tensors: tuple[Sequence[Tensor], Tensor]
) -> TouchedCopy:
    """Return what a copy of input `number` touches; the loop nest states the offsets of its columns and
    channels.

    `row_bytes`: of whole rows of that input and of the output; `tensors`: all inputs, and the output.
    """
    inputs, output = tensors
    source = inputs[number].shape
    offsets = [it.offset for it in loops.reads[number][1:] if isinstance(it, Index)]
    read_at, written_at = [max(0, it) for it in offsets], [max(0, -it) for it in offsets]
    cols, channels = (
        min(size - read, out_size - written)
        for size, out_size, read, written in zip(
            source[1:], output.shape[1:], read_at, written_at, strict=True
        )
    )
    first = read_at[0] * source[2] + read_at[1], written_at[0] * output.shape[2] + written_at[1]
    reads, writes = (tuple(it.lo + at for it in rows) for rows, at in zip(row_bytes, first, strict=True))
    return TouchedCopy(reads, writes, cols, channels, source, output.shape)


def _touched_pair(plan: Plan, step: UnitStep, touched: tuple[Interval, list[Rows], Rows]) -> TouchedPair:
    """Return what an elementwise step touches; `touched`: the output rows, and their bytes in each input and
    in the output.
    """
    rows, reads, writes = touched
    operator, shape = step.operator, plan.graph.tensors[step.operator.output].shape
    shapes = [it.shape for it in plan.graph.input_tensors(operator)]
    assert isinstance(operator.op, Binary | BinaryInt16)
    value_bytes = plan.graph.tensors[operator.output].dtype.size_bytes
    if operator.op.constant_operand is None:
        first = int(step.call.params["first"])  # type: ignore[arg-type]
        return TouchedPair(
            writes, reads[first], reads[1 - first], shape, shapes[1 - first], False, value_bytes
        )
    values = operator.constants["constant"]
    constant_rows = rows if values.shape[0] == shape[0] else Interval(0, 1)
    size = values[0].nbytes
    others = tuple(_row(row * size, size) for row in range(constant_rows.lo, constant_rows.hi))
    if values.min() == values.max():  # the stream contains the value
        others = ()
    return TouchedPair(writes, reads[0], others, shape, values.shape, True, value_bytes)


def _row(begin: int, size: int) -> Interval:
    return Interval(begin, begin + size)


def fault_of(words: Sequence[int], touched: Touched, source: Shape, output: Shape) -> str | None:
    """Return what is wrong with a stream of a convolution or pool, None if it touches these bytes."""
    allowed = (touched.operation,) if touched.operation else ("CONV", "DEPTHWISE", "POOL")
    maps = _maps_of(words, allowed)
    return maps if isinstance(maps, str) else _reason(lambda: _map_fault(maps, touched, source, output))


def elementwise_fault(words: Sequence[int], touched: TouchedPair) -> str | None:
    """Return what is wrong with an elementwise stream, None if it touches these bytes."""
    maps = _maps_of(words, ("ELEMENTWISE",))
    return maps if isinstance(maps, str) else _reason(lambda: _elementwise_fault(maps, touched))


def copy_fault(words: Sequence[int], touched: TouchedCopy) -> str | None:
    """Return what is wrong with a stream that copies a part of an input, None if it touches these bytes."""
    maps = _maps_of(words, ("POOL",))
    return maps if isinstance(maps, str) else _reason(lambda: _copy_fault(maps, touched))


def _maps_of(words: Sequence[int], allowed: Sequence[str]) -> _Maps | str:
    """Return the registers of a stream of one operation, or what is wrong with it."""
    try:
        commands = list(decode(words))
    except ValueError as error:
        return str(error)
    operations = [it for it in commands if it.operates]
    if [it.name for it in operations][1:] != ["STOP"] or operations[0].name not in allowed:
        return f"it is not one operation of {', '.join(allowed)}"
    registers = {it.name: it.value for it in commands if not it.operates}
    again = [it.name for it in commands].count("IFM_STRIDE_Y") > 1  # of the tensor, then of spaced rows
    if len(registers) + len(operations) + again != len(commands):
        return "it sets a register twice"
    return _Maps(registers, operations[0])


def _reason(judge: Callable[[], str | None]) -> str | None:
    """Return what a judge finds, also that a register which it looks up is not set."""
    try:
        return judge()
    except KeyError as error:
        return f"it does not set {error.args[0]}"


@dataclass(frozen=True, slots=True)
class _Maps:
    """The registers of an operation, which define its feature maps and its constants."""

    registers: dict[str, int]
    operation: RegisterCommand

    def __getitem__(self, name: str) -> int:
        return self.registers[name]

    def row(self, name: str, row: int) -> int:
        """Return the address of a row, in the first run of rows at BASE0 or in the second at BASE2."""
        first_rows, step = self[f"{name}_HEIGHT0_M1"] + 1, self[f"{name}_STRIDE_Y"]
        step -= ADDRESSES if step > ADDRESSES // 2 else 0
        base, number = ("BASE0", row) if row < first_rows else ("BASE2", row - first_rows)
        return self[f"{name}_{base}"] + number * step

    def differing(self, wanted: Mapping[str, int]) -> str | None:
        """Return the first register with another value than the plan needs, as a text."""
        wrong = next((name for name, value in wanted.items() if self[name] != value), None)
        return None if wrong is None else f"{wrong} is {self[wrong]}, the plan needs {wanted[wrong]}"

    def misplaced(self, name: str, rows: Sequence[Interval | int]) -> str | None:
        """Return the first row of a map that is not where the plan has it, as a text."""
        for number, row in enumerate(rows):
            at = row if isinstance(row, int) else row.lo
            if self.row(name, number) != at:
                return f"row {number} of {name} is at {self.row(name, number)}, the plan has it at {at}"
        return None

    def side(self, axis: int) -> int:
        """Return the number of rows (axis 0) or columns of the input that windows cover, without padding."""
        stride = self["KERNEL_STRIDE"]
        low, high = (1, 9) if axis == 0 else (0, 6)
        step = 1 + (stride >> low & 1) + 2 * (stride >> high & 7)
        span = self["KERNEL_HEIGHT_M1" if axis == 0 else "KERNEL_WIDTH_M1"] + 1
        pads = ("TOP", "BOTTOM") if axis == 0 else ("LEFT", "RIGHT")
        count = self["OFM_HEIGHT_M1" if axis == 0 else "OFM_WIDTH_M1"]
        return count * step + span - sum(self[f"IFM_PAD_{pad}"] for pad in pads)


def _map_fault(maps: _Maps, touched: Touched, source: Shape, output: Shape) -> str | None:
    """Return the first rule that a convolution or pool breaks."""
    columns, size = touched.columns, touched.value_bytes
    if maps["IFM_WIDTH0_M1"] == 0 and columns == source[1]:  # whole rows, as one column of all their values
        columns, source = 1, (source[0], 1, source[1] * source[2])
    shapes = {
        "IFM_REGION": SOURCE,
        "OFM_REGION": OUTPUT,
        "IFM_WIDTH0_M1": source[1] - 1,
        "IFM_DEPTH_M1": source[2] - 1,
        "IFM_STRIDE_X": source[2] * size,
        "IFM_UPSCALE": 0,
        "OFM_WIDTH_M1": output[1] - 1,
        "OFM_WIDTH0_M1": output[1] - 1,
        "OFM_DEPTH_M1": output[2] - 1,
        "OFM_STRIDE_X": output[2] * size,
        "OFM_STRIDE_Y": output[1] * output[2] * size,
        "OFM_HEIGHT_M1": len(touched.writes) - 1,
        "OFM_HEIGHT0_M1": len(touched.writes) - 1,
        "ACTIVATION": touched.curve,
        "IFM_PRECISION": read_precision(size),
    }
    wrong = maps.differing(shapes)
    if wrong is not None:
        return wrong

    scale = GLOBAL_SCALE if (maps.operation.name, maps.operation.value) == ("POOL", MEAN) else 0
    if maps["OFM_PRECISION"] & ~_ROUNDING != written_precision(size) | scale:
        return "it writes another type, another layout, or has its scales elsewhere"
    taps = maps["KERNEL_STRIDE"] & ~_STRIDES
    if taps != touched.dilation[1] - 1 << 3 | touched.dilation[0] - 1 << 4:
        return f"the taps of its window lie at other distances: KERNEL_STRIDE is {maps['KERNEL_STRIDE']}"
    if maps["OFM_BLK_HEIGHT_M1"] >= touched.block_rows:
        return f"its blocks have {maps['OFM_BLK_HEIGHT_M1'] + 1} rows, {touched.block_rows} fit the unit"

    if (maps.side(0), maps.side(1)) != (len(touched.reads), columns):
        read = f"{maps.side(0)} rows of {maps.side(1)}"
        return f"it reads {read}, its step {len(touched.reads)} of {columns}"
    if maps["IFM_HEIGHT0_M1"] >= len(touched.reads):
        return f"its first run has {maps['IFM_HEIGHT0_M1'] + 1} of {len(touched.reads)} rows"
    misplaced = maps.misplaced("IFM", touched.reads) or maps.misplaced("OFM", touched.writes)
    if misplaced is not None:
        return misplaced
    return None if maps.operation.name == "POOL" else _constants_fault(maps, touched, output)


def _copy_fault(maps: _Maps, touched: TouchedCopy) -> str | None:
    """Return the first rule that a copy breaks."""
    wanted = {"IFM_REGION": SOURCE, "OFM_REGION": OUTPUT, "IFM_UPSCALE": 0, "ACTIVATION": 0}
    wanted |= {"KERNEL_HEIGHT_M1": 0, "KERNEL_WIDTH_M1": 0, "KERNEL_STRIDE": 0}
    wanted["IFM_PRECISION"] = read_precision(1)
    wanted |= {f"IFM_PAD_{it}": 0 for it in ("TOP", "LEFT", "RIGHT", "BOTTOM")}
    wanted |= {"OFM_HEIGHT_M1": len(touched.writes) - 1, "OFM_WIDTH_M1": touched.cols - 1}
    for name, (_, cols, channels) in (("IFM", touched.source), ("OFM", touched.output)):
        wanted |= {f"{name}_HEIGHT0_M1": len(touched.writes) - 1, f"{name}_WIDTH0_M1": touched.cols - 1}
        wanted |= {f"{name}_STRIDE_X": channels, f"{name}_STRIDE_Y": cols * channels}
        wanted |= {f"{name}_DEPTH_M1": touched.channels - 1}
    wrong = maps.differing(wanted)
    if wrong is not None:
        return wrong
    if maps["OFM_PRECISION"] & ~_ROUNDING != written_precision(1) | GLOBAL_SCALE:
        return "it writes another type than int8, another layout, or has its scales elsewhere"
    return maps.misplaced("IFM", touched.reads) or maps.misplaced("OFM", touched.writes)


def _constants_fault(maps: _Maps, touched: Touched, output: Shape) -> str | None:
    """Return the first rule that the constants of a convolution break."""
    wrong = maps.differing({"WEIGHT_REGION": FLASH, "SCALE_REGION": FLASH})
    if wrong is not None:
        return wrong
    records = Interval(maps["SCALE_BASE"], maps["SCALE_BASE"] + maps["SCALE_LENGTH"])
    weights = Interval(maps["WEIGHT_BASE"], maps["WEIGHT_BASE"] + maps["WEIGHT_LENGTH"])
    if records.lo or records.hi != weights.lo or weights.hi != touched.constant_bytes:
        return "its records and weights are not its constants"
    if len(records) < _RECORD_BYTES * output[2] or records.hi % UNIT_ALIGNMENT or weights.hi % UNIT_ALIGNMENT:
        return "its records are too few, or not aligned"
    return None


def _elementwise_fault(maps: _Maps, touched: TouchedPair) -> str | None:
    """Return the first rule that an elementwise operation breaks."""
    height, (_, cols, channels), value_bytes = len(touched.writes), touched.shape, touched.value_bytes
    wanted = {"IFM_DEPTH_M1": channels - 1, "OFM_DEPTH_M1": channels - 1, "OFM_WIDTH_M1": cols - 1}
    wanted |= {"OFM_HEIGHT_M1": height - 1, "IFM_UPSCALE": 0, "ACTIVATION": 0}
    wanted |= {"IFM_REGION": SOURCE, "OFM_REGION": OUTPUT, "IFM2_PRECISION": read_precision(value_bytes)}
    sizes = {"IFM": (height, cols, channels), "OFM": (height, cols, channels)}
    if touched.others:
        repeated = (own < size for own, size in zip(touched.second, touched.shape, strict=True))
        wanted["IFM2_BROADCAST"] = sum(bit for bit, it in zip(BROADCAST, repeated, strict=True) if it)
        wanted["IFM2_REGION"] = FLASH if touched.constant else SECOND
        sizes["IFM2"] = len(touched.others), touched.second[1], touched.second[2]
    else:
        wanted["IFM2_BROADCAST"] = SCALAR
    for name, (high, wide, deep) in sizes.items():
        wanted |= {f"{name}_HEIGHT0_M1": high - 1, f"{name}_WIDTH0_M1": wide - 1}
        wanted |= {f"{name}_STRIDE_X": deep * value_bytes, f"{name}_STRIDE_Y": wide * deep * value_bytes}
    wrong = maps.differing(wanted)
    if wrong is not None:
        return wrong
    types = maps["IFM_PRECISION"] & ~_OPERAND, maps["OFM_PRECISION"] & ~(_ROUNDING | GLOBAL_SCALE)
    if types != (read_precision(value_bytes), written_precision(value_bytes)):
        return "it reads or writes another type, or another layout"
    map_rows = (("IFM", touched.reads), ("IFM2", touched.others), ("OFM", touched.writes))
    return next(filter(None, (maps.misplaced(name, rows) for name, rows in map_rows)), None)
