"""Values of int32 and int64, as `layers`: indices, arithmetic that wraps nowhere, comparisons, and casts."""

from __future__ import annotations

from math import prod

import numpy as np
from onnx import TensorProto

from fuzzing.draft import Draft, Layer, Shape, of

TYPES = (TensorProto.INT32, TensorProto.INT64)
_DTYPES = {TensorProto.INT32: np.int32, TensorProto.INT64: np.int64}
_DRAWN = 127
"""Inputs are no larger; `mcudeploy run` draws them so."""
_MOST = 2**30


def integer_input(draft: Draft) -> None:
    """An input of integers, at times in the shape of another one."""
    shape = draft.pick(((1, 4), (1, 7, 3), (1, 10), (2, 5), (1, 3, 4, 4)))
    if draft.inputs and draft.chance(0.5):
        shape = draft.shapes[draft.inputs[0]]
    name = draft.input(shape, draft.pick(TYPES))
    draft.most[name] = _DRAWN


def _fitting_node(draft: Draft, op: str, inputs: list[str], shape: Shape, kind: int, most: int) -> str | None:
    """A node with an integer result; None if it might not fit."""
    if most > _MOST or not draft.fits(shape):
        return None
    name = draft.add(op, inputs, shape, kind)
    draft.most[name] = most
    return name


@of(2, 3, 4, types=TYPES)
def arithmetic(draft: Draft, name: str, shape: Shape) -> None:
    """Two integers, or one and a constant."""
    kind, most = draft.type_of(name), draft.most[name]
    op = draft.pick(
        ("Add", "Sub", "Mul", "Div", "Mod", "Max", "Min", "BitwiseAnd", "BitwiseOr", "BitwiseXor")
    )
    if op.startswith("Bitwise") and draft.opset < 18:
        return
    number = draft.pick((1, 2, 3, 7, 16, 100, -1, -5))
    size: Shape = shape[-1:] if draft.chance(0.3) else ()
    constant = draft.constant(np.full(size, number, _DTYPES[kind]))
    others = draft.alike(lambda it: it == shape, (kind,))
    other = draft.pick(others) if op not in ("Div", "Mod") and draft.chance(0.5) else constant
    beside = draft.most.get(other, abs(number))
    limit = {"Mul": most * beside, "Add": most + beside, "Sub": most + beside}.get(op, 2 * max(most, beside))
    _fitting_node(draft, op, [name, other], shape, kind, limit)


@of(2, 3, 4, types=TYPES)
def function(draft: Draft, name: str, shape: Shape) -> None:
    """A function of one integer."""
    kind, most = draft.type_of(name), draft.most[name]
    op = draft.pick(("Neg", "Abs", "Sign", "Clip", "Relu"))
    if op == "Relu" and (draft.opset < 14 or kind == TensorProto.INT64):
        return
    bounds = [draft.constant(np.array(it, _DTYPES[kind])) for it in (-20, 60)] if op == "Clip" else []
    _fitting_node(draft, op, [name, *bounds], shape, kind, most)


def cast(draft: Draft) -> None:
    """A Cast to float32, with which most layers continue; to the other integers; or from float32, after
    Round.
    """
    name = draft.source(2, 3, 4, types=TYPES)
    if name is not None and draft.chance(0.7):
        shape = draft.shapes[name]
        if draft.chance(0.3):
            kind = draft.pick(TYPES)
            draft.most[draft.add("Cast", [name], shape, kind, to=kind)] = draft.most[name]
            return
        real = draft.add("Cast", [name], shape, to=TensorProto.FLOAT)
        draft.add("Mul", [real, draft.constant(np.float32(draft.pick((0.01, 0.1, 1 / 127))))], shape)
        return
    name = draft.source(2, 3, 4)
    if name is not None:
        shape = draft.shapes[name]
        kind, bound = draft.pick(TYPES), np.float32(50)
        bounds = [draft.constant(it) for it in (-bound, bound)]
        most = draft.add("Clip", [draft.add("Round", [name], shape), *bounds], shape)
        draft.most[draft.add("Cast", [most], shape, kind, to=kind)] = 50


@of(2, 3, 4, types=TYPES)
def compare(draft: Draft, name: str, shape: Shape) -> None:
    """Integers compared, and a choice by it."""
    kind = draft.type_of(name)
    others = draft.alike(lambda it: it == shape, (kind,))
    bound = draft.constant(np.array(draft.pick((0, 5, 60)), _DTYPES[kind]))
    other = draft.pick(others) if draft.chance(0.5) else bound
    op = draft.pick(("Equal", "Less", "LessOrEqual", "Greater"))
    where = draft.add(op, [name, other], shape, TensorProto.BOOL)
    reals = draft.alike(lambda it: it == shape)
    if reals and draft.chance(0.5):
        draft.add("Where", [where, draft.pick(reals), draft.constant(np.float32(0.5))], shape)
    elif draft.chance(0.3):
        draft.add("Cast", [where], shape, to=TensorProto.FLOAT)
    else:
        most = max(draft.most[name], 60, draft.most.get(other, 0))
        _fitting_node(draft, "Where", [where, name, other], shape, kind, most)


@of(2, 3, 4, types=TYPES)
def rows(draft: Draft, name: str, shape: Shape) -> None:
    """Rows of a table by index, or elements of a value by index; Mod brings indices into range."""
    kind = draft.type_of(name)
    reals = draft.alike(lambda it: len(it) == len(shape) and it[:1] + it[2:] == shape[:1] + shape[2:])
    size = draft.pick((3, 10, 40))
    if reals and draft.chance(0.3):
        data = draft.pick(reals)
        size = draft.shapes[data][1]
    elif len(shape) < 4 and draft.fits((*shape, 6)):
        data = ""
    else:
        return
    if name not in draft.inputs or data or draft.chance(0.4):
        modulus = draft.constant(np.array(size, _DTYPES[kind]))
        name = draft.add("Mod", [name, modulus], shape, kind)
        draft.most[name] = size - 1
    draft.most[name] = min(draft.most[name], size - 1)
    if data:
        draft.add("GatherElements", [data, name], shape, axis=1)
    else:
        depth = draft.whole(1, 6)
        table = draft.constant(draft.normal((size, depth)))
        draft.add("Gather", [table, name], (*shape, depth), axis=0)


@of(2, 3, 4)
def best(draft: Draft, name: str, shape: Shape) -> None:
    """Positions of the largest or smallest element, or of several."""
    axis = draft.whole(1, len(shape) - 1)
    if draft.chance(0.5):
        count = draft.whole(1, min(4, shape[axis]))
        result = (*shape[:axis], count, *shape[axis + 1 :])
        inputs = [name, draft.constant(np.array([count], np.int64))]
        types = (TensorProto.FLOAT, TensorProto.INT64)
        _, where = draft.add_many(
            "TopK", inputs, [result, result], types, axis=axis, largest=draft.whole(0, 1)
        )
    else:
        result = (*shape[:axis], 1, *shape[axis + 1 :])
        where = draft.add(draft.pick(("ArgMax", "ArgMin")), [name], result, TensorProto.INT64, axis=axis)
    draft.most[where] = shape[axis]


@of(2, 3, 4, types=TYPES)
def move(draft: Draft, name: str, shape: Shape) -> None:
    """Integers in another order, under another shape, or several side by side."""
    kind, most = draft.type_of(name), draft.most[name]
    way = draft.pick(("flatten", "transpose", "slice", "concat", "tile"))
    if way == "flatten":
        written = draft.constant(np.array((shape[0], -1), np.int64))
        _fitting_node(draft, "Reshape", [name, written], (shape[0], prod(shape[1:])), kind, most)
    elif way == "transpose" and len(shape) > 2:
        perm = [0, *(draft.random.permutation(np.arange(1, len(shape)))).tolist()]
        out = draft.add("Transpose", [name], tuple(shape[axis] for axis in perm), kind, perm=perm)
        draft.most[out] = most
    elif way == "slice" and shape[-1] > 1:
        bounds = [draft.constant(np.array([it], np.int64)) for it in (1, shape[-1], len(shape) - 1)]
        _fitting_node(draft, "Slice", [name, *bounds], (*shape[:-1], shape[-1] - 1), kind, most)
    elif way == "concat" and draft.fits((shape[0], 2 * shape[1], *shape[2:])):
        other = draft.pick(draft.alike(lambda it: it == shape, (kind,)))
        result = (shape[0], 2 * shape[1], *shape[2:])
        draft.most[draft.add("Concat", [name, other], result, kind, axis=1)] = max(most, draft.most[other])
    elif way == "tile":
        repeats = draft.constant(np.array([1, 2] + [1] * (len(shape) - 2), np.int64))
        _fitting_node(draft, "Tile", [name, repeats], (shape[0], 2 * shape[1], *shape[2:]), kind, most)


LAYERS: tuple[tuple[Layer, float], ...] = (
    (arithmetic, 3),
    (cast, 2),
    (rows, 2),
    (function, 1.2),
    (compare, 1.2),
    (best, 1.2),
    (move, 1.5),
)
