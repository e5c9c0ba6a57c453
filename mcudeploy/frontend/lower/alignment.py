"""Operands of a function of two values, brought into the layout of the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from mcudeploy.frontend.lower.builder import Builder
from mcudeploy.frontend.onnx.constants import Constant
from mcudeploy.frontend.onnx.nodes import Node
from mcudeploy.frontend.onnx.values import (
    IndexArray,
    OnnxValue,
    axis_shapes,
    compressed,
    default_layout,
    natural_shape,
    positions,
    scattered,
)
from mcudeploy.ir.graph import Shape
from mcudeploy.ir.opdef import ConstantArray

Operands = tuple[OnnxValue | Constant, OnnxValue | Constant]


@dataclass(frozen=True, slots=True, eq=False)
class Aligned:
    """Two operands in the layout of their result: its stored shape, and the positions of its elements.

    `inputs` are the tensors. One operand may be a constant: `place` is its number among the operands.
    `constant` has size 1 along dimensions on which the constant does not depend.
    """

    inputs: tuple[str, ...]
    shape: Shape
    index: IndexArray
    place: int | None = None
    constant: ConstantArray | None = None

    @property
    def constants(self) -> dict[str, ConstantArray]:
        """The constants of the operator."""
        return {} if self.constant is None else {"constant": self.constant}

    @property
    def constant_shape(self) -> Shape | None:
        """The stored shape of the constant."""
        if self.constant is None:
            return None
        rows, cols, channels = self.constant.shape
        return rows, cols, channels


def aligned(
    builder: Builder,
    operands: Operands,
    nodes: Sequence[Node] = (),
    elements: Callable[[Constant], ConstantArray] = lambda constant: constant.value.astype(np.int32),
) -> Aligned:
    """Bring both operands into the layout of the larger one; `elements` converts a constant's elements."""
    shape = np.broadcast_shapes(operands[0].shape, operands[1].shape)
    stored, index = _common_layout(builder, operands, shape)
    inputs: list[str] = []
    place, constant = None, None
    for at, operand in enumerate(operands):
        if isinstance(operand, OnnxValue):
            wanted = _broadcast_positions(operand.index, shape, index, stored)
            inputs.append(builder.arranged(operand.tensor, wanted, nodes))
        else:
            wanted = _broadcast_positions(positions(operand.shape), shape, index, stored)
            place, constant = at, elements(operand).reshape(-1)[wanted]
    return Aligned(tuple(inputs), stored, index, place, constant)


def _common_layout(builder: Builder, operands: Operands, shape: tuple[int, ...]) -> tuple[Shape, IndexArray]:
    """The stored shape and positions of the largest activation, or the default if none has the result's size.

    A view of the stored shape is preferred if the other operand repeats along whole dimensions of it.
    """
    for operand in operands:
        if isinstance(operand, OnnxValue) and operand.index.size == prod(shape):
            index, stored_shape = operand.index.reshape(shape), builder.shape_of(operand.tensor)
            views = [view for axis in range(index.ndim) for view in axis_shapes(index, axis)]
            views += _merged(operands, shape)
            for stored in (stored_shape, *views):
                if all(_needs_no_copy(other, shape, index, stored) for other in operands):
                    return stored, index
            return stored_shape, index
    return default_layout(shape)


def _merged(operands: Operands, shape: tuple[int, ...]) -> list[Shape]:
    """The shape of the result with neighbouring axes merged if the same operands repeat along both.

    Empty unless three axes remain.
    """
    padded = [(1,) * (len(shape) - len(operand.shape)) + operand.shape for operand in operands]
    sizes: list[int] = []
    last: tuple[bool, ...] | None = None
    for size, *operand_sizes in zip(shape, *padded, strict=True):
        repeats = tuple(each != size for each in operand_sizes)
        if size == 1:
            continue
        if repeats == last:
            sizes[-1] *= size
        else:
            sizes.append(size)
        last = repeats
    return [natural_shape(tuple(sizes))] if len(sizes) == 3 else []


def _needs_no_copy(
    operand: OnnxValue | Constant, shape: tuple[int, ...], index: IndexArray, stored: Shape
) -> bool:
    """Whether an operand fits a layout without a copy: its repeats, if any, are along whole dimensions."""
    places = positions(operand.shape) if isinstance(operand, Constant) else operand.index
    return _broadcast_positions(places, shape, index, stored).size == places.size


def _broadcast_positions(
    places: IndexArray, shape: tuple[int, ...], index: IndexArray, stored: Shape
) -> IndexArray:
    """The positions of an operand in a result's layout; size 1 along dimensions that do not change them."""
    wanted = scattered(index, stored, np.broadcast_to(places, shape))
    return compressed(np.asarray(wanted, np.int32))
