"""Weights of 2, 4 or 8 bits, which stay packed in flash."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.frontend.onnx.constants import Constant
from mcudeploy.ir.graph import DType, Operator, Tensor
from mcudeploy.ir.opdef import ConstantArray
from mcudeploy.ops.conv.conv import Conv2d
from mcudeploy.ops.conv.conv_s4w import can_stay_packed, fits_four_bits
from mcudeploy.ops.matrix.block_weights import BITS, BLOCK_UNIT, PACKED, packed_bytes

_MIN_NOTED_WEIGHTS = 1024
"""Number of weights of four bits from which on a note states their bytes."""


@dataclass(frozen=True, slots=True, eq=False)
class BlockWeights:
    """Weights [K, depth] of `bits` bits in blocks of `block` values: BlockDense's constants, without bias."""

    constants: dict[str, ConstantArray]
    block: int
    bits: int


def in_blocks(constant: Constant) -> bool:
    """Whether rows [K, ...] of a constant have several scales."""
    stored = constant.quantized
    if stored is None or stored.scale.size == 0:
        return False
    scale = stored.scale.reshape(len(stored.scale), -1)
    return bool(np.any(scale != scale[:, :1]))


def block_weights(constant: Constant) -> BlockWeights | None:
    """A constant whose rows [K, ...] have several scales each, in the form that stays packed.

    None for other constants: one scale in a row, integers of more than 8 bits, or blocks that are not a
    multiple of 4 values. Zero points must fit int8 after the subtraction of an offset.
    """
    stored = constant.quantized
    if stored is None or stored.bits != 8 or not in_blocks(constant):
        return None
    integers, scale, zero = (
        it.reshape(len(it), -1) for it in (stored.integers, stored.scale, stored.zero_point)
    )
    block = _block_of(scale, zero)
    if block % BLOCK_UNIT:
        return None
    zero = zero[:, ::block]
    offset, bits = _range_of(integers, zero)
    constants: dict[str, ConstantArray] = {
        "weights": np.asarray(integers - offset, np.int8),
        "scale": np.ascontiguousarray(scale[:, ::block], np.float32),
    }
    if np.any(zero != offset):
        if zero.min() - offset < -128 or zero.max() - offset > 127:
            return None
        constants["zero"] = np.asarray(zero - offset, np.int8)
    return BlockWeights(constants, block, bits)


def _block_of(scale: NDArray[Any], zero: NDArray[Any]) -> int:
    """The largest block within which no row changes its scale or zero point."""
    changes = np.any(scale[:, 1:] != scale[:, :-1], axis=0) | np.any(zero[:, 1:] != zero[:, :-1], axis=0)
    return int(np.gcd.reduce(np.flatnonzero(changes) + 1))


def _range_of(integers: NDArray[Any], zero: NDArray[Any]) -> tuple[int, int]:
    """The offset to subtract from integers, and the bits that they then take.

    The offset is the zero point if all are equal and it fits, else 0 or half the range.
    """
    low, high = int(integers.min()), int(integers.max())
    common = [int(zero.flat[0])] if np.all(zero == zero.flat[0]) else []
    for bits in BITS:
        half = 1 << bits - 1
        fits = [it for it in (*common, 0, half) if low - it >= -half and high - it < half]
        if fits:
            return fits[0], bits
    raise ValueError(f"integers from {low} to {high} take more than 8 bits")


def block_notes(operators: Iterable[Operator], widened: int) -> list[str]:
    """Return notes on the flash of constants in blocks: those that stay packed, and the `widened` elements.

    Widened elements have become float32.
    """
    notes, packed = list[str](), [it for it in operators if isinstance(it.op, PACKED)]
    if packed:
        stored = {_content(it): it for it in packed}.values()
        size = sum(packed_bytes(it) for it in stored)
        saved = sum(4 * it.constants["weights"].size for it in stored) - size
        notes.append(
            f"weights quantised in blocks stay packed, {size:,} B of flash with their scales: {saved:,} B "
            "less than as float32"
        )
    if widened:
        notes.append(
            f"weights quantised in blocks are stored as float32, {4 * widened:,} B of flash: blocks of a "
            "multiple of 4 values along the depth of a MatMul, Gemm or 1x1 Conv, or along the rows that "
            "Gather reads, stay packed"
        )
    return notes


def four_bit_notes(operators: Iterable[Operator], tensors: Mapping[str, Tensor]) -> list[str]:
    """Return a note on the flash of weights of int8 convolutions that fit four bits and may stay packed."""
    packed, wide = list[Operator](), list[Operator]()
    for it in operators:
        if not isinstance(it.op, Conv2d) or not fits_four_bits(it.constants["weights"]):
            continue
        source = tensors[it.inputs[0]]
        if source.dtype is DType.INT8:
            depthwise = it.op.windowing.is_depthwise(source.shape[2])
            stays = not depthwise and can_stay_packed(it.constants["weights"], it.op.groups)
            (packed if stays else wide).append(it)
    packed_count, wide_count = (sum(it.constants["weights"].size for it in each) for each in (packed, wide))
    if packed_count < _MIN_NOTED_WEIGHTS:
        return []
    as_int8 = f"; as int8, {wide_count:,} B of depthwise layers and of sums that are too large"
    return [
        f"weights of 4 bits: {packed_count // 2:,} B of flash instead of {packed_count:,} B in layers "
        f"whose kernel ends with _s4w{as_int8 if wide else ''}"
    ]


def _content(operator: Operator) -> tuple[bytes, bytes]:
    """A key that is equal for constants of which flash has one copy."""
    return operator.constants["weights"].tobytes(), operator.constants["scale"].tobytes()
