"""Evaluation of graphs in numpy: an oracle for the front end that needs neither kernels nor a compiler."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.frontend.load import load
from mcudeploy.ir.graph import DType, Graph, Operator, Tensor
from mcudeploy.ops.host_io import from_device, to_device
from mcudeploy.verify.reference import Reference

Array = NDArray[Any]


def kinds(graph: Graph) -> dict[str, int]:
    """Number of operators of each kind."""
    return dict(Counter(operator.op.kind for operator in graph.operators))


def run(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """ONNX outputs by name, for ONNX inputs by name."""
    stored = {
        border.tensor: to_device(border, graph.tensors[border.tensor], inputs[border.name])
        for border in graph.inputs
    }
    for operator in graph.operators:
        made = _evaluate(graph, operator, [stored[name] for name in operator.inputs])
        output = graph.tensors[operator.output]
        assert made.shape == output.shape, operator.name
        assert made.dtype == np.dtype(output.dtype.value), operator.name
        stored[operator.output] = made
    return {
        border.name: from_device(border, graph.tensors[border.tensor], stored[border.tensor])
        for border in graph.outputs
    }


def assert_same(
    path: Path, inputs: Mapping[str, Array], steps: float = 1, *, float_io: bool = False
) -> Graph:
    """Assert that the loaded graph computes what the model does: float32 to 1e-4 of the range, else
    `steps` LSB.
    """
    graph = load(path, float_io)
    found = run(graph, inputs)
    wanted = Reference(path, [border.name for border in graph.outputs]).run(inputs)
    for border in graph.outputs:
        want = wanted[border.name].astype(np.float64)
        assert found[border.name].shape == want.shape
        distance = np.abs(found[border.name].astype(np.float64) - want).max()
        tensor = graph.tensors[border.tensor]
        if tensor.dtype is DType.FLOAT32 and steps == 1:
            share = 1e-3 if border.dtype == "float16" else 1e-4
            assert distance <= share * max(1e-6, np.abs(want).max()), border.name
        else:
            scale = tensor.quantization.scale if tensor.quantization and border.dtype == "float32" else 1
            assert distance <= steps * scale * 1.001, border.name
    for operator in graph.operators:
        if not operator.op.is_view:
            tensors = graph.input_tensors(operator)
            operator.op.kernel(operator, tensors, graph.tensors[operator.output])
    return graph


def _real(array: Array, tensor: Tensor) -> Array:
    if tensor.dtype is DType.FLOAT32:
        return array.astype(np.float64)
    assert tensor.quantization is not None
    return (array.astype(np.float64) - tensor.quantization.zero_point) * tensor.quantization.scale


def _store(values: Array, tensor: Tensor, low: float = -np.inf, high: float = np.inf) -> Array:
    values = np.clip(values, low, high)
    if tensor.dtype is DType.FLOAT32:
        return values.astype(np.float32)
    assert tensor.quantization is not None
    integers = np.rint(values / tensor.quantization.scale) + tensor.quantization.zero_point
    return np.clip(integers, -128, 127).astype(np.int8)


def _evaluate(graph: Graph, operator: Operator, arrays: Sequence[Array]) -> Array:
    tensors, output = graph.input_tensors(operator), graph.tensors[operator.output]
    reals = [_real(array, tensor) for array, tensor in zip(arrays, tensors, strict=True)]
    op: Any = operator.op
    constants = operator.constants
    match op.kind:
        case "Conv2d":
            return _conv(op, reals[0], constants, tensors[0], output)
        case "Affine":
            return _store(reals[0] * constants["factor"] + constants["offset"], output, op.low, op.high)
        case "MaxPool":
            return _windows(op, arrays[0], lambda part, _: part.max(axis=0)).astype(arrays[0].dtype)
        case "AveragePool":
            return _store(_windows(op, reals[0], lambda part, count: part.sum(axis=0) / count), output)
        case "Reduce":
            return _store(getattr(reals[0], op.function)(axis=op.axes, keepdims=True), output)
        case "Softmax":
            grown = np.exp(reals[0] - reals[0].max(axis=op.axis, keepdims=True))
            return _store(grown / grown.sum(axis=op.axis, keepdims=True), output)
        case "Lut":
            return constants["table"][arrays[0].astype(np.int32) + 128]
        case "Unary":
            return _store(_UNARY[op.function](reals[0], op.alpha, op.beta), output)
        case "Binary":
            return _binary(op, reals, constants, output)
        case "Concat" | "ConcatChannels":
            same = [
                array if tensor.quantization == output.quantization else _store(real, output)
                for array, real, tensor in zip(arrays, reals, tensors, strict=True)
            ]
            if op.kind == "Concat":
                return np.concatenate(same, axis=op.axis)
            parts = [array[..., list(some)] for array, some in zip(same, op.channels, strict=True)]
            return np.concatenate(parts, axis=2)
        case "Resize":
            rows = _resampled(reals[0], op.rows, 0)
            return _store(_resampled(rows, op.cols, 1), output)
        case "MatMul":
            return _matmul(op, reals, output)
        case "Quantize" | "Dequantize":
            return _store(reals[0], output)
        case _:
            return _moved(op, arrays[0], output)


def _moved(op: Any, array: Array, output: Tensor) -> Array:
    match op.kind:
        case "Reshape":
            return array.reshape(op.shape)
        case "Transpose":
            return array.reshape(op.dims).transpose(op.perm).reshape(op.out_shape)
        case "Slice":
            for axis in range(3):
                places = op.start[axis] + op.step[axis] * np.arange(op.out_shape[axis])
                array = array.take(places, axis=axis)
            return array
        case "DepthToSpace":
            return array.reshape(-1)[op.positions(array.shape)]
        case "Take":
            return array[np.ix_(op.rows, op.cols, op.channels)]
        case "Gather":
            return array.reshape(-1)[list(op.positions)].reshape(op.out_shape)
        case "Pad":
            value = _store(np.array(op.value), output)
            made = np.full(output.shape, value)
            cut = tuple(
                slice(max(0, -b), n + min(0, a))
                for b, a, n in zip(op.before, op.after, array.shape, strict=True)
            )
            kept = array[cut]
            into = tuple(slice(max(0, b), max(0, b) + n) for b, n in zip(op.before, kept.shape, strict=True))
            made[into] = kept
            return made
    raise AssertionError(op.kind)


def _conv(op: Any, x: Array, constants: Mapping[str, Array], source: Tensor, output: Tensor) -> Array:
    top, left, bottom, right = op.pads
    padded = np.pad(x, ((top, bottom), (left, right), (0, 0)))
    rows, cols = (
        (padded.shape[d] - op.dilation[d] * (op.kernel_shape[d] - 1) - 1) // op.stride[d] + 1 for d in (0, 1)
    )
    each_in, each_out = x.shape[2] // op.groups, op.out_channels // op.groups
    weights = constants["weights"].astype(np.float64)
    bias = constants["bias"].astype(np.float64)
    if "weight_scale" in constants:
        scale = constants["weight_scale"].astype(np.float64)
        weights = weights * scale[:, None, None, None]
        if output.dtype is DType.INT8:
            assert source.quantization is not None
            bias = bias * scale * source.quantization.scale
    grouped = weights.reshape(op.groups, each_out, *op.kernel_shape, each_in)
    total = np.zeros((rows, cols, op.groups, each_out))
    for r in range(op.kernel_shape[0]):
        for s in range(op.kernel_shape[1]):
            part = padded[r * op.dilation[0] :: op.stride[0], s * op.dilation[1] :: op.stride[1]][
                :rows, :cols
            ].reshape(rows, cols, op.groups, each_in)
            total += np.einsum("hwgc,gkc->hwgk", part, grouped[:, :, r, s])
    return _store(total.reshape(rows, cols, -1) + bias, output, op.low, op.high)


def _windows(op: Any, x: Array, reduce: Callable[[Array, int], Array]) -> Array:
    top, left, bottom, right = op.pads
    made = np.zeros((*op.out_size, x.shape[2]))
    for row in range(op.out_size[0]):
        for col in range(op.out_size[1]):
            places = [
                [start * op.stride[d] - op.pads[d] + k * op.dilation[d] for k in range(op.kernel_shape[d])]
                for d, start in ((0, row), (1, col))
            ]
            inside = [[p for p in places[d] if 0 <= p < x.shape[d]] for d in (0, 1)]
            if getattr(op, "count_include_pad", False):
                far = (x.shape[0] + bottom, x.shape[1] + right)
                count = int(np.prod([sum(p < far[d] for p in places[d]) for d in (0, 1)]))
            else:
                count = len(inside[0]) * len(inside[1])
            made[row, col] = reduce(x[np.ix_(*inside)].reshape(-1, x.shape[2]), count)
    assert (top, left) == op.pads[:2]
    return made


def _binary(op: Any, reals: list[Array], constants: Mapping[str, Array], output: Tensor) -> Array:
    if op.constant_operand is not None:
        constant = constants["constant"]
        assert constant.shape == op.constant_shape
        if constant.dtype == np.int8:
            meaning = op.constant_quantization
            constant = (constant.astype(np.float64) - meaning.zero_point) * meaning.scale
        reals.insert(op.constant_operand, constant)
    function = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "max": np.maximum}[
        op.function
    ]
    return _store(function(*reals), output, op.low, op.high)


def _resampled(x: Array, samples: Any, axis: int) -> Array:
    first = np.array(samples.first)
    fraction = np.array(samples.fraction).reshape([-1 if d == axis else 1 for d in range(3)])
    following = np.minimum(first + 1, x.shape[axis] - 1)
    return x.take(first, axis=axis) * (1 - fraction) + x.take(following, axis=axis) * fraction


def _matmul(op: Any, reals: list[Array], output: Tensor) -> Array:
    a, b = reals if op.batched else [np.swapaxes(real, 0, 1) for real in reals]
    product = a @ (np.swapaxes(b, 1, 2) if op.transpose_b else b)
    return _store(product if op.batched else np.swapaxes(product, 0, 1), output)


_UNARY: dict[str, Callable[[Array, float, float], Array]] = {
    "relu": lambda x, alpha, beta: np.maximum(x, 0),
    "clip": np.clip,
    "leaky_relu": lambda x, alpha, beta: np.where(x >= 0, x, alpha * x),
    "sigmoid": lambda x, alpha, beta: 1 / (1 + np.exp(-x)),
    "tanh": lambda x, alpha, beta: np.tanh(x),
    "round": lambda x, alpha, beta: np.rint(x),
    "hard_sigmoid": lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1),
    "hard_swish": lambda x, alpha, beta: x * np.clip(alpha * x + beta, 0, 1),
}
