"""The access trace of a plain dependency graph, with a stated cost of its operators."""

from __future__ import annotations

from collections.abc import Sequence

from mcudeploy.extensions.graphs.plaingraph import PlainGraph, PlainNode
from mcudeploy.ir.trace import Item, ItemAccess, Trace, TraceStep

CYCLES_PER_BYTE = 0.25
"""The cycles of an operator per byte of its inputs and outputs, in addition to one cycle per FLOP."""

_ONCE = 0.25
"""The maximum FLOP per byte of an operator that reads its inputs once: one per number of four bytes.

Such an operator may access the slow memory.
"""


def trace_of(graph: PlainGraph, order: Sequence[int]) -> Trace:
    """Return the trace of the problem's steps in `order`; its items are the memories that they access.

    Inputs are in the fast memory before the first step. Parameters are not items; updated
    parameters are items without bytes, so that no reader of them is repeated after their update.
    """
    nodes = [graph.nodes[graph.steps[step]] for step in order]
    written = {graph.roots[tensor] for node in nodes for tensor in node.outputs}
    touched = dict.fromkeys(graph.roots[tensor] for node in nodes for tensor in (*node.inputs, *node.outputs))
    roots = [root for root in touched if _is_item(graph, root, written)]
    number = {root: place for place, root in enumerate(roots)}
    items = tuple(_item(graph, root) for root in roots)
    available = set(graph.inputs | graph.persistent)
    steps = []
    for node in nodes:
        steps.append(_step(graph, node, number, available))
        available.update(graph.roots[tensor] for tensor in node.outputs)
    return Trace(items, tuple(steps))


def _is_item(graph: PlainGraph, root: int, written: set[int]) -> bool:
    return root in written if root in graph.persistent else graph.tensor_bytes[root] > 0


def _item(graph: PlainGraph, root: int) -> Item:
    if root in graph.persistent:
        return Item(graph.tensor_names[root], 0, loaded=True, kept=True, fixed=True)
    size = graph.tensor_bytes[root]
    return Item(graph.tensor_names[root], size, kept=root in graph.kept, loaded=root in graph.inputs)


def _step(graph: PlainGraph, node: PlainNode, number: dict[int, int], available: set[int]) -> TraceStep:
    """Return a step; memory that it writes partly, or in place, is read as well."""
    size = sum(graph.tensor_bytes[tensor] for tensor in (*node.inputs, *node.outputs))
    outputs = dict.fromkeys(graph.roots[tensor] for tensor in node.outputs)
    inputs = dict.fromkeys(graph.roots[tensor] for tensor in node.inputs)
    inputs.update(dict.fromkeys(root for root in outputs if root in available))
    once = node.flops <= _ONCE * size

    def access(root: int, *, writes: bool) -> ItemAccess:
        direct = graph.tensor_bytes[root] if once and root not in graph.persistent else None
        return ItemAccess(number[root], writes, number[root], direct)

    accesses = (
        *(access(root, writes=False) for root in inputs if root in number),
        *(access(root, writes=True) for root in outputs if root in number),
    )
    return TraceStep(node.name or f"{node.op} {node.id}", node.flops + CYCLES_PER_BYTE * size, accesses)
