"""Constants of a model: real values, and the integers from which the file dequantises them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

_Number = TypeVar("_Number", bound=np.generic)


@dataclass(frozen=True, slots=True, eq=False)
class Quantized:
    """Integer form of a constant: value == scale * (integers - zero_point), elementwise.

    All three arrays have the constant's shape, as broadcast views, which take no memory. So every movement
    applies to all three alike, and no axis needs to be followed through transposes and reshapes.
    """

    integers: NDArray[np.int32]
    scale: NDArray[np.float32]
    zero_point: NDArray[np.int32]
    bits: int
    signed: bool


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """A constant value. `quantized` is its integer form, if the file has one."""

    value: NDArray[np.generic]
    quantized: Quantized | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    def moved(self, movement: Callable[[NDArray[np.generic]], NDArray[np.generic]]) -> Constant:
        """The constant after a movement of elements (reshape, transpose, slice, broadcast)."""
        value = movement(self.value)
        if self.quantized is None:
            return Constant(value)
        return Constant(
            value,
            Quantized(
                movement(self.quantized.integers).astype(np.int32, copy=False),
                movement(self.quantized.scale).astype(np.float32, copy=False),
                movement(self.quantized.zero_point).astype(np.int32, copy=False),
                self.quantized.bits,
                self.quantized.signed,
            ),
        )

    def reals(self) -> NDArray[np.float64]:
        """The values in double precision, computed from the integer form if there is one."""
        if self.quantized is None:
            return self.value.astype(np.float64)
        stored = self.quantized
        offset = stored.integers.astype(np.float64) - stored.zero_point
        return np.asarray(offset * stored.scale, dtype=np.float64)


def dequantized(
    integers: NDArray[np.generic],
    scale: NDArray[np.float32],
    zero_point: NDArray[np.generic],
    axis: int,
    block: int = 0,
) -> Constant:
    """Apply DequantizeLinear to constant integers.

    `scale` and `zero_point` have one element, one per position along `axis`, or one per `block` positions
    along it. Raises ValueError if the shapes do not fit.
    """
    if scale.size > 1 and not -integers.ndim <= axis < integers.ndim:
        raise ValueError(f"axis {axis} is outside a constant of {integers.ndim} dimensions")
    wide, zero = integers.astype(np.int32), zero_point.astype(np.int32)
    if block:
        scales = _over_blocks(scale, integers.shape, axis, block)
        zero_points = _over_blocks(zero, integers.shape, axis, block)
    else:
        along = (1,) * integers.ndim
        if scale.size > 1:
            axis %= integers.ndim
            along = tuple(scale.size if position == axis else 1 for position in range(integers.ndim))
        scales = np.broadcast_to(scale.reshape(along), integers.shape)
        zero_points = np.broadcast_to(zero.reshape(along), integers.shape)
    with np.errstate(invalid="ignore", over="ignore"):  # the reader of an infinite scale reports it
        value = ((wide - zero_points).astype(np.float32) * scales).astype(np.float32)
    bits = integers.dtype.itemsize * 8
    return Constant(value, Quantized(wide, scales, zero_points, bits, integers.dtype.kind == "i"))


def _over_blocks(
    parameter: NDArray[_Number], shape: tuple[int, ...], axis: int, block: int
) -> NDArray[_Number]:
    """Expand a parameter with one value per block along an axis to one value per element."""
    size = shape[axis]
    blocks = tuple(-(-size // block) if at == axis % len(shape) else each for at, each in enumerate(shape))
    if block < 0 or parameter.shape != blocks:
        raise ValueError(f"parameters {list(parameter.shape)} do not fit {list(shape)} in blocks of {block}")
    return np.asarray(np.take(parameter, np.arange(size) // block, axis=axis))


def integers_of(constant: Constant) -> list[int]:
    """The constant's elements as integers."""
    return [int(item) for item in constant.value.reshape(-1).tolist()]
