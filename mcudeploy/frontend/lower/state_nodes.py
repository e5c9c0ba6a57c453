"""Nodes that read or replace named states: Load, Queue, Write and SVDF."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

import numpy as np

from mcudeploy.frontend.lower.builder import Builder, Lowering
from mcudeploy.frontend.lower.inputs import by_time, state_input, stored_quantization
from mcudeploy.frontend.onnx.nodes import Node, Unsupported
from mcudeploy.frontend.onnx.quantization import activation_parameters
from mcudeploy.frontend.onnx.values import IndexArray, OnnxValue, natural_shape, positions
from mcudeploy.ir.graph import DType, Quantization, Shape, Tensor
from mcudeploy.ir.opdef import ConstantArray, OperatorDef
from mcudeploy.ops.matrix.svdf import Svdf
from mcudeploy.ops.move.move import Slice
from mcudeploy.ops.move.queue import Queue
from mcudeploy.ops.move.write_rows import WriteRows

_NOT_A_STATE = "its state is not kept between runs"


def load(builder: Builder, node: Node) -> None:
    """Lower Load, which reads a copy of a state: the run may replace the state before the copy is read."""
    name = node.inputs[0]
    shape = _shape(builder, name)
    stored = (1, shape[0], prod(shape[1:]))
    state = state_input(builder, name, stored, stored_quantization(builder, node.output))
    if state is None:
        raise Unsupported(_NOT_A_STATE)
    source = builder.tensors[state]
    op = Slice((0, 0, 0), (1, 1, 1), stored)
    copy = builder.emit(op, (state,), stored, source.dtype, source.quantization, nodes=(node,))
    real = builder.model.dtype_of(name) == "float32"
    builder.define(node.output, OnnxValue(copy, positions(shape), real, quantization=source.quantization))


def queue(builder: Builder, node: Node) -> None:
    """Lower Queue, which appends the newest rows to a state, along an axis that is stored as rows."""
    name = node.inputs[1]
    value = builder.as_tensor(node.inputs[0])
    newest = by_time(builder, node, value.index)
    x = builder.arranged(value.tensor, newest.reshape(1, len(newest), -1), (node,))
    shape = _shape(builder, name)
    order = by_time(builder, node, positions(shape))
    index = np.argsort(order, axis=None).astype(np.int32).reshape(shape)
    length, *others = order.shape
    stored = (1, length, prod(others))
    queue_tensor, state = _emit_on_state(builder, node, Queue(), (x,), stored, index=index)
    rows = builder.viewed(queue_tensor, (length, prod(others[:-1]), others[-1] if others else 1))
    builder.define(node.output, OnnxValue(rows, index, value.real, quantization=state.quantization))


def write(builder: Builder, node: Node) -> None:
    """Lower Write, which puts rows at constant or computed positions of a state, along any axis."""
    name, axis = node.inputs[1], node.integer("axis", 0)
    value, known = builder.as_tensor(node.inputs[0]), builder.constants.get(node.inputs[2])
    shape = _shape(builder, name)
    outer, inner = prod(shape[:axis]), prod(shape[axis + 1 :])
    count = value.shape[axis]
    computed, constants = tuple[str, ...](), dict[str, ConstantArray]()
    if known is not None:
        constants["positions"] = known.value.astype(np.int32).reshape(-1)
    else:
        places = builder.value(node.inputs[2])
        computed = (builder.arranged(places.tensor, places.index.reshape(1, 1, count), (node,)),)
    x = builder.arranged(value.tensor, value.index.reshape(1, outer * count, inner), (node,))
    stored = (1, shape[0], prod(shape[1:]))
    op = WriteRows(outer, shape[axis], known is not None)
    tensor, state = _emit_on_state(builder, node, op, (*computed, x), stored, constants=constants)
    rows = builder.viewed(tensor, natural_shape(shape))
    builder.define(
        node.output, OnnxValue(rows, positions(shape), value.real, quantization=state.quantization)
    )


def _emit_on_state(
    builder: Builder,
    node: Node,
    op: OperatorDef,
    inputs: tuple[str, ...],
    stored: Shape,
    *,
    index: IndexArray | None = None,
    constants: Mapping[str, ConstantArray] | None = None,
) -> tuple[str, Tensor]:
    """Emit an operator on `inputs` and a state; return the tensor that replaces the state, and the state.

    The last of the inputs has the newest rows, whose quantisation a state of int8 takes.
    """
    *first, x = inputs
    name, quantization = node.inputs[1], builder.tensors[x].quantization
    state = builder.contents.get(name) or state_input(builder, name, stored, quantization, index)
    if state is None:
        raise Unsupported(_NOT_A_STATE)
    stored_state = builder.tensors[state]
    if stored_state.quantization is not None:
        x = builder.reinterpreted(x, stored_state.quantization)
    tensor = builder.emit(
        op,
        (*first, x, state),
        stored,
        stored_state.dtype,
        stored_state.quantization,
        constants=constants,
        nodes=(node,),
    )
    replace_state(builder, state, tensor, node.output)
    return tensor, stored_state


def replace_state(builder: Builder, state_tensor: str, following: str, value: str) -> None:
    """Make the tensor `following`, the ONNX value `value`, the next content of a state.

    It takes over the memory of the present content, the tensor `state_tensor`.
    """
    builder.contents[value] = following
    for at, state in enumerate(builder.states):
        if state_tensor in (state.tensor, state.after.tensor):
            through = (*state.through, state_tensor) if state_tensor != state.tensor else ()
            after = replace(state.after, tensor=following)
            builder.states[at] = replace(state, after=after, through=through)


def _shape(builder: Builder, name: str) -> tuple[int, ...]:
    """The shape of a state."""
    info = builder.model.infos.get(name)
    if info is None or info.shape is None:
        raise Unsupported(_NOT_A_STATE)
    return info.shape


def svdf(builder: Builder, node: Node) -> None:
    """Lower the float SVDF, whose operands are the newest values, the state, weights and bias."""
    weights, bias = (builder.constant(node.inputs[at], "its weights").value for at in (2, 3))
    constants = {"weights": weights.astype(np.float32), "bias": bias.astype(np.float32)}
    _emit_svdf(builder, node, builder.real(node.inputs[0]), constants, None)


def quantized_svdf(builder: Builder, node: Node) -> None:
    """Lower the int8 SVDF.

    The operands are the newest values, the state, the weights, the bias. Scale and zero point follow the
    state and the weights, a scale follows the bias. Scale and zero point of the result come last.
    """
    weights, scale, bias = (builder.constant(node.inputs[at], "its weights").value for at in (4, 5, 7))
    constants: dict[str, ConstantArray] = {
        "weights": weights.astype(np.int8),
        "bias": bias.astype(np.int32),
        "weight_scale": scale.astype(np.float32).reshape(1),
    }
    of_state, of_result = (
        activation_parameters(builder.constants, replace(node, inputs=node.inputs[at : at + 3]), "int8")
        for at in (1, 8)
    )
    _emit_svdf(builder, node, builder.integers(node.inputs[0]), constants, (of_state, of_result))


def _emit_svdf(
    builder: Builder,
    node: Node,
    newest: OnnxValue,
    constants: Mapping[str, ConstantArray],
    quantizations: tuple[Quantization, Quantization] | None,
) -> None:
    """Emit SVDF. `quantizations`: those of the state and of the result, None for floats."""
    filters, memory = constants["weights"].shape
    units = constants["bias"].size
    of_state, of_result = quantizations or (None, None)
    x = builder.arranged(newest.tensor, newest.index.reshape(1, 1, filters))
    state = state_input(builder, node.inputs[1], (1, filters, memory), of_state)
    if state is None:
        raise Unsupported(_NOT_A_STATE)
    dtype = DType.FLOAT32 if of_result is None else DType.INT8
    op = Svdf(units)
    tensor = builder.emit(op, (x, state), (1, 1, units), dtype, of_result, constants=constants, nodes=(node,))
    index = np.arange(units, dtype=np.int32).reshape(1, units)
    builder.define(node.output, OnnxValue(tensor, index, real=of_result is None, quantization=of_result))


PRIVATE: dict[str, Lowering] = {
    "Load": load,
    "QuantizedSVDF": quantized_svdf,
    "Queue": queue,
    "SVDF": svdf,
    "Write": write,
}
