"""Convolutions of int16 values, and logistic functions and tangents of such values, by the unit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mcudeploy.extensions.ethos_u.encoded_weights import Scaling, encoded
from mcudeploy.extensions.ethos_u.registers import Stream
from mcudeploy.extensions.ethos_u.unit_blocks import UNITS, UnitWindow
from mcudeploy.extensions.ethos_u.unit_calls import (
    GLOBAL_SCALE,
    MEAN,
    ONCE,
    OPERATION_CODES,
    SUMS_OF_40_BITS,
    WindowCalls,
    pad_right,
    set_block,
    set_constants,
    set_depth,
    set_maps,
    set_window,
    size_reason,
    strides,
    window_reason,
    written_precision,
)
from mcudeploy.extensions.ethos_u.unit_elementwise import ELEMENTWISE_KERNEL, elementwise_params
from mcudeploy.extensions.ethos_u.unit_time import UnitWork, elementwise_cycles, find_block
from mcudeploy.extensions.int16.conv_int16 import Conv2dInt16, bias_of, largest_sums
from mcudeploy.extensions.int16.int16 import INT16, SigmoidInt16
from mcudeploy.ir.graph import Operator, Shape, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.isa import Isa
from mcudeploy.ir.opdef import Counts, KernelCall

TANGENT, LOGISTIC = 3, 4
"""The unit's numbers of the curves that it can compute from 16-bit results."""
_CURVE_CYCLES = 1.0
"""Cycles of a value of a curve, according to Vela."""
_POINT = UnitWindow((1, 1), (1, 1), (1, 1), True, value_bytes=2)
_SUM_BITS = 40
_MOST_SHIFT = 63
_REDUCED = 16
"""Bits by which TFLite shortens multipliers of 31 bits, for sums of 64 bits."""
_WIDEST = 64
"""Limit of the unit for the columns of a window."""


@dataclass(frozen=True, slots=True, eq=False)
class _ConvolutionInt16:
    """A convolution as the unit computes it. If its windows are whole rows that are too wide for the unit, a
    row becomes one column, whose channels are all values of the row.
    """

    op: Conv2dInt16
    operator: Operator
    source: Shape
    output: Tensor
    window: UnitWindow
    weights: NDArray[np.int8]

    @classmethod
    def of(cls, operator: Operator, source: Tensor, output: Tensor) -> _ConvolutionInt16:
        """Return the convolution of an operator with these tensors."""
        op, shape = operator.op, source.shape
        assert isinstance(op, Conv2dInt16)
        kernel, weights = op.kernel_shape, operator.constants["weights"].astype(np.int8)
        by_channel = op.as_conv2d.windowing.is_depthwise(shape[2])
        if _WIDEST < kernel[1] == shape[1] and op.groups == op.dilation[1] == 1 and not max(op.pads[1::2]):
            kernel, shape = (kernel[0], 1), (shape[0], 1, shape[1] * shape[2])
            weights = weights.reshape(len(weights), kernel[0], 1, shape[2])
        stride = strides(op.stride, output.shape[:2])
        window = UnitWindow(kernel, stride, op.dilation, by_channel, value_bytes=2, sum_bytes=5)
        return cls(op, operator, shape, output, window, weights)

    def scaling(self) -> Scaling:
        """Return biases, scales and shifts of the records."""
        scale, shift = (self.operator.constants[it].astype(np.int64) for it in ("multipliers", "shifts"))
        shift = shift - self.op.left_shift
        if self.op.ties == "up":
            scale, shift = scale >> _REDUCED, shift - _REDUCED
        return Scaling(bias_of(self.operator), scale, shift)


def conv_int16_reason(operator: Operator, source: Tensor, output: Tensor) -> str | None:
    """Return why the unit does not compute a convolution with the bits of the core, None if it does."""
    layer = _ConvolutionInt16.of(operator, source, output)
    op, by_channel = layer.op, layer.window.by_channel
    if op.ties == "twice":
        return "sums with a bias of int32 are rounded twice on the core: the unit rounds 40 bits once"
    if (by_channel and op.out_channels != source.shape[2]) or (op.groups > 1 and not by_channel):
        return f"{op.groups} groups with {op.out_channels} channels: the unit takes one group, or depthwise"
    return size_reason(layer.source) or window_reason(layer.window, op.pads) or _sums_reason(layer)


def _sums_reason(layer: _ConvolutionInt16) -> str | None:
    """Return why sums or their scales do not fit the unit with the bits of the core, None if they do."""
    largest, scaling = largest_sums(layer.operator), layer.scaling()
    if largest.max() >= 1 << _SUM_BITS - 1:
        return f"a sum of products can reach {largest.max():,.0f}: the unit has {_SUM_BITS} bits"
    if not 0 < scaling.shift.min() <= scaling.shift.max() <= _MOST_SHIFT:
        return "the scale of a channel does not fit the unit"
    # sum * scale is halfway between results only if it is an odd multiple of 2^(shift - 1). The factors 2 of
    # the scale need not be in the sum.
    power_of_two = scaling.scale & -scaling.scale
    halfway = 2.0 ** (scaling.shift - 1) / np.maximum(power_of_two, 1)
    if layer.op.ties == "away" and ((largest >= halfway) & (scaling.scale > 0)).any():
        return "negative sums may lie halfway between results, which go down on the core, up on the unit"
    return None


def conv_int16_calls(
    operator: Operator, source: Tensor, output: Tensor, calls: tuple[KernelCall, ...], isa: Isa
) -> tuple[KernelCall, ...]:
    """Return the two calls of a convolution, as `WindowCalls.calls`. Raises ConfigError without Vela."""
    layer, unit = _ConvolutionInt16.of(operator, source, output), UNITS[isa.unit]
    op, window, shape = layer.op, layer.window, layer.source
    block = find_block(unit, window, shape, output.shape)
    constants = encoded(unit, window, block, layer.weights, layer.scaling())
    stream, right = Stream(), pad_right(op.pads, window, shape, output)
    set_maps(stream, shape, output, (op.pads[1], right), 0)
    stream.set(OFM_ZERO_POINT=0, OFM_PRECISION=written_precision(2) | ONCE << 14)
    set_window(stream, window, parts=window.parts_first(shape[2]))
    set_constants(stream, constants)
    stream.set(ACTIVATION=0, ACTIVATION_MIN=op.bounds.low, ACTIVATION_MAX=op.bounds.high)
    set_depth(stream, block, SUMS_OF_40_BITS)
    work = UnitWork(unit, window, block, shape, constants.weight_bytes)
    operation = OPERATION_CODES["DEPTHWISE" if window.by_channel else "CONV"]
    return WindowCalls(stream.array, work, operation, op.pads[0], constants.words).calls(output, calls, isa)


def curve_calls(
    operator: Operator, source: Tensor, output: Tensor, core: KernelCall, isa: Isa
) -> tuple[KernelCall, ...]:
    """Return the call of a logistic function or a tangent by the unit: a mean of one value, and the curve."""
    op, stream = operator.op, Stream()
    assert isinstance(op, SigmoidInt16)
    block = find_block(UNITS[isa.unit], _POINT, source.shape, output.shape)
    set_maps(stream, source.shape, output, (0, 0), 0)
    stream.set(
        IFM_PAD_TOP=0,
        IFM_PAD_BOTTOM=0,
        OFM_ZERO_POINT=0,
        OFM_PRECISION=written_precision(2) | GLOBAL_SCALE | ONCE << 14,
        OFM_SCALE=op.multiplier | op.shift << 32,
    )
    set_window(stream, _POINT, parts=False)
    stream.set(ACTIVATION=curve_of(op), ACTIVATION_MIN=INT16.min, ACTIVATION_MAX=INT16.max)
    set_block(stream, block)
    params = elementwise_params(stream, OPERATION_CODES["POOL"] | MEAN << 16, output, core)

    def counts(rows: Interval) -> Counts:
        values = len(rows) * output.shape[1] * output.shape[2]
        cycles = elementwise_cycles(values, _CURVE_CYCLES, 2)
        return {"unit_cycles": cycles}

    return (KernelCall(ELEMENTWISE_KERNEL, params, core.scratch_bytes, isa=isa, counts=counts),)


def curve_of(op: SigmoidInt16) -> int:
    """Return the unit's number of the curve."""
    return TANGENT if op.tangent else LOGISTIC
