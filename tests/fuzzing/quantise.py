"""QuantizeLinear and DequantizeLinear nodes in a float graph, as quantisers of several makes place them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

from fuzzing.draft import Array, Draft, Info, assemble, live_nodes, names_read

_MOVERS = frozenset(
    ("MaxPool", "Reshape", "Flatten", "Transpose", "Squeeze", "Unsqueeze", "Slice", "Gather", "Split")
).union(("Identity", "Dropout", "GlobalMaxPool"))
"""Operators whose results get the parameters of the input from ONNX Runtime's quantiser."""

_UNIT = frozenset(("Sigmoid", "Softmax", "HardSigmoid"))
_TYPES = {
    "int8": (np.int8, TensorProto.INT8),
    "uint8": (np.uint8, TensorProto.UINT8),
    "int16": (np.int16, TensorProto.INT16),
    "uint16": (np.uint16, TensorProto.UINT16),
}
_OPSET_OF_16_BITS = 21
"""First opset without com.microsoft operators for 16 bits in ONNX Runtime's quantiser."""


@dataclass(frozen=True, slots=True)
class Style:
    """How a quantiser works. Shares are of all values or constants."""

    types: tuple[str, ...] = ("int8",)
    constant_types: tuple[str, ...] = ("int8",)
    symmetric: bool = False
    channels: bool = True
    movers: bool = True
    fused: bool = True
    each_reader: bool = False
    integer_borders: bool = False
    float_share: float = 0.0
    float_bias_share: float = 0.0
    asymmetric_weights: bool = False
    extreme_share: float = 0.0


@dataclass(frozen=True, slots=True)
class Parameters:
    """Scale, zero point and type of a quantised activation."""

    scale: np.float32
    zero_point: int
    type: str


def draw_style(draft: Draft, kind: str, *, wide: bool = False) -> Style:
    """A style for one of the kinds of graphs; `wide`: with activations of 16 bits, or some of them."""
    types = {"uint8": ("uint8",), "mixed": draft.pick((("int8",), ("uint8",), ("int8", "uint8")))}
    narrow = types.get(kind, ("int8",))
    return Style(
        types=draft.pick((("int16",), ("uint16",), (*narrow, "int16"), (*narrow, "uint16")))
        if wide
        else narrow,
        constant_types=narrow,
        symmetric=draft.chance(0.2),
        channels=kind == "channels" or draft.chance(0.3),
        movers=draft.chance(0.6),
        fused=draft.chance(0.7),
        each_reader=draft.chance(0.3),
        integer_borders=draft.chance(0.5),
        float_share=0.25 if kind == "mixed" else 0.0,
        float_bias_share=draft.pick((0.0, 0.0, 0.1, 1.0)),
        asymmetric_weights=draft.chance(0.15),
        extreme_share=draft.pick((0.0, 0.0, 0.0, 0.05, 0.15)),
    )


def quantised(draft: Draft, style: Style) -> onnx.ModelProto:
    """The graph of a draft with pairs of nodes around its activations, and integer weights."""
    return _Quantiser(draft, style).model()


def _ranges(draft: Draft) -> dict[str, tuple[float, float]]:
    """The least and the largest of each activation over a few inputs."""
    computed = [name for node in draft.nodes for name in node.output if name in draft.shapes]
    whole = draft.model(dict.fromkeys((*computed, *draft.outputs)))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        whole.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [info.name for info in session.get_outputs()]
    ranges: dict[str, list[Array]] = {}
    for _ in range(3):
        values = {name: _example(draft, name) for name in draft.used_inputs()}
        values |= dict(zip(names, session.run(names, values), strict=True))
        for name, value in values.items():
            if value.dtype != np.float32:
                continue
            ranges.setdefault(name, []).append(value[np.isfinite(value)])
    joined = {name: np.concatenate([array.reshape(-1) for array in parts]) for name, parts in ranges.items()}
    return {name: (float(a.min()), float(a.max())) if a.size else (0.0, 0.0) for name, a in joined.items()}


def _example(draft: Draft, name: str) -> Array:
    shape, kind = draft.shapes[name], draft.type_of(name)
    if kind == TensorProto.FLOAT:
        return draft.normal(shape)
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    return draft.random.integers(0, draft.most[name], shape, endpoint=True).astype(dtype)


@dataclass
class _Quantiser:
    draft: Draft
    style: Style
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    known: dict[str, Parameters] = field(default_factory=dict)
    _count: int = 0

    def model(self) -> onnx.ModelProto:
        draft = self.draft
        self.ranges, self.readers = _ranges(draft), draft.readers()
        producers = {name: node for node in draft.nodes for name in node.output}
        inputs: list[Info] = []
        for name in draft.used_inputs():
            inputs.append((name, draft.type_of(name), draft.shapes[name]))
            if draft.type_of(name) != TensorProto.FLOAT or draft.chance(self.style.float_share):
                continue
            parameters = self._parameters(name, None)
            if self.style.integer_borders:
                inputs[-1] = (f"{name}_q", _TYPES[parameters.type][1], draft.shapes[name])
            else:
                self._quantize(name, parameters)
            self.known[name] = parameters
        for node in draft.nodes:
            self._node(node)
            for name in node.output:
                if name in draft.shapes and not self._stays_as_it_is(name):
                    self.known[name] = self._parameters(name, producers[name])
                    self._quantize(name, self.known[name])
        outputs = [self._output(name) for name in dict.fromkeys(draft.outputs)]
        nodes = live_nodes(self.nodes, (info[0] for info in outputs))
        read = {name for node in nodes for name in names_read(node)} | {info[0] for info in outputs}
        inputs = [info for info in inputs if info[0] in read]
        return assemble(nodes, inputs, outputs, draft.constants, draft.opset)

    # -- activations -----------------------------------------------------------------------------

    def _stays_as_it_is(self, name: str) -> bool:
        readers = self.readers[name]
        if self.draft.type_of(name) != TensorProto.FLOAT:
            return True
        alone = self.style.fused and len(readers) == 1 and name not in self.draft.outputs
        if alone and readers[0].op_type in ("Relu", "Clip"):
            return True
        return self.draft.chance(self.style.float_share)

    def _parameters(self, name: str, producer: onnx.NodeProto | None) -> Parameters:
        draft, style = self.draft, self.style
        moves = producer is not None and style.movers and producer.op_type in _MOVERS
        if moves and producer.input[0] in self.known:
            return self.known[producer.input[0]]
        kind = draft.pick(style.types)
        low, high = self.ranges.get(name, (-1.0, 1.0))
        if producer is not None and producer.op_type in _UNIT and draft.chance(0.6):
            low, high = 0.0, 255 / 256
        low, high = min(low, 0.0), max(high, 0.0)
        limits = np.iinfo(_TYPES[kind][0])
        least, middle = int(limits.min), (int(limits.max) - int(limits.min) + 1) // 2
        span = 2 * middle - 1
        if style.symmetric:
            scale, zero = max(-low, high) / (middle - 1), least + middle
        else:
            scale = (high - low) / span
            zero = least + int(np.rint(-low / scale)) if scale else least
        if draft.chance(style.extreme_share):
            scale = scale * 10.0 ** draft.random.uniform(-3, 3)
            zero = draft.pick((zero, least, least + span, least + middle))
            if draft.chance(0.05):
                scale = draft.pick((1e-30, 1e-9, 1e9, 1e30))
        if scale < 1e-37:
            scale = draft.pick((1.0, 1e-6))
        return Parameters(np.float32(scale), int(np.clip(zero, least, least + span)), kind)

    def _named(self, parameters: Parameters) -> tuple[str, str]:
        zero = np.array(parameters.zero_point, _TYPES[parameters.type][0])
        return self.draft.constant(parameters.scale), self.draft.constant(zero)

    def _quantize(self, name: str, parameters: Parameters) -> None:
        domain = self._domain(parameters)
        self._make("QuantizeLinear", [name, *self._named(parameters)], f"{name}_q", domain=domain)

    def _domain(self, parameters: Parameters) -> str | None:
        wide = parameters.type in ("int16", "uint16") and self.draft.opset < _OPSET_OF_16_BITS
        return "com.microsoft" if wide else None

    def _real(self, name: str) -> str:
        """The float value that a reader of an activation reads."""
        if name not in self.known:
            return name
        real = f"{name}_d"
        if self.style.each_reader:
            self._count += 1
            real += str(self._count)
        elif any(real in node.output for node in self.nodes):
            return real
        known = self.known[name]
        domain = self._domain(known)
        self._make("DequantizeLinear", [f"{name}_q", *self._named(known)], real, domain=domain)
        return real

    def _make(self, op: str, inputs: list[str], output: str, **attributes: Any) -> str:
        name = f"{op}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [output], name=name, **attributes))
        return output

    def _output(self, name: str) -> Info:
        shape = self.draft.shapes[name]
        if name in self.known and (self.style.integer_borders or self.draft.chance(0.1)):
            return f"{name}_q", _TYPES[self.known[name].type][1], shape
        return self._real(name), self.draft.type_of(name), shape

    # -- nodes and constants ---------------------------------------------------------------------

    def _node(self, node: onnx.NodeProto) -> None:
        inputs = list(node.input)
        quantised = onnx.NodeProto()
        quantised.CopyFrom(node)
        constants = dict(self._constants(node))
        quantised.input[:] = [constants.get(at) or self._operand(name) for at, name in enumerate(inputs)]
        for graph in (attribute.g for attribute in quantised.attribute if attribute.HasField("g")):
            self._inside(graph)
        self.nodes.append(quantised)

    def _inside(self, graph: onnx.GraphProto) -> None:
        """Values outside that a graph inside reads, as any reader reads them."""
        for node in graph.node:
            node.input[:] = [self._operand(name) for name in node.input]
            for deeper in (attribute.g for attribute in node.attribute if attribute.HasField("g")):
                self._inside(deeper)

    def _operand(self, name: str) -> str:
        return self._real(name) if name in self.draft.shapes else name

    def _constants(self, node: onnx.NodeProto) -> Iterator[tuple[int, str]]:
        """Inputs of a node that are integer constants, and their names."""
        draft = self.draft
        if node.op_type in ("Add", "Sub", "Mul", "Div"):
            for at, name in enumerate(node.input):
                value = draft.constants.get(name)
                if value is not None and value.dtype.kind == "f" and draft.chance(0.5):
                    yield at, self._plain(name)
        if node.op_type not in ("Conv", "Gemm", "MatMul"):
            return
        source = next((name for name in node.input if name in draft.shapes), None)
        weights = next((at for at, name in enumerate(node.input[:2]) if name in draft.constants), None)
        if source is None or weights is None or draft.chance(self.style.float_share / 2):
            return
        turned = any(it.name == "transB" and it.i for it in node.attribute)
        axis = (
            0
            if node.op_type == "Conv" or turned or weights == 0
            else draft.constants[node.input[weights]].ndim - 1
        )
        name, scales = self._weights(node.input[weights], axis)
        yield weights, name
        if len(node.input) > 2 and source in self.known and not draft.chance(self.style.float_bias_share):
            yield 2, self._bias(node.input[2], scales * self.known[source].scale)

    def _plain(self, name: str) -> str:
        value = self.draft.constants[name]
        kind, zero = _TYPES[self.draft.pick(self.style.constant_types)][0], 0
        scale = max(float(np.abs(value).max(initial=0.0)) / 127, 1e-8)
        if kind is np.uint8:
            zero = 128
        integers = np.clip(np.rint(value / scale) + zero, np.iinfo(kind).min, np.iinfo(kind).max).astype(kind)
        return self._stored(integers, np.array(scale, np.float32), np.array(zero, kind), None)

    def _weights(self, name: str, axis: int) -> tuple[str, Array]:
        """Integer weights, and their scales: one, or one per channel of `axis`."""
        value = self.draft.constants[name]
        if self.style.asymmetric_weights:
            low, high = min(float(value.min()), 0.0), max(float(value.max()), 0.0)
            scale = np.float32(max((high - low) / 255, 1e-8))
            zero = np.uint8(np.rint(-low / scale))
            integers = np.clip(np.rint(value / scale) + zero, 0, 255).astype(np.uint8)
            return self._stored(integers, np.asarray(scale), np.asarray(zero), None), np.asarray(scale)
        if not self.style.channels:
            scale = np.float32(max(float(np.abs(value).max()) / 127, 1e-8))
            integers = np.rint(value / scale).astype(np.int8)
            return self._stored(integers, np.asarray(scale), np.int8(0), None), np.asarray(scale)
        others = tuple(at for at in range(value.ndim) if at != axis)
        largest = np.abs(value).max(axis=others)
        most = 7 if value.size % 3 == 0 else 127  # of four bits; no draw, so that seeds keep their graphs
        scales = np.maximum(largest / most, 1e-8).astype(np.float32)
        along = [1] * value.ndim
        along[axis] = -1
        integers = np.rint(value / scales.reshape(along)).astype(np.int8)
        return self._stored(integers, scales, np.zeros(scales.shape, np.int8), axis), scales

    def _bias(self, name: str, scales: Array) -> str:
        value = self.draft.constants[name].astype(np.float64)
        scales = np.maximum(scales.astype(np.float32), np.finfo(np.float32).tiny)
        scales = scales if scales.size == value.size and value.ndim else scales.reshape(-1)[:1].reshape(())
        integers = np.clip(np.rint(value / scales), -(2**31), 2**31 - 1).astype(np.int32)
        axis = 0 if prod(scales.shape) > 1 or scales.ndim else None
        return self._stored(integers, scales, np.zeros(scales.shape, np.int32), axis)

    def _stored(self, integers: Array, scales: Array, zeros: Any, axis: int | None) -> str:
        """Constant integers and their DequantizeLinear."""
        draft = self.draft
        inputs = [draft.constant(array) for array in (integers, scales, np.asarray(zeros))]
        return self._make(
            "DequantizeLinear", inputs, f"{inputs[0]}_d", **({} if axis is None else {"axis": axis})
        )
