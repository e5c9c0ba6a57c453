"""Attention, by two products of matrices around a softmax."""

from __future__ import annotations

import math

import numpy as np
from onnx import NodeProto

from mcudeploy.frontend.maker import Maker
from mcudeploy.frontend.model import MAX_TENSOR_ELEMENTS

_NEVER = -1e30
"""What is added to the score of a place that a mask hides."""


def attention(node: NodeProto, make: Maker) -> bool:
    """With equal numbers of query and key/value heads; a mask must be constant, and there is no cache."""
    inputs = [*node.input, *("",) * (6 - len(node.input))]
    outputs = [*node.output, *("",) * (4 - len(node.output))]
    q, k, v, mask = inputs[:4]
    shapes = make.shape(q), make.shape(k), make.shape(v)
    if any(inputs[4:]) or any(outputs[1:]) or None in shapes:
        return False
    heads = int(make.attributes.get("q_num_heads", 0)), int(make.attributes.get("kv_num_heads", 0))
    rank = len(shapes[0] or ())
    if rank == 3 and (not heads[0] or heads[0] != heads[1]):
        return False
    split = [_by_heads(make, name, heads[0]) if rank == 3 else name for name in (q, k, v)]
    sizes = [_head_shape(shape or (), heads[0]) for shape in shapes]
    if sizes[0][1] != sizes[1][1]:
        return False
    added = _mask(make, mask, sizes[0][2], sizes[1][2])
    if added is None:
        return False
    scale = float(make.attributes.get("scale", 0.0)) or 1 / math.sqrt(sizes[0][3])
    queries = make.add("Mul", split[0], make.constant(scale))
    scores = make.add("MatMul", queries, make.add("Transpose", split[1], perm=(0, 1, 3, 2)))
    softcap = float(make.attributes.get("softcap", 0.0))
    if softcap:
        bent = make.add("Tanh", make.add("Mul", scores, make.constant(1 / softcap)))
        scores = make.add("Mul", bent, make.constant(softcap))
    if added:
        scores = make.add("Add", scores, added)
    weights = make.add("Softmax", scores, axis=-1)
    if rank == 4:
        make.add("MatMul", weights, split[2], out=node.output[0])
        return True
    mixed = make.add("Transpose", make.add("MatMul", weights, split[2]), perm=(0, 2, 1, 3))
    batch, length = sizes[0][0], sizes[0][2]
    make.reshaped(mixed, (batch, length, heads[0] * sizes[2][3]), out=node.output[0])
    return True


def _head_shape(shape: tuple[int, ...], heads: int) -> tuple[int, ...]:
    """Batch, heads, length, depth."""
    if len(shape) == 4:
        return shape
    batch, length, width = shape
    return batch, heads, length, width // heads


def _by_heads(make: Maker, name: str, heads: int) -> str:
    batch, length, width = make.shape(name) or ()
    apart = make.reshaped(name, (batch, length, heads, width // heads))
    return make.add("Transpose", apart, perm=(0, 2, 1, 3))


def _mask(make: Maker, name: str, queries: int, keys: int) -> str | None:
    """What is added to the scores, "" for nothing; None for a mask that is computed."""
    if queries * keys > MAX_TENSOR_ELEMENTS:
        return None
    total = np.zeros((queries, keys), np.float32)
    if name:
        found = make.known(name)
        if found is None:
            return None
        total = total + (np.where(found, 0, _NEVER) if found.dtype == np.bool_ else found)
    if int(make.attributes.get("is_causal", 0)):
        total = total + np.where(np.tril(np.ones((queries, keys), np.bool_)), 0, _NEVER)
    return make.constant(np.maximum(total, _NEVER)) if np.any(total) else ""
