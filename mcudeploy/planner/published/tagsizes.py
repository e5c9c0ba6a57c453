"""The sizes of a program's tensors on their compute units: types, alignments, bytes.

A function's inputs and outputs have a type and an alignment that its unit supports. An operator's inputs and
outputs that are the function's have those too. An operator before a quantise node writes the type of that
node. Model inputs and outputs match the functions that they touch.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm

from mcudeploy.boards.board import Board, Unit
from mcudeploy.planner.place.placement_problem import align_up
from mcudeploy.planner.published.tagform import (
    MODEL,
    Body,
    FunctionCall,
    Op,
    Origin,
    Place,
    Subgraph,
    TagProgram,
    Type,
    origins,
    result_counts,
)

_BITS = {"int8": 8, "uint8": 8, "int16": 16, "int32": 32, "float16": 16, "float32": 32}


@dataclass(frozen=True, slots=True)
class TensorSize:
    """`bytes` = elements * bits / 8, rounded up to the alignment."""

    dtype: str
    alignment: int
    bytes: int


def sizes(program: TagProgram, board: Board, alignment: int = 1) -> dict[Place, TensorSize]:
    """Return the size of every tensor of a program; `alignment` is the model's own, in bytes.

    Raises ValueError for a tensor that is read as different types: it needs a conversion.
    """
    found: dict[Place, TensorSize] = {}
    kinds: dict[Place, Type] = {}
    for name, function in program.functions.items():
        unit = board.unit(function.unit)
        for origin, kind in _types(function.body).items():
            dtype = _dtype(function, unit, origin, kind)
            kinds[name, origin] = kind
            found[name, origin] = _size(kind.elements, dtype, lcm(alignment, unit.alignment))
    for origin, kind in _types(program.body).items():
        found[MODEL, origin] = _size(kind.elements, kind.dtype, alignment)
    for origin, (makers, readers) in _touched(program).items():
        touching = [*makers, *readers]
        dtypes = sorted({found[place].dtype for place in readers or makers})
        if len(dtypes) > 1:
            raise ValueError(f"{origin[0]} is read as {' and as '.join(dtypes)}")
        grain = lcm(alignment, *(found[place].alignment for place in touching))
        size = _size(kinds[touching[0]].elements, dtypes[0], grain)
        found |= dict.fromkeys([(MODEL, origin), *touching], size)
    return found


def _dtype(function: Subgraph, unit: Unit, origin: Origin, kind: Type) -> str:
    values = origins(function.body, {})
    if origin[0] in function.body.inputs or any(origin in values[name] for name in function.body.outputs):
        return kind.dtype if kind.dtype in unit.dtypes else unit.dtypes[0]
    readers = [
        node
        for node in function.body.nodes
        if isinstance(node, Op) and any(origin in values[name] for name in node.inputs)
    ]
    if readers and all(reader.quantizes for reader in readers):
        return readers[0].results[0].dtype
    return kind.dtype


def _types(body: Body) -> dict[Origin, Type]:
    """Return the declared types of inputs, constants and results of operators."""
    found = {(name, 0): kind for name, kind in (*body.inputs.items(), *body.constants.items())}
    for node in body.nodes:
        if isinstance(node, Op):
            found |= {(node.name, field): kind for field, kind in enumerate(node.results)}
    return found


def _touched(program: TagProgram) -> dict[Origin, tuple[list[Place], list[Place]]]:
    """Return, for tensors of the model that functions touch, their places in writers and in readers."""
    values = origins(program.body, result_counts(program))
    found: dict[Origin, tuple[list[Place], list[Place]]] = {}
    for node in program.body.nodes:
        if not isinstance(node, FunctionCall):
            continue
        inside = program.functions[node.function].body
        for parameter, argument in zip(inside.inputs, node.inputs, strict=True):
            (origin,) = values[argument]
            found.setdefault(origin, ([], []))[1].append((node.function, (parameter, 0)))
        made = origins(inside, {})
        for field, output in enumerate(inside.outputs):
            (origin,) = made[output]
            found.setdefault((node.name, field), ([], []))[0].append((node.function, origin))
    return found


def _size(elements: int, dtype: str, alignment: int) -> TensorSize:
    return TensorSize(dtype, alignment, align_up(-(-elements * _BITS[dtype] // 8), alignment))
