"""A model in the form that memory tags are worked out on: model > function > operator, with tuples and calls;
and the form of what comes out.

A body binds names to values, in order. A value is a tensor, or a tuple of tensors: an operator or a function
with several results gives one, `Tuple` makes one, `Get` takes a field out.
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
    """Elements of a tensor and what they are by their declaration, which sizes may overrule."""

    elements: int
    dtype: str


@dataclass(frozen=True, slots=True)
class Op:
    """An operator: a value of these `results`.

    `overwrites`: inputs, by position, whose memory it may take over. `quantizes`: it is a quantise or
    fake-quantise node, which stands for what the operator in front of it writes.
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
    """The model calls a function, each one once, for tensors in the order of its body's inputs."""

    name: str
    function: str
    inputs: tuple[str, ...]


Node = Op | Tuple | Get | FunctionCall


@dataclass(frozen=True, slots=True)
class Body:
    """Bindings in order. Inputs and constants are tensors; so are a function's outputs, which it makes."""

    inputs: Mapping[str, Type]
    nodes: tuple[Node, ...]
    outputs: tuple[str, ...]
    constants: Mapping[str, Type]


@dataclass(frozen=True, slots=True)
class Subgraph:
    """A function: what one compute unit runs in one go."""

    unit: str
    body: Body


@dataclass(frozen=True, slots=True)
class TagProgram:
    """A model: functions by name, and the body that calls them."""

    functions: Mapping[str, Subgraph]
    body: Body


Origin = tuple[str, int]
"""A tensor of a body: the node (or input) that brought it about, and the field of its results."""

MODEL = ""
"""The scope of the model's own body; that of a function is its name."""

Place = tuple[str, Origin]
"""A tensor: its scope, and what brings it about there."""


@dataclass(frozen=True, slots=True)
class Tag:
    """Bytes in one of `memories` that tensors have in turn; `count`: references left at the end."""

    number: int
    bytes: int
    alignment: int
    memories: tuple[str, ...]
    count: int


@dataclass(frozen=True, slots=True)
class Row:
    """What happened at a node: for each tensor that it makes how it got which tag; and the counts afterwards.

    The ways: `new`, `free` (a free tag), `grown` (a free one, made larger), `shared` (an input's), `output`
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
    """All tags, the tag of every tensor, what happened in order, and the steps between units.

    A copy for a unit has the place of its tensor in a scope of that unit's name, preceded by `@`.
    """

    tags: tuple[Tag, ...]
    places: Mapping[Place, int]
    rows: tuple[Row, ...]
    transfers: tuple[UnitTransfer, ...]

    @property
    def bytes(self) -> int:
        """Of all tags."""
        return sum(tag.bytes for tag in self.tags)


def origins(body: Body, results: Mapping[str, int]) -> dict[str, tuple[Origin, ...]]:
    """By value the tensors that it is or consists of; `results` has the number of those of each call.

    A tuple has its fields' tensors, a field taken out is the tensor itself. Raises KeyError for a name that
    is not bound before it is used.
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
    """Of every call of a program the number of its results."""
    return {
        node.name: len(program.functions[node.function].body.outputs)
        for node in program.body.nodes
        if isinstance(node, FunctionCall)
    }


def program_of(graph: Graph, board: Board, functions: Sequence[Function]) -> TagProgram:
    """A graph and its functions in this form; without functions the board's first unit has one.

    Views are what they look at. Constants lie in flash, and have no tags. Types are those of the graph: its
    front end has folded quantise nodes into the operators in front of them.
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
