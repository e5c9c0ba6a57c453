"""Rules for normalisations over images: means, standard deviations, and what is left."""

from __future__ import annotations

import numpy as np
from onnx import NodeProto

from mcudeploy.frontend.maker import Maker

_EPSILON = 1e-5
_MVN_EPSILON = 1e-9


def instance_normalization(node: NodeProto, make: Maker) -> bool:
    """Each channel by its own mean and deviation."""
    x, scale, bias = node.input
    shape, factor, offset = make.shape(x), make.known(scale), make.known(bias)
    if shape is None or len(shape) < 3 or factor is None or offset is None:
        return False
    per_channel = (-1, *(1,) * (len(shape) - 2))
    epsilon = float(make.attributes.get("epsilon", _EPSILON))
    centred, deviation = make.normalized(x, range(2, len(shape)), epsilon)
    gain = make.add("Div", make.constant(factor.reshape(per_channel)), deviation)
    shift = make.constant(offset.reshape(per_channel))
    make.add("Add", make.add("Mul", centred, gain), shift, out=node.output[0])
    return True


def group_normalization(node: NodeProto, make: Maker) -> bool:
    """Groups of channels by their mean and deviation."""
    x, scale, bias = node.input
    shape, factor, offset = make.shape(x), make.known(scale), make.known(bias)
    groups = int(make.attributes.get("num_groups", 1))
    if shape is None or len(shape) < 3 or factor is None or offset is None or groups < 1:
        return False
    batch, channels = shape[:2]
    if channels % groups:
        return False
    if factor.size == groups != channels:  # before opset 21 there is one for each group
        factor, offset = (np.repeat(each, channels // groups) for each in (factor, offset))
    grouped = make.reshaped(x, (batch, groups, channels // groups, *shape[2:]))
    epsilon = float(make.attributes.get("epsilon", _EPSILON))
    centred, deviation = make.normalized(grouped, range(2, len(shape) + 1), epsilon)
    whole = make.reshaped(make.add("Div", centred, deviation), shape)
    per_channel = (-1, *(1,) * (len(shape) - 2))
    scaled = make.add("Mul", whole, make.constant(factor.reshape(per_channel)))
    make.add("Add", scaled, make.constant(offset.reshape(per_channel)), out=node.output[0])
    return True


def mean_variance_normalization(node: NodeProto, make: Maker) -> bool:
    """Whole axes by their mean and deviation."""
    axes = [int(axis) for axis in make.attributes.get("axes", (0, 2, 3))]
    centred, deviation = make.normalized(node.input[0], axes, 0.0)
    divisor = make.add("Add", deviation, make.constant(_MVN_EPSILON))
    make.add("Div", centred, divisor, out=node.output[0])
    return True


def lp_normalization(node: NodeProto, make: Maker) -> bool:
    """Values over their norm along an axis; zeros where that is 0."""
    x, axes = node.input[0], [int(make.attributes.get("axis", -1))]
    power = int(make.attributes.get("p", 2))
    if power not in (1, 2):
        return False
    if power == 1:
        norm = make.reduce("ReduceSum", make.add("Abs", x), axes)
    else:
        norm = make.add("Sqrt", make.reduce("ReduceSum", make.add("Mul", x, x), axes))
    nothing = make.add("Equal", norm, make.constant(0.0))
    divisor = make.add("Where", nothing, make.constant(1.0), norm)
    make.add("Div", x, divisor, out=node.output[0])
    return True
