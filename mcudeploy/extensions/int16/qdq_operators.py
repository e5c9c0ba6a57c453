"""Replacements of operators of QDQ graphs by operators on int16 values."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, helper

from mcudeploy.extensions.int16.conv_int16 import SumScales
from mcudeploy.extensions.int16.int16 import SUM_BITS, UNBOUNDED, TwiceScale
from mcudeploy.extensions.int16.qdq_graph import (
    Int16Result,
    QdqDraft,
    StoredInt16,
    StoredWeights,
    UnfitError,
    bounds_fact,
)
from mcudeploy.frontend.onnx.protos import attribute_of, copy_of
from mcudeploy.ops.requantize import mean_multiplier


def _finished(
    draft: QdqDraft, source: StoredInt16, weights: StoredWeights, bias: str, result: Int16Result
) -> tuple[list[str], dict[str, Any]]:
    """The constant inputs of a convolution or product, and its attributes for the last step.

    The output channels of `weights` come first.
    """
    channels = len(weights.stored)
    if weights.scales.size not in (1, channels):
        raise UnfitError
    units = source.scale * np.broadcast_to(weights.scales, channels)
    scales = SumScales.of(np.ascontiguousarray(units / result.scale), "away")
    inputs = [
        draft.constant(weights.stored),
        draft.constant(draft.bias(bias, units)),
        draft.constant(scales.multipliers),
        draft.constant(scales.shifts),
    ]
    return inputs, {"ties": "away", "left_shift": scales.left_shift, **bounds_fact(result)}


def _conv(draft: QdqDraft, node: NodeProto, result: Int16Result) -> None:
    """A convolution of an image, or of a line as an image of one row, transposed to channels last."""
    source, weights = draft.integers(node.input[0]), draft.weights(node.input[1])
    shape, rank = draft.shape(source.name), weights.stored.ndim
    auto = attribute_of(node, "auto_pad", b"NOTSET")
    if rank not in (3, 4) or shape[0] != 1 or auto not in (b"NOTSET", b"VALID"):
        raise UnfitError
    if weights.scales.size > 1 and weights.axis != 0:
        raise UnfitError
    flat = [1] if rank == 3 else []
    ones = [1] * (rank - 2)
    pads = attribute_of(node, "pads", [0] * (2 * (rank - 2)))
    window = {
        "kernel_shape": [*flat, *weights.stored.shape[2:]],
        "strides": [*flat, *attribute_of(node, "strides", ones)],
        "dilations": [*flat, *attribute_of(node, "dilations", ones)],
        "pads": [0, pads[0], 0, pads[1]] if rank == 3 else pads,
    }
    stored = weights.stored[:, :, None] if rank == 3 else weights.stored
    weights = StoredWeights(np.ascontiguousarray(stored.transpose(0, 2, 3, 1)), weights.scales, 0)
    bias = node.input[2] if len(node.input) > 2 else ""
    constants, facts = _finished(draft, source, weights, bias, result)
    image = _channels_last(draft, source.name, rank)
    shape = draft.shape(node.output[0])
    facts |= {**window, "group": attribute_of(node, "group", 1)}
    size = shape[2:] if rank == 4 else (1, *shape[2:])
    output = draft.node("ConvInt16", [image, *constants], draft.name(), (1, *size, shape[1]), **facts)
    _channels_second(draft, output, result.name, shape)


def _channels_last(draft: QdqDraft, name: str, rank: int) -> str:
    """Add the transposition of an image or a line, the latter as an image of one row, to channels last."""
    shape = draft.shape(name)
    if rank == 4:
        moved = (shape[0], *shape[2:], shape[1])
        return draft.node("Transpose", [name], draft.name(), moved, perm=[0, 2, 3, 1])
    line = draft.node("Transpose", [name], draft.name(), (1, shape[2], shape[1]), perm=[0, 2, 1])
    sizes = draft.constant(np.array([1, 1, shape[2], shape[1]], np.int64))
    return draft.node("Reshape", [line, sizes], draft.name(), (1, 1, shape[2], shape[1]))


def _channels_second(draft: QdqDraft, name: str, output: str, shape: tuple[int, ...]) -> None:
    """Add the transposition of an image to `output`, an image or a line of this shape in ONNX's layout."""
    if len(shape) == 3:
        sizes = draft.constant(np.array([1, shape[2], shape[1]], np.int64))
        name = draft.node("Reshape", [name, sizes], draft.name(), (1, shape[2], shape[1]))
    draft.node("Transpose", [name], output, perm=[0, 3, 1, 2] if len(shape) == 4 else [0, 2, 1])


def _gemm(draft: QdqDraft, node: NodeProto, result: Int16Result) -> None:
    """A Gemm by constant weights, without factors, and without a transposed input."""
    source, weights = draft.integers(node.input[0]), draft.weights(node.input[1])
    alpha, beta = (attribute_of(node, name, 1.0) for name in ("alpha", "beta"))
    if not alpha == 1 == beta or attribute_of(node, "transA", 0):
        raise UnfitError
    bias = node.input[2] if len(node.input) > 2 else ""
    _dense(draft, source, _channels_first(weights, 0 if attribute_of(node, "transB", 0) else 1), bias, result)


def _matmul(draft: QdqDraft, node: NodeProto, result: Int16Result) -> None:
    """A product by constant weights, or of two activations."""
    source, other = draft.integers(node.input[0]), draft.producer(node.input[1])
    if other is not None and draft.is_constant(other.input[0]):
        _dense(draft, source, _channels_first(draft.weights(node.input[1]), 1), "", result)
        return
    second = draft.integers(node.input[1])
    if min(len(draft.shape(it.name)) for it in (source, second)) < 2 or result.bounds != UNBOUNDED:
        raise UnfitError
    scales = SumScales.of(np.array([source.scale * second.scale / result.scale]), "away")
    facts: dict[str, Any] = {"multiplier": int(scales.multipliers[0]), "shift": int(scales.shifts[0])}
    facts["left_shift"] = scales.left_shift
    draft.node("MatMulInt16", [source.name, second.name], result.name, **facts)


def _channels_first(weights: StoredWeights, axis: int) -> StoredWeights:
    """A matrix with its output channels, which are on `axis`, first."""
    if weights.stored.ndim != 2 or (weights.scales.size > 1 and weights.axis != axis):
        raise UnfitError
    return StoredWeights(np.ascontiguousarray(np.moveaxis(weights.stored, axis, 0)), weights.scales, 0)


def _dense(
    draft: QdqDraft, source: StoredInt16, weights: StoredWeights, bias: str, result: Int16Result
) -> None:
    """Products of the rows of `source` by a matrix with the output channels first."""
    if draft.shape(source.name)[-1] != weights.stored.shape[1]:
        raise UnfitError
    constants, facts = _finished(draft, source, weights, bias, result)
    draft.node("DenseInt16", [source.name, *constants], result.name, **facts)


def _binary(draft: QdqDraft, node: NodeProto, result: Int16Result) -> None:
    a, b = (draft.integers(name) for name in node.input)
    if draft.is_constant(a.name) and draft.is_constant(b.name):
        raise UnfitError
    function = {"Add": "add", "Sub": "sub", "Mul": "mul"}[node.op_type]
    factors = [a.scale * b.scale / result.scale] * 3
    if function != "mul":
        common = 2 * max(a.scale, b.scale)
        factors = [a.scale / common, b.scale / common, common / (2.0**SUM_BITS * result.scale)]
    scales = [TwiceScale.of(factor) for factor in factors]
    if scales[2].exponent > 0:
        raise UnfitError
    facts: dict[str, Any] = {"function": function, **bounds_fact(result)}
    facts |= {
        name: [it.multiplier, it.exponent] for name, it in zip(("a", "b", "result"), scales, strict=True)
    }
    draft.node("BinaryInt16", [a.name, b.name], result.name, **facts)


def _global_mean(draft: QdqDraft, node: NodeProto, result: Int16Result) -> None:
    """The mean over all axes but the first two."""
    source = draft.integers(node.input[0])
    _mean(draft, source, list(range(2, len(draft.shape(source.name)))), result)


def _average_pool(draft: QdqDraft, node: NodeProto, result: Int16Result) -> None:
    """The mean over the whole image. PoolInt16 would round the mean of a smaller window before scaling it."""
    source = draft.integers(node.input[0])
    size = list(draft.shape(source.name)[2:])
    if attribute_of(node, "kernel_shape", []) != size or any(attribute_of(node, "pads", [0])):
        raise UnfitError
    _global_mean(draft, node, result)


def _reduce_mean(draft: QdqDraft, node: NodeProto, result: Int16Result) -> None:
    source = draft.integers(node.input[0])
    rank = len(draft.shape(source.name))
    axes = attribute_of(node, "axes", [])
    if len(node.input) > 1 and node.input[1]:
        axes = [int(axis) for axis in draft.array(node.input[1]).reshape(-1)]
    if not axes:
        raise UnfitError
    _mean(draft, source, sorted({axis % rank for axis in axes}), result)


def _mean(draft: QdqDraft, source: StoredInt16, axes: list[int], result: Int16Result) -> None:
    shape = draft.shape(source.name)
    count = prod(shape[axis] for axis in axes)
    scale = mean_multiplier(source.scale / result.scale, count)
    if result.bounds != UNBOUNDED or shape[0] != 1:
        raise UnfitError
    draft.node("MeanInt16", [source.name], result.name, axes=axes, scale=list(scale))


def _move(draft: QdqDraft, node: NodeProto, result: Int16Result) -> None:
    """Move integers. If the result has another scale, or bounds, they are rescaled before the move."""
    sources = [draft.integers(name) for name in node.input[: MOVED.get(node.op_type, len(node.input))]]
    names = []
    for source in sources:
        if result.bounds == UNBOUNDED and source.scale == result.scale:
            names.append(source.name)
            continue
        name = draft.name()
        draft.values.append(helper.make_tensor_value_info(name, TensorProto.INT16, draft.shape(source.name)))
        draft.rescaled(source, Int16Result(name, result.scale, result.bounds))
        names.append(name)
    copy = copy_of(node)
    copy.output[0] = result.name
    copy.input[: len(names)] = names
    draft.nodes.append(copy)


def _max_pool(draft: QdqDraft, node: NodeProto, result: Int16Result) -> None:
    """A MaxPool without dilation. If the result has another scale, or bounds, a rescaling follows."""
    source = draft.integers(node.input[0])
    shape, pooled_shape = draft.shape(source.name), draft.shape(node.output[0])
    auto = attribute_of(node, "auto_pad", b"NOTSET")
    plain = auto in (b"NOTSET", b"VALID") and not attribute_of(node, "ceil_mode", 0)
    if len(shape) != 4 or shape[0] != 1 or not plain or set(attribute_of(node, "dilations", [1, 1])) != {1}:
        raise UnfitError
    window: dict[str, Any] = {name: attribute_of(node, name, [1, 1]) for name in ("kernel_shape", "strides")}
    window["pads"] = attribute_of(node, "pads", [0] * 4)
    image = _channels_last(draft, source.name, 4)
    image_shape = (1, *pooled_shape[2:], pooled_shape[1])
    name = draft.node("PoolInt16", [image], draft.name(), image_shape, **window, average=0)
    if source.scale != result.scale or result.bounds != UNBOUNDED:
        rescaled = draft.name()
        draft.values.append(helper.make_tensor_value_info(rescaled, TensorProto.INT16, image_shape))
        draft.rescaled(StoredInt16(name, source.scale), Int16Result(rescaled, result.scale, result.bounds))
        name = rescaled
    _channels_second(draft, name, result.name, pooled_shape)


MOVED = {"Flatten": 1, "Gather": 1, "Reshape": 1, "Slice": 1, "Squeeze": 1, "Transpose": 1, "Unsqueeze": 1}
"""The number of leading inputs that an operator moves. Concat moves all inputs."""

INT16_OPERATORS: dict[str, Callable[[QdqDraft, NodeProto, Int16Result], None]] = {
    **dict.fromkeys(("Add", "Sub", "Mul"), _binary),
    **dict.fromkeys((*MOVED, "Concat"), _move),
    "AveragePool": _average_pool,
    "Conv": _conv,
    "Gemm": _gemm,
    "GlobalAveragePool": _global_mean,
    "MatMul": _matmul,
    "MaxPool": _max_pool,
    "ReduceMean": _reduce_mean,
}
"""Replacement of each operator before a QuantizeLinear."""
