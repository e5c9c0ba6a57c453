"""Rules for operators on integers: QOperator format, products of integers, and weights of few bits."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from mcudeploy.frontend.decompose.maker import Maker
from mcudeploy.frontend.onnx.nodes import MAX_TENSOR_ELEMENTS, Unsupported
from mcudeploy.frontend.onnx.protos import IN_BYTES

_OF_INTEGERS = frozenset({"channels_last", "opset"})
"""Attributes of integer operators that float operators lack."""


def _dequantized(make: Maker, x: str, scale: str, zero_point: str, axis: int | None = None) -> str:
    """Dequantise an integer tensor."""
    inputs = [x, scale, zero_point] if zero_point else [x, scale]
    per_axis = axis is not None and (make.shape(scale) or ()) not in ((), (1,))
    attributes: dict[str, Any] = {"axis": axis} if per_axis else {}
    if not per_axis:
        inputs = [x, *(_scalar(make, name) for name in inputs[1:])]
    return make.add("DequantizeLinear", *inputs, **attributes)


def _scalar(make: Maker, name: str) -> str:
    """Turn a per-tensor parameter into a scalar: files also store it as a list of one."""
    value = make.known(name)
    if value is None or value.ndim == 0 or value.size != 1:
        return name
    return make.constant(value.reshape(()), value.dtype.type)


def _quantize(make: Maker, x: str, scale: str, zero_point: str, out: str) -> None:
    make.add("QuantizeLinear", x, *(_scalar(make, name) for name in (scale, zero_point) if name), out=out)


def _float_attributes(make: Maker) -> dict[str, Any]:
    return {name: value for name, value in make.attributes.items() if name not in _OF_INTEGERS}


def _require_channels_first(make: Maker) -> None:
    if make.attributes.get("channels_last"):
        raise Unsupported("channels_last is not supported: quantise the model without layout optimisation")


def qlinear_conv(make: Maker) -> None:
    """Replace QLinearConv. Weights may have a scale per channel; the bias has the scale of the products."""
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias = make.all_inputs(9)
    _require_channels_first(make)
    scales = make.constant_of(x_scale, "the scale"), make.constant_of(w_scale, "the scale of the weights")
    operands = [_dequantized(make, x, x_scale, x_zero), _dequantized(make, w, w_scale, w_zero, 0)]
    if bias:
        make.constant_of(bias, "the bias")
        operands.append(_bias(make, bias, scales[0] * scales[1].reshape(-1)))
    _quantize(make, make.add("Conv", *operands, **_float_attributes(make)), y_scale, y_zero, make.outputs[0])


def _bias(make: Maker, bias: str, scale: NDArray[Any]) -> str:
    """Dequantise an int32 bias."""
    (size,) = make.shape(bias) or (1,)
    full = np.broadcast_to(scale.reshape(-1), (size,))
    zero = make.constant(np.zeros(size), np.int32)
    return make.add("DequantizeLinear", bias, make.constant(full), zero, axis=0)


def qlinear_matmul(make: Maker) -> None:
    """Replace QLinearMatMul; the second matrix may have a scale for each column."""
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = make.all_inputs(8)
    operands = _dequantized(make, a, a_scale, a_zero), _dequantized(make, b, b_scale, b_zero, 1)
    _quantize(make, make.add("MatMul", *operands), y_scale, y_zero, make.outputs[0])


def qgemm(make: Maker) -> None:
    """Replace a dense layer; without a scale its result is float."""
    a, a_scale, a_zero, b, b_scale, b_zero, bias, y_scale, y_zero = make.all_inputs(9)
    scales = make.constant_of(a_scale, "the scale"), make.constant_of(b_scale, "the scale of the weights")
    attributes = _float_attributes(make)
    axis = 0 if attributes.get("transB") else 1
    operands = [_dequantized(make, a, a_scale, a_zero), _dequantized(make, b, b_scale, b_zero, axis)]
    if bias:
        make.constant_of(bias, "the bias")
        alpha = float(make.attributes.get("alpha", 1.0))
        operands.append(_bias(make, bias, alpha * scales[0] * scales[1].reshape(-1)))
    out = make.outputs[0]
    result = make.add("Gemm", *operands, out="" if y_scale else out, **attributes)
    if y_scale:
        _quantize(make, result, y_scale, y_zero, out)


def of_one(op: str) -> Callable[[Maker], None]:
    """Rule for a function of one tensor."""

    def rule(make: Maker) -> None:
        x, x_scale, x_zero, y_scale, y_zero = make.all_inputs(5)
        _require_channels_first(make)
        result = make.add(op, _dequantized(make, x, x_scale, x_zero), **_float_attributes(make))
        _quantize(make, result, y_scale, y_zero, make.outputs[0])

    return rule


def of_two(op: str) -> Callable[[Maker], None]:
    """Rule for a function of two tensors."""

    def rule(make: Maker) -> None:
        a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = make.all_inputs(8)
        result = make.add(op, _dequantized(make, a, a_scale, a_zero), _dequantized(make, b, b_scale, b_zero))
        _quantize(make, result, y_scale, y_zero, make.outputs[0])

    return rule


def qlinear_softmax(make: Maker) -> None:
    """Replace a softmax of opset 12 or older, which covers all axes from its axis onwards."""
    rank, axis = len(make.shape(make.inputs[0]) or ()), int(make.attributes.get("axis", -1))
    if int(make.attributes.get("opset", 13)) < 13 and axis not in (-1, rank - 1):
        raise Unsupported(f"a softmax over axes from {axis} on is not supported; over the last axis it is")
    of_one("Softmax")(make)


def qlinear_concat(make: Maker) -> None:
    """Concatenate tensors that each have their own quantisation."""
    y_scale, y_zero, *operands = make.inputs
    parts = [_dequantized(make, *operands[first : first + 3]) for first in range(0, len(operands), 3)]
    result = make.add("Concat", *parts, **_float_attributes(make))
    _quantize(make, result, y_scale, y_zero, make.outputs[0])


def in_onnx_domain(make: Maker) -> None:
    """Move a node to ONNX's domain: ONNX has adopted its operator."""
    make.add(make.op, *make.inputs, out=make.outputs[0], **make.attributes)


def conv_integer(make: Maker) -> None:
    """Replace ConvInteger by a convolution of whole numbers in float32."""
    x, w, x_zero, w_zero = make.all_inputs(4)
    result = make.add("Conv", _centred(make, x, x_zero), _centred(make, w, w_zero, 0), **make.attributes)
    _to_int32(make, result)


def matmul_integer(make: Maker) -> None:
    """Multiply integer matrices; the second one may have a zero point for each column."""
    a, b, a_zero, b_zero = make.all_inputs(4)
    _to_int32(make, make.add("MatMul", _centred(make, a, a_zero), _centred(make, b, b_zero, 1)))


def _centred(make: Maker, x: str, zero_point: str, axis: int | None = None) -> str:
    """Subtract the zero point from an integer tensor, in float32."""
    zero = make.known(zero_point) if zero_point else None
    count = 1 if zero is None else zero.size
    scale = make.constant(np.ones(count) if count > 1 else 1.0)
    return _dequantized(make, x, scale, zero_point, axis)


def _to_int32(make: Maker, result: str) -> None:
    """Write the sums as int32; a later Cast to float32 takes them before this Cast."""
    make.float_sums[make.outputs[0]] = result
    make.add("Cast", result, out=make.outputs[0], to=TensorProto.INT32)


def cast_of_int32_sums(make: Maker) -> None:
    """Replace a Cast to float32 of int32 sums that were computed in float32."""
    result = make.float_sums.get(make.inputs[0])
    if result is None or make.attributes.get("to") != TensorProto.FLOAT:
        return
    make.add("Identity", result, out=make.outputs[0])


def matmul_integer_to_float(make: Maker) -> None:
    """Replace a product of quantised matrices whose result stays float."""
    a, b, a_scale, b_scale, a_zero, b_zero, bias = make.all_inputs(7)
    _product(make, _dequantized(make, a, a_scale, a_zero), _dequantized(make, b, b_scale, b_zero, 1), bias)


def _product(make: Maker, a: str, b: str, bias: str) -> None:
    """Write the product of matrices, plus a bias if there is one."""
    result = make.add("MatMul", a, b, out="" if bias else make.outputs[0])
    if bias:
        make.add("Add", result, bias, out=make.outputs[0])


def matmul_nbits(make: Maker) -> None:
    """Write weights [N, blocks, bytes] of 2, 4 or 8 bits as DequantizeLinear with a scale for each block."""
    x, packed, scales, zeros, order, bias = make.all_inputs(6)
    weights, scale = make.constant_of(packed, "the weights"), make.constant_of(scales, "the scales")
    if order:
        raise Unsupported("an order of groups (g_idx) is not supported: quantise without it")
    depth, columns, block, bits = (make.integer(name) for name in ("K", "N", "block_size", "bits"))
    if depth * columns > MAX_TENSOR_ELEMENTS:
        raise Unsupported(f"its weights have more than {MAX_TENSOR_ELEMENTS} elements")
    _require_bits(bits)
    if min(depth, columns, block) < 1:
        raise Unsupported(f"K {depth}, N {columns} and blocks of {block}: all have to be at least 1")
    integers = _unpacked(_rows(weights, columns, "bytes of weights"), bits)
    whole_blocks = -(-depth // block) * block
    if integers.shape[1] != whole_blocks:
        stated = f"{whole_blocks} are whole blocks of {block}"
        raise Unsupported(f"its weights have {integers.shape[1]} values in a row; {stated}")
    zero = make.constant_of(zeros, "the zero points") if zeros else None
    rows = _blocked(make, integers[:, :depth], _rows(scale, columns, "scales"), zero, (block, bits))
    _product(make, x, make.add("Transpose", rows, perm=[1, 0]), bias)


def gather_block_quantized(make: Maker) -> None:
    """Replace a Gather from a table with a scale for each block of its last axis: dequantise, then Gather."""
    data, indices, scales, zeros = make.all_inputs(4)
    table, scale = make.constant_of(data, "the table"), make.constant_of(scales, "the scales")
    block, bits = make.integer("block_size", 128), make.integer("bits", 4)
    if make.integer("quantize_axis", 1) % table.ndim != table.ndim - 1:
        raise Unsupported("blocks along another axis than the last (quantize_axis) are not supported")
    flat = table.reshape(-1, table.shape[-1])
    zero = make.constant_of(zeros, "the zero points") if zeros else None
    if bits == IN_BYTES:
        zero = np.zeros(scale.size) if zero is None else zero.astype(np.float32)
    else:
        _require_bits(bits)
        flat = _unpacked(flat, bits)
    rows = _blocked(make, flat, _rows(scale, len(flat), "scales"), zero, (block, bits))
    shaped = make.reshaped(rows, [*table.shape[:-1], flat.shape[1]])
    make.add("Gather", shaped, indices, out=make.outputs[0], axis=make.integer("gather_axis", 0))


def _rows(values: NDArray[Any], rows: int, what: str) -> NDArray[Any]:
    """The values as a matrix [rows, ...]; `what` names them in the error."""
    if values.size % rows:
        raise Unsupported(f"{values.size} {what} do not fit {rows} rows of weights")
    return values.reshape(rows, -1)


def _require_bits(bits: int) -> None:
    if bits not in (2, 4, 8):
        raise Unsupported(f"weights of {bits} bits are not supported; of 2, 4 and 8 are")


def _blocked(
    make: Maker,
    integers: NDArray[Any],
    scale: NDArray[np.generic],
    zeros: NDArray[np.generic] | None,
    packing: tuple[int, int],
) -> str:
    """Dequantise integers [rows, depth] with scales [rows, blocks]; `packing`: values in a block, and bits.

    DequantizeLinear reads each block as a row with one scale. Folding moves the scales with the integers.
    """
    (block, bits), (rows, blocks), depth = packing, scale.shape, integers.shape[1]
    if block < 1 or blocks != -(-depth // block):
        raise Unsupported(f"{blocks} scales do not fit {depth} values in blocks of {block}")
    full = np.pad(integers, ((0, 0), (0, blocks * block - depth))).reshape(-1, block)
    zero, scales = _zero_points(zeros, (rows, blocks), bits), scale.reshape(-1).astype(np.float32)
    with np.errstate(invalid="ignore"):  # a float outside the range of the integers changes in the cast
        zero_is_integer = np.all(zero == zero.astype(full.dtype))
    if zero_is_integer:
        operands = make.constant(full, full.dtype), make.constant(scales), make.constant(zero, full.dtype)
        blocked = make.add("DequantizeLinear", *operands, axis=0)
    else:
        blocked = make.constant((full - zero[:, np.newaxis]) * scales[:, np.newaxis])
    padded_rows = make.reshaped(blocked, [rows, blocks * block])
    return padded_rows if blocks * block == depth else make.slice(padded_rows, [0], [depth], [1])


def _zero_points(
    zeros: NDArray[np.generic] | None, shape: tuple[int, int], bits: int
) -> NDArray[np.float32]:
    """The zero point of each block: packed integers, floats, or by default the middle of the range."""
    if zeros is None:
        return np.full(shape, 2 ** (bits - 1), np.float32).reshape(-1)
    if zeros.dtype == np.uint8:
        zeros = _unpacked(_rows(zeros, shape[0], "bytes of zero points"), bits)[:, : shape[1]]
    if zeros.size != prod(shape):
        raise Unsupported(f"{zeros.size} zero points do not fit {prod(shape)} blocks")
    return zeros.reshape(-1).astype(np.float32)


def _unpacked(packed: NDArray[np.generic], bits: int) -> NDArray[np.uint8]:
    """Unpack the numbers in rows of bytes, the lowest bits first."""
    parts = [(packed.astype(np.uint8) >> shift) & (2**bits - 1) for shift in range(0, 8, bits)]
    return np.asarray(np.stack(parts, axis=-1).reshape(len(packed), -1), np.uint8)
