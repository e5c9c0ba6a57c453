"""ONNX models in JAX, in float64: the forward part alone, whose gradients are JAX's."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import ModelProto, helper, numpy_helper

# To compile is most of the time: each operator computes once.
os.environ.setdefault(
    "XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
)
jax = pytest.importorskip("jax")
jax.config.update("jax_enable_x64", True)
jnp, nn, lax = jax.numpy, jax.nn, jax.lax

Array = NDArray[Any]
Attributes = dict[str, Any]
Operator = Callable[..., Any]
"""Inputs and, by name, attributes -> the output."""


def loss_and_gradients(
    model: ModelProto, inputs: Mapping[str, Array], target: Array, names: Collection[str]
) -> tuple[float, dict[str, Array]]:
    """The cross-entropy of the logits, and its gradients by these constants of the file."""
    constants = {it.name: numpy_helper.to_array(it) for it in model.graph.initializer}
    trained = {name: constants[name].astype(np.float64) for name in names}

    def loss(parameters: Mapping[str, Any]) -> Any:
        values = {
            **constants,
            **parameters,
            **{name: jnp.asarray(x, jnp.float64) for name, x in inputs.items()},
        }
        return -jnp.sum(nn.log_softmax(logits(model, values).reshape(-1)) * target.reshape(-1))

    value, gradients = jax.value_and_grad(loss)(trained)
    return float(value), {name: np.asarray(array) for name, array in gradients.items()}


def logits(model: ModelProto, values: dict[str, Any]) -> Any:
    """The output before a softmax that ends the model."""
    values[""] = None
    nodes = list(model.graph.node)
    if nodes[-1].op_type == "Softmax":
        nodes.pop()
    for node in nodes:
        attributes = {it.name: helper.get_attribute_value(it) for it in node.attribute}
        inputs = [values[name] for name in node.input]
        values[node.output[0]] = OPERATORS[node.op_type](*inputs, **attributes)
    return values[nodes[-1].output[0]]


def _conv(x: Any, w: Any, b: Any = None, **attributes: Any) -> Any:
    y = lax.conv_general_dilated(
        x,
        w,
        attributes.get("strides", [1, 1]),
        _pairs(attributes),
        rhs_dilation=attributes.get("dilations", [1, 1]),
        feature_group_count=attributes.get("group", 1),
    )
    return y if b is None else y + b.reshape(1, -1, 1, 1)


def _pairs(attributes: Attributes) -> list[tuple[int, int]]:
    """(before, after) of rows and columns."""
    top, left, bottom, right = attributes.get("pads", [0, 0, 0, 0])
    return [(top, bottom), (left, right)]


def _windows(x: Any, attributes: Attributes) -> dict[str, Any]:
    """The windows of a pool; with ceil_mode, pads reach to the end of the last one."""
    kernel, pairs = attributes["kernel_shape"], _pairs(attributes)
    strides = attributes.get("strides", [1, 1])
    if attributes.get("ceil_mode"):
        for at, size in enumerate(x.shape[2:]):
            before, after = pairs[at]
            pairs[at] = before, after + -(size + before + after - kernel[at]) % strides[at]
    return {
        "window_dimensions": (1, 1, *kernel),
        "window_strides": (1, 1, *strides),
        "padding": [(0, 0), (0, 0), *pairs],
    }


def _max_pool(x: Any, **attributes: Any) -> Any:
    return lax.reduce_window(x, -jnp.inf, lax.max, **_windows(x, attributes))


def _average_pool(x: Any, **attributes: Any) -> Any:
    windows = _windows(x, attributes)
    total = lax.reduce_window(x, 0.0, lax.add, **windows)
    if attributes.get("count_include_pad"):
        return total / np.prod(attributes["kernel_shape"])
    return total / lax.reduce_window(jnp.ones_like(x), 0.0, lax.add, **windows)


def _slice(x: Any, starts: Array, ends: Array, axes: Array) -> Any:
    for start, end, axis in zip(starts.tolist(), ends.tolist(), axes.tolist(), strict=True):
        x = lax.slice_in_dim(x, start, min(end, x.shape[axis]), axis=axis)
    return x


def _pad(x: Any, pads: Array, value: Any = None) -> Any:
    before, after = pads.reshape(2, -1).tolist()
    return jnp.pad(x, list(zip(before, after, strict=True)), constant_values=0 if value is None else value)


def _resize(x: Any, _: Any, scales: Any, sizes: Any = None, **attributes: Any) -> Any:
    if attributes["mode"] == b"linear":
        return jax.image.resize(x, sizes.tolist(), "linear", antialias=False)
    for axis, scale in enumerate(np.asarray(scales).tolist()):
        x = jnp.repeat(x, int(scale), axis=axis)
    return x


def _gemm(x: Any, w: Any, b: Any, **attributes: Any) -> Any:
    return x @ (w.T if attributes.get("transB") else w) + b


OPERATORS: dict[str, Operator] = {
    "Abs": jnp.abs,
    "Add": jnp.add,
    "AveragePool": _average_pool,
    "Celu": lambda x, alpha=1.0: nn.celu(x, alpha),
    "Clip": jnp.clip,
    "Concat": lambda *inputs, axis: jnp.concatenate(inputs, axis),
    "Conv": _conv,
    "Div": jnp.divide,
    "Elu": lambda x, alpha=1.0: nn.elu(x, alpha),
    "Erf": lax.erf,
    "Exp": jnp.exp,
    "Flatten": lambda x: x.reshape(x.shape[0], -1),
    "Gelu": lambda x, approximate=b"none": nn.gelu(x, approximate=approximate == b"tanh"),
    "Gemm": _gemm,
    "GlobalAveragePool": lambda x: x.mean((2, 3), keepdims=True),
    "GlobalMaxPool": lambda x: x.max((2, 3), keepdims=True),
    "HardSigmoid": lambda x, alpha=0.2, beta=0.5: jnp.clip(alpha * x + beta, 0, 1),
    "HardSwish": nn.hard_swish,
    "LeakyRelu": lambda x, alpha=0.01: nn.leaky_relu(x, alpha),
    "MatMul": jnp.matmul,
    "MaxPool": _max_pool,
    "Mul": jnp.multiply,
    "Neg": jnp.negative,
    "Pad": _pad,
    "Pow": jnp.power,
    "PRelu": lambda x, slope: jnp.where(x > 0, x, slope * x),
    "ReduceMax": lambda x, axes, keepdims: x.max(tuple(axes), keepdims=bool(keepdims)),
    "ReduceMean": lambda x, axes, keepdims: x.mean(tuple(axes), keepdims=bool(keepdims)),
    "ReduceSum": lambda x, axes, keepdims: x.sum(tuple(axes.tolist()), keepdims=bool(keepdims)),
    "Relu": nn.relu,
    "Reshape": lambda x, sizes: x.reshape(sizes.tolist()),
    "Resize": _resize,
    "Selu": nn.selu,
    "Sigmoid": nn.sigmoid,
    "Slice": _slice,
    "Softmax": lambda x, axis=-1: nn.softmax(x, axis),
    "Softplus": nn.softplus,
    "Sub": jnp.subtract,
    "Swish": lambda x, alpha=1.0: x * nn.sigmoid(alpha * x),
    "Tanh": jnp.tanh,
    "Transpose": lambda x, perm: x.transpose(perm),
}
