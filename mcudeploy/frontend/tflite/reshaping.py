"""Input shapes other than the file's, and the shapes of all values that depend on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

import numpy as np
from onnx import NodeProto, TensorProto, ValueInfoProto, helper, shape_inference

from mcudeploy.frontend.onnx.nodes import Unsupported
from mcudeploy.frontend.onnx.rounding import DOMAIN
from mcudeploy.frontend.onnx.shapes import Shapes
from mcudeploy.frontend.tflite.constant_folding import sliced
from mcudeploy.frontend.tflite.contents import Contents, TfliteOperator, TfliteTensor, names_of

Shape = tuple[int, ...]


def with_shapes(contents: Contents, shapes: Shapes) -> Contents:
    """Set the shapes of inputs, by name, if they have as many dimensions as in the file."""
    names, tensors = names_of(contents), list(contents.tensors)
    for number in contents.inputs:
        wanted = shapes.get(names[number], ())
        if len(wanted) == len(tensors[number].shape):
            tensors[number] = replace(tensors[number], shape=wanted)
    return replace(contents, tensors=tuple(tensors))


def stated_shape(
    operator: TfliteOperator, file: Sequence[TfliteTensor], now: Sequence[TfliteTensor]
) -> Shape | None:
    """The present shape of a result whose translation reads the shape in the file; None for other operators.

    `file` and `now` are the inputs, then the result, with the shapes of the file and the present ones. Raises
    Unsupported if the shape does not follow from the input shapes.
    """
    result = file[-1].shape
    match operator.op:
        case "RESHAPE":
            return _filled(result, now)
        case "SQUEEZE":
            return tuple(now[0].shape[axis] for axis in _remaining_axes(file[0].shape, result))
        case "EXPAND_DIMS":
            shape = list(now[0].shape)
            shape.insert(int(now[1].array()) % len(result), 1)
            return tuple(shape)
        case "FULLY_CONNECTED":
            channels, depth = now[1].shape
            rows = (now[0].elements // depth,) if len(result) == 2 else now[0].shape[:-1]
            return (*rows, channels)
        case "TRANSPOSE_CONV":
            return tuple(int(size) for size in now[0].array().reshape(-1))
        case "MAXIMUM" | "MINIMUM":
            return np.broadcast_shapes(now[0].shape, now[1].shape)
        case "SPACE_TO_BATCH_ND":
            return _in_batches(now)
        case "STRIDED_SLICE" if len(result) != len(file[0].shape):
            limits = [np.asarray(it.array(), np.int64) for it in now[1:4]]
            return sliced(operator, np.broadcast_to(np.int64(0), now[0].shape), limits).shape
        case _:
            return None


def _in_batches(now: Sequence[TfliteTensor]) -> Shape:
    """The shape of the result of SPACE_TO_BATCH_ND."""
    (batch, *sizes), block = now[0].shape, now[1].array().reshape(-1).tolist()
    pads = now[2].array().reshape(-1, 2).sum(axis=1).tolist()
    spatial = [(size + pad) // each for size, pad, each in zip(sizes, pads, block, strict=False)]
    return (batch * prod(block), *spatial, *sizes[len(block) :])


def _filled(result: Shape, now: Sequence[TfliteTensor]) -> Shape:
    """The shape of the result of RESHAPE, one of whose sizes may be -1."""
    sizes = list(result)
    if len(now) == 3 and now[1].data is not None:
        sizes = [int(size) for size in now[1].array().reshape(-1)]
    if sizes.count(-1) == 1:
        sizes[sizes.index(-1)] = now[0].elements // max(1, -prod(sizes))
    if prod(sizes) != now[0].elements:
        raise Unsupported(
            f"with --shape, {list(now[0].shape)} cannot become {sizes}, which the file states: convert the "
            "model with an input signature of that shape"
        )
    return tuple(sizes)


def _remaining_axes(shape: Shape, squeezed: Shape) -> list[int]:
    """The axes of `shape` that remain in `squeezed`."""
    axes, left = [], list(squeezed)
    for axis, size in enumerate(shape):
        if left and size == left[0] and (size != 1 or len(shape) - axis == len(left)):
            axes.append(axis)
            left.pop(0)
    if left:
        raise Unsupported(f"{list(shape)} cannot become {list(squeezed)}")
    return axes


def infer(
    nodes: Sequence[NodeProto],
    constants: Mapping[str, TensorProto],
    infos: dict[str, ValueInfoProto],
    opset: int,
) -> None:
    """Infer the results of nodes, and add them to `infos`. Raises Unsupported if operands do not fit."""
    if any(node.domain == DOMAIN for node in nodes):
        raise Unsupported("with --shape, operators that keep a state are not supported")
    read = {name for node in nodes for name in node.input if name}
    results = [name for node in nodes for name in node.output]
    outputs = [helper.make_empty_tensor_value_info(name) for name in results]
    graph = helper.make_graph(
        nodes,
        "operator",
        [infos[name] for name in read if name in infos],
        outputs,
        [constants[name] for name in read if name in constants],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    try:
        inferred = shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    except (shape_inference.InferenceError, ValueError, RuntimeError) as fault:
        raise Unsupported(f"with --shape, its operands do not fit: {fault}") from fault
    infos |= {value.name: value for value in inferred.graph.output}


def shape_in(infos: Mapping[str, ValueInfoProto], name: str) -> Shape:
    """The shape of a value. Raises Unsupported if it is open."""
    sizes = infos[name].type.tensor_type.shape.dim if name in infos else ()
    shape = tuple(size.dim_value for size in sizes)
    if name not in infos or not infos[name].type.tensor_type.HasField("shape") or not all(shape):
        raise Unsupported("with --shape, the shape of its result does not follow from those of its inputs")
    return shape
