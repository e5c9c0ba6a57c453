"""Attention of one query for each head, if a position shows which rows of the keys and values are live."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import helper

from mcudeploy.frontend.onnx.int8_caches import WIDEN
from mcudeploy.frontend.onnx.nodes import Info, Node, OnnxModel
from mcudeploy.frontend.onnx.protos import MOVEMENTS, evaluator
from mcudeploy.frontend.onnx.rounding import DOMAIN
from mcudeploy.frontend.onnx.values import positions
from mcudeploy.frontend.passes.simplify import drop_dead

_Array = NDArray[Any]
_MOVES = MOVEMENTS | {"Gather", "Tile"}
"""Operators that only move the elements of keys and values between the cache and the product."""
_DEAD = -1e8
"""A mask that adds at most this to the score of a row makes its weight 0 in float32."""
_MOST_ROWS, _MOST_NODES = 8192, 32
"""Limits of the rows, and of the nodes that compute a mask."""
_LAST = 1 << 20
"""A position far beyond all rows, at which the bounds of the live rows must hold too."""
PLACES = ("keys", "values", "key_scales", "value_scales")
"""Attributes of Attend: the places of the elements in each input after the query."""
_Bound = tuple[int, int]


def join_attention(model: OnnxModel) -> OnnxModel:
    """Replace products, scale, mask and softmax of an attention by one node, and leave the others unread."""
    if all(node.op != "Softmax" for node in model.nodes):
        return model
    search = _Attention(model)
    joined = {node.output: node for it in model.nodes if (node := search.attention(it)) is not None}
    nodes = tuple(joined.get(node.output, node) for node in model.nodes)
    return replace(model, nodes=nodes) if joined else model


@dataclass(frozen=True, slots=True)
class _Live:
    """The live rows by the value `position`: from `first` to before `end`, each an offset and a step."""

    position: str
    first: _Bound
    end: _Bound


@dataclass(frozen=True, slots=True, eq=False)
class _Scores:
    """Scores of the rows: the product of two values, its shape and factor, and the rows that are live."""

    shape: tuple[int, ...]
    query: str
    keys: str
    scale: float
    live: _Live


@dataclass(frozen=True, slots=True, eq=False)
class _Moved:
    """A value whose elements are those of `source` at `places`, times `scale`."""

    source: str
    places: _Array
    scale: float


class _Attention:
    """Searches a model for attention."""

    def __init__(self, model: OnnxModel) -> None:
        self._model, self._producers, self._readers = model, model.producers(), model.consumers()
        # Values that outputs or states need, so no node alone reads them.
        self._kept = {info.name for info in model.outputs}
        self._kept |= {name for state in model.states for name in (state.initial, state.after)}
        self._known: dict[tuple[str, bool | None, tuple[int, ...]], _Live | None] = {}

    def attention(self, softmax: Node) -> Node | None:
        """The node that replaces the product of a softmax with values; None if this is not attention over
        live rows.
        """
        shape = self._shape(softmax.inputs[0]) if softmax.op == "Softmax" and not softmax.domain else ()
        last = softmax.attributes.get("axis", -1) in (-1, len(shape) - 1)
        if not last or len(shape) < 2 or not 1 < shape[-1] <= _MOST_ROWS:
            return None
        scores = self._scores(softmax.inputs[0], shape)
        mix = None if scores is None else self._mix(softmax.output, shape, scores)
        if scores is None or mix is None:
            return None
        query, factor = self._flat(scores.query)
        shape = scores.shape
        keys, values = self._moved(scores.keys), self._moved(mix.inputs[1])
        if keys is None or values is None or values.scale != 1.0:
            return None
        keys = replace(keys, places=_of_heads(np.swapaxes(keys.places, -1, -2), shape))
        values = replace(values, places=_of_heads(values.places, shape))
        attributes: dict[str, Any] = {
            "scale": scores.scale * factor * keys.scale,
            "first": scores.live.first,
            "end": scores.live.end,
        }
        sources = [keys, values]
        packed = [it for it in map(self._packed, sources) if it is not None]
        if len(packed) == len(sources):
            sources = [it for several in zip(*packed, strict=True) for it in several]
        attributes |= {name: it.places for name, it in zip(PLACES, sources, strict=False)}
        inputs = (scores.live.position, query, *(it.source for it in sources))
        return replace(mix, op="Attend", domain=DOMAIN, inputs=inputs, attributes=attributes)

    def _packed(self, rows: _Moved) -> tuple[_Moved, _Moved] | None:
        """The int8 source of some rows, and their scales; None if the rows are not of an int8 cache."""
        node = self._producers.get(rows.source)
        if node is None or node.op != WIDEN or node.domain != DOMAIN:
            return None
        integers, scales = node.inputs
        scale_of = np.broadcast_to(positions(self._shape(scales)), self._shape(integers)).reshape(-1)
        places = scale_of[rows.places]
        if np.ptp(places, axis=-1).any():
            return None
        return replace(rows, source=integers), _Moved(scales, places[..., :1], 1.0)

    def _scores(self, name: str, shape: tuple[int, ...]) -> _Scores | None:
        """The scores of a value that a softmax reads: a masked product."""
        masked = self._private_producer(name)
        if masked is None:
            return None
        for at, mask in enumerate(masked.inputs):
            live = self._live(masked, at, shape)
            others = [it for it in masked.inputs if it != mask and it not in self._model.constants]
            if live is None or len(others) != 1:
                continue
            source, scale = self._flat(others[0])
            product = self._private_producer(source)
            if product is not None and product.op == "MatMul":
                lines = self._shape(source)
                if self._shape(product.inputs[0])[:-1] == lines[:-1]:
                    return _Scores(lines, product.inputs[0], product.inputs[1], scale, live)
        return None

    def _mix(self, weights: str, shape: tuple[int, ...], scores: _Scores) -> Node | None:
        """The product of the weights of a softmax with values.

        A factor that is 1 for live rows may be between them: with it ONNX's Attention clears the weights of
        a query without live rows.
        """
        for _ in range(_MOST_NODES):
            readers = [] if weights in self._kept else self._readers.get(weights, [])
            if len(readers) != 1 or readers[0].domain:
                return None
            (reader,) = readers
            if reader.op == "MatMul":
                fits = reader.inputs[0] == weights and self._shape(weights) == scores.shape
                return reader if fits else None
            factors = [it for it in reader.inputs if it != weights]
            if reader.op == "Mul" and len(factors) == 1 and self._shape(weights) == shape:
                if self._live_of(factors[0], shape, True) != scores.live:
                    return None
            elif reader.op != "Reshape" or self._shape(reader.output)[-1:] != shape[-1:]:
                return None
            weights = reader.output
        return None

    def _flat(self, name: str) -> tuple[str, float]:
        """The value before reshapes that keep its lines and before scalar factors, and their product."""
        width = self._shape(name)[-1:]
        name, factor = self._scaled(name)
        while (node := self._private_producer(name)) and node.op == "Reshape":
            if self._shape(node.inputs[0])[-1:] != width:
                break
            name, more = self._scaled(node.inputs[0])
            factor *= more
        return name, factor

    def _private_producer(self, name: str) -> Node | None:
        """The node of ONNX's domain that makes a value, if one node alone reads the value."""
        node = self._producers.get(name)
        shared = name in self._kept or len(self._readers.get(name, [])) != 1
        return None if node is None or node.domain or shared else node

    def _scaled(self, name: str) -> tuple[str, float]:
        """The value before factors that are constant scalars, and the product of the factors."""
        factor = 1.0
        for _ in range(_MOST_NODES):
            node = self._private_producer(name)
            if node is None or node.op not in ("Mul", "Div"):
                break
            constants = [it for it in node.inputs if it in self._model.constants]
            if len(constants) != 1 or (node.op == "Div" and node.inputs[1] != constants[0]):
                break
            value = self._model.constants[constants[0]].value
            other = next(it for it in node.inputs if it != constants[0])
            if value.size != 1 or value.ndim > len(self._shape(other)) or not value.reshape(-1)[0]:
                break
            number = float(value.reshape(-1)[0])
            name, factor = other, factor * number if node.op == "Mul" else factor / number
        return name, factor

    def _moved(self, name: str) -> _Moved | None:
        """The source of a value's elements, before movements and factors; None if the places are unknown."""
        factor, nodes = 1.0, list[Node]()
        for _ in range(_MOST_NODES):
            name, more = self._scaled(name)
            factor *= more
            node = self._producers.get(name)
            if node is None or node.domain or node.op not in _MOVES or not node.inputs:
                break
            if any(it not in self._model.constants for it in node.inputs[1:] if it):
                break
            nodes.insert(0, node)
            name = node.inputs[0]
        places = positions(self._shape(name)).astype(np.int64) if self._shape(name) else None
        for node in nodes:
            run = None if places is None else self._evaluator([node], node.inputs[0], node.output)
            places = None if run is None or places is None else run(places)
        return None if places is None or places.ndim < 2 else _Moved(name, places, factor)

    def _live(self, node: Node, at: int, shape: tuple[int, ...]) -> _Live | None:
        """The live rows if input `at` of a node is a mask: what Add adds, or what Where tests."""
        mask, constants = node.inputs[at], [self._model.constants.get(it) for it in node.inputs]
        if node.op == "Where" and at == 0:
            dead = [it.value for it in constants[1:] if it is not None]
            if len(dead) != 1 or dead[0].size != 1 or dead[0].max() > _DEAD:
                return None
            keeps = constants[2] is not None
        elif node.op == "Add" and constants == [None, None]:
            keeps = None
        else:
            return None
        key = mask, keeps, shape
        if key not in self._known:
            self._known[key] = self._live_of(mask, shape, keeps)
        return self._known[key]

    def _live_of(self, mask: str, shape: tuple[int, ...], keeps: bool | None) -> _Live | None:
        """The live rows of a mask that depends on one position alone; None if they do not have this form.

        `keeps`: the value of the mask with which Where keeps scores; None for a mask that is added.
        """
        nodes, sources = self._ancestors(mask)
        infos = [info for info in self._model.inputs if info.name in sources]
        if len(infos) != 1 or len(sources) != 1 or infos[0].dtype not in ("int32", "int64"):
            return None
        info, rows = infos[0], shape[-1]
        run = self._evaluator(nodes, info.name, mask)
        if info.shape is None or prod(info.shape) != 1 or run is None:
            return None
        ranges: dict[int, tuple[int, int]] = {}
        for position in (*range(rows + 2), 10 * rows, _LAST):
            masked = run(np.full(info.shape, position, info.dtype))
            live = masked == keeps if keeps is not None else masked == 0
            lines = np.broadcast_to(live, shape).reshape(-1, rows)
            if keeps is None and not np.all(live | (masked <= _DEAD)):
                return None
            (of_line,) = np.nonzero(lines[0])
            if not np.array_equal(lines, np.broadcast_to(lines[0], lines.shape)) or not of_line.size:
                return None
            if of_line[-1] - of_line[0] + 1 != of_line.size:
                return None
            ranges[position] = int(of_line[0]), int(of_line[-1]) + 1
        first, end = (_bound({at: it[side] for at, it in ranges.items()}, rows) for side in (0, 1))
        return None if first is None or end is None else _Live(info.name, first, end)

    def _ancestors(self, name: str) -> tuple[tuple[Node, ...], set[str]]:
        """The nodes that compute a value, in order, and the values without a producer that they read."""
        wanted = (Info(name, None, ""),)
        nodes = drop_dead(replace(self._model, outputs=wanted, states=())).nodes
        if len(nodes) > _MOST_NODES or any(node.domain for node in nodes):
            return (), set()
        computed = {it for node in nodes for it in node.outputs}
        read = {it for node in nodes for it in node.inputs if it}
        return nodes, read - computed - self._model.constants.keys()

    def _evaluator(
        self, nodes: Sequence[Node], source: str, result: str
    ) -> Callable[[_Array], _Array] | None:
        """A function that computes `result` from `source` by `nodes`; None if ONNX cannot evaluate them."""
        constants = {
            it: self._model.constants[it].value
            for node in nodes
            for it in node.inputs
            if it in self._model.constants
        }
        if not nodes or any(isinstance(it, np.ndarray) for node in nodes for it in node.attributes.values()):
            return None
        protos = [
            helper.make_node(node.op, list(node.inputs), list(node.outputs), **_plain(node.attributes))
            for node in nodes
        ]
        run = evaluator(protos, self._model.opset, (source, *constants), (result,))
        return lambda value: np.asarray(run({source: value, **constants})[0])

    def _shape(self, name: str) -> tuple[int, ...]:
        info = self._model.infos.get(name)
        return () if info is None or info.shape is None else info.shape


def _plain(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if value is not None}


def _of_heads(places: _Array, scores: tuple[int, ...]) -> _Array:
    """Places of matrices as [heads, rows, columns], one for each line of the scores."""
    wide = np.broadcast_to(places, (*scores[:-2], *places.shape[-2:]))
    lines = np.repeat(wide[..., np.newaxis, :, :], scores[-2], axis=-3)
    return lines.reshape(-1, *places.shape[-2:])


def _bound(by_position: Mapping[int, int], rows: int) -> _Bound | None:
    """The offset and step of a bound; None if it is not offset + step * position, clipped to [0, rows]."""
    for step in (0, 1, -1):
        for position in (0, rows // 2, rows - 1):
            offset = by_position[position] - step * position
            if all(min(max(offset + step * at, 0), rows) == it for at, it in by_position.items()):
                return offset, step
    return None
