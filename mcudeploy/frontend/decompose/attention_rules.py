"""Rule for attention: two matrix products around a softmax."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from mcudeploy.frontend.decompose.maker import Maker
from mcudeploy.frontend.onnx.nodes import MAX_TENSOR_ELEMENTS, Unsupported

HIDING_TERM = -1e30
"""Value added to the score of a hidden position, because kernels have no infinite constants."""

_HIDDEN_BELOW = HIDING_TERM / 2
"""A position is hidden if the value added to its score is less than this."""

_Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class _Sizes:
    """Sizes of an attention: batch, heads of queries and of keys, lengths, depths of a key and of a value."""

    batch: int
    heads: int
    key_heads: int
    queries: int
    past: int
    keys: int
    depth: int
    value_depth: int

    @classmethod
    def of(cls, make: Maker) -> _Sizes:
        """Read the sizes from the inputs; `keys` includes past keys. Raises Unsupported if the inputs do not
        fit each other.
        """
        q, k, v = (make.sizes(name) for name in make.inputs[:3])
        heads, key_heads = make.integer("q_num_heads"), make.integer("kv_num_heads")
        if len(q) == 3 and (heads < 1 or key_heads < 1):
            raise Unsupported("inputs of 3 dimensions need q_num_heads and kv_num_heads")
        q, k, v = _shape_by_heads(q, heads), _shape_by_heads(k, key_heads), _shape_by_heads(v, key_heads)
        past = make.sizes(make.input(4))[2] if make.input(4) else 0
        if k[1] < 1 or q[1] % k[1] or k[1] != v[1]:
            raise Unsupported(f"{q[1]} heads of queries, {k[1]} of keys and {v[1]} of values do not fit")
        if q[0] * q[1] * q[2] * (past + k[2]) > MAX_TENSOR_ELEMENTS:
            raise Unsupported(f"its scores have more than {MAX_TENSOR_ELEMENTS} elements")
        return cls(q[0], q[1], k[1], q[2], past, past + k[2], q[3], v[3])

    @property
    def scores(self) -> tuple[int, int, int, int]:
        """Shape of the scores."""
        return self.batch, self.heads, self.queries, self.keys

    def grouped(self, width: int) -> tuple[int, int, int, int]:
        """Shape of the queries, or of values computed from them, grouped by the keys that heads share."""
        return self.batch, self.key_heads, self.heads // self.key_heads * self.queries, width


def attention(make: Maker) -> None:
    """Handle every form of attention; the number of keys without padding must be constant."""
    sizes = _Sizes.of(make)
    flat = len(make.sizes(make.inputs[0])) == 3
    queries = _by_heads(make, make.inputs[0], sizes.heads)
    keys, values = (_with_past(make, place, sizes.key_heads) for place in (1, 2))
    scale = make.number("scale") or 1 / math.sqrt(sizes.depth)
    scaled = make.reshaped(make.add("Mul", queries, make.constant(scale)), sizes.grouped(sizes.depth))
    products = make.add("MatMul", scaled, make.add("Transpose", keys, perm=(0, 1, 3, 2)))
    scores = make.reshaped(products, sizes.scores)
    by_output_mode = {0: scores}
    softcap = make.number("softcap")
    if softcap:
        limited = make.add("Tanh", make.add("Mul", scores, make.constant(1 / softcap)))
        scores = make.add("Mul", limited, make.constant(softcap))
    by_output_mode[1] = scores
    mask = _Mask.of(make, sizes)
    scores = mask.add_to(make, scores)
    by_output_mode[2] = scores
    weights = mask.clear_queries(make, make.add("Softmax", scores, axis=-1))
    by_output_mode[3] = weights
    if make.output(3):
        mode = make.integer("qk_matmul_output_mode")
        if mode == 2 and mask.surely_hides:
            raise Unsupported("qk_matmul_output_mode 2 with hidden keys is not supported; 0, 1 and 3 are")
        make.add("Identity", by_output_mode[mode], out=make.output(3))
    mixed = make.add("MatMul", make.reshaped(weights, sizes.grouped(sizes.keys)), values)
    by_heads = (sizes.batch, sizes.heads, sizes.queries, sizes.value_depth)
    if not flat:
        make.reshaped(mixed, by_heads, out=make.outputs[0])
        return
    by_queries = make.add("Transpose", make.reshaped(mixed, by_heads), perm=(0, 2, 1, 3))
    width = sizes.heads * sizes.value_depth
    make.reshaped(by_queries, (sizes.batch, sizes.queries, width), out=make.outputs[0])


def _shape_by_heads(shape: tuple[int, ...], heads: int) -> tuple[int, ...]:
    """The shape as batch, heads, length, depth."""
    if len(shape) == 4:
        return shape
    batch, length, width = shape
    return batch, heads, length, width // heads


def _by_heads(make: Maker, name: str, heads: int) -> str:
    shape = make.sizes(name)
    if len(shape) == 4:
        return name
    batch, length, width = shape
    by_head = make.reshaped(name, (batch, length, heads, width // heads))
    return make.add("Transpose", by_head, perm=(0, 2, 1, 3))


def _with_past(make: Maker, place: int, heads: int) -> str:
    """Append the keys (operand 1) or values (operand 2) to those of earlier calls."""
    now, past, present = _by_heads(make, make.inputs[place], heads), make.input(place + 3), make.output(place)
    if past:
        return make.add("Concat", past, now, out=present, axis=2)
    return make.add("Identity", now, out=present) if present else now


@dataclass(frozen=True, slots=True, eq=False)
class _Mask:
    """The terms added to the scores: `fixed` is constant or None, `computed` names a value or is ""."""

    fixed: _Floats | None
    computed: str

    @classmethod
    def of(cls, make: Maker, sizes: _Sizes) -> _Mask:
        """Make the terms from the mask that the node reads, and from its attributes."""
        name, fixed = make.input(3), _constant_terms(make, sizes)
        constant = make.known(name) if name else None
        if constant is not None:
            terms = np.where(constant, 0.0, HIDING_TERM) if constant.dtype == np.bool_ else constant
            missing_keys = [(0, 0)] * (terms.ndim - 1) + [(0, sizes.keys - terms.shape[-1])]
            fixed = fixed + np.pad(terms, missing_keys, constant_values=HIDING_TERM)
        fixed = np.maximum(fixed, HIDING_TERM).astype(np.float32)
        computed = _computed_terms(make, name, sizes) if name and constant is None else ""
        return cls(fixed if np.any(fixed) else None, computed)

    @property
    def surely_hides(self) -> bool:
        """Whether the constant terms hide a key; computed terms are unknown here."""
        return self.fixed is not None and bool(np.any(self.fixed < _HIDDEN_BELOW))

    def add_to(self, make: Maker, scores: str) -> str:
        """Add the terms to the scores."""
        scores = make.add("Add", scores, self.computed) if self.computed else scores
        return scores if self.fixed is None else make.add("Add", scores, make.constant(self.fixed))

    def clear_queries(self, make: Maker, weights: str) -> str:
        """Set the weights of a query without visible keys to 0."""
        if self.computed:
            total = replace(self, computed="").add_to(make, self.computed)
            is_visible = make.add("Less", make.constant(_HIDDEN_BELOW), total)
            visible = make.add("Cast", is_visible, to=TensorProto.FLOAT)
        elif self.fixed is not None and np.any(self.fixed.max(-1) < _HIDDEN_BELOW):
            visible = make.constant(self.fixed >= _HIDDEN_BELOW)
        else:
            return weights
        return make.add("Mul", weights, visible)


def _computed_terms(make: Maker, name: str, sizes: _Sizes) -> str:
    """Convert a computed mask to terms added to the scores; the last keys, which it may lack, are hidden."""
    shape = make.sizes(name)
    if make.dtype(name) == "bool":
        terms = make.add("Where", name, make.constant(0.0), make.constant(HIDING_TERM))
    else:
        terms = make.add("Max", name, make.constant(HIDING_TERM))
    missing = sizes.keys - shape[-1]
    if not missing:
        return terms
    pads = make.int64([0] * (2 * len(shape) - 1) + [missing])
    return make.add("Pad", terms, pads, make.constant(HIDING_TERM))


def _constant_terms(make: Maker, sizes: _Sizes) -> _Floats:
    """Return the terms that hide later keys, keys outside the window, and padding."""
    visible: Any = np.ones((sizes.queries, sizes.keys), np.bool_)
    ends = np.array([sizes.past + sizes.queries])
    if make.input(6):
        if make.input(4):
            raise Unsupported("nonpad_kv_seqlen beside a past is not supported")
        ends = make.constant_of(make.input(6), "nonpad_kv_seqlen").reshape(-1)
        if ends.size != sizes.batch:
            raise Unsupported(f"nonpad_kv_seqlen has {ends.size} values for a batch of {sizes.batch}")
        visible = np.arange(sizes.keys) < ends[:, np.newaxis, np.newaxis, np.newaxis]
    query_places = np.arange(sizes.queries)[:, np.newaxis] + (ends - sizes.queries).reshape(-1, 1, 1, 1)
    ahead = np.arange(sizes.keys) - query_places
    left, right = make.integer("left_window_size", -1), make.integer("right_window_size", -1)
    if make.integer("is_causal"):
        visible = visible & (ahead <= 0)
    if left >= 0:
        visible = visible & (ahead >= -left)
    if right >= 0:
        visible = visible & (ahead <= right)
    while visible.ndim > 2 and visible.shape[0] == 1:
        visible = visible[0]
    return np.where(visible, 0.0, HIDING_TERM).astype(np.float32)
