"""Rules for sums of functions, and for operators that ONNX defines by them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

import numpy as np
from onnx import NodeProto, TensorProto, helper

from mcudeploy.frontend.decompose.maker import Maker
from mcudeploy.frontend.onnx.nodes import Unsupported

_MOST_GROUPS = 3
"""Limit of the groups of adjacent axes that are reduced, or kept: the dimensions of a tensor."""
_PAIRWISE = {"ReduceMax": "Max", "ReduceMin": "Min", "ReduceProd": "Mul", "ReduceSum": "Add"}


def chain(op: str) -> Callable[[NodeProto, Maker], bool]:
    """Combine any number of values pairwise."""

    def rule(node: NodeProto, make: Maker) -> bool:
        inputs = list(node.input)
        if len(inputs) == 2 and op == node.op_type:
            return False
        total = inputs[0]
        for name in inputs[1:]:
            total = make.add(op, total, name)
        if node.op_type == "Mean":
            total = make.add("Mul", total, make.constant(1 / len(inputs)))
        make.add("Identity", total, out=node.output[0])
        return True

    return rule


def swapped(op: str) -> Callable[[NodeProto, Maker], bool]:
    """Rule for a function of two values with exchanged operands."""

    def rule(node: NodeProto, make: Maker) -> bool:
        make.add(op, node.input[1], node.input[0], out=node.output[0])
        return True

    return rule


def _axes(make: Maker) -> Sequence[int] | None:
    """The axes of a reduction, or an empty sequence if the node names none."""
    if make.input(1):
        return [int(axis) for axis in make.constant_of(make.input(1), "the axes").reshape(-1)]
    return make.attributes.get("axes")


def reduction(node: NodeProto, make: Maker) -> bool:
    """Reduce int32 and int64 by halves, and floats over groups of axes."""
    pairwise = _PAIRWISE.get(node.op_type)
    if pairwise is None or make.dtype(node.input[0]) not in ("int32", "int64"):
        return _groups_of_axes(node, make)
    shape, axes = make.sizes(node.input[0]), _axes(make)
    if not axes and make.integer("noop_with_empty_axes"):
        return False
    reduced = {axis % len(shape) for axis in axes} if axes else set(range(len(shape)))
    result = node.input[0]
    for axis in sorted(reduced, key=lambda at: -shape[at]):
        result = _halved(make, pairwise, result, axis, shape[axis])
    keep = make.integer("keepdims", 1)
    sizes = [1 if at in reduced else size for at, size in enumerate(shape) if keep or at not in reduced]
    make.reshaped(result, sizes, out=node.output[0])
    return True


def _halved(make: Maker, op: str, x: str, axis: int, size: int) -> str:
    """The elements of an axis joined by `op`, which is associative: halves first, so that few steps do it."""

    def part(first: int, end: int) -> str:
        return make.add("Slice", x, *(make.constant([at], np.int64) for at in (first, end, axis)))

    rest = []
    while size > 1:
        half = size // 2
        if size % 2:
            rest.append(part(size - 1, size))
        x, size = make.add(op, part(0, half), part(half, 2 * half)), half
    for each in rest:
        x = make.add(op, x, each)
    return x


def _groups_of_axes(node: NodeProto, make: Maker) -> bool:
    """Split a reduction over non-adjacent axes, such as [0, 2] of four, into one reduction for each group of
    adjacent axes. Fewer groups are one kernel.
    """
    if make.input(1) and make.known(make.input(1)) is None:
        return False  # it may be folded later
    shape, axes = make.shape(node.input[0]), _axes(make)
    if shape is None or not axes:
        return False
    reduced = {axis % len(shape) for axis in axes}
    runs = [
        list(run)
        for _, run in groupby((at for at, size in enumerate(shape) if size > 1), reduced.__contains__)
    ]
    if len(runs) <= _MOST_GROUPS:
        return False
    result = node.input[0]
    for run in runs:
        if run[0] in reduced:
            result = make.reduce(node.op_type, result, run)
    kept = [1 if at in reduced else size for at, size in enumerate(shape)]
    keep = make.integer("keepdims", 1)
    make.reshaped(
        result,
        kept if keep else [size for at, size in enumerate(shape) if at not in reduced],
        out=node.output[0],
    )
    return True


def of_sum(node: NodeProto, make: Maker) -> bool:
    """ReduceL1, L2, SumSquare, LogSum, LogSumExp: a function of a sum of functions."""
    x, out, axes = node.input[0], node.output[0], _axes(make)
    keep = bool(make.attributes.get("keepdims", 1))
    if not axes:
        if make.integer("noop_with_empty_axes"):
            raise Unsupported("noop_with_empty_axes without axes is not supported: runtimes differ in it")
        axes = None
    match node.op_type:
        case "ReduceL1":
            make.reduce("ReduceSum", make.add("Abs", x), axes, keep=keep, out=out)
        case "ReduceL2":
            make.add("Sqrt", make.reduce("ReduceSum", make.add("Mul", x, x), axes, keep=keep), out=out)
        case "ReduceSumSquare":
            make.reduce("ReduceSum", make.add("Mul", x, x), axes, keep=keep, out=out)
        case "ReduceLogSum":
            make.add("Log", make.reduce("ReduceSum", x, axes, keep=keep), out=out)
        case _:
            most = make.reduce("ReduceMax", x, axes)
            grown = make.add("Exp", make.add("Sub", x, most))
            total = make.add("Log", make.reduce("ReduceSum", grown, axes, keep=keep))
            most = most if keep else make.reduce("ReduceMax", x, axes, keep=False)
            make.add("Add", total, most, out=out)
    return True


def log_softmax(node: NodeProto, make: Maker) -> bool:
    """X - max - log(sum(exp(x - max)))."""
    axes = [int(make.attributes.get("axis", -1))]
    low = make.add("Sub", node.input[0], make.reduce("ReduceMax", node.input[0], axes))
    total = make.add("Log", make.reduce("ReduceSum", make.add("Exp", low), axes))
    make.add("Sub", low, total, out=node.output[0])
    return True


def mixed_power(node: NodeProto, make: Maker) -> bool:
    """Compute a power of mixed integer and float operands in float."""
    base, exponent = node.input
    kinds = make.dtype(base), make.dtype(exponent)
    floats = [kind == "float32" for kind in kinds]
    if None in kinds or floats[0] == floats[1] or make.known(exponent) is not None:
        return False
    operands = (
        name if real else make.add("Cast", name, to=TensorProto.FLOAT)
        for name, real in zip(node.input, floats, strict=True)
    )
    made = make.add("Pow", *operands, out=node.output[0] if floats[0] else "")
    if not floats[0]:
        to = helper.np_dtype_to_tensor_dtype(np.dtype(kinds[0]))
        make.add("Cast", made, out=node.output[0], to=to)
    return True


def computed_clip(node: NodeProto, make: Maker) -> bool:
    """Replace a Clip with computed bounds."""
    bounds = [(op, name) for op, name in zip(("Max", "Min"), node.input[1:], strict=False) if name]
    if all(make.known(name) is not None for _, name in bounds):
        return False
    x = node.input[0]
    for op, name in bounds:
        x = make.add(op, x, name)
    make.add("Identity", x, out=node.output[0])
    return True
