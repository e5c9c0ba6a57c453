"""Concatenations, slices and clips by the unit, as means of one value, which can change the scale."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.extensions.ethos_u.registers import Stream
from mcudeploy.extensions.ethos_u.unit_blocks import UNITS, UnitWindow
from mcudeploy.extensions.ethos_u.unit_calls import (
    GLOBAL_SCALE,
    MEAN,
    ONCE,
    OPERATION_CODES,
    OUTPUT,
    SOURCE,
    FeatureMap,
    set_block,
    set_map,
    set_window,
)
from mcudeploy.extensions.ethos_u.unit_elementwise import ELEMENTWISE_KERNEL, elementwise_params
from mcudeploy.extensions.ethos_u.unit_scales import Integers, fitting_ratios, scale_and_shift, scaled
from mcudeploy.extensions.ethos_u.unit_time import UnitWork, find_block, operation_cycles
from mcudeploy.ir.graph import DType, Operator, Shape, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.isa import Isa
from mcudeploy.ir.opdef import Counts, KernelCall, Params
from mcudeploy.ops.move.concat import Concat
from mcudeploy.ops.move.move import Slice
from mcudeploy.ops.requantize import STORED, quantization_of

COPY_KERNEL = "copy_s8_npu"
_WINDOW = UnitWindow((1, 1), (1, 1), (1, 1), True)
_INT8_VALUES = STORED.astype(np.int64)
_INT8 = -128, 127


@dataclass(frozen=True, slots=True)
class _Scale:
    """y = ((x - `zero_points[0]`) * `scale`) / 2^`shift` + `zero_points[1]`, clipped."""

    zero_points: tuple[int, int]
    scale: int
    shift: int
    clip: tuple[int, int] = _INT8


_UNCHANGED = _Scale((0, 0), 1 << 30, 30)


def copy_reason(operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> str | None:
    """Return why the unit does not copy the inputs of a concatenation or a slice, None if it does."""
    op = operator.op
    if output.dtype is not DType.INT8:
        return f"the unit copies int8, this is {output.dtype}"
    if isinstance(op, Slice) and op.step != (1, 1, 1):
        return "the unit does not slice by steps"
    if isinstance(op, Concat) and op.axis == 0:
        return "the core joins rows"
    if None in _scales(operator.op.kernel(operator, inputs, output), inputs, output):
        return "no scale of the unit gives the bits of the core"
    return None


def copy_calls(
    operator: Operator, inputs: tuple[Tensor, ...], output: Tensor, core: KernelCall, isa: Isa
) -> tuple[KernelCall, ...]:
    """Return the call of a concatenation or a slice by the unit; `core`: the core's call."""
    op, unit = operator.op, UNITS[isa.unit]
    scales, works, commands = _scales(core, inputs, output), [], []
    pieces = [op.out_shape if isinstance(op, Slice) else (output.shape[0], *it.shape[1:]) for it in inputs]
    for tensor, piece, scale in zip(inputs, pieces, scales, strict=True):
        assert scale is not None
        block = find_block(unit, _WINDOW, piece, piece)
        works.append(UnitWork(unit, _WINDOW, block, piece, 0))
        stream = Stream()
        _set_copy(stream, (tensor.shape, piece, output.shape), scale)
        set_block(stream, block)
        commands.append(stream.array)
    written = [0, *accumulate(piece[1] * piece[2] if _by_column(op) else piece[2] for piece in pieces)]
    first = op.start if isinstance(op, Slice) else (0, 0, 0)
    params: Params = {
        "commands": np.concatenate(commands),
        "written_at": np.array(written[:-1], np.int32),
        "command_words": len(commands[0]),
        "inputs": len(inputs),
        "operation": OPERATION_CODES["POOL"] | MEAN << 16,
        "first_row": first[0],
        "read_at": first[1] * inputs[0].shape[2] + first[2],
        "output_row_bytes": output.row_bytes,
    }

    def counts(rows: Interval) -> Counts:
        cycles = sum(operation_cycles(work, (len(rows), *work.source[1:])) for work in works)
        return {"unit_cycles": cycles}

    return (KernelCall(COPY_KERNEL, params, isa=isa, counts=counts),)


def _by_column(op: object) -> bool:
    return isinstance(op, Concat) and op.axis == 1


def _set_copy(stream: Stream, shapes: tuple[Shape, Shape, Shape], scale: _Scale) -> None:
    """Set the registers of a copy; `shapes`: of the input, of the copied part, of the output."""
    source, (_, cols, channels), output = shapes
    set_map(stream, "IFM", SOURCE, FeatureMap(source, cols=cols))
    stream.set(
        IFM_DEPTH_M1=channels - 1,
        IFM_ZERO_POINT=scale.zero_points[0],
        IFM_PRECISION=1,
        IFM_UPSCALE=0,
        IFM_PAD_TOP=0,
        IFM_PAD_LEFT=0,
        IFM_PAD_RIGHT=0,
        IFM_PAD_BOTTOM=0,
    )
    set_map(stream, "OFM", OUTPUT, FeatureMap(output, cols=cols))
    stream.set(
        OFM_WIDTH_M1=cols - 1,
        OFM_DEPTH_M1=channels - 1,
        OFM_ZERO_POINT=scale.zero_points[1],
        OFM_PRECISION=1 | GLOBAL_SCALE | ONCE << 14,
        OFM_SCALE=scale.scale | scale.shift << 32,
    )
    set_window(stream, _WINDOW, parts=False)
    stream.set(ACTIVATION=0, ACTIVATION_MIN=scale.clip[0], ACTIVATION_MAX=scale.clip[1])


def _scales(core: KernelCall, inputs: tuple[Tensor, ...], output: Tensor) -> list[_Scale | None]:
    """Return for each input the scale that gives the results of the core's table; None if there is none."""
    numbers: dict[str, Any] = dict(core.params)
    tables: NDArray[np.int8] | None = numbers.get("tables")
    if tables is None:
        return [_UNCHANGED] * len(inputs)
    scales: list[_Scale | None] = []
    for at, tensor in zip(numbers["table_of_input"].tolist(), inputs, strict=True):
        zero_points = quantization_of(tensor).zero_point, quantization_of(output).zero_point
        table = tables[256 * at : 256 * at + 256].astype(np.int64)
        scales.append(_scale(table, zero_points, _INT8) if table.size else _UNCHANGED)
    return scales


def _scale(table: Integers, zero_points: tuple[int, int], bounds: tuple[int, int]) -> _Scale | None:
    """Return the scale that gives the results of a table, clipped at these bounds; None if there is none."""
    sums, clip = _INT8_VALUES - zero_points[0], (bounds[0] - zero_points[1], bounds[1] - zero_points[1])
    least, most = fitting_ratios(sums, table - zero_points[1], clip)
    scale = scale_and_shift(float((least + most) / 2))
    if scale is None or (np.clip(scaled(sums, *scale), *clip) + zero_points[1] != table).any():
        return None
    return _Scale(zero_points, *scale, bounds)


def clip_reason(operator: Operator, source: Tensor, output: Tensor) -> str | None:
    """Return why the unit does not compute a table, None if the table only scales and clips values."""
    scale = _clip(operator, source, output)
    return None if scale else "the unit looks up a table in more time than the core"


def clip_calls(
    operator: Operator, source: Tensor, output: Tensor, core: KernelCall, isa: Isa
) -> tuple[KernelCall, ...]:
    """Return the call of a table that scales and clips by the unit, or nothing; `core`: the core's call."""
    scale, unit, shape = _clip(operator, source, output), UNITS[isa.unit], output.shape
    if scale is None:
        return ()
    block, stream = find_block(unit, _WINDOW, shape, shape), Stream()
    _set_copy(stream, (shape, shape, shape), scale)
    set_block(stream, block)
    params = elementwise_params(stream, OPERATION_CODES["POOL"] | MEAN << 16, output, core)
    work = UnitWork(unit, _WINDOW, block, shape, 0)
    counts = work.counts(shape)
    return (KernelCall(ELEMENTWISE_KERNEL, params, core.scratch_bytes, isa=isa, counts=counts),)


def _clip(operator: Operator, source: Tensor, output: Tensor) -> _Scale | None:
    """Return the scale, with a clip, that gives the results of a table; None if there is none."""
    table = operator.constants["table"].astype(np.int64)
    zero_points = quantization_of(source).zero_point, quantization_of(output).zero_point
    return _scale(table, zero_points, (int(table.min()), int(table.max())))
