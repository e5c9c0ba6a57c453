"""Shapes of inputs: given by the user, or stated by the file, in which an open batch becomes 1."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

from onnx import GraphProto, TensorShapeProto, ValueInfoProto

from mcudeploy.common.errors import ModelError, UsageError
from mcudeploy.common.text import printable
from mcudeploy.frontend.onnx.protos import graphs_of, refill

Sizes = tuple[int, ...]
Shapes = Mapping[str, Sizes]
"""Shapes that the user sets, by input."""

NO_SHAPES: Shapes = MappingProxyType({})

_UNKNOWN_PREFIX = "unk__"
"""Beginning of the names that tf2onnx gives to unknown sizes; Paddle names each of them ?."""
_ASSUMED = "is open and taken as a batch of 1"


@contextmanager
def assumptions_named(notes: Iterable[str]) -> Iterator[None]:
    """Add the notes on assumed sizes to a ModelError raised inside."""
    try:
        yield
    except ModelError as fault:
        assumed = tuple(note for note in notes if _ASSUMED in note and note not in fault.assumed)
        if not assumed:
            raise
        message = f"{fault} ({'; '.join(assumed)})"
        raise ModelError(message, fault.problems, (*fault.assumed, *assumed)) from fault


def fix_inputs(graph: GraphProto, shapes: Shapes) -> tuple[str, ...]:
    """Write the given shapes into the inputs, set an open batch to 1, and return a note for each such batch.

    If a given shape differs from the file's, the shapes of all later values are removed, to be inferred
    again. Negative sizes count as open, as in ONNX Runtime; Paddle writes -1. Raises ModelError for other
    open sizes, and UsageError for shapes of unknown inputs, and for shapes that contradict each other.
    """
    _clear_negative_sizes(graph)
    initializers = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in initializers]
    unknown = sorted(set(shapes) - {value.name for value in inputs})
    if unknown:
        known = ", ".join(printable(value.name) for value in inputs)
        raise UsageError(f"the model has no input {printable(unknown[0])!r}; its inputs are {known}")
    sizes: dict[str, int] = {}
    notes: list[str] = []
    changed = False
    for value in inputs:
        if value.name in shapes and value.type.HasField("tensor_type"):
            changed |= _set_shape(value, shapes[value.name], sizes)
    for value in inputs:
        if not value.type.HasField("tensor_type") or not value.type.tensor_type.HasField("shape"):
            raise ModelError(f"input {printable(value.name)!r} is not a tensor with a shape")
        for axis, dimension in enumerate(value.type.tensor_type.shape.dim):
            if dimension.HasField("dim_value"):
                continue
            symbol = _symbol(dimension)
            if symbol in sizes:
                dimension.dim_value = sizes[symbol]
                continue
            size_name = printable(symbol) or "?"
            if axis > 0:
                raise ModelError(
                    f"input {printable(value.name)!r} has an open dimension {axis} "
                    f"({size_name}): microcontroller code needs fixed shapes; export the model with them, or "
                    f"give them: {_shape_option(value)}"
                )
            notes.append(
                f"input {printable(value.name)!r}: dimension 0 ({size_name}) {_ASSUMED}; "
                f"another one is given by {_shape_option(value)}"
            )
            if symbol:
                sizes[symbol] = 1
            dimension.dim_value = 1
    if changed:
        _clear_shapes(graph)
    _fix_values(graph, sizes)
    return tuple(notes)


def _clear_negative_sizes(graph: GraphProto) -> None:
    for inner in graphs_of(graph):
        for value in (*inner.input, *inner.output, *inner.value_info):
            for dimension in value.type.tensor_type.shape.dim if value.type.HasField("tensor_type") else ():
                if dimension.dim_value < 0:
                    dimension.ClearField("dim_value")


def _symbol(dimension: TensorShapeProto.Dimension) -> str:
    """The name of an open size, which has one value in all inputs; "" for an unknown size without a name."""
    name: str = dimension.dim_param
    return "" if name.startswith(_UNKNOWN_PREFIX) or not any(map(str.isalnum, name)) else name


def _shape_option(value: ValueInfoProto) -> str:
    """The command-line option that sets the shape of an input, with its open sizes by name."""
    return f"--shape {printable(value.name)}={','.join(_sizes(value, 'N'))} with numbers"


def _sizes(value: ValueInfoProto, unknown: str) -> list[str]:
    """The sizes of a value as text: numbers, names, or `unknown`."""
    return [
        str(each.dim_value) if each.HasField("dim_value") else printable(_symbol(each)) or unknown
        for each in value.type.tensor_type.shape.dim
    ]


def _set_shape(value: ValueInfoProto, shape: Sizes, sizes: dict[str, int]) -> bool:
    """Write a shape into an input, and its named sizes into `sizes`; return if the file states another shape.

    Raises UsageError for a shape that does not fit.
    """
    kind, name = value.type.tensor_type, printable(value.name)
    if not kind.HasField("shape"):
        for _ in shape:
            kind.shape.dim.add()
    sizes_text = ", ".join(_sizes(value, "?"))
    if len(kind.shape.dim) != len(shape):
        raise UsageError(
            f"the shape {list(shape)} is given for input {name!r}, which has {len(kind.shape.dim)} "
            f"dimensions: [{sizes_text}]"
        )
    changed = False
    for dimension, size in zip(kind.shape.dim, shape, strict=True):
        symbol = _symbol(dimension)
        if sizes.get(symbol, size) != size:
            raise UsageError(
                f"the shape {list(shape)} is given for input {name!r}, which has [{sizes_text}]: "
                f"{printable(symbol)} is {sizes[symbol]} in another input"
            )
        if symbol:
            sizes[symbol] = size
        changed |= dimension.HasField("dim_value") and dimension.dim_value != size
        dimension.dim_value = size
    return changed


def _clear_shapes(graph: GraphProto) -> None:
    """Remove the shapes of all values except inputs."""
    for value in graph.output:
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
    for inner in graphs_of(graph):
        del inner.value_info[:]


def _fix_values(graph: GraphProto, sizes: Mapping[str, int]) -> None:
    """Replace named sizes of all values, and remove value infos of which a size stays open."""
    fixed = []
    for value in graph.value_info:
        dimensions = value.type.tensor_type.shape.dim
        for dimension in dimensions:
            if (symbol := _symbol(dimension)) in sizes:
                dimension.dim_value = sizes[symbol]
        if all(dimension.HasField("dim_value") for dimension in dimensions):
            fixed.append(value)
    refill(graph.value_info, fixed)
    for value in graph.output:
        for dimension in value.type.tensor_type.shape.dim:
            if (symbol := _symbol(dimension)) in sizes:
                dimension.dim_value = sizes[symbol]
