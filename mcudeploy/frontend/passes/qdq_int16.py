"""QDQ models with int16 activations of zero point 0: operators between a DequantizeLinear and a
QuantizeLinear become operators on the stored integers.

Weights are int8 with zero point 0. What has no such operator is computed in float32 between conversions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import (
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    ValueInfoProto,
    helper,
    numpy_helper,
    shape_inference,
)

from mcudeploy.frontend.onnx.protos import ONNX_DOMAINS, constants_of, live
from mcudeploy.frontend.onnx.rounding import DOMAIN
from mcudeploy.frontend.onnx.tensors import array_of
from mcudeploy.frontend.passes.grids import Gridded
from mcudeploy.ops.conv_int16 import SumScales
from mcudeploy.ops.int16 import INT16, UNBOUNDED, Bounds, TwiceScale
from mcudeploy.ops.requantize import mean_multiplier

_DOMAINS = (*ONNX_DOMAINS, "com.microsoft")
_CLOSE = 1e-4
"""Relative distance of the scale of a bias from the product of those of input and weights."""
_SUM_BITS = 15


@dataclass(frozen=True, slots=True)
class _Integers:
    """A real value as stored int16 values: their name, and their scale."""

    name: str
    scale: float


@dataclass(frozen=True, slots=True, eq=False)
class _Weights:
    """Stored int8 weights, and a scale for each output channel, or one."""

    stored: NDArray[np.int8]
    scales: NDArray[np.float64]
    axis: int


@dataclass(frozen=True, slots=True)
class _Result:
    """What a QuantizeLinear makes: its name, scale and bounds by stored integers, after an activation."""

    name: str
    scale: float
    bounds: Bounds = UNBOUNDED


class _UnfitError(Exception):
    """An operator that stays in float32."""


def has_int16(proto: ModelProto) -> bool:
    """Whether all 16-bit activations of the model are int16 with one scale and zero point 0, and there are
    any.
    """
    constants = constants_of(proto.graph)
    known = {value.name: value.type.tensor_type.elem_type for value in proto.graph.input}
    count = 0
    for node in proto.graph.node:
        if not _converts(node) or node.input[0] in constants:
            continue
        kind = _kind(node, constants, known)
        if kind not in (TensorProto.INT16, TensorProto.UINT16):
            continue
        if kind == TensorProto.UINT16 or _scale(node, constants) is None:
            return False
        count += 1
    return count > 0


def _converts(node: NodeProto) -> bool:
    named = node.op_type in ("QuantizeLinear", "DequantizeLinear") and node.domain in _DOMAINS
    return named and len(node.input) > 1


def _kind(node: NodeProto, constants: Mapping[str, TensorProto], known: Mapping[str, int]) -> int:
    if len(node.input) > 2 and node.input[2] in constants:
        return int(constants[node.input[2]].data_type)
    return known.get(node.input[0], 0) if node.op_type == "DequantizeLinear" else 0


def _scale(node: NodeProto, constants: Mapping[str, TensorProto]) -> float | None:
    """The only scale; None if there are several, or a zero point."""
    scale = constants.get(node.input[1])
    zero = constants.get(node.input[2]) if len(node.input) > 2 and node.input[2] else None
    if scale is None or prod(scale.dims) != 1 or (zero is not None and np.any(array_of(zero))):
        return None
    value = float(array_of(scale).reshape(-1)[0])
    return value if value > 0 else None


def in_integers(proto: ModelProto, gridded: Gridded) -> ModelProto:
    """The model with operators on stored integers; requires has_int16.

    `gridded` is the same model in float32, from which shapes follow: inference knows no 16-bit operators of
    ONNX Runtime.
    """
    result = ModelProto()
    result.CopyFrom(proto)
    del result.graph.value_info[:]
    for value in shape_inference.infer_shapes(gridded.proto).graph.value_info:
        own = result.graph.value_info.add()
        own.CopyFrom(value)
        if value.name in gridded.types:
            own.type.tensor_type.elem_type = TensorProto.INT16
    draft = _Draft(result.graph)
    nodes: list[NodeProto] = []
    for node in proto.graph.node:
        nodes += draft.replaced(node)
    outputs = [value.name for value in result.graph.output]
    kept = [NodeProto.FromString(node.SerializeToString()) for node in live(nodes, outputs)]
    del result.graph.node[:]
    result.graph.node.extend(kept)
    result.graph.initializer.extend(draft.initializers)
    result.graph.value_info.extend(draft.values)
    if DOMAIN not in {entry.domain for entry in result.opset_import}:
        result.opset_import.append(helper.make_opsetid(DOMAIN, 1))
    return result


class _Draft:
    """New nodes of one replacement, and new constants and values of the graph."""

    def __init__(self, graph: GraphProto) -> None:
        self.initializers: list[TensorProto] = []
        self.values: list[ValueInfoProto] = []
        self.nodes: list[NodeProto] = []
        self.label = ""
        self._constants = constants_of(graph)
        self._makers = {name: node for node in graph.node for name in node.output}
        values = (*graph.value_info, *graph.input, *graph.output)
        self._shapes = {value.name: _shape(value) for value in values}
        self._known = {value.name: value.type.tensor_type.elem_type for value in graph.input}
        self._count = 0

    # -- reading -------------------------------------------------------------------------------

    def shape(self, name: str) -> tuple[int, ...]:
        found = self._shapes.get(name)
        if found is None:
            raise _UnfitError
        return found

    def maker(self, name: str) -> NodeProto | None:
        return self._makers.get(name)

    def integers(self, name: str) -> _Integers:
        """The stored int16 values of a real value; those of a constant are a constant."""
        node = self._makers.get(name)
        if node is None or node.op_type != "DequantizeLinear" or not _converts(node):
            raise _UnfitError
        scale = _scale(node, self._constants)
        kind = _kind(node, self._constants, self._known)
        if scale is None or kind != TensorProto.INT16:
            raise _UnfitError
        return _Integers(node.input[0], scale)

    def is_constant(self, name: str) -> bool:
        return name in self._constants

    def array(self, name: str) -> NDArray[Any]:
        if name not in self._constants:
            raise _UnfitError
        return array_of(self._constants[name])

    def weights(self, name: str) -> _Weights:
        """int8 weights with zero point 0."""
        node = self._makers.get(name)
        if node is None or node.op_type != "DequantizeLinear" or not _converts(node):
            raise _UnfitError
        stored, scales = self.array(node.input[0]), self.array(node.input[1]).astype(np.float64)
        zero = len(node.input) > 2 and bool(node.input[2]) and np.any(self.array(node.input[2]))
        if stored.dtype != np.int8 or zero or any(it.name == "block_size" and it.i for it in node.attribute):
            raise _UnfitError
        axis = next((int(it.i) for it in node.attribute if it.name == "axis"), 1) % max(stored.ndim, 1)
        return _Weights(stored, scales.reshape(-1), axis)

    def bias(self, name: str, units: NDArray[np.float64]) -> NDArray[np.int64]:
        """Stored values in these units, one for each channel."""
        if not name:
            return np.zeros(len(units), np.int64)
        node = self._makers.get(name)
        if node is None:
            real = self.array(name).astype(np.float64).reshape(-1)
        elif node.op_type == "DequantizeLinear" and _converts(node):
            stored = self.array(node.input[0]).astype(np.int64).reshape(-1)
            scale = self.array(node.input[1]).astype(np.float64).reshape(-1)
            if np.all(np.abs(scale / units - 1) < _CLOSE) and stored.size == len(units):
                return stored
            real = stored * scale
        else:
            raise _UnfitError
        if real.size != len(units):
            raise _UnfitError
        return np.rint(real / units).astype(np.int64)

    # -- writing -------------------------------------------------------------------------------

    def name(self) -> str:
        self._count += 1
        return f"int16:{self._count}"

    def constant(self, value: NDArray[Any]) -> str:
        name = self.name()
        self.initializers.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def node(
        self, op: str, inputs: list[str], output: str, shape: tuple[int, ...] | None = None, **facts: Any
    ) -> str:
        """Add a node of one int16 output; of the domain of such operators if it is named after int16."""
        domain = DOMAIN if op.endswith("Int16") else ""
        self.nodes.append(
            helper.make_node(op, inputs, [output], name=self.label, domain=domain or None, **facts)
        )
        if shape is not None:
            self.values.append(helper.make_tensor_value_info(output, TensorProto.INT16, shape))
            self._shapes[output] = shape
        return output

    def rescaled(self, source: _Integers, result: _Result) -> None:
        """Another scale and bounds."""
        factor = source.scale / result.scale
        if factor >= 1 << 15:
            raise _UnfitError
        scale = TwiceScale.of(factor)
        pair = [scale.multiplier, scale.exponent]
        facts: dict[str, Any] = {"above": pair, "below": pair, "negated": 0, "zero_points": [0, 0]}
        self.node("RescaleInt16", [source.name], result.name, **facts, **_bounds(result))

    # -- nodes ---------------------------------------------------------------------------------

    def replaced(self, node: NodeProto) -> list[NodeProto]:
        """The nodes in place of a node."""
        self.nodes, self.label = [], node.name
        if not _converts(node) or node.input[0] in self._constants:
            return [node]
        if _kind(node, self._constants, self._known) != TensorProto.INT16:
            return [node]
        scale = _scale(node, self._constants)
        assert scale is not None
        if node.op_type == "DequantizeLinear":
            real = self.name()
            self.nodes.append(
                helper.make_node("Cast", [node.input[0]], [real], name=node.name, to=TensorProto.FLOAT)
            )
            factor = self.constant(np.array(scale, np.float32))
            self.nodes.append(helper.make_node("Mul", [real, factor], list(node.output), name=node.name))
            return self.nodes
        try:
            self._operator(node, scale)
        except _UnfitError:
            factor = self.constant(np.array(scale, np.float32))
            self.nodes = []
            self.node("QuantizeInt16", [node.input[0], factor], node.output[0])
        return self.nodes

    def _operator(self, node: NodeProto, scale: float) -> None:
        """The operator that makes what a QuantizeLinear reads, with an activation after it."""
        maker, bounds = self._makers.get(node.input[0]), UNBOUNDED
        if maker is None:
            raise _UnfitError
        if maker.op_type in ("Relu", "Clip") and maker.domain in ONNX_DOMAINS:
            bounds = self._clipped(maker, scale)
            inner = self._makers.get(maker.input[0])
            if inner is None:
                raise _UnfitError
            if inner.op_type == "DequantizeLinear":
                self.rescaled(self.integers(maker.input[0]), _Result(node.output[0], scale, bounds))
                return
            maker = inner
        result = _Result(node.output[0], scale, bounds)
        if maker.op_type == "DequantizeLinear":
            self.rescaled(self.integers(node.input[0]), result)
            return
        replace = _OPERATORS.get(maker.op_type)
        if replace is None or maker.domain not in ONNX_DOMAINS or len(maker.output) != 1:
            raise _UnfitError
        self.label = maker.name
        replace(self, maker, result)

    def _clipped(self, node: NodeProto, scale: float) -> Bounds:
        low, high = 0.0, inf
        if node.op_type == "Clip":
            given = [
                float(self.array(node.input[at]).reshape(-1)[0])
                if len(node.input) > at and node.input[at]
                else None
                for at in (1, 2)
            ]
            low = -inf if given[0] is None else given[0]
            high = inf if given[1] is None else given[1]
        steps = [np.clip(np.rint(bound / scale), INT16.min, INT16.max) for bound in (low, high)]
        return Bounds(int(steps[0]), int(steps[1]))


def _shape(value: ValueInfoProto) -> tuple[int, ...] | None:
    kind = value.type.tensor_type
    if not kind.HasField("shape") or not all(it.HasField("dim_value") for it in kind.shape.dim):
        return None
    return tuple(int(it.dim_value) for it in kind.shape.dim)


def _bounds(result: _Result) -> dict[str, Any]:
    return {"bounds": [result.bounds.low, result.bounds.high]}


def _integer(node: NodeProto, name: str, otherwise: int) -> int:
    return next((int(it.i) for it in node.attribute if it.name == name), otherwise)


def _integers(node: NodeProto, name: str, otherwise: list[int]) -> list[int]:
    return next((list(it.ints) for it in node.attribute if it.name == name), otherwise)


def _float(node: NodeProto, name: str, otherwise: float) -> float:
    return next((float(it.f) for it in node.attribute if it.name == name), otherwise)


def _finished(
    draft: _Draft, source: _Integers, weights: _Weights, bias: str, result: _Result
) -> tuple[list[str], dict[str, Any]]:
    """The constants after the weights of a convolution or product, whose output channels come first."""
    channels = len(weights.stored)
    if weights.scales.size not in (1, channels):
        raise _UnfitError
    units = source.scale * np.broadcast_to(weights.scales, channels)
    scales = SumScales.of(np.ascontiguousarray(units / result.scale), "away")
    inputs = [
        draft.constant(weights.stored),
        draft.constant(draft.bias(bias, units)),
        draft.constant(scales.multipliers),
        draft.constant(scales.shifts),
    ]
    return inputs, {"ties": "away", "left_shift": scales.left_shift, **_bounds(result)}


def _conv(draft: _Draft, node: NodeProto, result: _Result) -> None:
    """Images in ONNX's layout, through transpositions; a line is an image of one row."""
    source, weights = draft.integers(node.input[0]), draft.weights(node.input[1])
    shape, rank = draft.shape(source.name), weights.stored.ndim
    auto = next((it.s for it in node.attribute if it.name == "auto_pad"), b"NOTSET")
    if rank not in (3, 4) or shape[0] != 1 or auto not in (b"NOTSET", b"VALID"):
        raise _UnfitError
    if weights.scales.size > 1 and weights.axis != 0:
        raise _UnfitError
    flat = [1] if rank == 3 else []
    ones = [1] * (rank - 2)
    pads = _integers(node, "pads", [0] * (2 * (rank - 2)))
    window = {
        "kernel_shape": [*flat, *weights.stored.shape[2:]],
        "strides": [*flat, *_integers(node, "strides", ones)],
        "dilations": [*flat, *_integers(node, "dilations", ones)],
        "pads": [0, pads[0], 0, pads[1]] if rank == 3 else pads,
    }
    stored = weights.stored[:, :, None] if rank == 3 else weights.stored
    own = _Weights(np.ascontiguousarray(stored.transpose(0, 2, 3, 1)), weights.scales, 0)
    constants, facts = _finished(draft, source, own, node.input[2] if len(node.input) > 2 else "", result)
    image = _channels_last(draft, source.name, rank)
    made = draft.shape(node.output[0])
    facts |= {**window, "group": _integer(node, "group", 1)}
    rows = made[2:] if rank == 4 else (1, *made[2:])
    output = draft.node("ConvInt16", [image, *constants], draft.name(), (1, *rows, made[1]), **facts)
    _channels_second(draft, output, result.name, made)


def _channels_last(draft: _Draft, name: str, rank: int) -> str:
    shape = draft.shape(name)
    if rank == 4:
        moved = (shape[0], *shape[2:], shape[1])
        return draft.node("Transpose", [name], draft.name(), moved, perm=[0, 2, 3, 1])
    line = draft.node("Transpose", [name], draft.name(), (1, shape[2], shape[1]), perm=[0, 2, 1])
    sizes = draft.constant(np.array([1, 1, shape[2], shape[1]], np.int64))
    return draft.node("Reshape", [line, sizes], draft.name(), (1, 1, shape[2], shape[1]))


def _channels_second(draft: _Draft, name: str, output: str, shape: tuple[int, ...]) -> None:
    if len(shape) == 3:
        sizes = draft.constant(np.array([1, shape[2], shape[1]], np.int64))
        name = draft.node("Reshape", [name, sizes], draft.name(), (1, shape[2], shape[1]))
    draft.node("Transpose", [name], output, perm=[0, 3, 1, 2] if len(shape) == 4 else [0, 2, 1])


def _gemm(draft: _Draft, node: NodeProto, result: _Result) -> None:
    """Constant weights; neither factors nor a transposed input."""
    source, weights = draft.integers(node.input[0]), draft.weights(node.input[1])
    plain = _float(node, "alpha", 1.0) == 1 == _float(node, "beta", 1.0) and not _integer(node, "transA", 0)
    if not plain or weights.stored.ndim != 2:
        raise _UnfitError
    bias = node.input[2] if len(node.input) > 2 else ""
    _dense(draft, source, (weights, _integer(node, "transB", 0) != 0), bias, result)


def _matmul(draft: _Draft, node: NodeProto, result: _Result) -> None:
    """By constant weights, or of two activations."""
    source, other = draft.integers(node.input[0]), draft.maker(node.input[1])
    if other is not None and draft.is_constant(other.input[0]):
        weights = draft.weights(node.input[1])
        if weights.stored.ndim != 2:
            raise _UnfitError
        _dense(draft, source, (weights, False), "", result)
        return
    second = draft.integers(node.input[1])
    if min(len(draft.shape(it.name)) for it in (source, second)) < 2 or result.bounds != UNBOUNDED:
        raise _UnfitError
    scales = SumScales.of(np.array([source.scale * second.scale / result.scale]), "away")
    facts: dict[str, Any] = {"multiplier": int(scales.multipliers[0]), "shift": int(scales.shifts[0])}
    facts["left_shift"] = scales.left_shift
    draft.node("MatMulInt16", [source.name, second.name], result.name, **facts)


def _dense(
    draft: _Draft, source: _Integers, weights: tuple[_Weights, bool], bias: str, result: _Result
) -> None:
    """Rows by weights, whose output channels come first or last."""
    given, first = weights
    axis = 0 if first else 1
    if given.scales.size > 1 and given.axis != axis:
        raise _UnfitError
    own = _Weights(np.ascontiguousarray(given.stored if first else given.stored.T), given.scales, 0)
    if draft.shape(source.name)[-1] != own.stored.shape[1]:
        raise _UnfitError
    constants, facts = _finished(draft, source, own, bias, result)
    draft.node("DenseInt16", [source.name, *constants], result.name, **facts)


def _binary(draft: _Draft, node: NodeProto, result: _Result) -> None:
    a, b = (draft.integers(name) for name in node.input)
    if draft.is_constant(a.name) and draft.is_constant(b.name):
        raise _UnfitError
    function = {"Add": "add", "Sub": "sub", "Mul": "mul"}[node.op_type]
    factors = [a.scale * b.scale / result.scale] * 3
    if function != "mul":
        common = 2 * max(a.scale, b.scale)
        factors = [a.scale / common, b.scale / common, common / (2.0**_SUM_BITS * result.scale)]
    if factors[2] >= 1:
        raise _UnfitError
    scales = [TwiceScale.of(factor) for factor in factors]
    facts: dict[str, Any] = {"function": function, **_bounds(result)}
    facts |= {
        name: [it.multiplier, it.exponent] for name, it in zip(("a", "b", "result"), scales, strict=True)
    }
    draft.node("BinaryInt16", [a.name, b.name], result.name, **facts)


def _global_mean(draft: _Draft, node: NodeProto, result: _Result) -> None:
    """The mean over all axes but the first two."""
    source = draft.integers(node.input[0])
    _mean(draft, source, list(range(2, len(draft.shape(source.name)))), result)


def _average_pool(draft: _Draft, node: NodeProto, result: _Result) -> None:
    """A window that is the whole image: others would be rounded before they are scaled."""
    source = draft.integers(node.input[0])
    whole = list(draft.shape(source.name)[2:])
    if _integers(node, "kernel_shape", []) != whole or any(_integers(node, "pads", [0])):
        raise _UnfitError
    _global_mean(draft, node, result)


def _reduce_mean(draft: _Draft, node: NodeProto, result: _Result) -> None:
    source = draft.integers(node.input[0])
    rank = len(draft.shape(source.name))
    axes = _integers(node, "axes", [])
    if len(node.input) > 1 and node.input[1]:
        axes = [int(axis) for axis in draft.array(node.input[1]).reshape(-1)]
    if not axes:
        raise _UnfitError
    _mean(draft, source, sorted({axis % rank for axis in axes}), result)


def _mean(draft: _Draft, source: _Integers, axes: list[int], result: _Result) -> None:
    count = prod(draft.shape(source.name)[axis] for axis in axes)
    scale = mean_multiplier(source.scale / result.scale, count)
    if result.bounds != UNBOUNDED:
        raise _UnfitError
    draft.node("MeanInt16", [source.name], result.name, axes=axes, scale=list(scale))


def _move(draft: _Draft, node: NodeProto, result: _Result) -> None:
    """Integers of one scale are moved as they are; of another one, and clipped, after a change."""
    sources = [draft.integers(name) for name in node.input[: _MOVED.get(node.op_type, len(node.input))]]
    same = result.bounds == UNBOUNDED
    names = []
    for source in sources:
        if same and source.scale == result.scale:
            names.append(source.name)
            continue
        name = draft.name()
        draft.values.append(helper.make_tensor_value_info(name, TensorProto.INT16, draft.shape(source.name)))
        draft.rescaled(source, _Result(name, result.scale, result.bounds))
        names.append(name)
    copy = NodeProto.FromString(node.SerializeToString())
    copy.output[0] = result.name
    copy.input[: len(names)] = names
    draft.nodes.append(copy)


def _max_pool(draft: _Draft, node: NodeProto, result: _Result) -> None:
    """Windows without dilation, whose result has the scale of the input."""
    source = draft.integers(node.input[0])
    shape, made = draft.shape(source.name), draft.shape(node.output[0])
    auto = next((it.s for it in node.attribute if it.name == "auto_pad"), b"NOTSET")
    plain = auto in (b"NOTSET", b"VALID") and not _integer(node, "ceil_mode", 0)
    if len(shape) != 4 or shape[0] != 1 or not plain or set(_integers(node, "dilations", [1, 1])) != {1}:
        raise _UnfitError
    window: dict[str, Any] = {name: _integers(node, name, [1, 1]) for name in ("kernel_shape", "strides")}
    window["pads"] = _integers(node, "pads", [0] * 4)
    image = _channels_last(draft, source.name, 4)
    pooled = (1, *made[2:], made[1])
    name = draft.node("PoolInt16", [image], draft.name(), pooled, **window, average=0)
    if source.scale != result.scale or result.bounds != UNBOUNDED:
        changed = draft.name()
        draft.values.append(helper.make_tensor_value_info(changed, TensorProto.INT16, pooled))
        draft.rescaled(_Integers(name, source.scale), _Result(changed, result.scale, result.bounds))
        name = changed
    _channels_second(draft, name, result.name, made)


_MOVED = {"Flatten": 1, "Gather": 1, "Reshape": 1, "Slice": 1, "Squeeze": 1, "Transpose": 1, "Unsqueeze": 1}
"""Numbers of inputs that are moved; all of other operators."""

_OPERATORS: dict[str, Callable[[_Draft, NodeProto, _Result], None]] = {
    **dict.fromkeys(("Add", "Sub", "Mul"), _binary),
    **dict.fromkeys((*_MOVED, "Concat"), _move),
    "AveragePool": _average_pool,
    "Conv": _conv,
    "Gemm": _gemm,
    "GlobalAveragePool": _global_mean,
    "MatMul": _matmul,
    "MaxPool": _max_pool,
    "ReduceMean": _reduce_mean,
}
"""Replacement of each operator before a QuantizeLinear."""
