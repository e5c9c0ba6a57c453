"""The assignment of operators to compute units, and the functions that result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from mcudeploy.boards.board import Board, Unit
from mcudeploy.common.errors import UsageError
from mcudeploy.ir.graph import Graph, Operator
from mcudeploy.ir.plan import Function
from mcudeploy.planner.axes.components import convex, reachability

AUTO = "auto"
"""The rule that assigns to every unit of a board the kinds of operators that it prefers."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """The `first` unit of a board, and by name the units of operators (not views) that run `elsewhere`."""

    first: str = ""
    elsewhere: Mapping[str, str] = field(default_factory=dict)

    def unit(self, operator: str) -> str:
        """Return the name of the unit that runs an operator."""
        return self.elsewhere.get(operator, self.first)

    @classmethod
    def of(cls, functions: Sequence[Function], first: str) -> Assignment:
        """Return the assignment that functions represent."""
        return cls(first, {name: it.unit for it in functions for name in it.operators if it.unit != first})


def assign(graph: Graph, board: Board, rules: Sequence[str]) -> Assignment:
    """Assign operators to units by rules `UNIT=PATTERN[,PATTERN...]` or `auto`; later rules win.

    A pattern is a glob over names of operators and their ONNX nodes, or a kind, case-insensitive. Operators
    without a rule run on the board's first unit. Raises UsageError for an invalid rule, a unit that the board
    lacks, or a pattern without a match.
    """
    units: dict[str, str] = {}
    for rule in rules:
        units |= _by_board(graph, board) if rule.strip().lower() == AUTO else _by_rule(graph, board, rule)
    first = board.units[0].name
    return Assignment(first, {name: unit for name, unit in units.items() if unit != first})


def require_types(graph: Graph, board: Board, assignment: Assignment) -> None:
    """Raises UsageError if a unit does not support the type of a tensor of its operators."""
    for operator in graph.operators:
        unit = board.unit(assignment.unit(operator.name))
        lacking = _lacking(graph, operator, unit)
        if lacking and not operator.op.is_view:
            raise UsageError(
                f"{operator.name} ({operator.op.kind}) has {lacking}, which unit {unit.name} of {board.name} "
                f"does not take; it takes {', '.join(unit.dtypes)}"
            )


def _by_board(graph: Graph, board: Board) -> dict[str, str]:
    chosen = {}
    for operator in graph.operators:
        for unit in board.units:
            prefers = {kind.lower() for kind in unit.prefers}
            if operator.op.kind.lower() in prefers and not _lacking(graph, operator, unit):
                chosen[operator.name] = unit.name
                break
    return chosen


def _by_rule(graph: Graph, board: Board, rule: str) -> dict[str, str]:
    name, equals, patterns = rule.partition("=")
    known = [unit.name for unit in board.units]
    if not equals or not patterns.strip(" ,"):
        raise UsageError(f"{rule!r} assigns nothing: it takes UNIT=PATTERN[,PATTERN...], or {AUTO}")
    if name.strip() not in known:
        raise UsageError(f"{board.name} has no compute unit {name.strip()!r}; it has {', '.join(known)}")
    chosen: dict[str, str] = {}
    for pattern in filter(None, map(str.strip, patterns.split(","))):
        wanted = pattern.lower()
        matching = [
            operator.name
            for operator in graph.operators
            if not operator.op.is_view
            and (wanted == operator.op.kind.lower() or _is_called(operator, wanted))
        ]
        if not matching:
            kinds = sorted({operator.op.kind for operator in graph.operators if not operator.op.is_view})
            raise UsageError(
                f"no operator is called {pattern!r} or of that kind; the kinds are {', '.join(kinds)}"
            )
        chosen |= dict.fromkeys(matching, name.strip())
    return chosen


def _is_called(operator: Operator, wanted: str) -> bool:
    """Return whether an operator, or an ONNX node of it, has the name `wanted` or matches it as a glob."""
    names = [name.lower() for name in (operator.name, *operator.onnx_nodes)]
    return wanted in names or any(fnmatchcase(name, wanted) for name in names)


def _lacking(graph: Graph, operator: Operator, unit: Unit) -> str:
    """Return a tensor type that a unit does not support, or an empty string."""
    tensors = (*graph.input_tensors(operator), graph.tensors[operator.output])
    return next((tensor.dtype.value for tensor in tensors if tensor.dtype not in unit.dtypes), "")


def partition(graph: Graph, assignment: Assignment) -> tuple[Function, ...]:
    """Partition the graph into functions, in an executable order; each operator is in one of them.

    A function contains operators of one unit and is convex: no path leaves it and returns. The functions
    together are acyclic: no two wait for each other. They are maximal: no two of one unit could be merged. A
    view belongs to the operator after it, or to its first reader if its source is a graph input. Without
    operators on other units there are no functions.
    """
    if not assignment.elsewhere:
        return ()
    units = _units(graph, assignment)
    producers = graph.producers()
    sources = [
        {producers[name] for name in operator.inputs if name in producers} for operator in graph.operators
    ]
    groups = _runs(units, sources)
    while (joined := _join_two(groups, units, sources)) is not None:
        groups = joined
    reach = reachability(graph)
    if not all(convex(graph, group, reach) for group in groups):
        raise ValueError("a function is not convex")
    return tuple(
        Function(units[group[0]], tuple(graph.operators[at].name for at in group)) for group in groups
    )


def _units(graph: Graph, assignment: Assignment) -> list[str]:
    """Return the unit of every operator, by position."""
    producers, readers = graph.producers(), graph.readers()
    units = [assignment.unit(operator.name) for operator in graph.operators]
    for position in reversed(range(len(units))):  # views of inputs: their readers already have units
        operator = graph.operators[position]
        if operator.op.is_view and operator.inputs[0] not in producers and readers[operator.output]:
            units[position] = units[readers[operator.output][0]]
    for position, operator in enumerate(graph.operators):
        if operator.op.is_view and operator.inputs[0] in producers:
            units[position] = units[producers[operator.inputs[0]]]
    return units


def _runs(units: Sequence[str], sources: Sequence[set[int]]) -> list[list[int]]:
    """Return groups of operators of one unit, in an executable order.

    A group ends when no further operator of its unit is ready.
    """
    missing = [set(each) for each in sources]
    waiting = set(range(len(units)))
    groups: list[list[int]] = []
    while waiting:
        unit = units[min(at for at in waiting if not missing[at])]
        run: list[int] = []
        while ready := [at for at in waiting if not missing[at] and units[at] == unit]:
            run += ready
            waiting -= set(ready)
            for at in waiting:
                missing[at] -= set(ready)
        groups.append(sorted(run))
    return groups


def _join_two(
    groups: list[list[int]], units: Sequence[str], sources: Sequence[set[int]]
) -> list[list[int]] | None:
    """Merge two groups of one unit; return the groups in an executable order, or None if none can merge.

    Two groups can merge if no third one lies on a path between them.
    """
    group_of = {at: number for number, group in enumerate(groups) for at in group}
    ancestors: list[int] = []
    for number, group in enumerate(groups):
        bits = 0
        for source in {group_of[source] for at in group for source in sources[at]} - {number}:
            bits |= ancestors[source] | 1 << source
        ancestors.append(bits)
    for second in range(len(groups)):
        for first in range(second):
            if units[groups[first][0]] != units[groups[second][0]]:
                continue
            between = (n for n in range(first + 1, second) if ancestors[second] >> n & 1)
            if not any(ancestors[n] >> first & 1 for n in between):
                return _with_joined(groups, first, second, ancestors)
    return None


def _with_joined(
    groups: list[list[int]], first: int, second: int, ancestors: Sequence[int]
) -> list[list[int]]:
    """Merge the second group into the first.

    Groups on which the second depends come before the merged group, the rest between them after it.
    """
    between = range(first + 1, second)
    before = [groups[n] for n in between if ancestors[second] >> n & 1]
    after = [groups[n] for n in between if not ancestors[second] >> n & 1]
    joined = sorted(groups[first] + groups[second])
    return [*groups[:first], *before, joined, *after, *groups[second + 1 :]]
