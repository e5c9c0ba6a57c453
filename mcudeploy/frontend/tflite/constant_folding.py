"""Folding of values that follow from shapes and constants, such as SHAPE and float16 weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mcudeploy.frontend.tflite.contents import TfliteOperator, TfliteTensor

Integers = NDArray[np.int64]
Fold = Callable[[TfliteOperator, Sequence[Integers]], NDArray[np.int64] | NDArray[np.bool_]]
_MASKS = ("Begin", "End", "NewAxis", "ShrinkAxis")
_INTEGERS = ("BOOL", "INT32", "INT64")
_MAX_ELEMENTS = 1024
"""Limit of the elements of operands that are folded; those of shapes are few."""


def sliced(operator: TfliteOperator, source: Integers, limits: Sequence[Integers]) -> Integers:
    """The part that STRIDED_SLICE takes; `limits` are the begins, ends and steps.

    Raises ValueError for an ellipsis.
    """
    if operator.flag("EllipsisMask"):
        raise ValueError("an ellipsis in a slice of integers")
    begins, ends, steps = (each.tolist() for each in limits)
    index: list[int | slice | None] = []
    for axis, (begin, end, step) in enumerate(zip(begins, ends, steps, strict=True)):
        first, last, new, dropped = (operator.integer(f"{name}Mask") >> axis & 1 for name in _MASKS)
        if new:
            index.append(None)
        elif dropped:
            index.append(0 if first else begin)
        else:
            past = begin + end if operator.flag("Offset") else end
            index.append(slice(None if first else begin, None if last else past, step))
    return source[tuple(index)]


FOLDS: dict[str, Fold] = {
    "ADD": lambda _, values: values[0] + values[1],
    "CAST": lambda _, values: values[0],
    "CONCATENATION": lambda operator, values: np.concatenate(values, operator.integer("Axis")),
    "EXPAND_DIMS": lambda _, values: np.expand_dims(values[0], int(values[1])),
    "EQUAL": lambda _, values: values[0] == values[1],
    "FLOOR_DIV": lambda _, values: values[0] // values[1],
    "FLOOR_MOD": lambda _, values: values[0] % values[1],
    "GATHER": lambda operator, values: np.take(values[0], values[1], operator.integer("Axis")),
    "GREATER": lambda _, values: values[0] > values[1],
    "GREATER_EQUAL": lambda _, values: values[0] >= values[1],
    "LESS": lambda _, values: values[0] < values[1],
    "LESS_EQUAL": lambda _, values: values[0] <= values[1],
    "LOGICAL_AND": lambda _, values: np.logical_and(*values),
    "LOGICAL_NOT": lambda _, values: np.logical_not(values[0]),
    "LOGICAL_OR": lambda _, values: np.logical_or(*values),
    "MAXIMUM": lambda _, values: np.maximum(*values),
    "MINIMUM": lambda _, values: np.minimum(*values),
    "MUL": lambda _, values: values[0] * values[1],
    "NOT_EQUAL": lambda _, values: values[0] != values[1],
    "PACK": lambda operator, values: np.stack(values, operator.integer("Axis")),
    "RANGE": lambda _, values: np.arange(*(int(it) for it in values)),
    "REDUCE_PROD": lambda _, values: np.prod(values[0], axis=tuple(values[1].reshape(-1))),
    "RESHAPE": lambda _, values: values[0].reshape(values[1]),
    "SQUEEZE": lambda _, values: values[0].squeeze(),
    "STRIDED_SLICE": lambda operator, values: sliced(operator, values[0], values[1:]),
    "SUB": lambda _, values: values[0] - values[1],
}
"""By operator, a function of the values of all inputs that raises ValueError and similar errors."""


def folded(
    operator: TfliteOperator, sources: Sequence[TfliteTensor], result: TfliteTensor
) -> TfliteTensor | None:
    """The result as a constant, if it follows from the shapes and values of the inputs; else None.

    Raises ValueError and similar errors if these do not fit.
    """
    if operator.custom or result.dtype is None or not sources:
        return None
    if operator.op == "SHAPE":
        return _constant(result, np.array(sources[0].shape, np.int64))
    if operator.op == "RANK":
        return _constant(result, np.array(len(sources[0].shape), np.int64))
    if operator.op == "ZEROS_LIKE":
        return _constant(result, np.zeros(sources[0].shape, np.int64)) if result.scales is None else None
    if operator.op == "DENSIFY" and sources[0].data is not None:  # the reader has made the constant dense
        return replace(result, data=sources[0].data)
    if operator.op == "DEQUANTIZE" and sources[0].kind == "FLOAT16" and sources[0].data is not None:
        return _constant(result, sources[0].array())
    fold = FOLDS.get(operator.op)
    if fold is None or any(it.kind not in _INTEGERS for it in (*sources, result)):
        return None
    if any(it.data is None for it in sources) or sum(it.elements for it in sources) > _MAX_ELEMENTS:
        return None
    return _constant(result, fold(operator, [it.array().astype(np.int64) for it in sources]))


def _constant(tensor: TfliteTensor, value: NDArray[np.generic]) -> TfliteTensor:
    data = memoryview(np.asarray(value).astype(np.dtype(tensor.dtype).newbyteorder("<")).tobytes())
    return replace(tensor, shape=np.shape(value), data=data)
