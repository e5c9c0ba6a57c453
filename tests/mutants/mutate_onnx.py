"""Mutations of ONNX models that keep them valid protobuf: any field of any message, and parts of models."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from mutate_values import FLOATS, INTEGERS, TEXTS
from onnx import helper, numpy_helper

OPERATORS = (
    "Add", "AveragePool", "BatchNormalization", "Cast", "Clip", "Concat", "Constant", "ConstantOfShape",
    "Conv", "DequantizeLinear", "Div", "Dropout", "Expand", "Flatten", "Gather", "Gemm", "GlobalAveragePool",
    "GlobalMaxPool", "HardSigmoid", "HardSwish", "Identity", "If", "LayerNormalization", "LeakyRelu", "Loop",
    "MatMul", "MaxPool", "Mul", "Pad", "QLinearConv", "QuantizeLinear", "Range", "ReduceMean", "Relu",
    "Reshape", "Resize", "Shape", "Sigmoid", "Slice", "Softmax", "Split", "Squeeze", "Sub", "Tanh", "Tile",
    "Transpose", "Unsqueeze", "Where",
)  # fmt: skip
ATTRIBUTES = (
    "axis", "axes", "perm", "pads", "strides", "dilations", "kernel_shape", "group", "auto_pad", "ceil_mode",
    "count_include_pad", "keepdims", "mode", "to", "transB", "alpha", "beta", "epsilon", "num_outputs",
    "value", "coordinate_transformation_mode", "nearest_mode", "allowzero", "block_size",
)  # fmt: skip


def mutated_model(content: bytes, source: random.Random) -> bytes:
    """One to four mutations; most mutants lose their stored shapes, which then follow the change."""
    model = onnx.load_from_string(content)
    for _ in range(source.choice((1, 1, 2, 4))):
        try:
            source.choice(_MUTATIONS)(model, source)
        except (LookupError, TypeError, ValueError, onnx.checker.ValidationError):
            continue  # there is no such place, or protobuf does not take the value
    if source.random() < 0.7:
        _infer(model)
    return bytes(model.SerializeToString())


def _infer(model: onnx.ModelProto) -> None:
    """Remove all shapes but the inputs', and infer the outputs' again if ONNX can."""
    del model.graph.value_info[:]
    for output in model.graph.output:
        output.ClearField("type")
    with suppress(onnx.shape_inference.InferenceError, RuntimeError, ValueError):
        inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
        for output, known in zip(model.graph.output, inferred.graph.output, strict=True):
            output.CopyFrom(known)


def _messages(root: Message) -> Iterator[Message]:
    waiting = [root]
    while waiting:
        message = waiting.pop()
        yield message
        for field, value in message.ListFields():
            if field.type == FieldDescriptor.TYPE_MESSAGE:
                waiting += list(value) if _repeated(field) else [value]


def _repeated(field: FieldDescriptor) -> bool:
    return bool(field.label == FieldDescriptor.LABEL_REPEATED)


def _any_field(model: onnx.ModelProto, source: random.Random) -> None:
    message = source.choice(list(_messages(model)))
    field = source.choice(message.DESCRIPTOR.fields)
    name = field.name
    if _repeated(field):
        _shuffle(getattr(message, name), field, source)
    elif field.type == FieldDescriptor.TYPE_MESSAGE or source.random() < 0.2:
        message.ClearField(name)
    else:
        setattr(message, name, _scalar(field, getattr(message, name), source))


def _shuffle(items: Any, field: FieldDescriptor, source: random.Random) -> None:
    at = source.randrange(len(items))
    match source.randrange(5):
        case 0:
            del items[at]
        case 1:
            items.append(items[at])
        case 2:
            kept = list(items)
            source.shuffle(kept)
            del items[:]
            items.extend(kept)
        case 3:
            del items[:]
        case _ if field.type != FieldDescriptor.TYPE_MESSAGE:
            items[at] = _scalar(field, items[at], source)


def _scalar(field: FieldDescriptor, value: Any, source: random.Random) -> Any:
    if isinstance(value, bytes):
        return source.choice((value[:-1], value + b"\xff", b"", b"\xfe\x80", value * 2))
    if isinstance(value, str):
        return source.choice((*TEXTS[:-1], value + "x"))
    if isinstance(value, float):
        return source.choice(FLOATS)
    if field.type == FieldDescriptor.TYPE_ENUM:
        return source.choice(list(field.enum_type.values_by_number))
    return source.choice((value + 1, value - 1, -value, source.choice(INTEGERS)))


def _operator(model: onnx.ModelProto, source: random.Random) -> None:
    source.choice(model.graph.node).op_type = source.choice(OPERATORS)


def _wiring(model: onnx.ModelProto, source: random.Random) -> None:
    graph = model.graph
    names = [name for node in graph.node for name in (*node.input, *node.output)]
    node = source.choice(graph.node)
    slots = source.choice((node.input, node.input, node.output))
    match source.randrange(4):
        case 0:
            slots.append(source.choice(names))
        case 1:
            del slots[source.randrange(len(slots))]
        case 2:
            slots[source.randrange(len(slots))] = ""
        case _:
            slots[source.randrange(len(slots))] = source.choice(names)


def _attribute(model: onnx.ModelProto, source: random.Random) -> None:
    node = source.choice(model.graph.node)
    name = source.choice((*ATTRIBUTES, *(each.name for each in node.attribute)))
    few = [
        source.choice((0, 1, 2, 3, -1, 1, 2, source.choice(INTEGERS[:-3])))
        for _ in range(source.randrange(1, 6))
    ]
    strange = source.choice(FLOATS)
    tensor = numpy_helper.from_array(np.array(few[:2]))
    value = source.choice((few[0], few, few[0] / 3, strange, [strange], source.choice(TEXTS), tensor))
    kept = [each for each in node.attribute if each.name != name]
    del node.attribute[:]
    node.attribute.extend([*kept, helper.make_attribute(name, value)])


def _constant(model: onnx.ModelProto, source: random.Random) -> None:
    """Another value, type or shape of an initializer; small ones (shapes, pads, axes, scales) above all."""
    tensors = sorted(model.graph.initializer, key=lambda each: len(each.raw_data))
    tensor = source.choice(tensors[: max(1, source.choice((len(tensors) // 2, len(tensors))))])
    array = numpy_helper.to_array(tensor).copy()
    match source.randrange(6):
        case 0:
            array = array.reshape(-1)[: source.randrange(array.size + 1)]
        case 1:
            array = np.resize(array, (*array.shape, source.choice((1, 2)))[-source.randrange(1, 6) :])
        case 2:
            array = array.astype(source.choice(("i1", "u1", "i4", "i8", "f4", "f8", "?")))
        case 3:
            array = np.zeros_like(array)
        case _ if array.size:
            real = array.dtype.kind == "f"
            value = np.float64(source.choice(FLOATS)) if real else np.int64(source.choice(INTEGERS[:-3]))
            with np.errstate(all="ignore"):
                array.reshape(-1)[source.randrange(array.size)] = value.astype(array.dtype)
    tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(array), tensor.name))


def _border(model: onnx.ModelProto, source: random.Random) -> None:
    value = source.choice((*model.graph.input, *model.graph.output))
    kind = value.type.tensor_type
    match source.randrange(4):
        case 0:
            kind.elem_type = source.choice(range(24))
        case 1:
            source.choice(kind.shape.dim).dim_param = source.choice(TEXTS[:-1])
        case 2:
            del kind.shape.dim[source.randrange(len(kind.shape.dim))]
        case _:
            source.choice(kind.shape.dim).dim_value = source.choice((1, 2, 3, 7, 64, 1024, *INTEGERS[:-2]))


def _node(model: onnx.ModelProto, source: random.Random) -> None:
    nodes = model.graph.node
    at = source.randrange(len(nodes))
    match source.randrange(3):
        case 0:
            del nodes[at]
        case 1:
            copied = nodes.add()
            copied.CopyFrom(nodes[at])
            copied.output[0] += "_again"
            model.graph.output.add().name = copied.output[0]
        case _:
            other = source.randrange(len(nodes))
            kept = onnx.NodeProto()
            kept.CopyFrom(nodes[at])
            nodes[at].CopyFrom(nodes[other])
            nodes[other].CopyFrom(kept)


def _opset(model: onnx.ModelProto, source: random.Random) -> None:
    model.opset_import[0].version = source.choice((*range(11, 24), 0, -1, 2**40))


_MUTATIONS: tuple[Callable[[onnx.ModelProto, random.Random], None], ...] = (
    _any_field, _any_field, _any_field, _operator, _wiring, _attribute, _attribute, _constant, _constant,
    _border, _node, _opset,
)  # fmt: skip
