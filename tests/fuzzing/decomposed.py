"""Operators that the front end writes as several others, and rare functions; as in `layers`."""

from __future__ import annotations

from math import prod, sqrt
from typing import Any

import numpy as np
from onnx import TensorProto

from fuzzing.draft import Draft, Layer, Shape, of

_FUNCTIONS: dict[str, int] = {
    "Abs": 13,
    "Celu": 13,
    "Elu": 13,
    "Erf": 13,
    "Gelu": 20,
    "Mish": 18,
    "Neg": 13,
    "Selu": 13,
    "Softplus": 13,
    "Softsign": 13,
    "ThresholdedRelu": 13,
}
"""Smooth enough for any float value, and the opset that each begins with."""

_REDUCTIONS = ("ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceMax", "ReduceMin", "ReduceSum")
_AXES_BY_INPUT = {"ReduceSum": 13}
"""First opset in which a reduction takes its axes as an input; 18 for all others."""


@of(2, 3, 4)
def seldom_function(draft: Draft, name: str, shape: Shape) -> None:
    """A function of one value that exporters rarely write, PRelu among them."""
    if draft.chance(0.15):
        slope = draft.constant(draft.normal((shape[1], *(1,) * (len(shape) - 2)), 0.3))
        draft.add("PRelu", [name, slope], shape)
        return
    draft.add(draft.pick([op for op, first in _FUNCTIONS.items() if draft.opset >= first]), [name], shape)


@of(2, 3, 4)
def along_axis(draft: Draft, name: str, shape: Shape) -> None:
    """Normalisations and sums along one axis."""
    axis = draft.pick((1, len(shape) - 1, -1))
    op = draft.pick(
        ("LogSoftmax", "LogSoftmax", "Hardmax", "LpNormalization", "CumSum", "LayerNormalization")
    )
    if op == "CumSum":
        sign = {"reverse": draft.whole(0, 1), "exclusive": draft.whole(0, 1)}
        draft.add(op, [name, draft.constant(np.array(axis, np.int64))], shape, **sign)
    elif op == "LayerNormalization" and draft.opset >= 17:
        size = shape[axis:]
        scale = draft.constant(draft.random.uniform(0.3, 2, size).astype(np.float32))
        draft.add(op, [name, scale, draft.constant(draft.normal(size, 0.2))], shape, axis=axis)
    elif op == "LpNormalization":
        draft.add(op, [name], shape, axis=axis, p=draft.whole(1, 2))
    elif op != "LayerNormalization":
        draft.add(op, [name], shape, axis=axis)


@of(3, 4)
def normalised_image(draft: Draft, name: str, shape: Shape) -> None:
    """Normalisations over rows and columns, or over adjacent channels."""
    channels = shape[1]
    op = draft.pick(("InstanceNormalization", "GroupNormalization", "LRN", "MeanVarianceNormalization"))
    few = prod(shape[2:]) < 4  # their mean is nearly each of them: any rounding is large then
    if op == "LRN" and len(shape) == 4:
        draft.add(op, [name], shape, size=draft.pick((1, 3, 5)), alpha=draft.pick((1e-4, 0.1)), bias=1.0)
    elif op == "MeanVarianceNormalization" and len(shape) == 4 and not few:
        draft.add(op, [name], shape, axes=(0, 2, 3))
    elif op in ("InstanceNormalization", "GroupNormalization") and not few:
        vectors = (draft.random.uniform(0.3, 2, channels), draft.normal((channels,), 0.2))
        inputs = [name, *(draft.constant(vector.astype(np.float32)) for vector in vectors)]
        if op == "InstanceNormalization":
            draft.add(op, inputs, shape, epsilon=draft.pick((1e-5, 1e-3)))
        elif draft.opset >= 21:
            groups = draft.pick([g for g in range(1, channels + 1) if channels % g == 0])
            draft.add(op, inputs, shape, num_groups=groups)


@of(2, 3, 4)
def reduction(draft: Draft, name: str, shape: Shape) -> None:
    """A sum, norm or extreme over some axes."""
    rank, op = len(shape), draft.pick(_REDUCTIONS)
    axes = sorted({draft.whole(1, rank - 1) for _ in range(2)})
    keep = draft.whole(0, 1)
    result = tuple(1 if at in axes else size for at, size in enumerate(shape) if keep or at not in axes)
    if len(result) < 2:
        return
    if draft.opset >= _AXES_BY_INPUT.get(op, 18):
        draft.add(op, [name, draft.constant(np.array(axes, np.int64))], result, keepdims=keep)
    else:
        draft.add(op, [name], result, axes=axes, keepdims=keep)


@of(4)
def pooled_norm(draft: Draft, name: str, shape: Shape) -> None:
    """Norms over windows, or over a whole image."""
    batch, channels, rows, cols = shape
    if draft.chance(0.4):
        draft.add("GlobalLpPool", [name], (batch, channels, 1, 1), p=draft.whole(1, 2))
    elif min(rows, cols) >= 2:
        stride = draft.whole(1, 2)
        result = (batch, channels, (rows - 2) // stride + 1, (cols - 2) // stride + 1)
        attributes = {"kernel_shape": (2, 2), "strides": (stride, stride), "p": draft.whole(1, 2)}
        draft.add("LpPool", [name], result, **attributes)


@of(4)
def depth_and_space(draft: Draft, name: str, shape: Shape) -> None:
    """Channels to rows and columns, or back."""
    batch, channels, rows, cols = shape
    size = draft.whole(2, 3)
    if channels % size**2 == 0:
        result = (batch, channels // size**2, rows * size, cols * size)
        draft.add("DepthToSpace", [name], result, blocksize=size, mode=draft.pick(("DCR", "CRD")))
    elif rows % size == 0 == cols % size:
        result = (batch, channels * size**2, rows // size, cols // size)
        draft.add("SpaceToDepth", [name], result, blocksize=size)


@of(3, 4)
def transposed_convolution(draft: Draft, name: str, shape: Shape) -> None:
    """An image or a signal enlarged by learnt windows."""
    batch, channels, *size = shape
    groups = draft.pick((1, 1, channels))
    each = draft.whole(1, 4)
    kernel = tuple(draft.whole(1, 4) for _ in size)
    stride = tuple(draft.whole(1, 3) for _ in size)
    pads = [draft.whole(0, (k - 1) // 2) for k in kernel] * 2
    made = tuple(
        (length - 1) * s + k - 2 * pad
        for length, s, k, pad in zip(size, stride, kernel, pads[: len(size)], strict=True)
    )
    result = (batch, groups * each, *made)
    depth = channels // groups * prod(kernel)
    if min(made) < 1 or not draft.fits(result, prod(result) * depth):
        return
    inputs = [name, draft.constant(draft.normal((channels, each, *kernel), 1 / sqrt(depth)))]
    if draft.chance(0.7):
        inputs.append(draft.constant(draft.normal((groups * each,), 0.2)))
    draft.add("ConvTranspose", inputs, result, group=groups, strides=stride, pads=pads, kernel_shape=kernel)


@of(2, 3, 4)
def choice(draft: Draft, name: str, shape: Shape) -> None:
    """The larger of two values, or one of two according to a comparison."""
    other = draft.pick(draft.alike(lambda it: it == shape))
    if draft.chance(0.5):
        draft.add(draft.pick(("Max", "Min", "Mean", "Sum")), [name, other], shape)
        return
    bound = draft.constant(np.float32(draft.pick((0.0, 0.3)))) if draft.chance(0.5) else other
    op = draft.pick(("Greater", "GreaterOrEqual", "Less", "LessOrEqual"))
    where = draft.add(op, [name, bound], shape, TensorProto.BOOL)
    if draft.chance(0.3):
        where = draft.add("Not", [where], shape, TensorProto.BOOL)
    draft.add("Where", [where, name, other if draft.chance(0.5) else bound], shape)


@of(2, 3, 4)
def moved(draft: Draft, name: str, shape: Shape) -> None:
    """Elements left out, hidden, or given several times."""
    rank = len(shape)
    way = draft.pick(("Trilu", "Tile", "Expand", "CenterCropPad", "Einsum"))
    if way == "Trilu" and draft.opset >= 14:
        draft.add(way, [name, _numbers(draft, draft.whole(-1, 2))], shape, upper=draft.whole(0, 1))
    elif way == "Tile":
        _given(draft, way, name, tuple(draft.pick((1, 1, 2, 3)) if at else 1 for at in range(rank)))
    elif way == "Expand" and 1 in shape[1:]:
        _given(draft, way, name, tuple(3 if size == 1 and at else 1 for at, size in enumerate(shape)))
    elif way == "CenterCropPad" and draft.opset >= 18 and rank == 4:
        size = tuple(max(1, each + draft.whole(-3, 2)) for each in shape[2:])
        if draft.fits((*shape[:2], *size)):
            draft.add(way, [name, _numbers(draft, size)], (*shape[:2], *size), axes=(2, 3))
    elif way == "Einsum" and rank == 3:
        weights = draft.constant(draft.normal((shape[2], 5), 1 / sqrt(shape[2])))
        if draft.fits((*shape[:2], 5), prod(shape) * 5):
            draft.add(way, [name, weights], (*shape[:2], 5), equation="btc,cd->btd")


def _given(draft: Draft, op: str, name: str, factors: Shape) -> None:
    shape = draft.shapes[name]
    result = tuple(size * factor for size, factor in zip(shape, factors, strict=True))
    if draft.fits(result):
        draft.add(op, [name, _numbers(draft, factors if op == "Tile" else result)], result)


def _numbers(draft: Draft, numbers: Any) -> str:
    return draft.constant(np.array(numbers, np.int64))


LAYERS: tuple[tuple[Layer, float], ...] = (
    (along_axis, 3),
    (normalised_image, 2),
    (reduction, 1.5),
    (seldom_function, 1.5),
    (choice, 1.5),
    (transposed_convolution, 1),
    (pooled_norm, 1),
    (moved, 1),
    (depth_and_space, 0.7),
)
