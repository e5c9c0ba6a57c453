"""Files of onnxruntime.quantization.quantize_dynamic: int8 weights, and activations that every run scales.

Products of integers become products of floats, by dequantised weights.
"""

from __future__ import annotations

from math import prod

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, helper, numpy_helper

from mcudeploy.frontend.onnx.protos import opset_of, refill


def float_note(activations: str, runtime: str, way: str) -> str:
    """Return a note on quantised weights with `activations` that are float here and rounded by the `runtime`.

    `way` names the quantisation that avoids floats.
    """
    return (
        f"weights are quantised and activations are {activations}: the program computes in float32 and does "
        f"not round activations to int8, as {runtime} does. Weights take 1 byte each if flash is short, else "
        f"4 where that is faster; {way} quantisation is faster still, in a quarter of the RAM"
    )


NOTE = float_note("scaled in every run (dynamic quantisation)", "ONNX Runtime", "static")
_FLAT, _FLAT_NAME = np.array([-1], np.int64), "mcudeploy.flat"
_AXES_FROM = 13
"""First opset whose DequantizeLinear has an axis."""
_PRODUCTS = {"MatMulInteger": "MatMul", "ConvInteger": "Conv"}
_LSTM = "DynamicQuantizeLSTM"
_LSTM_INPUTS = 8
"""Inputs of ONNX's LSTM; scales and zero points of both weights follow."""
_QUANTIZER_ARITY = 1, 3
"""Number of inputs and outputs of DynamicQuantizeLinear, which computes integers, scale and zero point."""
_REMOVABLE = ("Cast", "DynamicQuantizeLinear", "Mul", *_PRODUCTS)
"""Operators that are removed if nothing reads their results any more."""


def in_floats(proto: ModelProto) -> bool:
    """Replace the products of integers with dynamic scales in place; return whether there were any.

    A product in another form than the quantiser's stays.
    """
    if opset_of(proto) < _AXES_FROM:
        return False
    graph = proto.graph
    rewriter = _DynamicProducts(graph)
    replaced = {number: rewriter.replaced(node) for number, node in enumerate(graph.node)}
    if not any(replaced.values()):
        return False
    nodes = [
        new
        for number, node in enumerate(graph.node)
        for new in replaced[number] or [node]
        if replaced[number] or rewriter.covered.isdisjoint(node.output)
    ]
    refill(graph.node, _without_unread(graph, nodes))
    graph.initializer.extend(rewriter.constants)
    return True


class _DynamicProducts:
    """Finds products with dynamic scales, and the nodes that replace them.

    `covered`: results of further nodes that are replaced with the products.
    """

    def __init__(self, graph: GraphProto) -> None:
        self.shapes = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
        self.producers = {name: node for node in graph.node for name in node.output if name}
        self.readers: dict[str, list[NodeProto]] = {}
        for node in graph.node:
            for name in node.input:
                self.readers.setdefault(name, []).append(node)
        self.outputs = {value.name for value in graph.output}
        self.covered: set[str] = set()
        self.constants = [numpy_helper.from_array(_FLAT, _FLAT_NAME)]

    def replaced(self, node: NodeProto) -> list[NodeProto]:
        """The nodes that replace a node; an empty list if it stays."""
        if node.op_type in _PRODUCTS and not node.domain and len(node.input) > 2 and node.output:
            return self._product(node)
        if node.op_type == _LSTM and node.domain == "com.microsoft" and node.output:
            return self._lstm(node)
        return []

    def _product(self, node: NodeProto) -> list[NodeProto]:
        """The float product in place of one of integers that is cast and multiplied by both scales."""
        source = self.producers.get(node.input[0])
        cast = self._reader(node.output[0], "Cast")
        scaled = None if cast is None else self._reader(cast.output[0], "Mul")
        if source is None or source.op_type != "DynamicQuantizeLinear" or cast is None or scaled is None:
            return []
        if (len(source.input), len(source.output)) != _QUANTIZER_ARITY or node.input[2] != source.output[2]:
            return []
        scale = self._weight_scale(scaled, cast.output[0], source.output[1])
        weights = node.input[1]
        if scale is None or len(self.shapes.get(weights, ())) < 2:
            return []
        zero = node.input[3] if len(node.input) > 3 else ""
        rank = len(self.shapes[weights])
        axis, place = (rank - 1, 1) if node.op_type == "MatMulInteger" else (0, rank - 1)
        if not self._fit_channels((scale, zero), self.shapes[weights][axis], place):
            return []
        real = f"{node.output[0]}.weights"
        product = helper.make_node(_PRODUCTS[node.op_type], [source.input[0], real], scaled.output, node.name)
        product.attribute.extend(node.attribute)
        self.covered |= {cast.output[0], scaled.output[0]}
        return [*self._dequantized((weights, scale, zero), real, axis), product]

    def _fit_channels(self, parameters: tuple[str, str], channels: int, place: int) -> bool:
        """Whether there is one scale and zero point, or one for each channel.

        `place` is the axis of the product that has the channels, counted from the end.
        """
        scale, zero = parameters
        shape = self.shapes[scale]
        count = prod(shape)
        zeros = prod(self.shapes.get(zero, (0,))) if zero else count
        by_channel = count == channels and len(shape) >= place and shape[-place] == count
        return zeros == count and (count == 1 or by_channel)

    def _reader(self, name: str, op: str) -> NodeProto | None:
        """The single reader of a value, if it is this operator."""
        readers = self.readers.get(name, [])
        if len(readers) != 1 or name in self.outputs or readers[0].op_type != op or not readers[0].output:
            return None
        return readers[0]

    def _weight_scale(self, scaled: NodeProto, product: str, source_scale: str) -> str | None:
        """The constant scale of the weights; its product with the activation's scale multiplies the result.
        """
        for name in scaled.input:
            both = self.producers.get(name)
            if name != product and both is not None and both.op_type == "Mul" and source_scale in both.input:
                return next((it for it in both.input if it != source_scale and it in self.shapes), None)
        return None

    def _lstm(self, node: NodeProto) -> list[NodeProto]:
        """The float LSTM in place of one whose weights have a scale for each direction, or for each channel.

        Scales for channels need a single direction.
        """
        if len(node.input) != _LSTM_INPUTS + 4:
            return []
        inputs = [*node.input[:_LSTM_INPUTS]]
        nodes = []
        for position, parameters in ((1, node.input[8:10]), (2, node.input[10:12])):
            weights, (scale, zero) = node.input[position], parameters
            if len(self.shapes.get(weights, ())) != 3 or scale not in self.shapes:
                return []
            shape, count = self.shapes[weights], prod(self.shapes[scale])
            axes = {shape[0]: 0} | ({shape[2]: 2} if shape[0] == 1 else {})
            if count not in axes:
                return []
            real = f"{node.output[0] or node.name}.weights{position}"
            nodes += self._dequantized((weights, scale, zero), f"{real}.turned", axes[count])
            nodes.append(
                helper.make_node("Transpose", [f"{real}.turned"], [real], f"{real}.turn", perm=[0, 2, 1])
            )
            inputs[position] = real
        nodes.append(helper.make_node("LSTM", inputs, node.output, node.name))
        nodes[-1].attribute.extend(node.attribute)
        return nodes

    def _dequantized(self, stored: tuple[str, str, str], real: str, axis: int) -> list[NodeProto]:
        """The nodes that dequantise weights by a scale and a zero point of any shape, as the value `real`."""
        weights, *parameters = stored
        nodes, inputs = [], [weights]
        for name in parameters:
            if name:
                flat = f"{real}.{'scale' if name == stored[1] else 'zero'}"
                nodes.append(helper.make_node("Reshape", [name, _FLAT_NAME], [flat], flat))
                inputs.append(flat)
        nodes.append(helper.make_node("DequantizeLinear", inputs, [real], real, axis=axis))
        return nodes


def _without_unread(graph: GraphProto, nodes: list[NodeProto]) -> list[NodeProto]:
    """The nodes, except those that only served the replaced products."""
    read = {value.name for value in graph.output} | {name for node in nodes for name in node.input}
    needed = [it for it in nodes if it.op_type not in _REMOVABLE or not read.isdisjoint(it.output)]
    return needed if len(needed) == len(nodes) else _without_unread(graph, needed)
