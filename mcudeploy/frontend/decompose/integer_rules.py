"""Rules for products of integers without a quantised result, and for weights of few bits in blocks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from mcudeploy.frontend.decompose.maker import Maker
from mcudeploy.frontend.decompose.qoperator_rules import padded, real
from mcudeploy.frontend.onnx.nodes import MAX_TENSOR_ELEMENTS, Unsupported


def conv_integer(make: Maker) -> None:
    """Multiply integers as floats. The sums are whole numbers; a Cast to float32 after them loses no more."""
    x, w, x_zero, w_zero = padded(make.inputs, 4)
    made = make.add("Conv", _steps(make, x, x_zero), _steps(make, w, w_zero, 0), **make.attributes)
    _whole(make, made)


def matmul_integer(make: Maker) -> None:
    """Multiply integer matrices; the second one may have a zero point for each column."""
    a, b, a_zero, b_zero = padded(make.inputs, 4)
    _whole(make, make.add("MatMul", _steps(make, a, a_zero), _steps(make, b, b_zero, 1)))


def _steps(make: Maker, x: str, zero_point: str, axis: int | None = None) -> str:
    """Subtract the zero point from an integer tensor, in float32."""
    found = make.known(zero_point) if zero_point else None
    count = 1 if found is None else found.size
    scale = make.constant(np.ones(count) if count > 1 else 1.0)
    return real(make, x, scale, zero_point, axis)


def _whole(make: Maker, made: str) -> None:
    make.whole[make.outputs[0]] = made
    make.add("Cast", made, out=make.outputs[0], to=TensorProto.INT32)


def cast_of_whole(make: Maker) -> None:
    """Replace a Cast to float32 of sums that are already floats."""
    made = make.whole.get(make.inputs[0])
    if made is None or make.attributes.get("to") != TensorProto.FLOAT:
        return
    make.add("Identity", made, out=make.outputs[0])


def matmul_integer_to_float(make: Maker) -> None:
    """Replace a product of quantised matrices whose result stays float."""
    a, b, a_scale, b_scale, a_zero, b_zero, bias = padded(make.inputs, 7)
    _product(make, real(make, a, a_scale, a_zero), real(make, b, b_scale, b_zero, 1), bias)


def _product(make: Maker, a: str, b: str, bias: str) -> None:
    """Write the product of matrices, plus a bias if there is one."""
    made = make.add("MatMul", a, b, out="" if bias else make.outputs[0])
    if bias:
        make.add("Add", made, bias, out=make.outputs[0])


def matmul_nbits(make: Maker) -> None:
    """Unpack weights [N, blocks, bytes] of few bits, with a scale for each block, to float32."""
    x, packed, scales, zeros, order, bias = padded(make.inputs, 6)
    weights, scale = make.constant_of(packed, "the weights"), make.constant_of(scales, "the scales")
    if order:
        raise Unsupported("an order of groups (g_idx) is not supported: quantise without it")
    depth, columns, block, bits = (make.integer(name) for name in ("K", "N", "block_size", "bits"))
    if depth * columns > MAX_TENSOR_ELEMENTS:
        raise Unsupported(f"its weights have more than {MAX_TENSOR_ELEMENTS} elements")
    if bits not in (2, 4, 8):
        raise Unsupported(f"weights of {bits} bits are not supported; of 2, 4 and 8 are")
    blocks = -(-depth // block)
    steps = _unpacked(weights.reshape(columns, -1), bits).astype(np.float32)
    found = make.constant_of(zeros, "the zero points") if zeros else None
    zero = _zero_points(found, (columns, blocks), bits)
    scale = scale.reshape(columns, blocks, 1).astype(np.float32)
    real_weights = (steps.reshape(columns, blocks, block) - zero) * scale
    _product(make, x, make.constant(real_weights.reshape(columns, -1)[:, :depth].T), bias)


def _zero_points(found: NDArray[np.generic] | None, shape: tuple[int, int], bits: int) -> NDArray[np.float32]:
    """The zero points of blocks: the middle, packed integers, or floats."""
    if found is None:
        return np.full((*shape, 1), 2 ** (bits - 1), np.float32)
    if found.dtype == np.uint8:
        found = _unpacked(found.reshape(shape[0], -1), bits)[:, : shape[1]]
    return found.reshape(*shape, 1).astype(np.float32)


def _unpacked(packed: NDArray[np.generic], bits: int) -> NDArray[np.uint8]:
    """Unpack the numbers in rows of bytes, the lowest bits first."""
    parts = [(packed.astype(np.uint8) >> shift) & (2**bits - 1) for shift in range(0, 8, bits)]
    return np.asarray(np.stack(parts, axis=-1).reshape(len(packed), -1), np.uint8)
