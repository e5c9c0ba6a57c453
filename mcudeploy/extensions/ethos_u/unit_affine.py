"""The operator Affine by the unit: a depthwise convolution of one tap scales and shifts each channel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.extensions.ethos_u.encoded_weights import Scaling, encoded
from mcudeploy.extensions.ethos_u.registers import Stream
from mcudeploy.extensions.ethos_u.unit_blocks import UNITS, UnitWindow
from mcudeploy.extensions.ethos_u.unit_calls import (
    ONCE,
    OPERATION_CODES,
    set_block,
    set_constants,
    set_maps,
    set_window,
)
from mcudeploy.extensions.ethos_u.unit_elementwise import ELEMENTWISE_KERNEL, elementwise_params
from mcudeploy.extensions.ethos_u.unit_scales import fitting_ratios, scale_and_shift, scaled
from mcudeploy.extensions.ethos_u.unit_time import UnitWork, find_block
from mcudeploy.ir.graph import Operator, Tensor
from mcudeploy.ir.isa import Isa
from mcudeploy.ir.opdef import KernelCall
from mcudeploy.ops.requantize import STORED

_WINDOW = UnitWindow((1, 1), (1, 1), (1, 1), True)
_MOST_WEIGHT = 255
_MOST_BIAS = 1 << 31
_INT8_VALUES = STORED.astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class _Channels:
    """For each channel, y = ((weight * x + bias) * scale) / 2^shift, rounded once."""

    weight: NDArray[np.int64]
    scaling: Scaling


def affine_reason(operator: Operator, source: Tensor, output: Tensor) -> str | None:
    """Return why the unit does not compute an Affine, None if it does."""
    channels = _channels(operator.op.kernel(operator, (source,), output))
    return None if channels else "no weights of 9 bits and scales of 31 give the bits of the core"


def affine_calls(source: Tensor, output: Tensor, core: KernelCall, isa: Isa) -> tuple[KernelCall, ...]:
    """Return the call of an Affine by the unit, or nothing; `core`: the core's call.

    Raises ConfigError without Vela.
    """
    channels, unit = _channels(core), UNITS[isa.unit]
    if channels is None:
        return ()
    numbers: dict[str, Any] = dict(core.params)
    block, stream = find_block(unit, _WINDOW, source.shape, output.shape), Stream()
    weights = channels.weight.reshape(-1, 1, 1, 1).astype(np.int16)
    constants = encoded(unit, _WINDOW, block, weights, channels.scaling)
    set_maps(stream, source.shape, output, (0, 0), 0)
    stream.set(IFM_PAD_TOP=0, IFM_PAD_BOTTOM=0, OFM_ZERO_POINT=0, OFM_PRECISION=1 | ONCE << 14)
    set_window(stream, _WINDOW, parts=False)
    set_constants(stream, constants)
    stream.set(ACTIVATION=0, ACTIVATION_MIN=numbers["act.min"], ACTIVATION_MAX=numbers["act.max"])
    set_block(stream, block)
    params = elementwise_params(stream, OPERATION_CODES["DEPTHWISE"], output, core)
    params |= {"constants": constants.words.view(np.int8), "constant_bytes": constants.words.nbytes}
    work = UnitWork(unit, _WINDOW, block, source.shape, constants.weight_bytes)
    counts = work.counts(output.shape)
    return (KernelCall(ELEMENTWISE_KERNEL, params, core.scratch_bytes, isa=isa, counts=counts),)


def _channels(core: KernelCall) -> _Channels | None:
    """Return weights, biases, scales and shifts that give the core's results; None if there are none."""
    numbers: dict[str, Any] = dict(core.params)
    clip = numbers["act.min"], numbers["act.max"]
    channels = [_channel(record, clip) for record in numbers["records"].reshape(-1, 3).astype(np.int64)]
    if None in channels:
        return None
    weight, bias, scale, shift = np.array(channels, np.int64).T
    return _Channels(weight, Scaling(bias, scale, shift))


def _channel(record: NDArray[np.int64], clip: tuple[int, int]) -> tuple[int, int, int, int] | None:
    """Return the weight, bias, scale and shift of a channel that give the core's results; None if none do.

    The slope is a weight of 9 bits times a scale of 31 bits, the offset a multiple of the scale. Each weight
    has an interval of scales with the same results; the weight with the widest interval is taken.
    """
    factor, offset, right = record.tolist()
    wanted = np.clip((factor * _INT8_VALUES + offset) >> right, *clip)
    if (wanted == wanted[0]).all():
        return 0, int(wanted[0]), 1, 0
    weights = np.copysign(np.arange(1, _MOST_WEIGHT + 1), factor)
    biases = np.rint((offset - 2.0 ** (right - 1)) / factor * weights)
    least, most = fitting_ratios(weights[:, None] * _INT8_VALUES + biases[:, None], wanted, clip)
    with np.errstate(divide="ignore", invalid="ignore"):
        best = int(np.argmax(np.nan_to_num(most / least)))  # 0 / 0 is not an interval
    weight, bias = int(weights[best]), int(biases[best])
    scale = scale_and_shift((least[best] + most[best]) / 2)
    if scale is None or abs(bias) >= _MOST_BIAS:
        return None
    results = np.clip(scaled(weight * _INT8_VALUES + bias, *scale), *clip)
    return (weight, bias, *scale) if (results == wanted).all() else None
