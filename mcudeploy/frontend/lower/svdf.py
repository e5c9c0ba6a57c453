"""SVDF of .tflite files: the filter over time, after a product that is a separate operator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from mcudeploy.frontend.lower.builder import Builder
from mcudeploy.frontend.lower.inputs import state_input
from mcudeploy.frontend.onnx.nodes import Node, Unsupported
from mcudeploy.frontend.onnx.quantization import activation_parameters
from mcudeploy.frontend.onnx.values import OnnxValue
from mcudeploy.ir.graph import DType, Quantization
from mcudeploy.ir.opdef import ConstantArray
from mcudeploy.ops.svdf import Svdf


def svdf(builder: Builder, node: Node) -> None:
    """Operands of the float form: the newest values, the state, weights and bias."""
    weights, bias = (builder.constant(node.inputs[at], "its weights").value for at in (2, 3))
    constants = {"weights": weights.astype(np.float32), "bias": bias.astype(np.float32)}
    _emit(builder, node, builder.real(node.inputs[0]), constants, None)


def quantized_svdf(builder: Builder, node: Node) -> None:
    """Lower the int8 form. Scale and zero point follow the state and the weights; after them come the bias
    and its scale, and scale and zero point of the result.
    """
    weights, scale, bias = (builder.constant(node.inputs[at], "its weights").value for at in (4, 5, 7))
    constants: dict[str, ConstantArray] = {
        "weights": weights.astype(np.int8),
        "bias": bias.astype(np.int32),
        "weight_scale": scale.astype(np.float32).reshape(1),
    }
    kept, made = (
        activation_parameters(builder.constants, replace(node, inputs=node.inputs[at : at + 3]), "int8")
        for at in (1, 8)
    )
    _emit(builder, node, builder.integers(node.inputs[0]), constants, (kept, made))


def _emit(
    builder: Builder,
    node: Node,
    newest: OnnxValue,
    constants: Mapping[str, ConstantArray],
    quantizations: tuple[Quantization, Quantization] | None,
) -> None:
    """`quantizations` of the state and of the result, None for floats."""
    filters, memory = constants["weights"].shape
    units = constants["bias"].size
    kept, made = quantizations or (None, None)
    x = builder.arranged(newest.tensor, newest.index.reshape(1, 1, filters))
    state = state_input(builder, node.inputs[1], (1, filters, memory), kept)
    if state is None:
        raise Unsupported("its state is not kept between runs")
    dtype = DType.FLOAT32 if made is None else DType.INT8
    op = Svdf(units)
    tensor = builder.emit(op, (x, state), (1, 1, units), dtype, made, constants=constants, nodes=(node,))
    index = np.arange(units, dtype=np.int32).reshape(1, units)
    builder.define(node.output, OnnxValue(tensor, index, real=made is None, quantization=made))
