"""The analysis as text: components, the connections of their operators, and why they end."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import zip_longest

from mcudeploy.common.text import count_text, short_name
from mcudeploy.ir.graph import Graph
from mcudeploy.planner.axes.axes import DIMENSIONS, ROWS, AxisGraph, Edge, axis_graph
from mcudeploy.planner.axes.components import (
    OperandLink,
    connections,
    cuttable,
    find_components,
    links,
    reachability,
    takes_parts,
)
from mcudeploy.planner.axes.window import TableWindow

_MOST_NAMES = 4
"""The number of operators that one reason names before it only counts the rest."""


def explain(graph: Graph) -> str:
    """Describe what can be cut together, and why not more, as lines of text. Sizes are in bytes."""
    facts = _CutFacts(axis_graph(graph))
    together = [members for members in facts.components if len(members) > 1]
    alone = [operator for members in facts.components if len(members) == 1 for operator in members]
    operators, count = count_text(len(graph.operators), "operator"), count_text(len(together), "component")
    text = [f"{operators}; {count} to be cut along rows", *facts.inputs()]
    for number, members in enumerate(together, 1):
        text += ["", *facts.component(f"component {number}", members)]
    if alone:
        text += ["", "operators alone", *facts.operators(alone), *facts.ends(alone, ())]
    return "\n".join(text)


class _CutFacts:
    """The analysis along rows, with the text of each of its parts."""

    def __init__(self, axes: AxisGraph) -> None:
        self.components = find_components(axes)
        self._axes = axes
        self._tensors, self._operators = axes.graph.tensors, axes.graph.operators
        self._cut = cuttable(axes)
        self._links = links(axes.graph)
        self._reach = reachability(axes.graph)
        self._component_of = {member: members for members in self.components for member in members}
        self._connected = {
            _link(edge, edge.source.operator): edge for edge in connections(axes) if edge.source is not None
        }
        self._edges: dict[OperandLink, list[Edge]] = {}
        for edge in axes.along(ROWS):
            if edge.source is not None:
                self._edges.setdefault(_link(edge, edge.source.operator), []).append(edge)

    def inputs(self) -> list[str]:
        """Report for each graph input whether its readers take it in parts, as streaming requires."""
        rows = []
        for io in self._axes.graph.inputs:
            edges = [edge for edge in self._axes.along(ROWS) if edge.tensor == io.tensor]
            parts = {(edge.target.operator, edge.operand) for edge in edges if takes_parts(self._axes, edge)}
            whole = [
                operator.name
                for reader, operator in enumerate(self._operators)
                for operand, name in enumerate(operator.inputs)
                if name == io.tensor and (reader, operand) not in parts
            ]
            names = _listed(list(dict.fromkeys(whole)))
            how = f"read whole by {names}" if whole else "taken in parts"
            size = count_text(self._tensors[io.tensor].shape[ROWS], "row")
            rows.append((f"input {io.tensor}", size, how))
        return _columns(rows, indent="")

    def component(self, title: str, members: frozenset[int]) -> list[str]:
        """Describe a component: title with totals, operators, inner connections, ends."""
        macs = sum(self._axes.nests[member].macs() for member in members)
        outputs = sum(self._output_bytes(member) for member in members)
        inner = [link for link in self._links if link.producer in members and link.reader in members]
        return [
            f"{title}: {count_text(len(members), 'operator')}, {count_text(macs, 'MAC')}, "
            f"{outputs:,} B of outputs",
            *self.operators(sorted(members)),
            "  connected along rows",
            *_columns((self._pair(link), self._connection(self._connected[link])) for link in inner),
            *self.ends(members, members),
        ]

    def operators(self, positions: Iterable[int]) -> list[str]:
        """Describe operators, one per line: name, kind, size along the axis, MACs, bytes, node."""
        rows = []
        for position in positions:
            operator = self._operators[position]
            macs = self._axes.nests[position].macs()
            memory = "a view" if operator.op.is_view else f"{self._output_bytes(position):,} B"
            rows.append(
                (
                    operator.name,
                    operator.op.kind,
                    count_text(self._size(position), "row"),
                    count_text(macs, "MAC") if macs else "no MACs",
                    memory,
                    short_name(operator.onnx_nodes),
                )
            )
        return _columns(rows)

    def ends(self, producers: Collection[int], inside: Collection[int]) -> list[str]:
        """Report which outputs of `producers` leave `inside`, and why their readers are not cut with them."""
        leaving = [link for link in self._links if link.producer in producers and link.reader not in inside]
        if not leaving:
            return []
        return ["  ends", *_columns((self._pair(link), self._reason(link)) for link in leaving)]

    def _connection(self, edge: Edge) -> str:
        """Format an edge in the notation of windows."""
        window, size = edge.window, edge.target.size
        if self._operators[edge.target.operator].op.accumulates:
            return f"takes {count_text(edge.positions, 'row')} in parts"
        if isinstance(window, TableWindow):
            most = max(hi - lo for lo, hi in zip(window.lo, window.hi, strict=True))
            return f"table {edge.positions} -> {size}, up to {most} for each, halo {edge.halo}"
        if window.extent == 1:
            if (window.stride, window.start, edge.positions) == (1, 0, size):
                return "one to one"
            sign = "-" if window.stride < 0 else ""
            factor = "" if abs(window.stride) == 1 else f"{abs(window.stride)}*"
            shift = f" {'-' if window.start < 0 else '+'} {abs(window.start)}" if window.start else ""
            return f"o reads {sign}{factor}o{shift}"
        last = window.stride * (size - 1) + window.start + window.extent
        before, after = max(0, -window.start), max(0, last - edge.positions)
        text = [f"kernel {window.kernel}", f"stride {window.stride}"]
        text += [f"pad {before}" if before == after else f"pad {before}|{after}"]
        text += [f"dilation {window.dilation}"] if window.dilation > 1 else []
        return ", ".join([*text, f"halo {edge.halo}"])

    def _reason(self, link: OperandLink) -> str:
        producer, reader = self._operators[link.producer].name, self._operators[link.reader].name
        every = count_text(self._size(link.producer), "row")
        if link in self._connected:
            return self._refusal(link)
        if self._operators[link.producer].op.accumulates:
            return f"{producer} accumulates: its output is whole after the last part"
        edges = self._edges.get(link, [])
        if not edges:
            return f"{reader} broadcasts it: every row reads the same"
        if self._size(link.producer) == 1:
            return f"{producer} has only 1 row"
        if not self._cut[link.producer]:
            return f"{producer} is a view with other rows: its memory is one piece"
        if self._operators[link.reader].op.is_view:
            return f"{reader} is a view with other rows: its memory is one piece"
        if self._size(link.reader) == 1:
            return f"{reader} takes all {every} into one"
        for edge in edges:
            if edge.target.name in self._axes.writes(link.reader, ROWS):
                return f"a window of {reader} covers all {every}"
        for other, name in enumerate(DIMENSIONS):
            if any(edge.target.name in self._axes.writes(link.reader, other) for edge in edges):
                return f"{reader} turns rows into {name}s"
        return f"every row of {reader} needs all {every}"

    def _refusal(self, link: OperandLink) -> str:
        """Explain why two connected operators are in different components."""
        both = self._component_of[link.producer] | self._component_of[link.reader]
        between = self._reach.between(both)
        if between:
            names = [operator.name for i, operator in enumerate(self._operators) if between >> i & 1]
            return f"connected, but {_listed(names)} would lie between"
        whole = next(
            inner
            for inner in self._links
            if inner.producer in both and inner.reader in both and inner not in self._connected
        )
        return f"connected, but {self._pair(whole)} would be inside: {self._reason(whole)}"

    def _size(self, position: int) -> int:
        return self._tensors[self._operators[position].output].shape[ROWS]

    def _output_bytes(self, position: int) -> int:
        operator = self._operators[position]
        return 0 if operator.op.is_view else self._tensors[operator.output].size_bytes

    def _pair(self, link: OperandLink) -> str:
        return f"{self._operators[link.producer].name} -> {self._operators[link.reader].name}"


def _link(edge: Edge, producer: int) -> OperandLink:
    return OperandLink(producer, edge.target.operator, edge.operand)


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def _columns(rows: Iterable[Sequence[str]], indent: str = "    ") -> list[str]:
    """Align rows of text in columns; cells that begin with a number are right-aligned."""
    table = list(rows)
    widths = [max(map(len, column)) for column in zip_longest(*table, fillvalue="")]
    return [
        indent
        + "  ".join(
            text.rjust(width) if text[:1].isdigit() or text == "no MACs" else text.ljust(width)
            for text, width in zip(row, widths, strict=True)
        ).rstrip()
        for row in table
    ]
