"""Maxima and means over windows, and means over whole rows or columns, by the unit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mcudeploy.extensions.ethos_u.registers import Stream
from mcudeploy.extensions.ethos_u.unit_blocks import UNITS, UnitWindow
from mcudeploy.extensions.ethos_u.unit_calls import (
    GLOBAL_SCALE,
    MEAN,
    ONCE,
    OPERATION_CODES,
    TWICE,
    Pads,
    WindowCalls,
    pad_right,
    set_depth,
    set_maps,
    set_window,
    strides,
    window_reason,
)
from mcudeploy.extensions.ethos_u.unit_time import UnitWork, find_block
from mcudeploy.ir.graph import DType, Operator, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.isa import Isa
from mcudeploy.ir.opdef import CallTable, Counts, KernelCall, StageCall
from mcudeploy.ops.pool.pool import AveragePool, AveragePoolByRows, MaxPool
from mcudeploy.ops.reduce.reduce import Reduce
from mcudeploy.ops.requantize import quantization_of

MEAN_KERNEL = "mean_by_rows_s8_npu"
_MOST_SHIFT = 63


@dataclass(frozen=True, slots=True)
class _UnitMean:
    """y = (sum of (x - `zero_points[0]`)) * `scale` / 2^`shift` + `zero_points[1]`, with this rounding."""

    zero_points: tuple[int, int]
    scale: int
    shift: int
    rounding: int


def pool_reason(operator: Operator, source: Tensor, output: Tensor) -> str | None:
    """Return why the unit does not compute a maximum or a mean, None if it does."""
    op = operator.op
    if source.dtype is not DType.INT8:
        return f"the unit takes int8, this is {source.dtype}"
    if isinstance(op, Reduce) and 2 in op.axes:
        return "the unit computes no mean over channels"
    window, pads = _window(operator, source)
    if window.dilation != (1, 1):
        return f"dilation {window.dilation}: the unit pools without"
    reason = window_reason(window, pads)
    if reason is not None or isinstance(op, MaxPool):
        return reason
    mean = _mean(operator, source, output)
    return mean if isinstance(mean, str) else None


def pool_calls(
    operator: Operator, source: Tensor, output: Tensor, calls: tuple[KernelCall, ...], isa: Isa
) -> tuple[KernelCall, ...]:
    """Return the two calls of a maximum or a mean by the unit, as `WindowCalls.calls`."""
    unit, (window, pads), stream = UNITS[isa.unit], _window(operator, source), Stream()
    block = find_block(unit, window, source.shape, output.shape)
    zero_point, mode = quantization_of(source).zero_point, 0
    at_sides = pads[1], pad_right(pads, window, source.shape, output)
    if isinstance(operator.op, MaxPool):
        set_maps(stream, source.shape, output, at_sides, zero_point)
        stream.set(OFM_ZERO_POINT=zero_point, OFM_PRECISION=1)
    else:
        mean, mode = _mean(operator, source, output), MEAN
        assert isinstance(mean, _UnitMean)
        set_maps(stream, source.shape, output, at_sides, mean.zero_points[0])
        stream.set(
            OFM_ZERO_POINT=mean.zero_points[1],
            OFM_PRECISION=1 | GLOBAL_SCALE | mean.rounding << 14,
            OFM_SCALE=mean.scale | mean.shift << 32,
        )
    set_window(stream, window, parts=False)
    stream.set(ACTIVATION=0, ACTIVATION_MIN=-128, ACTIVATION_MAX=127)
    set_depth(stream, block)
    work = UnitWork(unit, window, block, source.shape, 0)
    operation = OPERATION_CODES["POOL"] | mode << 16
    return WindowCalls(stream.array, work, operation, pads[0], None).calls(output, calls, isa)


def by_rows_calls(
    operator: Operator, source: Tensor, output: Tensor, calls: tuple[KernelCall, ...], isa: Isa
) -> tuple[KernelCall, ...]:
    """Return the call of a mean by rows: the unit computes a step of all rows, the core a step of fewer."""
    whole, core, (height, *_) = whole_mean(operator, source), calls[0], source.shape
    unit_call, _ = pool_calls(whole, source, output, (whole.op.kernel(whole, (source,), output),), isa)
    tensors = {source.name: source, output.name: output}

    def core_stage(length: int) -> StageCall:
        """The core's call for a step of `length` rows."""
        return StageCall(
            operator, tensors, core, Interval(1, 1 + length), lambda rows: float(len(rows) == length)
        )

    def counts(rows: Interval) -> Counts:
        assert unit_call.counts is not None
        return unit_call.counts(Interval(0, 1)) if len(rows) == height else {"unit_cycles": 0.0}

    return (
        KernelCall(
            MEAN_KERNEL,
            {"calls": CallTable((unit_call, replace(core, others=()))), "input_rows": height},
            state_bytes=core.state_bytes,
            isa=isa,
            counts=counts,
            stages=tuple(map(core_stage, range(1, height))),
        ),
    )


def whole_mean(operator: Operator, source: Tensor) -> Operator:
    """Return the average pool over the whole image that equals a mean by rows, with the same bits."""
    op = operator.op
    assert isinstance(op, AveragePoolByRows)
    size = source.shape[:2]
    return replace(operator, op=AveragePool(size, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), False, op.ties))


def _window(operator: Operator, source: Tensor) -> tuple[UnitWindow, Pads]:
    """Return the window of an operator, and its padding."""
    op = operator.op
    if isinstance(op, Reduce):
        rows, cols = (source.shape[axis] if axis in op.axes else 1 for axis in range(2))
        return UnitWindow((rows, cols), (1, 1), (1, 1), True), (0, 0, 0, 0)
    assert isinstance(op, MaxPool | AveragePool)
    return UnitWindow(op.kernel_shape, strides(op.stride, op.out_size), op.dilation, True), op.pads


def _mean(operator: Operator, source: Tensor, output: Tensor) -> _UnitMean | str:
    """Return the arithmetic of a mean, or why the unit cannot compute it with the bits of the core."""
    numbers: dict[str, Any] = dict(operator.op.kernel(operator, (source,), output).params)
    window, pads = _window(operator, source)
    if isinstance(operator.op, Reduce):
        zero_points = quantization_of(source).zero_point, numbers["quant.zero_point"]
        scale, shift, twice = numbers["quant.multiplier"], numbers["quant.shift"], numbers["twice"]
    elif numbers["multipliers"].size != 1 or max(pads):
        return "the unit computes means over windows without padding, which contain one number of values"
    else:
        zero_points = numbers["input_zero_point"], numbers["output_zero_point"]
        scale, shift, twice = int(numbers["multipliers"].flat[0]), numbers["shift"], False
    if twice:
        shift = 31 - shift
    if not 0 < shift <= _MOST_SHIFT:
        return f"the scale of a mean, {scale} / 2^{shift}, does not fit the unit"
    taps = window.kernel[0] * window.kernel[1]
    sums = np.arange((-128 - zero_points[0]) * taps, (127 - zero_points[0]) * taps + 1, dtype=np.int64)
    products = sums * scale
    ties = (products & (1 << shift) - 1 == 1 << shift - 1) & (products >> shift & 1 == 0)
    if not twice and ties.any():
        return f"ties of means of {taps} values go to the even result on the core, up on the unit"
    return _UnitMean(zero_points, scale, shift, TWICE if twice else ONCE)
