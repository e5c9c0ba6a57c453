"""Lowering of the LSTM in integers."""

from __future__ import annotations

import numpy as np

from mcudeploy.extensions.int16.int16 import TwiceScale
from mcudeploy.extensions.int16.lstm_int8 import LstmInt8
from mcudeploy.extensions.int16.lstm_int16 import LstmInt16
from mcudeploy.frontend.lower.builder import Builder
from mcudeploy.frontend.lower.inputs import state_input
from mcudeploy.frontend.onnx.nodes import Node
from mcudeploy.frontend.onnx.values import OnnxValue, positions
from mcudeploy.ir.graph import Quantization
from mcudeploy.ir.opdef import ConstantArray


def integer_lstm(builder: Builder, node: Node) -> None:
    """Lower the LSTM of int8 or int16 of .tflite files."""
    value = builder.integers(node.inputs[0])
    steps, depth = value.index.shape
    source = builder.arranged(value.tensor, value.index.reshape(1, steps, depth))
    op = _integer_lstm(node)
    dtype = builder.tensors[source].dtype
    quantization = Quantization(1.0, op.zero_points[1]) if isinstance(op, LstmInt8) else None
    states = [
        state_input(builder, name, (1, 1, op.hidden), meaning)
        for name, meaning in zip(node.inputs[4:6], (quantization, None), strict=True)
    ]
    weights, recurrent, bias = (builder.constant(name, "its weights").value for name in node.inputs[1:4])
    constants: dict[str, ConstantArray] = {
        "weights": weights.astype(np.int8),
        "recurrent": recurrent.astype(np.int8),
        "bias": bias.astype(np.int32),
    }
    inputs = [source, *(state for state in states if state is not None)]
    shape = (1, steps, op.hidden)
    tensor = builder.emit(op, inputs, shape, dtype, quantization, constants=constants, nodes=(node,))
    index = positions((steps, op.hidden))
    builder.define(node.output, OnnxValue(tensor, index, real=False, quantization=quantization))


def _integer_lstm(node: Node) -> LstmInt8 | LstmInt16:
    """The operator that the facts of the node state."""
    hidden, cell_bits, clip = (node.integer(name, 0) for name in ("hidden", "cell_bits", "clip"))
    multipliers, shifts = node.integers("multipliers") or (), node.integers("shifts") or ()
    result = TwiceScale(*(node.integers("result") or (0, 0)))
    if node.op == "LstmInt16":
        left_shift = node.integer("left_shift", 0)
        return LstmInt16(hidden, multipliers, shifts, left_shift, result, cell_bits, clip)
    scales = tuple(TwiceScale(*each) for each in zip(multipliers, shifts, strict=True))
    before, after = node.integers("zero_points") or (0, 0)
    return LstmInt8(hidden, scales, result, node.integer("zero_point", 0), (before, after), cell_bits, clip)
