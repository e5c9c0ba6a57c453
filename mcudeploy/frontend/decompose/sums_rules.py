"""Rules for sums of functions, running sums, and operators that ONNX defines by comparisons."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from math import prod

import numpy as np
from onnx import TensorProto

from mcudeploy.frontend.decompose.maker import Maker
from mcudeploy.frontend.onnx.nodes import Unsupported
from mcudeploy.frontend.onnx.protos import element_type

_MOST_GROUPS = 3
"""Groups of adjacent axes, reduced or kept, that one kernel takes: a stored tensor has three axes."""
_PAIRWISE = {"ReduceMax": "Max", "ReduceMin": "Min", "ReduceProd": "Mul", "ReduceSum": "Add"}


def chain(op: str) -> Callable[[Maker], None]:
    """Rule that combines any number of values by `op`, two at a time."""

    def rule(make: Maker) -> None:
        inputs = list(make.inputs)
        if len(inputs) == 2 and op == make.op:
            return
        total = inputs[0]
        for name in inputs[1:]:
            total = make.add(op, total, name)
        if make.op == "Mean":
            total = make.add("Mul", total, make.constant(1 / len(inputs)))
        make.add("Identity", total, out=make.outputs[0])

    return rule


def swapped(op: str) -> Callable[[Maker], None]:
    """Rule for a comparison that equals `op` with exchanged operands."""

    def rule(make: Maker) -> None:
        make.add(op, make.inputs[1], make.inputs[0], out=make.outputs[0])

    return rule


def _axes(make: Maker) -> Sequence[int] | None:
    """The axes of a reduction; None or an empty sequence if the node names none."""
    if make.input(1):
        return [int(axis) for axis in make.constant_of(make.input(1), "the axes").reshape(-1)]
    return make.attributes.get("axes")


def reduction(make: Maker) -> None:
    """Replace reductions: of int32 and int64 by halves, of floats over many groups of axes one by one."""
    pairwise = _PAIRWISE.get(make.op)
    if pairwise is None or make.dtype(make.inputs[0]) not in ("int32", "int64"):
        _groups_of_axes(make)
        return
    shape, axes = make.sizes(make.inputs[0]), _axes(make)
    if not axes and make.integer("noop_with_empty_axes"):
        return
    reduced = {axis % len(shape) for axis in axes} if axes else set(range(len(shape)))
    result = make.inputs[0]
    for axis in sorted(reduced, key=lambda at: -shape[at]):
        result = _halved(make, pairwise, result, axis, shape[axis])
    make.reshaped(result, _reduced_shape(make, shape, reduced), out=make.outputs[0])


def _halved(make: Maker, op: str, x: str, axis: int, size: int) -> str:
    """Reduce an axis by the associative `op`, which combines its two halves until one element is left."""

    def part(first: int, end: int) -> str:
        return make.slice(x, [first], [end], [axis])

    odd_elements = []
    while size > 1:
        half = size // 2
        if size % 2:
            odd_elements.append(part(size - 1, size))
        x, size = make.add(op, part(0, half), part(half, 2 * half)), half
    for element in odd_elements:
        x = make.add(op, x, element)
    return x


def _groups_of_axes(make: Maker) -> None:
    """Split a reduction of more than _MOST_GROUPS groups, such as over [0, 2] of four axes.

    Each group of adjacent reduced axes gets a reduction.
    """
    if make.input(1) and make.known(make.input(1)) is None:
        return  # it may be folded later
    shape, axes = make.shape(make.inputs[0]), _axes(make)
    if shape is None or not axes:
        return
    reduced = {axis % len(shape) for axis in axes}
    runs = [
        list(run)
        for _, run in groupby((at for at, size in enumerate(shape) if size > 1), reduced.__contains__)
    ]
    if len(runs) <= _MOST_GROUPS:
        return
    result = make.inputs[0]
    for run in runs:
        if run[0] in reduced:
            result = make.reduce(make.op, result, run)
    make.reshaped(result, _reduced_shape(make, shape, reduced), out=make.outputs[0])


def _reduced_shape(make: Maker, shape: Sequence[int], reduced: set[int]) -> list[int]:
    """The shape of a reduction's result."""
    keep = make.integer("keepdims", 1)
    return [1 if at in reduced else size for at, size in enumerate(shape) if keep or at not in reduced]


def function_of_sum(make: Maker) -> None:
    """Replace ReduceL1, L2, SumSquare, LogSum and LogSumExp: functions of a sum of functions."""
    x, out, axes = make.inputs[0], make.outputs[0], _axes(make)
    keep = bool(make.attributes.get("keepdims", 1))
    if not axes:
        if make.integer("noop_with_empty_axes"):
            raise Unsupported("noop_with_empty_axes without axes is not supported: runtimes differ in it")
        axes = None
    match make.op:
        case "ReduceL1":
            make.reduce("ReduceSum", make.add("Abs", x), axes, keep=keep, out=out)
        case "ReduceL2":
            make.add("Sqrt", make.reduce("ReduceSum", make.add("Mul", x, x), axes, keep=keep), out=out)
        case "ReduceSumSquare":
            make.reduce("ReduceSum", make.add("Mul", x, x), axes, keep=keep, out=out)
        case "ReduceLogSum":
            make.add("Log", make.reduce("ReduceSum", x, axes, keep=keep), out=out)
        case _:
            maximum = make.reduce("ReduceMax", x, axes)
            powers = make.add("Exp", make.add("Sub", x, maximum))
            total = make.add("Log", make.reduce("ReduceSum", powers, axes, keep=keep))
            maximum = maximum if keep else make.reduce("ReduceMax", x, axes, keep=False)
            make.add("Add", total, maximum, out=out)


def log_softmax(make: Maker) -> None:
    """Replace LogSoftmax: x - max - log(sum(exp(x - max)))."""
    axes = [int(make.attributes.get("axis", -1))]
    low = make.add("Sub", make.inputs[0], make.reduce("ReduceMax", make.inputs[0], axes))
    total = make.add("Log", make.reduce("ReduceSum", make.add("Exp", low), axes))
    make.add("Sub", low, total, out=make.outputs[0])


def mixed_power(make: Maker) -> None:
    """Compute a power of mixed integer and float operands in float."""
    base, exponent = make.inputs
    kinds = make.dtype(base), make.dtype(exponent)
    floats = [kind == "float32" for kind in kinds]
    if None in kinds or floats[0] == floats[1] or make.known(exponent) is not None:
        return
    operands = (
        name if real else make.add("Cast", name, to=TensorProto.FLOAT)
        for name, real in zip(make.inputs, floats, strict=True)
    )
    result = make.add("Pow", *operands, out=make.outputs[0] if floats[0] else "")
    if not floats[0]:
        to = element_type(kinds[0])
        make.add("Cast", result, out=make.outputs[0], to=to)


def computed_clip(make: Maker) -> None:
    """Replace a Clip with computed bounds."""
    bounds = [(op, name) for op, name in zip(("Max", "Min"), make.inputs[1:], strict=False) if name]
    if all(make.known(name) is not None for _, name in bounds):
        return
    x = make.inputs[0]
    for op, name in bounds:
        x = make.add(op, x, name)
    make.add("Identity", x, out=make.outputs[0])


def running(op: str) -> Callable[[Maker], None]:
    """Replace CumSum and CumProd: `op` combines elements at distances 1, 2, 4, ..., so that rounding errors
    grow with the logarithm of the length.
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
    """Replace Hardmax: 1 at the first largest element along an axis, else 0.

    As in ONNX Runtime, all results are 0 if the first element is NaN.
    """
    shape, axis = make.sizes(make.inputs[0]), make.integer("axis", -1)
    along = [1] * len(shape)
    along[axis] = -1
    places = make.constant(np.arange(1, shape[axis] + 1).reshape(along))  # from 1 on: no place is 0
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
    negative, positive = make.integer("detect_negative", 1), make.integer("detect_positive", 1)
    largest = make.constant(np.finfo(np.float32).max)
    if not negative and not positive:
        raise Unsupported("it detects neither positive nor negative infinity: its result is constant")
    x = make.add("Abs", make.inputs[0]) if negative and positive else make.inputs[0]
    x = x if positive else make.add("Neg", x)
    make.add("Less", largest, x, out=make.outputs[0])
