"""Classes in files of scikit-learn: names become numbers, and maps of probabilities become tensors.

By default skl2onnx writes labels as texts, and probabilities as a sequence of maps (ZipMap). A program has
neither: its label is the index of the class, its probabilities are a row.
"""

from __future__ import annotations

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from mcudeploy.common.text import printable
from mcudeploy.frontend.onnx.protos import ONNX_DOMAINS, refill

ML_DOMAIN = "ai.onnx.ml"
"""The domain of classical machine learning, as skl2onnx writes it."""

_NUMBERS = {
    "LinearClassifier": "classlabels_ints",
    "SVMClassifier": "classlabels_ints",
    "TreeEnsembleClassifier": "classlabels_int64s",
}
"""The attribute of integer labels, by classifier."""
_INTEGERS = (TensorProto.INT32, TensorProto.INT64)
_OF_FLOATS = (*_NUMBERS, "LinearRegressor", "Scaler", "SVMRegressor", "TreeEnsembleRegressor")
"""Operators that compute with float32."""
_MOST_NAMES = 8


def with_numbers(proto: ModelProto) -> tuple[str, ...]:
    """Change the model in place; return notes that state the order of the classes.

    Texts that are not labels stay; the check of the file refuses them.
    """
    graph = proto.graph
    if ML_DOMAIN not in {entry.domain for entry in proto.opset_import}:
        return ()
    _convert_integers(graph)
    labels = _number_labels(graph)
    names = _replace_maps(graph) or labels
    if not names:
        return ()
    shown = ", ".join(f"{at} {printable(name)}" for at, name in enumerate(names[:_MOST_NAMES]))
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return (f"classes are in the order of the file: {shown}{more}",)


def _convert_integers(graph: GraphProto) -> None:
    """Convert integer inputs of the graph to float32 for operators of the domain that need it."""
    integers = {it.name for it in graph.input if it.type.tensor_type.elem_type in _INTEGERS}
    nodes: list[NodeProto] = []
    converted: set[str] = set()
    for number, node in enumerate(graph.node):
        if (
            node.domain == ML_DOMAIN
            and node.op_type in _OF_FLOATS
            and node.input
            and node.input[0] in integers
        ):
            name = f"{node.input[0]}/float32"
            if name not in converted:
                nodes.append(
                    helper.make_node("Cast", node.input[:1], [name], f"{name} {number}", to=TensorProto.FLOAT)
                )
                converted.add(name)
            node.input[0] = name
        nodes.append(node)
    if converted:
        refill(graph.node, nodes)


def _replace_maps(graph: GraphProto) -> tuple[str, ...]:
    """Replace ZipMaps that are outputs; return the names of their classes."""
    outputs = {value.name: value for value in graph.output}
    names: tuple[str, ...] = ()
    for node in graph.node:
        is_map = node.op_type == "ZipMap" and node.domain == ML_DOMAIN and len(node.output) == 1
        if not is_map or node.output[0] not in outputs:
            continue
        name = node.output[0]
        texts = [_decoded(text) for item in node.attribute for text in item.strings]
        names = tuple(texts or [str(number) for item in node.attribute for number in item.ints])
        if not names:  # a damaged file
            continue
        node.CopyFrom(helper.make_node("Identity", node.input[:1], [name], node.name))
        outputs[name].CopyFrom(helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, len(names)]))
    return names


def _number_labels(graph: GraphProto) -> tuple[str, ...]:
    """Replace texts as labels by their numbers; return the texts."""
    names: tuple[str, ...] = ()
    extractors = [it for it in graph.node if it.op_type == "ArrayFeatureExtractor" and it.domain == ML_DOMAIN]
    read, labels = {node.input[0] for node in extractors if node.input}, set[str]()
    for tensor in graph.initializer:
        if tensor.data_type == TensorProto.STRING and tensor.name in read:
            names = tuple(map(_decoded, tensor.string_data))
            numbers = numpy_helper.from_array(np.arange(len(names)), tensor.name)
            numbers.dims[:] = tensor.dims
            tensor.CopyFrom(numbers)
            labels.add(tensor.name)
    for node in graph.node:
        first = next(iter(node.input), "")
        if node.domain == ML_DOMAIN and node.op_type in _NUMBERS:
            texts = _number_classes(node)
            names = texts or names
            labels.update(node.output[:1] if texts else ())
        elif first in labels:
            labels.update(node.output)
            if node.op_type == "Cast" and node.domain in ONNX_DOMAINS:
                _cast_to_numbers(node)
    for value in (*graph.output, *graph.value_info):
        if value.name in labels and value.type.tensor_type.elem_type == TensorProto.STRING:
            value.type.tensor_type.elem_type = TensorProto.INT64
    return names


def _cast_to_numbers(node: NodeProto) -> None:
    for item in node.attribute:
        if item.name == "to" and item.i == TensorProto.STRING:
            item.i = TensorProto.INT64


def _number_classes(node: NodeProto) -> tuple[str, ...]:
    """Replace labels of a classifier that are texts by numbers; return the texts, () if there are none."""
    texts = next((item for item in node.attribute if item.name == "classlabels_strings"), None)
    if texts is None or not texts.strings:
        return ()
    names = tuple(map(_decoded, texts.strings))
    others = [item for item in node.attribute if item.name not in (texts.name, _NUMBERS[node.op_type])]
    numbers = helper.make_attribute(_NUMBERS[node.op_type], range(len(names)), attr_type=AttributeProto.INTS)
    refill(node.attribute, (*others, numbers))
    return names


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "replace")
