"""A QDQ graph whose operators on int16 activations become integer operators: its values and new nodes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from ml_dtypes import int4
from numpy.typing import NDArray
from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from mcudeploy.extensions.int16.int16 import UNBOUNDED, Bounds, TwiceScale
from mcudeploy.frontend.onnx.protos import ONNX_DOMAINS, attribute_of, constants_of, fixed_shape
from mcudeploy.frontend.onnx.rounding import DOMAIN
from mcudeploy.frontend.onnx.tensors import array_of

_DOMAINS = (*ONNX_DOMAINS, "com.microsoft")
_CLOSE = 1e-4
"""Relative tolerance between the scale of a bias and the product of the scales of input and weights."""
_MOST_BIAS = 2.0**62
INT8 = Bounds(-128, 127)
"""The bounds of a result that is stored as int8."""


@dataclass(frozen=True, slots=True)
class StoredInt16:
    """The stored int16 values of a real value, or int8 values with a zero point: their name and scale."""

    name: str
    scale: float
    zero_point: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class StoredWeights:
    """Stored int8 weights, and their scales: one, or one for each output channel on `axis`."""

    stored: NDArray[np.int8]
    scales: NDArray[np.float64]
    axis: int


@dataclass(frozen=True, slots=True)
class Int16Result:
    """The result of a QuantizeLinear. `bounds`: of its stored integers, by the activation before it.

    Only an int8 result has a zero point other than 0.
    """

    name: str
    scale: float
    bounds: Bounds = UNBOUNDED
    zero_point: int = 0


class UnfitError(Exception):
    """No integer operator computes this operator, which therefore stays in float32."""


def converts(node: NodeProto) -> bool:
    """Whether a node is a QuantizeLinear or DequantizeLinear."""
    named = node.op_type in ("QuantizeLinear", "DequantizeLinear") and node.domain in _DOMAINS
    return named and len(node.input) > 1


def stored_type(node: NodeProto, constants: Mapping[str, TensorProto], known: Mapping[str, int]) -> int:
    """The element type of the integers that a node converts to or from; 0 if it is not known."""
    if len(node.input) > 2 and node.input[2] in constants:
        return int(constants[node.input[2]].data_type)
    return known.get(node.input[0], 0) if node.op_type == "DequantizeLinear" else 0


def single_scale(node: NodeProto, constants: Mapping[str, TensorProto]) -> float | None:
    """The scale of a conversion; None if there are several, or a zero point other than 0."""
    parameters = _scale_and_zero(node, constants)
    return None if parameters is None or parameters[1] else parameters[0]


def _scale_and_zero(node: NodeProto, constants: Mapping[str, TensorProto]) -> tuple[float, int] | None:
    """The scale and the zero point of a conversion; None if there are several."""
    scale = constants.get(node.input[1])
    zero = constants.get(node.input[2]) if len(node.input) > 2 and node.input[2] else None
    if scale is None or prod(scale.dims) != 1 or (zero is not None and prod(zero.dims) != 1):
        return None
    value = float(array_of(scale).reshape(-1)[0])
    return (value, 0 if zero is None else int(array_of(zero).reshape(-1)[0])) if value > 0 else None


class QdqDraft:
    """New nodes of one replacement, and new constants and values of the graph.

    `label`: the name of the replaced node; `floats`: operators that stay in float32. Methods that read the
    graph raise UnfitError for what no integer operator takes.
    """

    def __init__(self, graph: GraphProto) -> None:
        self.initializers: list[TensorProto] = []
        self.values: list[ValueInfoProto] = []
        self.nodes: list[NodeProto] = []
        self.label = ""
        self.floats: set[str] = set()
        self._constants = constants_of(graph)
        self._producers = {name: node for node in graph.node for name in node.output}
        values = (*graph.value_info, *graph.input, *graph.output)
        self._shapes = {value.name: fixed_shape(value) for value in values}
        self._known = {value.name: value.type.tensor_type.elem_type for value in graph.input}
        self._count = 0

    def is_int16(self, node: NodeProto) -> bool:
        """Whether a node converts activations from or to int16."""
        if not converts(node) or node.input[0] in self._constants:
            return False
        return stored_type(node, self._constants, self._known) == TensorProto.INT16

    def scale(self, node: NodeProto) -> float:
        """The scale of a node that converts int16."""
        scale = single_scale(node, self._constants)
        if scale is None:
            raise UnfitError
        return scale

    # -- reading -------------------------------------------------------------------------------

    def shape(self, name: str) -> tuple[int, ...]:
        shape = self._shapes.get(name)
        if shape is None:
            raise UnfitError
        return shape

    def producer(self, name: str) -> NodeProto | None:
        return self._producers.get(name)

    def integers(self, name: str) -> StoredInt16:
        """The stored int16 values of the real value or constant `name`."""
        return self._stored(name, (TensorProto.INT16,))

    def int16_or_int8(self, name: str) -> StoredInt16:
        """The stored int16 or int8 values of a real value that is not constant."""
        source = self._stored(name, (TensorProto.INT16, TensorProto.INT8))
        if self.is_constant(source.name):
            raise UnfitError
        return source

    def _stored(self, name: str, kinds: Collection[int]) -> StoredInt16:
        node = self._producers.get(name)
        if node is None or node.op_type != "DequantizeLinear" or not converts(node):
            raise UnfitError
        found, kind = _scale_and_zero(node, self._constants), stored_type(node, self._constants, self._known)
        if found is None or kind not in kinds or (kind == TensorProto.INT16 and found[1]):
            raise UnfitError
        return StoredInt16(node.input[0], *found)

    def narrowed(self, node: NodeProto) -> bool:
        """Return whether a node only converts int16 values to int8, and rescale them if it does."""
        producer = self._producers.get(node.input[0])
        if not converts(node) or producer is None or not self.is_int16(producer):
            return False
        parameters = _scale_and_zero(node, self._constants)
        if parameters is None or stored_type(node, self._constants, self._known) != TensorProto.INT8:
            return False
        scale, zero_point = parameters
        try:
            self.rescaled(self.integers(node.input[0]), Int16Result(node.output[0], scale, INT8, zero_point))
        except UnfitError:
            return False
        return True

    def is_constant(self, name: str) -> bool:
        return name in self._constants

    def array(self, name: str) -> NDArray[Any]:
        if name not in self._constants:
            raise UnfitError
        return array_of(self._constants[name])

    def weights(self, name: str) -> StoredWeights:
        """int8 or int4 weights with zero point 0, as int8."""
        node = self._producers.get(name)
        if node is None or node.op_type != "DequantizeLinear" or not converts(node):
            raise UnfitError
        stored, scales = self.array(node.input[0]), self.array(node.input[1]).astype(np.float64)
        zero = len(node.input) > 2 and bool(node.input[2]) and np.any(self.array(node.input[2]))
        if stored.dtype not in (np.int8, int4) or zero or attribute_of(node, "block_size", 0):
            raise UnfitError
        axis = attribute_of(node, "axis", 1) % max(stored.ndim, 1)
        return StoredWeights(stored.astype(np.int8), scales.reshape(-1), axis)

    def bias(self, name: str, units: NDArray[np.float64]) -> NDArray[np.int64]:
        """The bias in multiples of `units`, one unit for each channel."""
        if not name:
            return np.zeros(len(units), np.int64)
        node = self._producers.get(name)
        if node is None:
            stored, scale = self.array(name).astype(np.float64), np.ones(1)
        elif node.op_type == "DequantizeLinear" and converts(node):
            stored = self.array(node.input[0]).astype(np.int64)
            scale = self.array(node.input[1]).astype(np.float64).reshape(-1)
        else:
            raise UnfitError
        if stored.size != len(units) or stored.shape[-1:] != (len(units),) or not np.all(units > 0):
            raise UnfitError
        if node is not None and np.all(np.abs(scale / units - 1) < _CLOSE):
            return stored.reshape(-1).astype(np.int64)
        steps = np.rint(stored.reshape(-1) * scale / units)
        if not np.all(np.abs(steps) < _MOST_BIAS):
            raise UnfitError
        return steps.astype(np.int64)

    # -- writing -------------------------------------------------------------------------------

    def name(self) -> str:
        self._count += 1
        return f"int16:{self._count}"

    def constant(self, value: NDArray[Any]) -> str:
        name = self.name()
        self.initializers.append(numpy_helper.from_array(value, name))
        return name

    def node(
        self, op: str, inputs: list[str], output: str, shape: tuple[int, ...] | None = None, **facts: Any
    ) -> str:
        """Add a node with one int16 output. Operators named ...Int16 belong to the domain DOMAIN."""
        domain = DOMAIN if op.endswith("Int16") else ""
        self.nodes.append(
            helper.make_node(op, inputs, [output], name=self.label, domain=domain or None, **facts)
        )
        if shape is not None:
            self.values.append(helper.make_tensor_value_info(output, TensorProto.INT16, shape))
            self._shapes[output] = shape
        return output

    def rescaled(self, source: StoredInt16, result: Int16Result) -> None:
        """Add a node that gives stored values another scale, zero point and bounds."""
        factor = source.scale / result.scale
        if factor >= 1 << 15:
            raise UnfitError
        scale = TwiceScale.of(factor)
        pair = [scale.multiplier, scale.exponent]
        facts: dict[str, Any] = {"above": pair, "below": pair, "negated": 0}
        facts["zero_points"] = [source.zero_point, result.zero_point]
        self.node("RescaleInt16", [source.name], result.name, **facts, **bounds_fact(result))


def bounds_fact(result: Int16Result) -> dict[str, Any]:
    """The attribute for the bounds of a fused activation."""
    return {"bounds": [result.bounds.low, result.bounds.high]}
