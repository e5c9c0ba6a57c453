"""Two operands in the layout of their result."""

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
    """Two operands in the layout of their result, whose positions are `index`. One may be a constant: its
    place, and its elements without the dimensions along which it repeats.
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
    """Bring both operands into one layout, that of the larger one. `elements`: how a constant is stored."""
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
    """The layout of the largest activation, viewed if possible so that others repeat along whole
    dimensions.
    """
    for operand in operands:
        if isinstance(operand, OnnxValue) and operand.index.size == prod(shape):
            index, own = operand.index.reshape(shape), builder.shape_of(operand.tensor)
            views = [view for axis in range(index.ndim) for view in axis_shapes(index, axis)]
            views += _merged(operands, shape)
            for stored in (own, *views):
                if all(_repeats(other, shape, index, stored) for other in operands):
                    return stored, index
            return own, index
    return default_layout(shape)


def _merged(operands: Operands, shape: tuple[int, ...]) -> list[Shape]:
    """The shape of the result with axes merged along which the same operands repeat; empty unless three
    remain.
    """
    padded = [(1,) * (len(shape) - len(operand.shape)) + operand.shape for operand in operands]
    sizes: list[int] = []
    last: tuple[bool, ...] | None = None
    for size, *own in zip(shape, *padded, strict=True):
        repeats = tuple(each != size for each in own)
        if size == 1:
            continue
        if repeats == last:
            sizes[-1] *= size
        else:
            sizes.append(size)
        last = repeats
    return [natural_shape(tuple(sizes))] if len(sizes) == 3 else []


def _repeats(operand: OnnxValue | Constant, shape: tuple[int, ...], index: IndexArray, stored: Shape) -> bool:
    """Whether an operand has as many positions in a layout as elements."""
    places = positions(operand.shape) if isinstance(operand, Constant) else operand.index
    return _broadcast_positions(places, shape, index, stored).size == places.size


def _broadcast_positions(
    places: IndexArray, shape: tuple[int, ...], index: IndexArray, stored: Shape
) -> IndexArray:
    """The positions of an operand in the layout of a result, once along dimensions that it repeats along."""
    wanted = scattered(index, stored, np.broadcast_to(places, shape))
    return compressed(np.asarray(wanted, np.int32))
