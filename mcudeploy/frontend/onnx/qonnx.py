"""Files of QONNX, as Brevitas and QKeras export them: Quant and BipolarQuant become operators of ONNX."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from mcudeploy.common.errors import ModelError, Problem
from mcudeploy.common.text import printable
from mcudeploy.frontend.onnx.converter import FAULTS, converted
from mcudeploy.frontend.onnx.nodes import Unsupported
from mcudeploy.frontend.onnx.protos import QONNX_DOMAINS, attribute_of, opset_of, refill
from mcudeploy.frontend.onnx.tensors import array_of

_OPSET = 13
"""First opset whose QuantizeLinear has an axis."""
_MAX_BITS = 8
_ROUNDINGS = (b"ROUND", b"HALF_EVEN")

Array = NDArray[Any]


def in_onnx(proto: ModelProto) -> ModelProto:
    """Replace the quantisers of QONNX, after a conversion to an opset that can express them.

    Raises ModelError for quantisers that no supported operators can replace.
    """
    if not any(_rewriter(node) for node in proto.graph.node):
        return proto
    if opset_of(proto) < _OPSET:
        try:
            proto = converted(proto, _OPSET, lambda _: False)
        except FAULTS as fault:
            raise ModelError(
                f"the quantisers of QONNX need opset {_OPSET}, to which the model could not be converted: "
                f"{printable(str(fault))}"
            ) from fault
    tensors = {tensor.name: tensor for tensor in proto.graph.initializer}
    nodes, constants, problems = list[NodeProto](), list[TensorProto](), list[Problem]()
    for number, node in enumerate(proto.graph.node):
        rewrite = _rewriter(node)
        try:
            new = _Replacement(node, tensors)
            nodes += [node] if rewrite is None else rewrite(new)
            constants += new.constants
        except Unsupported as reason:
            label = printable(node.name or f"#{number}")
            problems.append(Problem(label, printable(f"{node.domain}::{node.op_type}"), str(reason)))
    if problems:
        raise ModelError.unsupported(tuple(problems))
    refill(proto.graph.node, nodes)
    proto.graph.initializer.extend(constants)
    return proto


@dataclass(frozen=True, slots=True)
class _Replacement:
    """A node, the constants `tensors` of its model, and the nodes and constants that replace the node."""

    node: NodeProto
    tensors: Mapping[str, TensorProto]
    nodes: list[NodeProto] = field(default_factory=list)
    constants: list[TensorProto] = field(default_factory=list)

    def constant(self, position: int, label: str) -> Array:
        """An input that must be constant, as float32."""
        tensor = self.tensors.get(self.node.input[position]) if len(self.node.input) > position else None
        if tensor is None or tensor.data_location == TensorProto.EXTERNAL:
            raise Unsupported(f"the {label} is not a constant in the file: fold constants by qonnx-cleanup")
        return array_of(tensor).astype(np.float32)

    def add(self, op: str, source: str, *operands: Any, **attributes: Any) -> str:
        """Append a node that reads a value and constants; return its result."""
        result = f"{self.node.output[0]}.{len(self.nodes)}.{op}"
        names = [f"{result}.{position}" for position in range(len(operands))]
        self.constants.extend(map(numpy_helper.from_array, map(np.asarray, operands), names))
        self.nodes.append(helper.make_node(op, [source, *names], [result], result, **attributes))
        return result

    def ended(self) -> list[NodeProto]:
        """Let the last of the new nodes write the node's result; return the new nodes."""
        self.nodes[-1].output[0] = self.node.output[0]
        self.nodes[-1].name = self.node.name
        return self.nodes


def _rewriter(node: NodeProto) -> Callable[[_Replacement], list[NodeProto]] | None:
    is_qonnx = node.domain in QONNX_DOMAINS and node.input and node.output
    return _REWRITERS.get(node.op_type) if is_qonnx else None


def _quant(new: _Replacement) -> list[NodeProto]:
    """Replace Quant: (round(clip(x / scale + zero point)) - zero point) * scale, halves rounded to even."""
    node, source, is_constant = new.node, new.node.input[0], new.node.input[0] in new.tensors
    scale, zero = _scale(new), new.constant(2, "zero point")
    bits = _bits(new, is_constant=is_constant)
    if not np.all(np.isfinite(zero)):
        raise Unsupported("the zero point is not finite")
    if attribute_of(node, "rounding_mode", b"ROUND").upper() not in _ROUNDINGS:
        raise Unsupported("the attribute rounding_mode is not ROUND, the mode that is supported")
    signed, narrow = attribute_of(node, "signed", 1), bool(attribute_of(node, "narrow", 0))
    low = -(1 << bits - 1) + narrow if signed else 0
    high = (1 << bits - 1) - 1 if signed else (1 << bits) - 1 - narrow
    dtype = np.int8 if signed else np.uint8
    ends = np.iinfo(dtype)
    axis = _axis_attribute(new, scale)
    fits_8_bits = bits <= _MAX_BITS and zero.size == 1 and zero.item() in range(ends.min, ends.max + 1)
    if axis is None or not fits_8_bits:
        value = new.add("Add", new.add("Div", source, scale), zero)
        value = new.add("Round", new.add("Clip", value, np.float32(low), np.float32(high)))
        new.add("Mul", new.add("Sub", value, zero), scale)
        return new.ended()
    parameters = _parameters(scale, dtype(zero.item()))
    clips = (low, high) != (ends.min, ends.max)
    if clips and not is_constant:  # the kernel before it clips at no cost, each bound rounded to an integer
        bounds = ((np.float32(end) - zero.reshape(())) * scale.reshape(()) for end in (low, high))
        source = new.add("Clip", source, *bounds)
    value = new.add("QuantizeLinear", source, *parameters, **axis)
    if clips and is_constant:
        value = new.add("Clip", value, dtype(low), dtype(high))
    new.add("DequantizeLinear", value, *parameters, **axis)
    return new.ended()


def _bipolar(new: _Replacement) -> list[NodeProto]:
    """Replace BipolarQuant: plus the scale for x >= 0, else minus the scale."""
    scale = _scale(new)
    axis = _axis_attribute(new, scale)
    one = np.float32(1) if axis is not None else scale
    value = new.add("Where", new.add("GreaterOrEqual", new.node.input[0], np.float32(0)), one, -one)
    if axis is not None:
        value = new.add("QuantizeLinear", value, one, np.int8(0))
        new.add("DequantizeLinear", value, *_parameters(scale, np.int8(0)), **axis)
    return new.ended()


def _bits(new: _Replacement, *, is_constant: bool) -> int:
    """The number of bits; only constants, such as biases, may have more than 8."""
    bits = new.constant(3, "bit width")
    if bits.size != 1 or bits.item() not in range(1, 33):
        raise Unsupported("the bit width is not an integer from 1 to 32")
    if bits.item() > _MAX_BITS and not is_constant:
        raise Unsupported(f"its values have {bits.item():.0f} bits: export the model with at most 8")
    return int(bits.item())


def _scale(new: _Replacement) -> Array:
    scale = new.constant(1, "scale")
    if not (np.all(scale > 0) and np.all(np.isfinite(scale))):
        raise Unsupported("a scale is not a positive number")
    return scale


def _axis_attribute(new: _Replacement, scale: Array) -> dict[str, int] | None:
    """The attributes of QuantizeLinear for one scale, or for scales along one axis of a constant.

    None for other scales, which QuantizeLinear or the kernels do not take.
    """
    if scale.size == 1:
        return {}
    tensor = new.tensors.get(new.node.input[0])
    dims = () if tensor is None else tensor.dims
    axes = [axis - scale.ndim + len(dims) for axis, size in enumerate(scale.shape) if size > 1]
    is_axis = len(axes) == 1 and axes[0] >= 0 and dims[axes[0]] == scale.size
    return {"axis": axes[0]} if is_axis else None


def _parameters(scale: Array, zero: np.integer[Any]) -> tuple[Array, Array]:
    """Scale and zero point as QuantizeLinear takes them: scalars, or vectors."""
    shape = () if scale.size == 1 else (-1,)
    return scale.reshape(shape), np.full_like(scale, zero, zero.dtype).reshape(shape)


_REWRITERS = {"Quant": _quant, "IntQuant": _quant, "BipolarQuant": _bipolar}
