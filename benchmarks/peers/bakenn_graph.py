"""A quantised network in the words of BakeNN's intermediate form: values, operations and constants."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any

import numpy as np

from mcudeploy.ir.graph import DType, Graph, Operator, Quantization, Tensor
from mcudeploy.ops.conv.affine import Affine
from mcudeploy.ops.conv.conv import Conv2d
from mcudeploy.ops.move.concat import Concat
from mcudeploy.ops.move.move import Slice
from mcudeploy.ops.move.view import Reshape
from mcudeploy.ops.pool.pool import AveragePool, MaxPool
from mcudeploy.ops.reduce.softmax import Softmax
from mcudeploy.ops.scalar.elementwise import Binary, Lut
from peers.generated import Array, NetworkRefusedError

LEAST, MOST = -128, 127
_BINARY = {"add": "AddOp", "mul": "MulOp"}


@dataclass(frozen=True, slots=True)
class BakennGraph:
    """`values`: the type of each tensor, by name; `steps`: the class of each operation, and its fields."""

    name: str
    values: dict[str, dict[str, Any]] = field(default_factory=dict)
    steps: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)

    def add(self, kind: str, **fields: object) -> None:
        self.steps.append((kind, {"name": f"op_{len(self.steps)}", **fields}))

    def add_constants(self, operator: Operator, weights: Array, layout: str, axis: int) -> dict[str, str]:
        """Add weights and bias; return the fields that name them."""
        scales = np.asarray(operator.constants["weight_scale"], np.float32)
        source = float(np.float32(self.values[operator.inputs[0]]["scale"]))
        names = {"weight": f"{operator.name}_weight", "bias": f"{operator.name}_bias"}
        per_axis = {"zero_points": [0] * scales.size}
        self.constants[names["weight"]] = weights
        self.values[names["weight"]] = {
            "shape": weights.shape, "dtype": "int8", "layout": layout,
            "scales": scales.tolist(), "axis": axis, **per_axis,
        }  # fmt: skip
        self.constants[names["bias"]] = np.asarray(operator.constants["bias"], np.int32)
        products = [float(np.float32(source * float(it))) for it in scales]
        self.values[names["bias"]] = {
            "shape": scales.shape, "dtype": "int32", "layout": "C", "scales": products, "axis": 0, **per_axis,
        }  # fmt: skip
        return names

    def add_value(self, tensor: Tensor, *, flat: bool = False) -> None:
        """Add a tensor of the network; `flat` as a vector."""
        if tensor.dtype is not DType.INT8 or tensor.quantization is None:
            raise NetworkRefusedError(f"computes in int8 only; {tensor.name} is {tensor.dtype}")
        self.values[tensor.name] = {
            "shape": (1, tensor.elements) if flat else (1, *tensor.shape),
            "dtype": "int8",
            "layout": "NC" if flat else "NHWC",
            "scale": tensor.quantization.scale,
            "zero_point": tensor.quantization.zero_point,
        }

    def flattened(self, name: str) -> str:
        """Return the name of a tensor as a vector; add the operation that makes it."""
        value = self.values[name]
        if value["layout"] == "NC":
            return name
        flat = f"{name}_flat"
        if flat not in self.values:
            self.values[flat] = {**value, "shape": (1, int(np.prod(value["shape"]))), "layout": "NC"}
            self.add("FlattenOp", input=name, output=flat)
        return flat


def described(graph: Graph) -> BakennGraph:
    """Return a network in BakeNN's form. Raises NetworkRefusedError for operators that it does not have."""
    ios = graph.own_inputs(), graph.own_outputs()
    if any(len(each) != 1 for each in ios):
        raise NetworkRefusedError("takes networks of one input and one output")
    result = BakennGraph("model", inputs=[ios[0][0].tensor], outputs=[ios[1][0].tensor])
    result.add_value(graph.tensors[ios[0][0].tensor])
    vectors = _vectors(graph)
    for operator in graph.operators:
        writer = _WRITERS.get(type(operator.op))
        if writer is None:
            raise NetworkRefusedError(f"has no {type(operator.op).__name__}")
        result.add_value(graph.tensors[operator.output], flat=operator.output in vectors)
        writer(result, operator, graph.tensors)
    return result


def _vectors(graph: Graph) -> set[str]:
    """Return the tensors that are vectors: results of dense layers whose readers make vectors."""
    readers: dict[str, list[Operator]] = {}
    for operator in graph.operators:
        for name in operator.inputs:
            readers.setdefault(name, []).append(operator)
    vectors: set[str] = set()
    for operator in reversed(graph.operators):
        through = all(it.output in vectors for it in readers.get(operator.output, ()))
        kind = isinstance(operator.op, Softmax) and graph.tensors[operator.output].shape[:2] == (1, 1)
        if through and (kind or _is_dense(operator, graph.tensors)):
            vectors.add(operator.output)
    return vectors


def _is_dense(operator: Operator, tensors: Mapping[str, Tensor]) -> bool:
    """Whether a convolution reads its whole input at once."""
    op = operator.op
    if not isinstance(op, Conv2d) or op.groups != 1 or any(op.pads):
        return False
    return tensors[operator.inputs[0]].shape[:2] == op.kernel_shape


def _limits(quantization: Quantization | None, low: float, high: float) -> dict[str, int]:
    """Return the limits of an activation, in integers of its output."""
    assert quantization is not None

    def stored(value: float, otherwise: int) -> int:
        if not isfinite(value):
            return otherwise
        return int(np.clip(round(value / quantization.scale) + quantization.zero_point, LEAST, MOST))

    return {"activation_min": stored(low, LEAST), "activation_max": stored(high, MOST)}


def _padding(pads: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    """Return top, bottom, left, right of top, left, bottom, right."""
    top, left, bottom, right = pads
    return top, bottom, left, right


def _convolution(result: BakennGraph, operator: Operator, tensors: Mapping[str, Tensor]) -> None:
    op, weights = operator.op, np.asarray(operator.constants["weights"], np.int8)
    assert isinstance(op, Conv2d)
    names = {"input": operator.inputs[0], "output": operator.output}
    limits = _limits(tensors[operator.output].quantization, op.low, op.high)
    if result.values[operator.output]["layout"] == "NC":
        constants = result.add_constants(operator, weights.reshape(weights.shape[0], -1), "OI", 0)
        names["input"] = result.flattened(names["input"])
        result.add("LinearOp", **names, **constants, **limits)
        return
    shape = {"stride": op.stride, "dilation": op.dilation, "padding": _padding(op.pads)}
    channels = tensors[operator.inputs[0]].shape[-1]
    if op.groups == channels > 1 and weights.shape[3] == 1:
        constants = result.add_constants(operator, np.moveaxis(weights[..., 0], 0, -1), "HWO", 2)
        multiple = op.out_channels // channels
        result.add("DepthwiseConv2DOp", **names, **constants, **shape, **limits, depth_multiplier=multiple)
        return
    constants = result.add_constants(operator, weights, "OHWI", 0)
    result.add("Conv2DOp", **names, **constants, **shape, **limits, groups=op.groups)


def _binary(result: BakennGraph, operator: Operator, tensors: Mapping[str, Tensor]) -> None:
    op = operator.op
    assert isinstance(op, Binary)
    if op.function not in _BINARY or op.constant_operand is not None:
        raise NetworkRefusedError(f"has no {op.function} of a constant, or no {op.function}")
    limits = _limits(tensors[operator.output].quantization, op.low, op.high)
    first, second = operator.inputs
    result.add(_BINARY[op.function], input_a=first, input_b=second, output=operator.output, **limits)


def _pool(result: BakennGraph, operator: Operator, _: Mapping[str, Tensor]) -> None:
    """Write a pool; BakeNN scales its results in a second operation."""
    op = operator.op
    assert isinstance(op, AveragePool | MaxPool)
    if op.dilation != (1, 1) or (isinstance(op, AveragePool) and op.count_include_pad and any(op.pads)):
        raise NetworkRefusedError("has no dilated pool, and no mean that counts its padding")
    kind = "AveragePool2DOp" if isinstance(op, AveragePool) else "MaxPool2DOp"
    source, output = (result.values[it] for it in (operator.inputs[0], operator.output))
    scaled = {name: source[name] for name in ("scale", "zero_point")}
    pooled = operator.output
    if any(output[name] != it for name, it in scaled.items()):
        pooled = f"{operator.output}_pooled"
        result.values[pooled] = {**output, **scaled}
    shape = {"kernel": op.kernel_shape, "stride": op.stride, "padding": _padding(op.pads)}
    result.add(kind, input=operator.inputs[0], output=pooled, **shape)
    if pooled != operator.output:
        result.add("RequantizeOp", input=pooled, output=operator.output)


def _concat(result: BakennGraph, operator: Operator, _: Mapping[str, Tensor]) -> None:
    op = operator.op
    assert isinstance(op, Concat)
    result.add("ConcatenateOp", input_names=operator.inputs, output=operator.output, axis=op.axis + 1)


def _softmax(result: BakennGraph, operator: Operator, _: Mapping[str, Tensor]) -> None:
    if result.values[operator.output]["layout"] != "NC":
        raise NetworkRefusedError("has no Softmax of images")
    result.add("SoftmaxOp", input=result.flattened(operator.inputs[0]), output=operator.output)


def _reshape(result: BakennGraph, operator: Operator, _: Mapping[str, Tensor]) -> None:
    result.add("ReshapeOp", input=operator.inputs[0], output=operator.output)


def _slice(result: BakennGraph, operator: Operator, tensors: Mapping[str, Tensor]) -> None:
    """Write one operation for each sliced dimension."""
    op, source = operator.op, operator.inputs[0]
    assert isinstance(op, Slice)
    shape, output = list(tensors[source].shape), result.values[operator.output]
    axes = [axis for axis in range(3) if shape[axis] != op.out_shape[axis] or op.step[axis] != 1]
    for axis in axes:
        start, step, count = op.start[axis], op.step[axis], op.out_shape[axis]
        if step < 0:
            raise NetworkRefusedError("has no slice backwards")
        shape[axis] = count
        part = operator.output if axis == axes[-1] else f"{operator.output}_{axis}"
        result.values[part] = {**output, "shape": (1, *shape)}
        places = {"axis": axis + 1, "start": start, "stop": start + step * (count - 1) + 1, "step": step}
        result.add("SliceOp", input=source, output=part, **places)
        source = part


def _affine(result: BakennGraph, operator: Operator, tensors: Mapping[str, Tensor]) -> None:
    """Write a factor and an offset for each channel as a depthwise convolution of one element."""
    op = operator.op
    assert isinstance(op, Affine)
    factor, offset = (np.asarray(operator.constants[it], np.float64) for it in ("factor", "offset"))
    scales = np.maximum(np.abs(factor), np.finfo(np.float32).tiny * 1e6) / MOST
    source = result.values[operator.inputs[0]]["scale"]
    constants = {
        "weight_scale": scales.astype(np.float32),
        "bias": np.rint(offset / (source * scales)).astype(np.int32),
    }
    weights = np.where(factor < 0, -MOST, MOST).astype(np.int8).reshape(1, 1, -1)
    names = result.add_constants(replace(operator, constants=constants), weights, "HWO", 2)
    limits = _limits(tensors[operator.output].quantization, op.low, op.high)
    result.add("DepthwiseConv2DOp", input=operator.inputs[0], output=operator.output, **names, **limits)


def _table(result: BakennGraph, operator: Operator, tensors: Mapping[str, Tensor]) -> None:
    """Write a table of integers as the operation that has it; raise NetworkRefusedError for other tables."""
    source, output = (tensors[it].quantization for it in (operator.inputs[0], operator.output))
    assert source is not None and output is not None
    table = np.asarray(operator.constants["table"], np.int64)
    values = (np.arange(LEAST, MOST + 1) - source.zero_point) * source.scale
    names = {"input": operator.inputs[0], "output": operator.output}
    low, high = int(table.min()), int(table.max())
    if _is_table(table, np.clip(_stored(values, output), low, high)):
        result.add("RequantizeOp", **names, activation_min=low, activation_max=high)
        return
    for kind, function in _FUNCTIONS.items():
        if _is_table(table, _stored(function(values), output)):
            result.add(kind, **names)
            return
    raise NetworkRefusedError("has no tables of other functions")


def _stored(values: Array, output: Quantization) -> Array:
    return np.clip(np.rint(values / output.scale) + output.zero_point, LEAST, MOST)


def _is_table(table: Array, values: Array) -> bool:
    """Whether a table has these values, up to ties of their rounding."""
    return bool(np.abs(values - table).max() <= 1)


_FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "SigmoidOp": lambda x: 1 / (1 + np.exp(-x)),
    "HardSigmoidOp": lambda x: np.clip(x / 6 + 0.5, 0, 1),
    "HardSwishOp": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "SiLUOp": lambda x: x / (1 + np.exp(-x)),
}


_WRITERS: dict[type, Callable[[BakennGraph, Operator, Mapping[str, Tensor]], None]] = {
    Conv2d: _convolution,
    Binary: _binary,
    AveragePool: _pool,
    MaxPool: _pool,
    Concat: _concat,
    Softmax: _softmax,
    Reshape: _reshape,
    Slice: _slice,
    Affine: _affine,
    Lut: _table,
}
