"""The maximum flow of a network: by OR-Tools, or by Dinic's algorithm (1970) without them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from mcudeploy.common.fast import lacking


def max_flow(arcs: np.ndarray, source: int, sink: int) -> int:
    """Return the maximum flow of arcs, each a row of its two nodes and its capacity."""
    if "ortools" in lacking():
        return _dinic(arcs.tolist(), sink + 1, source, sink)
    from ortools.graph.python.max_flow import SimpleMaxFlow  # noqa: PLC0415 - it takes long to import

    flow = SimpleMaxFlow()
    flow.add_arcs_with_capacity(arcs[:, 0].astype(np.int32), arcs[:, 1].astype(np.int32), arcs[:, 2])
    if flow.solve(source, sink) != SimpleMaxFlow.OPTIMAL:
        raise ArithmeticError("sizes add up to more bytes than a maximum flow can have")
    return int(flow.optimal_flow())


def _dinic(arcs: Iterable[tuple[int, int, int]], nodes: int, source: int, sink: int) -> int:
    """Return the maximum flow by Dinic's algorithm."""
    heads, rooms = list[int](), list[int]()
    leaving: list[list[int]] = [[] for _ in range(nodes)]
    for tail, head, capacity in arcs:  # arc k ^ 1 leads back along arc k
        leaving[tail].append(len(heads))
        leaving[head].append(len(heads) + 1)
        heads += (head, tail)
        rooms += (capacity, 0)
    total = 0
    while True:
        levels = _levels(leaving, heads, rooms, source)
        if levels[sink] < 0:
            return total
        total += _blocked(leaving, heads, rooms, levels, (source, sink))


def _levels(leaving: list[list[int]], heads: list[int], rooms: list[int], source: int) -> list[int]:
    """Return the arcs from the source to each node on a shortest path with room, or -1."""
    levels = [-1] * len(leaving)
    levels[source], front = 0, [source]
    while front:
        reached = []
        for node in front:
            for arc in leaving[node]:
                if rooms[arc] and levels[heads[arc]] < 0:
                    levels[heads[arc]] = levels[node] + 1
                    reached.append(heads[arc])
        front = reached
    return levels


def _blocked(
    leaving: list[list[int]], heads: list[int], rooms: list[int], levels: list[int], ends: tuple[int, int]
) -> int:
    """Send flow along paths of ascending levels until none has room; return it."""
    source, sink = ends
    tried = [0] * len(leaving)  # the arcs of each node that lead no further
    path, node, total = list[int](), source, 0
    while True:
        while tried[node] < len(leaving[node]):
            arc = leaving[node][tried[node]]
            if rooms[arc] and levels[heads[arc]] == levels[node] + 1:
                path.append(arc)
                node = heads[arc]
                break
            tried[node] += 1
        else:
            if not path:
                return total
            node = heads[path.pop() ^ 1]
            tried[node] += 1
        if node == sink:
            flow = min(rooms[arc] for arc in path)
            total += flow
            for arc in path:
                rooms[arc] -= flow
                rooms[arc ^ 1] += flow
            path, node = [], source
