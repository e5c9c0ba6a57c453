"""Open dimensions of a model's inputs: given by the user, or the batch, which is 1."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import GraphProto, ValueInfoProto

from mcudeploy.common.errors import ModelError, UsageError
from mcudeploy.frontend.names import printable

Sizes = tuple[int, ...]
_REMEDY = "export the model with them, or fix them with onnxruntime.tools.make_dynamic_shape_fixed"


def fix_inputs(graph: GraphProto, shapes: Mapping[str, Sizes], remedy: str = "") -> tuple[str, ...]:
    """Writes the given shapes, takes an open batch as 1, and says so in notes.

    Raises ModelError for other open or negative sizes, with the remedy, and UsageError for given shapes
    that are of no input, or contradict the model.
    """
    initializers = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in initializers]
    unknown = sorted(set(shapes) - {value.name for value in inputs})
    if unknown:
        known = ", ".join(printable(value.name) for value in inputs)
        raise UsageError(f"the model has no input {printable(unknown[0])!r}; its inputs are {known}")
    sizes: dict[str, int] = {}
    notes: list[str] = []
    for value in inputs:
        if value.name in shapes and value.type.HasField("tensor_type"):
            _give(value, shapes[value.name], sizes)
    for value in inputs:
        if not value.type.HasField("tensor_type") or not value.type.tensor_type.HasField("shape"):
            raise ModelError(f"input {printable(value.name)!r} is not a tensor with a shape")
        for axis, dimension in enumerate(value.type.tensor_type.shape.dim):
            if dimension.HasField("dim_value"):
                if dimension.dim_value < 0:
                    raise ModelError(
                        f"input {printable(value.name)!r} has a negative dimension: "
                        f"dimension {axis} is {dimension.dim_value}"
                    )
                continue
            if dimension.dim_param in sizes:
                dimension.dim_value = sizes[dimension.dim_param]
                continue
            called = printable(dimension.dim_param) or "?"
            if axis > 0:
                raise ModelError(
                    f"input {printable(value.name)!r} has an open dimension {axis} "
                    f"({called}): microcontroller code needs fixed shapes; {remedy or _REMEDY}"
                )
            notes.append(
                f"input {printable(value.name)!r}: dimension 0 ({called}) is open and taken as a batch of 1; "
                "export the model with another size where that is not meant"
            )
            if dimension.dim_param:
                sizes[dimension.dim_param] = 1
            dimension.dim_value = 1
    _fix_others(graph, sizes)
    return tuple(notes)


def _give(value: ValueInfoProto, shape: Sizes, sizes: dict[str, int]) -> None:
    """Writes a shape into an input, and what its names stand for into `sizes`. Raises UsageError."""
    kind, name = value.type.tensor_type, printable(value.name)
    if not kind.HasField("shape"):
        for _ in shape:
            kind.shape.dim.add()
    found = ", ".join(
        str(dimension.dim_value) if dimension.HasField("dim_value") else printable(dimension.dim_param) or "?"
        for dimension in kind.shape.dim
    )
    if len(kind.shape.dim) != len(shape):
        raise UsageError(
            f"the shape {list(shape)} is given for input {name!r}, which has {len(kind.shape.dim)} "
            f"dimensions: [{found}]"
        )
    for dimension, size in zip(kind.shape.dim, shape, strict=True):
        symbol = dimension.dim_param
        known = dimension.dim_value if dimension.HasField("dim_value") else sizes.get(symbol, size)
        if known != size:
            raise UsageError(
                f"the shape {list(shape)} is given for input {name!r}, which has [{found}]: "
                f"{printable(symbol) or 'a dimension'} is {known}, not {size}"
            )
        if symbol:
            sizes[symbol] = size
        dimension.dim_value = size


def _fix_others(graph: GraphProto, sizes: Mapping[str, int]) -> None:
    """Writes the sizes of names everywhere, and drops value infos that stay open."""
    kept = []
    for value in graph.value_info:
        dimensions = value.type.tensor_type.shape.dim
        for dimension in dimensions:
            if dimension.dim_param in sizes:
                dimension.dim_value = sizes[dimension.dim_param]
        if all(dimension.HasField("dim_value") for dimension in dimensions):
            kept.append(value)
    del graph.value_info[:]
    graph.value_info.extend(kept)
    for value in graph.output:
        for dimension in value.type.tensor_type.shape.dim:
            if dimension.dim_param in sizes:
                dimension.dim_value = sizes[dimension.dim_param]
