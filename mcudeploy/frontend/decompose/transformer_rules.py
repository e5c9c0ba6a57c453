"""Rules for the nodes of transformers that ONNX Runtime's optimiser writes, in the domain com.microsoft."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np
from onnx import TensorProto

from mcudeploy.frontend.decompose.attention_rules import HIDING_TERM
from mcudeploy.frontend.decompose.maker import Maker
from mcudeploy.frontend.decompose.norm_rules import with_statistics
from mcudeploy.frontend.onnx.nodes import Unsupported
from mcudeploy.frontend.onnx.rounding import DOMAIN

_EPSILON = 1e-12
"""Epsilon of a norm with a sum if the node states none."""
_NORMALIZES_FROM = 17
"""First opset with LayerNormalization."""
_MASK_FILTER = -10000.0
"""Value that a mask adds to the score of a hidden position if the node states none."""


def skip_layer_norm(make: Maker) -> None:
    """Replace SkipLayerNormalization and SkipSimplifiedLayerNormalization by sums and a norm."""
    simplified = make.op == "SkipSimplifiedLayerNormalization"
    x, skip, gamma = make.inputs[:3]
    beta, bias = ("", make.input(3)) if simplified else (make.input(3), make.input(4))
    sum_output = make.output(3)
    first = make.add("Add", x, skip, out="" if bias else sum_output)
    total = make.add("Add", first, bias, out=sum_output) if bias else first
    epsilon = make.number("epsilon", _EPSILON)
    if simplified:
        _rms_norm(make, total, gamma, epsilon)
    else:
        _layer_norm(make, total, (gamma, beta), epsilon)


def simplified_layer_norm(make: Maker) -> None:
    """Replace SimplifiedLayerNormalization of the last axis."""
    x, gamma = make.inputs[:2]
    if make.integer("axis", -1) not in (-1, len(make.sizes(x)) - 1):
        raise Unsupported(f"axis {make.integer('axis')} is not supported; the last one is")
    _rms_norm(make, x, gamma, make.number("epsilon", 1e-5))


def _layer_norm(make: Maker, x: str, parameters: tuple[str, str], epsilon: float) -> None:
    """Write the norm of the last axis; `parameters`: the gain, and the offset or ""."""
    gamma, beta = parameters
    statistics = [make.output(place) if make.is_read(make.output(place)) else "" for place in (1, 2)]
    if make.opset >= _NORMALIZES_FROM and not any(statistics):
        inputs = [x, gamma, beta] if beta else [x, gamma]
        make.add("LayerNormalization", *inputs, out=make.outputs[0], axis=-1, epsilon=epsilon)
        return
    scaled = make.add("Mul", with_statistics(make, x, [-1], statistics, epsilon), gamma)
    make.add("Add", scaled, beta or make.constant(0.0), out=make.outputs[0])


def _rms_norm(make: Maker, x: str, gamma: str, epsilon: float) -> None:
    """Write RMSNormalization of the last axis, in the private domain: older versions of ONNX lack it."""
    if any(make.is_read(make.output(place)) for place in (1, 2)):
        raise Unsupported("its mean and deviation are read, which is not supported")
    out = make.outputs[0]
    make.state(out, np.float32, make.sizes(make.inputs[0]))
    make.add("RMSNormalization", x, gamma, out=out, domain=DOMAIN, axis=-1, epsilon=epsilon)


def embed_layer_norm(make: Maker) -> None:
    """Replace EmbedLayerNormalization by rows of tables, their sum and its norm."""
    ids, segments, word_table, position_table, segment_table, gamma, beta = make.inputs[:7]
    mask, position_ids = make.input(7), make.input(8)
    length = make.sizes(ids)[1]
    if position_ids:
        positions = make.add("Gather", position_table, position_ids, axis=0)
    else:
        positions = make.slice(position_table, [0], [length], [0])
    sum_output, words = make.output(2), make.add("Gather", word_table, ids, axis=0)
    total = make.add("Add", words, positions, out="" if segments else sum_output)
    if segments:
        total = make.add("Add", total, make.add("Gather", segment_table, segments, axis=0), out=sum_output)
    mask_index = make.outputs[1:2]
    make.outputs[1:] = []  # the norm would take them for its statistics
    _layer_norm(make, total, (gamma, beta), make.number("epsilon", _EPSILON))
    if any(map(make.is_read, mask_index)):
        if not mask:
            raise Unsupported("its mask_index is read, but it has no mask")
        make.reduce("ReduceSum", mask, [1], keep=False, out=mask_index[0])


def attention(make: Maker) -> None:
    """Replace Attention, which computes queries, keys and values by one product."""
    x, weights = make.inputs[:2]
    if make.input(4) or any(make.is_read(name) for name in make.outputs[1:]):
        raise _has_cache_error()
    if make.integer("do_rotary"):
        raise Unsupported("do_rotary is not supported")
    batch, length, _ = make.sizes(x)
    width = make.sizes(weights)[1]
    sizes = [int(size) for size in make.attributes.get("qkv_hidden_sizes", [width // 3] * 3)]
    ends = np.cumsum(sizes).tolist()
    parts = []
    for first, end in zip([0, *ends], ends, strict=False):
        part = make.add("MatMul", x, make.slice(weights, [first], [end], [1]))
        if make.input(2):
            part = make.add("Add", part, make.slice(make.inputs[2], [first], [end], [0]))
        parts.append(_by_heads(make, part, (batch, length, end - first)))
    _attend(make, parts, (batch, length, length), sizes[0], (make.input(3), make.input(5)))


def multi_head_attention(make: Maker) -> None:
    """Replace MultiHeadAttention of separate queries, keys and values."""
    if any(map(make.input, (6, 7, 8, 9))) or any(make.is_read(name) for name in make.outputs[1:]):
        raise _has_cache_error()
    if not make.input(1) or not make.input(2):
        raise Unsupported("queries, keys and values are packed in one tensor; export them as three")
    shapes = [make.sizes(name) for name in make.inputs[:3]]
    if len(shapes[0]) != 3 or len(shapes[1]) not in (3, 4) or len(shapes[1]) != len(shapes[2]):
        raise Unsupported(f"inputs of the shapes {[list(shape) for shape in shapes]} are not supported")
    parts, first = [], 0
    for name, shape in zip(make.inputs[:3], shapes, strict=True):
        part, end = name, first + shape[-1]
        if make.input(3) and len(shape) == 3:
            part = make.add("Add", name, make.slice(make.inputs[3], [first], [end], [0]))
        parts.append(part if len(shape) == 4 else _by_heads(make, part, shape))
        first = end
    (batch, queries, width), keys = shapes[0], shapes[1][-2]
    _attend(make, parts, (batch, queries, keys), width, (make.input(4), make.input(5)))


def _has_cache_error() -> Unsupported:
    return Unsupported(
        "keys and values of earlier calls (past, present) are not supported: export the model without a cache"
    )


def _by_heads(make: Maker, x: str, shape: tuple[int, ...]) -> str:
    """Move the heads to an axis: [batch, length, width] -> [batch, heads, length, depth]."""
    batch, length, width = shape
    heads = make.integer("num_heads")
    if heads < 1 or width % heads:
        raise Unsupported(f"{width} channels do not make {heads} heads")
    return make.add("Transpose", make.reshaped(x, (batch, length, heads, width // heads)), perm=[0, 2, 1, 3])


_Sizes = tuple[int, int, int]
"""Batch, and lengths of queries and keys."""


def _attend(make: Maker, parts: Sequence[str], sizes: _Sizes, width: int, terms: tuple[str, str]) -> None:
    """Write the values weighted by a softmax of the scores.

    `parts`: queries, keys and values; `terms`: the mask and the bias of the scores, "" if there is none.
    """
    queries, keys, values = parts
    mask, bias = terms
    batch, count, length = sizes
    scale = make.number("scale") or 1 / sqrt(width // make.integer("num_heads", 1))
    scaled = make.add("Mul", queries, make.constant(scale))
    scores = make.add("MatMul", scaled, make.add("Transpose", keys, perm=[0, 1, 3, 2]))
    if bias:
        scores = make.add("Add", scores, bias)
    if mask:
        scores = make.add("Add", scores, _mask_terms(make, mask, sizes))
    if make.integer("unidirectional"):
        later = np.arange(length) > np.arange(count)[:, np.newaxis] + (length - count)
        scores = make.add("Add", scores, make.constant(np.where(later, HIDING_TERM, 0.0)))
    mixed = make.add("MatMul", make.add("Softmax", scores, axis=-1), values)
    side = make.add("Transpose", mixed, perm=[0, 2, 1, 3])
    make.reshaped(side, (batch, count, -1), out=make.outputs[0])


def _mask_terms(make: Maker, mask: str, sizes: _Sizes) -> str:
    """The terms that a mask adds to the scores.

    The mask has truth values of keys or of keys for each query, or the number of visible keys.
    """
    (batch, count, length), shape = sizes, make.sizes(mask)
    by_score = {(batch, length): (batch, 1, 1, length), (batch, count, length): (batch, 1, count, length)}
    if shape == (batch,):
        ends = make.add("Cast", make.reshaped(mask, (batch, 1, 1, 1)), to=TensorProto.FLOAT)
        visible = make.add("Less", make.constant(np.arange(length).reshape(1, 1, 1, -1)), ends)
    elif shape in by_score:
        visible = make.add("Cast", make.reshaped(mask, by_score[shape]), to=TensorProto.BOOL)
    else:
        raise Unsupported(
            f"a mask of the shape {list(shape)} is not supported; [batch], [batch, keys] and "
            "[batch, queries, keys] are"
        )
    hidden = make.constant(make.number("mask_filter_value", _MASK_FILTER))
    return make.add("Where", visible, make.constant(0.0), hidden)
