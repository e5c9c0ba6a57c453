"""Rules for running sums and products, and for operators that select by position."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np
from onnx import TensorProto

from mcudeploy.frontend.decompose.maker import Maker
from mcudeploy.frontend.onnx.nodes import Unsupported


def running(op: str) -> Callable[[Maker], None]:
    """Replace CumSum and CumProd: `op` joins elements 1, 2, 4, ... places apart, so that rounding errors grow
    with the logarithm of the length.
    """
    neutral = 1.0 if op == "Mul" else 0.0

    def rule(make: Maker) -> None:
        make.require_float()
        shape = make.sizes(make.inputs[0])
        axis = int(make.constant_of(make.inputs[1], "the axis").reshape(()))
        if not -len(shape) <= axis < len(shape):
            raise Unsupported(f"axis {axis} is outside {len(shape)} dimensions")
        axis %= len(shape)
        size = shape[axis]
        merged = (prod(shape[:axis]), size, prod(shape[axis + 1 :]))
        total = make.reshaped(make.inputs[0], merged)
        reverse = bool(make.integer("reverse"))
        if make.integer("exclusive"):
            total = _shifted(make, total, 1, neutral, reverse=reverse)
        places = 1
        while places < size:
            total = make.add(op, total, _shifted(make, total, places, neutral, reverse=reverse))
            places *= 2
        make.reshaped(total, shape, out=make.outputs[0])

    return rule


def _shifted(make: Maker, x: str, places: int, filling: float, *, reverse: bool) -> str:
    """Shift each element of [outer, size, inner] by a number of places, forwards or backwards."""
    amounts = [0, -places, 0, 0, places, 0] if reverse else [0, places, 0, 0, -places, 0]
    return make.add("Pad", x, make.int64(amounts), make.constant(filling))


def hardmax(make: Maker) -> None:
    """Return 1 at the first largest element along an axis; as in ONNX Runtime, 0 everywhere if the first is
    NaN.
    """
    shape, axis = make.sizes(make.inputs[0]), make.integer("axis", -1)
    along = [1] * len(shape)
    along[axis] = -1
    places = make.constant(np.arange(1, shape[axis] + 1).reshape(along))
    index = make.add("ArgMax", make.inputs[0], axis=axis, keepdims=1)
    place = make.add("Add", make.add("Cast", index, to=TensorProto.FLOAT), make.constant(1.0))
    first = make.add("Gather", make.inputs[0], make.int64([0]), axis=axis)
    is_number = make.add("Cast", make.add("Equal", first, first), to=TensorProto.FLOAT)
    chosen = make.add("Equal", places, make.add("Mul", place, is_number))
    make.add("Cast", chosen, out=make.outputs[0], to=TensorProto.FLOAT)


def is_nan(make: Maker) -> None:
    """Compare the input with itself: only NaN differs."""
    make.add("Not", make.add("Equal", make.inputs[0], make.inputs[0]), out=make.outputs[0])


def is_inf(make: Maker) -> None:
    """Compare the input with the largest finite number."""
    below, above = make.integer("detect_negative", 1), make.integer("detect_positive", 1)
    most = make.constant(np.finfo(np.float32).max)
    if not below and not above:
        raise Unsupported("it detects neither positive nor negative infinity: its result is constant")
    x = make.add("Abs", make.inputs[0]) if below and above else make.inputs[0]
    x = x if above else make.add("Neg", x)
    make.add("Less", most, x, out=make.outputs[0])
