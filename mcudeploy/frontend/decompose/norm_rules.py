"""Rules for normalisations by means, standard deviations and norms."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from mcudeploy.frontend.decompose.maker import Maker
from mcudeploy.frontend.onnx.nodes import Unsupported

_EPSILON = 1e-5
"""Default of ONNX's attribute `epsilon`."""
_IMAGE_RANK = 4
"""Dimensions of a batch of images."""
_MVN_EPSILON = 1e-9
"""Epsilon that ONNX states for MeanVarianceNormalization."""


def layer_norm(make: Maker) -> None:
    """Replace LayerNormalization and RMSNormalization whose mean or deviation is read, or whose parameters
    are computed.
    """
    x, scale, bias = make.inputs[0], make.input(1), make.input(2)
    shape = make.shape(x)
    statistics = [make.output(place) if make.is_read(make.output(place)) else "" for place in (1, 2)]
    fixed = all(make.known(name) is not None for name in (scale, bias) if name)
    if shape is None or (fixed and not any(statistics)):
        return
    axis = make.integer("axis", -1) % len(shape)
    if any(statistics):
        epsilon = make.number("epsilon", _EPSILON)
        result = with_statistics(make, x, range(axis, len(shape)), statistics, epsilon)
    else:
        ones = make.constant(np.ones(shape[axis:]))
        result = make.add(make.op, x, ones, **make.only("axis", "epsilon"))
    result = make.add("Mul", result, scale) if scale else result
    result = make.add("Add", result, bias) if bias else result
    make.add("Identity", result, out=make.outputs[0])


def with_statistics(make: Maker, x: str, axes: Sequence[int], outputs: list[str], epsilon: float) -> str:
    """The normalised values; mean and inverse deviation are written to `outputs`."""
    mean = make.reduce("ReduceMean", x, axes, out=outputs[0])
    centred = make.add("Sub", x, mean)
    variance = make.reduce("ReduceMean", make.add("Mul", centred, centred), axes)
    shifted = make.add("Add", variance, make.constant(epsilon))
    inverse = make.add("Reciprocal", make.add("Sqrt", shifted), out=outputs[1])
    return make.add("Mul", centred, inverse)


def batch_normalization(make: Maker) -> None:
    """Replace BatchNormalization with computed parameters, of several images, or of volumes."""
    shape = make.shape(make.inputs[0])
    if shape is None or len(shape) < 2 or make.integer("training_mode") or any(make.outputs[1:]):
        return
    if shape[0] == 1 and all(make.known(name) is not None for name in make.inputs[1:5]):
        if len(shape) > _IMAGE_RANK:
            image = make.reshaped(make.inputs[0], (*shape[:2], -1, shape[-1]))
            normalized = make.add(make.op, image, *make.inputs[1:5], **make.attributes)
            make.reshaped(normalized, shape, out=make.outputs[0])
        return
    normalize_by(make, *(_per_channel(make, name, shape) for name in make.inputs[1:5]))


def normalize_by(make: Maker, scale: str, bias: str, mean: str, variance: str) -> None:
    """Normalise the first input by parameters that broadcast to its shape."""
    epsilon = make.constant(make.number("epsilon", _EPSILON))
    gain = make.add("Div", scale, make.add("Sqrt", make.add("Add", variance, epsilon)))
    shift = make.add("Sub", bias, make.add("Mul", mean, gain))
    make.add("Add", make.add("Mul", make.inputs[0], gain), shift, out=make.outputs[0])


def instance_normalization(make: Maker) -> None:
    """Normalise each channel by its mean and deviation."""
    x, scale, bias = make.inputs
    shape = _image_shape(make)
    axes = range(2, len(shape))
    centred, deviation = make.normalized(x, axes, make.number("epsilon", _EPSILON))
    gain = make.add("Div", _per_channel(make, scale, shape), deviation)
    shift = _shift(make, centred, axes, gain, _per_channel(make, bias, shape))
    make.add("Add", make.add("Mul", centred, gain), shift, out=make.outputs[0])


def _shift(make: Maker, centred: str, axes: range, gain: str, bias: str) -> str:
    """The bias, corrected by the rounding error of the mean that was subtracted from the centred values.

    This error is the mean of the centred values. The gain of a constant image magnifies it 300 times.
    """
    error = make.reduce("ReduceMean", centred, axes)
    return make.add("Sub", bias, make.add("Mul", error, gain))


def _image_shape(make: Maker) -> tuple[int, ...]:
    shape = make.sizes(make.inputs[0])
    if len(shape) < 3:
        raise Unsupported(f"an input of {len(shape)} dimensions is not supported; 3 and more are")
    return shape


def _per_channel(make: Maker, name: str, shape: tuple[int, ...]) -> str:
    """Reshape a vector to the channels of an image."""
    return make.reshaped(name, (-1, *(1,) * (len(shape) - 2)))


def group_normalization(make: Maker) -> None:
    """Normalise groups of channels by their mean and deviation."""
    x, scale, bias = make.inputs
    shape, groups = _image_shape(make), make.integer("num_groups", 1)
    batch, channels = shape[:2]
    if groups < 1 or channels % groups:
        raise Unsupported(f"{channels} channels do not make {groups} groups")
    group_channels = channels // groups
    by_group = make.reshaped(x, (batch, groups, group_channels, *shape[2:]))
    axes = range(2, len(shape) + 1)
    centred, deviation = make.normalized(by_group, axes, make.number("epsilon", _EPSILON))
    per_group = (groups, group_channels, *(1,) * (len(shape) - 2))
    gain = make.add("Div", make.reshaped(scale, per_group), deviation)
    shift = _shift(make, centred, axes, gain, make.reshaped(bias, per_group))
    per_channel = (-1, channels, *(1,) * (len(shape) - 2))
    scaled = make.add("Mul", make.reshaped(centred, shape), make.reshaped(gain, per_channel))
    make.add("Add", scaled, make.reshaped(shift, per_channel), out=make.outputs[0])


def shifted_image(make: Maker) -> None:
    """Subtract the first element of each channel or group before the normalisation, which changes no result.

    Otherwise ONNX Runtime divides the rounding error of the mean of a constant image by the root of epsilon.
    """
    x, out = make.inputs[0], make.outputs[0]
    make.stem += "/shifted"
    by_group = make.reshaped(x, (0, make.integer("num_groups"), -1))
    first = make.add("Gather", by_group, make.int64([0]), axis=2)
    size = make.add("Shape", x)
    shifted = make.add("Reshape", make.add("Sub", by_group, first), size)
    make.add(make.op, shifted, *make.inputs[1:], out=out, **make.attributes)


def mean_variance_normalization(make: Maker) -> None:
    """Normalise whole axes by their mean and deviation.

    The first element is subtracted at the start: otherwise the rounding error of the mean of a constant image
    exceeds the epsilon.
    """
    axes = [int(axis) for axis in make.attributes.get("axes", (0, 2, 3))]
    first = make.slice(make.inputs[0], [0] * len(axes), [1] * len(axes), axes)
    shifted = make.add("Sub", make.inputs[0], first)
    centred, deviation = make.normalized(shifted, axes, 0.0)
    divisor = make.add("Add", deviation, make.constant(_MVN_EPSILON))
    make.add("Div", centred, divisor, out=make.outputs[0])


def lp_normalization(make: Maker) -> None:
    """Divide values by their norm along an axis; the result is zero if the norm is 0."""
    x, axes = make.inputs[0], [make.integer("axis", -1)]
    power = make.integer("p", 2)
    if power not in (1, 2):
        raise Unsupported(f"p {power} is not supported; 1 and 2 are")
    divide_by_norm(make, x, norm_of(make, x, power, axes))


def norm_of(make: Maker, x: str, power: int, axes: list[int]) -> str:
    """The norm along the axes: the sum of magnitudes, or for power 2 the root of the sum of squares."""
    if power == 1:
        return make.reduce("ReduceSum", make.add("Abs", x), axes)
    return make.add("Sqrt", make.reduce("ReduceSum", make.add("Mul", x, x), axes))


def divide_by_norm(make: Maker, x: str, norm: str) -> None:
    """Write `x` divided by a norm, unless that is 0."""
    zero, one = make.constant(0.0), make.constant(1.0)
    divisor = make.add("Where", make.add("Equal", norm, zero), one, norm)
    make.add("Div", x, divisor, out=make.outputs[0])


def local_response_normalization(make: Maker) -> None:
    """Replace LRN: the mean of squares over adjacent channels is an average pool along them."""
    x, shape, size = make.inputs[0], _image_shape(make), make.integer("size")
    channels_last = make.add("Transpose", make.add("Mul", x, x), perm=(0, *range(2, len(shape)), 1))
    pixels = prod((shape[0], *shape[2:]))
    pads = [0, (size - 1) // 2, 0, size // 2]
    plane = make.reshaped(channels_last, (1, 1, pixels, shape[1]))
    means = make.add("AveragePool", plane, kernel_shape=[1, size], pads=pads, count_include_pad=1)
    by_pixel = make.reshaped(means, (shape[0], *shape[2:], shape[1]))
    squares = make.add("Transpose", by_pixel, perm=(0, len(shape) - 1, *range(1, len(shape) - 1)))
    scaled = make.add("Mul", squares, make.constant(make.number("alpha", 1e-4)))
    base = make.add("Add", scaled, make.constant(make.number("bias", 1.0)))
    power = make.add("Pow", base, make.constant(make.number("beta", 0.75)))
    make.add("Div", x, power, out=make.outputs[0])
