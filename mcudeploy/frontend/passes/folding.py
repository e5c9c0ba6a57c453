"""Constant folding: computes the nodes whose inputs are constant, within limits of work and memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import ModelProto, helper, numpy_helper

from mcudeploy.frontend.onnx.constants import Constant, dequantized
from mcudeploy.frontend.onnx.convert import info_of
from mcudeploy.frontend.onnx.inference import inferred
from mcudeploy.frontend.onnx.nodes import MAX_TENSOR_ELEMENTS, Info, Node, OnnxModel, Unsupported
from mcudeploy.frontend.onnx.protos import MOVEMENTS, copy_of, element_type, evaluator
from mcudeploy.frontend.onnx.quantization import require_finite
from mcudeploy.frontend.onnx.scalar_functions import FUNCTIONS

_FOLDED = MOVEMENTS | FUNCTIONS.keys() | frozenset((
    "Abs", "Add", "And", "ArgMax", "ArgMin", "BatchNormalization", "Cast", "Ceil", "Clip", "Concat",
    "ConstantOfShape", "Cos", "CumSum", "Div", "Equal", "Erf", "Exp", "Floor", "Gather", "GatherElements",
    "GatherND", "GlobalAveragePool", "GlobalMaxPool", "Greater", "GreaterOrEqual", "HardSigmoid", "HardSwish",
    "LayerNormalization", "LeakyRelu", "Less", "LessOrEqual", "Log", "Max", "Min", "Mod", "Mul", "Neg", "Not",
    "OneHot", "Or", "Pad", "Pow", "PRelu", "QuantizeLinear", "Range",
    "Reciprocal", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "Relu", "Round",
    "ScatterElements", "ScatterND", "Sigmoid", "Sign", "Sin", "Softmax", "Split", "Sqrt", "Sub", "Tanh",
    "Tile", "Trilu", "Where", "Xor",
))  # fmt: skip
"""Operators whose work is in proportion to the size of their output."""

_PRODUCTS = frozenset(("Conv", "Gemm", "MatMul"))
_WINDOWS = frozenset(("AveragePool", "MaxPool", "Resize"))
"""Operators that are folded while the work of all of them is small, as in a loop's first step from zeros."""

_MAX_WORK = 1 << 28
"""Limit of the work, in products, of all folded _PRODUCTS and _WINDOWS of a model."""
_WINDOW_WORK = 1 << 14
"""The work for one element of a result of _WINDOWS, in products that take as long."""

_MAX_FOLDED_ELEMENTS = 1 << 26
_MAX_SMALL_ELEMENTS = 1024
"""Limit of the elements of constants that may determine shapes."""


class Folder:
    """The constants and shapes of a model while its nodes are folded, and the work that this took."""

    def __init__(self, model: OnnxModel) -> None:
        self.model = model
        self.constants = dict(model.constants)
        self.infos = dict(model.infos)
        self.elements = self.work = 0

    def fold(self, node: Node) -> bool:
        """Make the node's outputs constants; return False if they are not constant.

        Raises Unsupported, and any error of the evaluator, for nodes that cannot be computed.
        """
        if node.domain:
            return False
        if node.op == "Constant":
            self.constants[node.output] = _constant_node(node)
            return True
        if node.op in ("Shape", "Size"):
            return self._fold_shape(node)
        operands = [self.constants.get(name) for name in node.inputs if name]
        if not operands or any(operand is None for operand in operands):
            return False
        if node.op == "DequantizeLinear":
            return self._fold_dequantize(node)
        return node.op in _FOLDED | _PRODUCTS | _WINDOWS and self._evaluate(node)

    def complete(self, node: Node) -> None:
        """Infer the unknown shapes of a node's outputs, which may follow from folded constants."""
        if all(self._known(name) for name in node.outputs if name):
            return
        if not all(self._known(name) for name in node.inputs if name):
            return
        if node.domain:
            self._complete_quantisation(node)
            return
        with suppress(Exception):  # lowering will refuse the node, and state a better reason
            self.infos.update((info.name, info) for info in self._infer(node))

    def _complete_quantisation(self, node: Node) -> None:
        """State shape and type of ONNX Runtime's own QuantizeLinear and DequantizeLinear, unknown to onnx."""
        if node.domain != "com.microsoft" or node.inputs[0] not in self.infos:
            return
        zero = self.constants.get(node.input(2))
        types = {
            "QuantizeLinear": "uint8" if zero is None else str(zero.value.dtype),
            "DequantizeLinear": "float32",
        }
        if node.op in types:
            shape = self.infos[node.inputs[0]].shape
            self.infos[node.output] = Info(node.output, shape, types[node.op])

    def _known(self, name: str) -> bool:
        info = self.infos.get(name)
        return name in self.constants or (info is not None and info.shape is not None)

    def _infer(self, node: Node) -> list[Info]:
        names = [name for name in dict.fromkeys(node.inputs) if name]
        constants = {name: self.constants[name] for name in names if name in self.constants}
        operands = {name: self.infos[name] for name in names if name not in constants}
        for name, constant in constants.items():
            operands[name] = Info(name, constant.shape, str(constant.value.dtype))
        small = {name: it for name, it in constants.items() if it.value.size <= _MAX_SMALL_ELEMENTS}
        return _inferred(node, operands, small, self.model.opset)

    def _fold_shape(self, node: Node) -> bool:
        name = node.inputs[0]
        constant, info = self.constants.get(name), self.infos.get(name)
        shape = constant.shape if constant is not None else None if info is None else info.shape
        if shape is None:
            return False
        if node.op == "Size":
            result = np.array(prod(shape), np.int64)
        else:
            result = np.array(shape[node.integer("start", 0) : node.integer("end", len(shape))], np.int64)
        self.constants[node.output] = Constant(result)
        return True

    def _fold_dequantize(self, node: Node) -> bool:
        integers = self.constants[node.inputs[0]].value
        scale = self.constants[node.inputs[1]].value
        block, axis = node.integer("block_size", 0), node.integer("axis", 1)
        if integers.dtype.kind not in "iu" or (scale.ndim > 1 and not block):
            return False
        zero_point: NDArray[np.generic] = np.zeros(scale.shape, np.int32)
        if node.input(2):
            zero_point = self.constants[node.inputs[2]].value
        if zero_point.size != scale.size:
            return False
        self.constants[node.output] = dequantized(integers, require_finite(scale), zero_point, axis, block)
        return True

    def _evaluate(self, node: Node) -> bool:
        """Compute a node of constant inputs, unless it is too much work; return whether it was computed."""
        names = [name for name in node.inputs if name]
        arrays = {name: self.constants[name].value for name in names}
        elements = 0
        for info in self._infer(node):
            if info.shape is None:
                return False
            elements += prod(info.shape)
        self.elements += elements
        work = elements * _work(node.op, [arrays[name].shape for name in names])
        if work and self.work + work > _MAX_WORK:
            return False
        self.work += work
        if elements > MAX_TENSOR_ELEMENTS or self.elements > _MAX_FOLDED_ELEMENTS:
            limit = f"the limit is {MAX_TENSOR_ELEMENTS}"
            raise Unsupported(f"its constant result has {elements} elements; {limit}")
        quantized = self.constants[names[0]].quantized
        if node.op in MOVEMENTS and quantized is not None:

            def movement(array: NDArray[np.generic]) -> NDArray[np.generic]:
                return _run(node, {**arrays, names[0]: np.ascontiguousarray(array)}, self.model.opset)[0]

            self.constants[node.output] = self.constants[names[0]].moved(movement)
            return True
        results = _run(node, arrays, self.model.opset)
        for name, result in zip(node.outputs, results, strict=True):
            if name:
                self.constants[name] = Constant(result)
        return True


def _work(op: str, shapes: Sequence[tuple[int, ...]]) -> int:
    """Work for each element of a result, in products; 0 for operators outside _PRODUCTS and _WINDOWS."""
    if op in _WINDOWS:
        return _WINDOW_WORK
    if op == "Conv":
        return prod(shapes[1][1:])
    return max(shapes[0], default=1) if op in _PRODUCTS else 0


def fold(model: OnnxModel) -> tuple[OnnxModel, dict[str, str]]:
    """Fold all nodes with constant results; return the model, and by node label why a node was not folded.

    Constants that DequantizeLinear computes keep their integers (see Constant).
    """
    folder = Folder(model)
    nodes: list[Node] = []
    reasons: dict[str, str] = {}
    for node in model.nodes:
        try:
            if folder.fold(node):
                continue
        except Unsupported as reason:
            reasons[node.label] = str(reason)
        except Exception as fault:  # the evaluator of onnx raises anything for malformed attributes
            reasons[node.label] = f"its constant result cannot be computed: {fault}"
        folder.complete(node)
        nodes.append(_without_zeros(node, folder))
    infos = folder.infos
    for name, constant in folder.constants.items():
        infos[name] = Info(name, constant.shape, str(constant.value.dtype))
    return replace(model, nodes=tuple(nodes), constants=folder.constants, infos=infos), reasons


def _without_zeros(node: Node, folder: Folder) -> Node:
    """The node, or an Identity if it adds zeros that folding computed, such as from an initial state."""
    for zeros, other in (node.inputs, node.inputs[::-1]) if node.op == "Add" and not node.domain else ():
        constant = folder.constants.get(zeros)
        if constant is None or zeros in folder.model.constants or np.any(constant.value):
            continue
        if all(
            name in folder.infos and folder.infos[name].shape == constant.shape
            for name in (other, node.output)
        ):
            return replace(node, op="Identity", inputs=(other,))
    return node


def with_small_constants(proto: ModelProto, model: OnnxModel) -> ModelProto:
    """Replace nodes with small constant results by these, and state the shapes that follow, for rules.

    `model` is the same model as `proto`. Nodes with large constant results stay, to be folded later.
    """
    folded, _ = fold(model)
    result = copy_of(proto)
    del result.graph.node[:], result.graph.value_info[:]
    io_names = {value.name for value in (*proto.graph.input, *proto.graph.output)}
    infos = {value.name: value for value in proto.graph.value_info}
    for node in proto.graph.node:
        names = [name for name in node.output if name]
        constants = [folded.constants.get(name) for name in names]
        small = [it for it in constants if it is not None and it.value.size <= _MAX_SMALL_ELEMENTS]
        if node.op_type != "Constant" and len(small) == len(names) and io_names.isdisjoint(names):
            result.graph.initializer.extend(
                numpy_helper.from_array(np.asarray(it.value), name)
                for name, it in zip(names, small, strict=True)
            )
            continue
        result.graph.node.append(node)
        for name in names:
            info = folded.infos.get(name)
            if name not in io_names and info is not None and info.shape is not None:
                kind = element_type(info.dtype)
                infos[name] = helper.make_tensor_value_info(name, kind, info.shape)
    result.graph.value_info.extend(infos.values())
    return result


def _constant_node(node: Node) -> Constant:
    for name, value in node.attributes.items():
        if isinstance(value, np.ndarray):
            return Constant(value)
        if isinstance(value, int) or (isinstance(value, tuple) and name == "value_ints"):
            return Constant(np.array(value, np.int64))
        if isinstance(value, float) or (isinstance(value, tuple) and name == "value_floats"):
            return Constant(np.array(value, np.float32))
    raise Unsupported("a constant of this kind is not supported")


def _inferred(
    node: Node, operands: Mapping[str, Info], small: Mapping[str, Constant], opset: int
) -> list[Info]:
    """Infer the node's outputs from shapes and small constants, without computing them.

    Raises the errors of ONNX shape inference for inputs that do not fit.
    """
    inputs = []
    for name, info in operands.items():
        kind = element_type(info.dtype)
        inputs.append(helper.make_tensor_value_info(name, kind, info.shape))
    initializers = [numpy_helper.from_array(constant.value, name) for name, constant in small.items()]
    outputs = [onnx.ValueInfoProto(name=name) for name in node.outputs if name]
    graph = helper.make_graph([node.proto], "fold", inputs, outputs, initializers)
    single = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    return [info_of(value) for value in inferred(single).graph.output]


def _run(node: Node, arrays: Mapping[str, NDArray[np.generic]], opset: int) -> Sequence[NDArray[np.generic]]:
    if node.op == "Transpose":  # all weights of a .tflite file have one: without it the evaluator loads late
        perm: Any = node.attributes.get("perm")
        return [np.transpose(arrays[node.inputs[0]], perm)]
    names = [name for name in node.outputs if name]
    with np.errstate(all="ignore"):
        by_name = dict(zip(names, evaluator([node.proto], opset, arrays, names)(arrays), strict=True))
    return [np.asarray(by_name[name]) if name else np.zeros(0) for name in node.outputs]
