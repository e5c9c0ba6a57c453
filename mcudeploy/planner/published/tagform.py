"""The program from which memory tags are computed, and the tags.

A model contains functions, which contain operators, with tuples and calls. A body binds names to values, in
order. A value is a tensor, or a tuple of tensors: an operator or a function with several results returns one,
`Tuple` builds one, `Get` extracts a field.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mcudeploy.boards.board import Board
from mcudeploy.ir.graph import Graph, Operator
from mcudeploy.ir.plan import Function
from mcudeploy.tiling.dataflow import Dataflow


@dataclass(frozen=True, slots=True)
class Type:
    """The number of elements of a tensor and their declared type, which `sizes` may override."""

    elements: int
    dtype: str


@dataclass(frozen=True, slots=True)
class Op:
    """An operator: a value with these `results`.

    `overwrites`: inputs, by position, whose memory it may take over. `quantizes`: it is a quantise or
    fake-quantise node, which determines the type that the operator before it writes.
    """

    name: str
    inputs: tuple[str, ...]
    results: tuple[Type, ...]
    overwrites: tuple[int, ...] = ()
    quantizes: bool = False


@dataclass(frozen=True, slots=True)
class Tuple:
    """A tuple of values."""

    name: str
    inputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Get:
    """One field of a tuple."""

    name: str
    source: str
    field: int


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call of a function by the model; its arguments are tensors in the order of the body's inputs.

    Each function is called once.
    """

    name: str
    function: str
    inputs: tuple[str, ...]


Node = Op | Tuple | Get | FunctionCall


@dataclass(frozen=True, slots=True)
class Body:
    """Bindings in order. Inputs and constants are tensors; so are a function's outputs, which it writes."""

    inputs: Mapping[str, Type]
    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]
    constants: Mapping[str, Type]


@dataclass(frozen=True, slots=True)
class Subgraph:
    """A function: operators that one compute unit runs."""

    unit: str
    body: Body


@dataclass(frozen=True, slots=True)
class TagProgram:
    """A model: functions by name, and the body that calls them."""

    functions: Mapping[str, Subgraph]
    body: Body


Origin = tuple[str, int]
"""A tensor of a body: the node (or input) that writes it, and the field of its results."""

MODEL = ""
"""The scope of the model's body; a function's scope is its name."""

Place = tuple[str, Origin]
"""A tensor: its scope, and its origin there."""


@dataclass(frozen=True, slots=True)
class Tag:
    """Bytes in one of `memories` that tensors use in turn; `count`: references left at the end."""

    number: int
    bytes: int
    alignment: int
    memories: tuple[str, ...]
    count: int


@dataclass(frozen=True, slots=True)
class Row:
    """The allocations at a node: how each of its tensors got which tag; and the counts afterwards.

    The kinds: `new`, `free` (a free tag), `grown` (a free one, enlarged), `shared` (an input's), `output`
    (the one that the call has for it).
    """

    scope: str
    node: str
    made: tuple[tuple[str, int], ...]
    counts: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class UnitTransfer:
    """A step between units: `copy`, `clean` or `invalidate` of a tensor of the model, run by a unit."""

    kind: str
    tensor: str
    unit: str


@dataclass(frozen=True, slots=True)
class Tagging:
    """All tags, the tag of every tensor, the allocations in order, and the steps between units.

    A copy for a unit has the place of its tensor in a scope of that unit's name, preceded by `@`.
    """

    tags: tuple[Tag, ...]
    places: Mapping[Place, int]
    rows: tuple[Row, ...]
    transfers: tuple[UnitTransfer, ...]

    @property
    def bytes(self) -> int:
        """Sum of all tags in bytes."""
        return sum(tag.bytes for tag in self.tags)


def origins(body: Body, results: Mapping[str, int]) -> dict[str, tuple[Origin, ...]]:
    """Return, for each value, the tensors of which it consists; `results` counts those of each call.

    A tuple consists of its fields' tensors; an extracted field is the tensor itself. Raises KeyError for a
    name that is used before it is bound.
    """
    found: dict[str, tuple[Origin, ...]] = {name: ((name, 0),) for name in (*body.inputs, *body.constants)}
    for node in body.nodes:
        match node:
            case Op():
                assert all(name in found for name in node.inputs), f"{node.name} reads what is not bound"
                found[node.name] = tuple((node.name, field) for field in range(len(node.results)))
            case FunctionCall():
                found[node.name] = tuple((node.name, field) for field in range(results[node.name]))
            case Tuple():
                found[node.name] = tuple(origin for name in node.inputs for origin in found[name])
            case Get():
                found[node.name] = (found[node.source][node.field],)
    return found


def result_counts(program: TagProgram) -> dict[str, int]:
    """Return the number of results of every call of a program."""
    return {
        node.name: len(program.functions[node.function].body.outputs)
        for node in program.body.nodes
        if isinstance(node, FunctionCall)
    }


def program_of(graph: Graph, board: Board, functions: Sequence[Function]) -> TagProgram:
    """Return a graph and its functions as a program; without functions the board's first unit has one.

    Views are their sources. Constants lie in flash and have no tags. Types are those of the graph: its front
    end has folded quantise nodes into the operators before them.
    """
    whole = Function(board.units[0].name, tuple(operator.name for operator in graph.operators))
    roots = Dataflow.of(graph).roots
    by_name = {operator.name: operator for operator in graph.operators}
    groups = [
        [by_name[name] for name in it.operators if not by_name[name].op.is_view]
        for it in functions or (whole,)
    ]
    last = {roots[border.tensor] for border in graph.outputs}
    calls: list[Node] = []
    subgraphs: dict[str, Subgraph] = {}
    for number, (function, group) in enumerate(zip(functions or (whole,), groups, strict=True)):
        if not group:
            continue
        made = {operator.output for operator in group}
        read = {roots[name] for other in groups if other is not group for it in other for name in it.inputs}
        inputs = list(
            dict.fromkeys(roots[name] for it in group for name in it.inputs if roots[name] not in made)
        )
        outputs = tuple(it.output for it in group if it.output in read | last)
        types = {name: _type(graph, name) for name in inputs}
        name = f"function_{number}"
        subgraphs[name] = Subgraph(
            function.unit, Body(types, tuple(_op(graph, roots, it) for it in group), outputs, {})
        )
        if len(outputs) == 1:
            calls.append(FunctionCall(outputs[0], name, tuple(inputs)))
        else:
            calls.append(FunctionCall(f"results of {name}", name, tuple(inputs)))
            calls += [Get(output, f"results of {name}", field) for field, output in enumerate(outputs)]
    model_inputs = {it.tensor: _type(graph, it.tensor) for it in graph.resident_inputs()}
    return TagProgram(subgraphs, Body(model_inputs, tuple(calls), tuple(sorted(last)), {}))


def _op(graph: Graph, roots: Mapping[str, str], operator: Operator) -> Op:
    inputs, output = graph.input_tensors(operator), graph.tensors[operator.output]
    return Op(
        operator.output,
        tuple(roots[name] for name in operator.inputs),
        (_type(graph, operator.output),),
        operator.op.overwrites(inputs, output),
    )


def _type(graph: Graph, name: str) -> Type:
    return Type(graph.tensors[name].elements, graph.tensors[name].dtype.value)
