"""Lowering of signal operators: each node is one operator on a vector, or on rows of samples."""

from __future__ import annotations

import numpy as np

from mcudeploy.extensions.audio.filter_bank import (
    FilterBankLog,
    FilterBankRoot,
    NoiseEstimate,
    NoiseSubtract,
    Pcan,
    Smoothing,
)
from mcudeploy.extensions.audio.fourier import RealFft
from mcudeploy.extensions.audio.signal import (
    OverlapAdd,
    RunCount,
    SignalEnergy,
    SignalHeadroom,
    SignalShift,
    SignalStack,
    SignalWindow,
)
from mcudeploy.frontend.lower.builder import Builder, Lowering
from mcudeploy.frontend.lower.inputs import state_input
from mcudeploy.frontend.lower.state_nodes import replace_state
from mcudeploy.frontend.onnx.nodes import Node, Unsupported
from mcudeploy.frontend.onnx.quantization import TRUTH
from mcudeploy.frontend.onnx.values import OnnxValue, positions
from mcudeploy.ir.graph import DType, Shape
from mcudeploy.ir.opdef import ConstantArray, OperatorDef
from mcudeploy.ops.requantize import dequantize_table


def _window(builder: Builder, node: Node) -> None:
    weights = _constant(builder, node.inputs[1], np.int16)
    x = _tensor(builder, node.inputs[0], (-1, 1, weights.size), node)
    op = SignalWindow(node.integer("shift", 0))
    _define(builder, node, op, (x,), DType.INT16, weights=weights)


def _headroom(builder: Builder, node: Node) -> None:
    _define(builder, node, SignalHeadroom(), (_vector(builder, node, 0),), DType.INT32)


def _shift(builder: Builder, node: Node) -> None:
    inputs = _vector(builder, node, 0), _vector(builder, node, 1)
    _define(builder, node, SignalShift(), inputs, DType.INT16)


def _fourier(builder: Builder, node: Node) -> None:
    count = builder.value(node.inputs[0]).shape[-1]
    x = _tensor(builder, node.inputs[0], (-1, 1, count), node)
    op = RealFft(node.integer("length", 0), node.integer("inverse", 0) != 0)
    _define(builder, node, op, (x,), builder.tensors[x].dtype)


def _energy(builder: Builder, node: Node) -> None:
    op = SignalEnergy(node.integer("first", 0), node.integer("end", 0))
    _define(builder, node, op, (_vector(builder, node, 0),), DType.INT32)


def _filter_bank_root(builder: Builder, node: Node) -> None:
    names = dict(zip(("weights", "rest", "points", "places", "widths"), node.inputs[2:], strict=True))
    constants = {
        label: _constant(builder, name, np.int16 if label in ("weights", "rest") else np.uint16)
        for label, name in names.items()
    }
    inputs = _vector(builder, node, 0), _vector(builder, node, 1)
    op = FilterBankRoot(node.integer("channels", 0))
    _define(builder, node, op, inputs, DType.INT32, **constants)


def _noise_estimate(builder: Builder, node: Node) -> None:
    factors = node.integers("factors") or ()
    op = NoiseEstimate(
        node.integer("scale_bits", 0),
        node.integer("bits", 0),
        Smoothing(factors[0], factors[1]),
        Smoothing(factors[2], factors[3]),
        factors[4] != 0,
    )
    x = _vector(builder, node, 0)
    state = builder.contents.get(node.inputs[1]) or _state(builder, node.inputs[1], builder.shape_of(x))
    after = _define(builder, node, op, (x, state), DType.INT32)
    replace_state(builder, state, after, node.output)


def _noise_subtract(builder: Builder, node: Node) -> None:
    op = NoiseSubtract(*(node.integer(name, 0) for name in ("scale_bits", "least", "bits")))
    inputs = _vector(builder, node, 0), _vector(builder, node, 1)
    _define(builder, node, op, inputs, DType.INT32)


def _pcan(builder: Builder, node: Node) -> None:
    inputs = _vector(builder, node, 0), _vector(builder, node, 1)
    constants = {"gains": _constant(builder, node.inputs[2], np.int16)}
    _define(builder, node, Pcan(node.integer("shift", 0)), inputs, DType.INT32, **constants)


def _log(builder: Builder, node: Node) -> None:
    op = FilterBankLog(node.integer("shift", 0), node.integer("scale", 0))
    _define(builder, node, op, (_vector(builder, node, 0),), DType.INT16)


def _run_count(builder: Builder, node: Node) -> None:
    op = RunCount(node.integer("first", 0), node.integer("period", 1))
    state = _state(builder, node.inputs[0], (1, 1, 1))
    flags = builder.emit(op, (state,), (1, 1, 2), DType.INT8, TRUTH, nodes=(node,))
    builder.define(node.output, OnnxValue(flags, positions((2,)), True, dequantize_table(TRUTH), TRUTH))


def _stack(builder: Builder, node: Node) -> None:
    x, flags = _vector(builder, node, 0), builder.value(node.inputs[2]).tensor
    channels = builder.shape_of(x)[2]
    state = _state(builder, node.inputs[1], (1, node.integer("frames", 1), channels))
    after = _define(builder, node, SignalStack(), (x, state, flags), DType.INT16)
    replace_state(builder, state, after, node.output)


def _overlap_add(builder: Builder, node: Node) -> None:
    frames, size = builder.value(node.inputs[0]).shape[-2:]
    x = _tensor(builder, node.inputs[0], (1, frames, size), node)
    state = _state(builder, node.inputs[1], (1, 1, size))
    op = OverlapAdd(node.integer("step", 1))
    _define(builder, node, op, (x, state), builder.tensors[x].dtype)


def dft(builder: Builder, node: Node) -> None:
    """Lower a DFT of real numbers to one side of their spectrum; `signal_rules` has replaced all others."""
    value = builder.real(node.inputs[0])
    rank, axis = value.index.ndim, node.integer("axis", 1)
    if builder.model.opset >= 20:
        axis = int(builder.constant(node.input(2), "the axis").value.reshape(())) if node.input(2) else -2
    axis %= rank
    moved = np.moveaxis(value.index, axis, -2)[..., 0]
    length = moved.shape[-1]
    if node.input(1):
        length = int(builder.constant(node.input(1), "the length").value.reshape(()))
    x = builder.arranged(value.tensor, moved.reshape(-1, 1, moved.shape[-1]), (node,))
    op = RealFft(length)
    out_shape = builder.output_shape(op, (x,))
    tensor = builder.emit(op, (x,), out_shape, DType.FLOAT32, nodes=(node,))
    index = positions((*moved.shape[:-1], length // 2 + 1, 2))
    builder.define(node.output, OnnxValue(tensor, np.moveaxis(index, -2, axis), real=True))


LOWERINGS: dict[str, dict[str, Lowering]] = {
    "": {"DFT": dft},
    "tflite": {
        "FilterBankLog": _log,
        "FilterBankRoot": _filter_bank_root,
        "NoiseEstimate": _noise_estimate,
        "NoiseSubtract": _noise_subtract,
        "OverlapAdd": _overlap_add,
        "Pcan": _pcan,
        "RealFft": _fourier,
        "RunCount": _run_count,
        "SignalEnergy": _energy,
        "SignalHeadroom": _headroom,
        "SignalShift": _shift,
        "SignalStack": _stack,
        "SignalWindow": _window,
    },
}
"""Lowering functions by domain and operator; frontend/tflite writes the operators of "tflite"."""


def _vector(builder: Builder, node: Node, position: int) -> str:
    """The tensor of an input, as (1, 1, count) in the order of its elements."""
    return _tensor(builder, node.inputs[position], (1, 1, -1), node)


def _tensor(builder: Builder, name: str, shape: tuple[int, ...], node: Node) -> str:
    value = builder.as_tensor(name)
    return builder.arranged(value.tensor, value.index.reshape(shape), (node,))


def _constant(builder: Builder, name: str, dtype: type[np.int16 | np.uint16]) -> ConstantArray:
    array = builder.constant(name, "its tables").value.reshape(-1)
    return array.astype(np.int16) if dtype is np.int16 else array.astype(np.uint16)


def _state(builder: Builder, name: str, shape: Shape) -> str:
    state = state_input(builder, name, shape)
    if state is None:
        raise Unsupported("its state is not kept between runs, or another operator replaces it before")
    return state


def _define(
    builder: Builder,
    node: Node,
    op: OperatorDef,
    inputs: tuple[str, ...],
    dtype: DType,
    **constants: ConstantArray,
) -> str:
    """Emit the operator, and define its result as the node's first output, in row-major order."""
    out_shape = builder.output_shape(op, inputs)
    tensor = builder.emit(op, inputs, out_shape, dtype, constants=constants, nodes=(node,))
    info = builder.model.infos.get(node.output)
    shape = info.shape if info is not None and info.shape is not None else out_shape
    builder.define(node.output, OnnxValue(tensor, positions(shape), dtype is DType.FLOAT32))
    return tensor
