"""Views: nodes that only transform index arrays, and cost nothing at run time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

from mcudeploy.frontend.onnx.constants import Constant
from mcudeploy.frontend.onnx.nodes import Node, Unsupported
from mcudeploy.frontend.onnx.values import IndexArray

_ViewRule = Callable[[Mapping[str, Constant], Node, IndexArray], IndexArray]


def _integers(constants: Mapping[str, Constant], name: str, label: str) -> tuple[int, ...]:
    constant = constants.get(name)
    if constant is None:
        raise Unsupported(f"{label} must be constant")
    return tuple(int(item) for item in constant.value.reshape(-1))


def axes_of(constants: Mapping[str, Constant], node: Node, rank: int) -> tuple[int, ...] | None:
    """The axes of a node, from its second input or an attribute, in [0, rank); None if absent.

    Raises Unsupported for axes out of range.
    """
    if node.input(1):
        axes: tuple[int, ...] | None = _integers(constants, node.input(1), "the axes")
    else:
        axes = node.integers("axes")
    if axes is None:
        return None
    if any(not -rank <= axis < rank for axis in axes):
        raise Unsupported(f"axes {list(axes)} are outside {rank} dimensions")
    return tuple(sorted({axis % rank for axis in axes}))


def _reshape(constants: Mapping[str, Constant], node: Node, index: IndexArray) -> IndexArray:
    wanted = list(_integers(constants, node.input(1), "the shape"))
    if node.integer("allowzero", 0) == 0:
        for axis, size in enumerate(wanted):
            if size == 0 and axis < index.ndim:
                wanted[axis] = index.shape[axis]
    known = prod(size for size in wanted if size != -1)
    is_shape = known > 0 and min(wanted, default=0) >= -1 and wanted.count(-1) <= 1
    if not is_shape or (index.size % known if -1 in wanted else index.size != known):
        raise Unsupported(f"{list(index.shape)} cannot be reshaped to {wanted}")
    return index.reshape(wanted)


def _flatten(constants: Mapping[str, Constant], node: Node, index: IndexArray) -> IndexArray:
    axis = node.integer("axis", 1)
    if not -index.ndim <= axis <= index.ndim:
        raise Unsupported(f"axis {axis} is outside {index.ndim} dimensions")
    axis = axis + index.ndim if axis < 0 else axis
    return index.reshape(prod(index.shape[:axis]), -1)


def _squeeze(constants: Mapping[str, Constant], node: Node, index: IndexArray) -> IndexArray:
    axes = axes_of(constants, node, index.ndim)
    if axes is None:
        axes = tuple(axis for axis, size in enumerate(index.shape) if size == 1)
    if any(index.shape[axis] != 1 for axis in axes):
        raise Unsupported(f"axes {list(axes)} of {list(index.shape)} cannot be squeezed")
    return index.squeeze(axes)


def _unsqueeze(constants: Mapping[str, Constant], node: Node, index: IndexArray) -> IndexArray:
    new_axes = _integers(constants, node.input(1), "the axes") if node.input(1) else node.integers("axes")
    if new_axes is None:
        raise Unsupported("the axes are missing")
    axes = axes_of(constants, node, index.ndim + len(new_axes))
    if axes is None or len(axes) != len(new_axes):
        raise Unsupported(f"axes {list(new_axes)} repeat")
    rest = iter(index.shape)
    return index.reshape([1 if axis in axes else next(rest) for axis in range(index.ndim + len(axes))])


def _transpose(constants: Mapping[str, Constant], node: Node, index: IndexArray) -> IndexArray:
    perm = node.integers("perm") or tuple(reversed(range(index.ndim)))
    if sorted(perm) != list(range(index.ndim)):
        raise Unsupported(f"perm {list(perm)} is not a permutation of {index.ndim} dimensions")
    return index.transpose(perm)


VIEWS: dict[str, _ViewRule] = {
    "Reshape": _reshape,
    "Flatten": _flatten,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Transpose": _transpose,
    "Identity": lambda constants, node, index: index,
}
"""For each view, the function from the index array of its input to that of its result."""


def view_index(constants: Mapping[str, Constant], node: Node, index: IndexArray) -> IndexArray:
    """The index array after a view. Raises Unsupported if it does not fit the input."""
    return VIEWS[node.op](constants, node, index)
