"""The checker of streams: it decodes the words, and compares the bytes they touch with those of the plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mcudeploy.checker.owners import PlanFaultError
from mcudeploy.extensions.ethos_u.registers import RegisterCommand, decode
from mcudeploy.extensions.ethos_u.unit_calls import FLASH, OUTPUT, SOURCE
from mcudeploy.extensions.ethos_u.unit_steps import UnitStep, unit_steps, words_of
from mcudeploy.ir.graph import Shape
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import LoopNest
from mcudeploy.ir.plan import Plan
from mcudeploy.planner.model.model import Model

_RECORD_BYTES = 10
_INT8 = 1
"""The precision of signed bytes, channels last, with a scale for each channel."""
_ROUNDING = 3 << 14


@dataclass(frozen=True, slots=True)
class Touched:
    """The bytes that a stream may touch: the rows that it reads, in sequence, with the first `columns` of
    each, those that it writes, and the bytes of its constants.
    """

    reads: tuple[Interval, ...]
    columns: int
    writes: tuple[Interval, ...]
    constant_bytes: int


def columns_read(loops: LoopNest, source: Shape) -> int:
    """Return the number of columns that an operator reads, from the first one on."""
    reach = loops.reads[0][1].reach({axis.name: axis for axis in loops.axes}, {})
    return reach.clip(0, source[1]).hi


def check_streams(plan: Plan, model: Model) -> None:
    """Check the streams of a plan. Raises PlanFaultError for one that touches other bytes than its step, or
    for a row of the core without a kernel of the core.
    """
    for step in unit_steps(plan, model):
        loops = plan.graph.loops(step.operator)
        source = plan.graph.tensors[step.operator.inputs[0]]
        output = plan.graph.tensors[step.operator.output]
        for part in step.parts:
            if isinstance(part, int):
                if step.call.params["core"] is None:
                    raise _fault(
                        step, f"row {part} reads more than two runs of rows, and the core has no kernel"
                    )
                continue
            reads = loops.rows_read(0, part.rows, source.shape[0])
            touched = Touched(
                tuple(_row(step.source(row), source.row_bytes) for row in range(reads.lo, reads.hi)),
                columns_read(loops, source.shape),
                tuple(_row(step.output(row), output.row_bytes) for row in range(part.rows.lo, part.rows.hi)),
                int(step.call.params["constant_bytes"]),  # type: ignore[arg-type]
            )
            words = words_of(step.call, part, step.source, step.output)
            reason = fault_of(words, touched, source.shape, output.shape)
            if reason is not None:
                raise _fault(step, f"rows {part.rows.lo} to {part.rows.hi - 1}: {reason}")


def _fault(step: UnitStep, reason: str) -> PlanFaultError:
    return PlanFaultError(f"the stream of {step.operator.name}, {reason}")


def _row(begin: int, size: int) -> Interval:
    return Interval(begin, begin + size)


def fault_of(words: Sequence[int], touched: Touched, source: Shape, output: Shape) -> str | None:
    """Return what is wrong with a stream of one operation, None if it touches exactly these bytes."""
    try:
        commands = list(decode(words))
    except ValueError as error:
        return str(error)
    operations = [it for it in commands if it.operates]
    if [it.name for it in operations][1:] != ["STOP"] or operations[0].name not in ("CONV", "DEPTHWISE"):
        return "it is not one convolution"
    registers = {it.name: it.value for it in commands if not it.operates}
    if len(registers) + len(operations) != len(commands):
        return "it sets a register twice"
    try:
        return _map_fault(_Maps(registers, operations[0]), touched, source, output)
    except KeyError as error:
        return f"it does not set {error.args[0]}"


@dataclass(frozen=True, slots=True)
class _Maps:
    """The registers of an operation, as the unit reads its maps of features and its constants."""

    registers: dict[str, int]
    operation: RegisterCommand

    def __getitem__(self, name: str) -> int:
        return self.registers[name]

    def row(self, name: str, row: int) -> int:
        """Return the address of a row: the second run begins after the rows of the first one."""
        first = self[f"{name}_HEIGHT0_M1"] + 1
        begin = (
            self[f"{name}_BASE0"] if row < first else self[f"{name}_BASE2"] - first * self[f"{name}_STRIDE_Y"]
        )
        return begin + row * self[f"{name}_STRIDE_Y"]

    def side(self, axis: int) -> int:
        """Return the rows (axis 0) or columns that windows cover, without padding."""
        stride = self["KERNEL_STRIDE"]
        low, high = (1, 9) if axis == 0 else (0, 6)
        step = 1 + (stride >> low & 1) + 2 * (stride >> high & 7)
        span = self["KERNEL_HEIGHT_M1" if axis == 0 else "KERNEL_WIDTH_M1"] + 1
        pads = ("TOP", "BOTTOM") if axis == 0 else ("LEFT", "RIGHT")
        count = self["OFM_HEIGHT_M1" if axis == 0 else "OFM_WIDTH_M1"]
        return count * step + span - sum(self[f"IFM_PAD_{pad}"] for pad in pads)


def _map_fault(maps: _Maps, touched: Touched, source: Shape, output: Shape) -> str | None:
    """Return the first rule that an operation breaks."""
    shapes: dict[str, Any] = {
        "IFM_REGION": SOURCE,
        "OFM_REGION": OUTPUT,
        "WEIGHT_REGION": FLASH,
        "SCALE_REGION": FLASH,
        "IFM_WIDTH0_M1": source[1] - 1,
        "IFM_DEPTH_M1": source[2] - 1,
        "IFM_STRIDE_X": source[2],
        "IFM_STRIDE_Y": source[1] * source[2],
        "IFM_UPSCALE": 0,
        "OFM_WIDTH_M1": output[1] - 1,
        "OFM_WIDTH0_M1": output[1] - 1,
        "OFM_DEPTH_M1": output[2] - 1,
        "OFM_STRIDE_X": output[2],
        "OFM_STRIDE_Y": output[1] * output[2],
        "OFM_HEIGHT_M1": len(touched.writes) - 1,
        "OFM_HEIGHT0_M1": len(touched.writes) - 1,
        "ACTIVATION": 0,
    }
    wrong = next((name for name, value in shapes.items() if maps[name] != value), None)
    if wrong is not None:
        return f"{wrong} is {maps[wrong]}, the tensor has {shapes[wrong]}"
    if maps["IFM_PRECISION"] != _INT8 or maps["OFM_PRECISION"] & ~_ROUNDING != _INT8:
        return "it reads or writes another type than int8, another layout, or has one scale for all channels"
    if (maps.side(0), maps.side(1)) != (len(touched.reads), touched.columns):
        read = f"{maps.side(0)} rows of {maps.side(1)}"
        return f"it reads {read}, its step {len(touched.reads)} of {touched.columns}"
    if maps["IFM_HEIGHT0_M1"] >= len(touched.reads):
        return f"its first run has {maps['IFM_HEIGHT0_M1'] + 1} of {len(touched.reads)} rows"
    for name, rows in (("IFM", touched.reads), ("OFM", touched.writes)):
        for number, row in enumerate(rows):
            if maps.row(name, number) != row.lo:
                return f"row {number} of {name} is at {maps.row(name, number)}, the plan has it at {row.lo}"
    records = Interval(maps["SCALE_BASE"], maps["SCALE_BASE"] + maps["SCALE_LENGTH"])
    weights = Interval(maps["WEIGHT_BASE"], maps["WEIGHT_BASE"] + maps["WEIGHT_LENGTH"])
    if records.lo or records.hi != weights.lo or weights.hi != touched.constant_bytes:
        return "its records and weights are not its constants"
    if len(records) < _RECORD_BYTES * output[2] or records.hi % 16 or weights.hi % 16:
        return "its records are too few, or not aligned"
    return None
