"""From operators to the group graph.

A chain of operators becomes a vertex, vertices of equal depth a group, and edges between two groups one edge.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from mcudeploy.extensions.several_boards.pipeline.workgraph import WorkGraph

Vertex = tuple[int, ...]
"""Operators that run in turn, in order."""
Group = tuple[Vertex, ...]
"""Vertices of equal depth: none depends on another."""


@dataclass(frozen=True, slots=True, order=True)
class GroupEdge:
    """The values of a group that a later one reads. Edges sort by weight, then by their groups."""

    size_bytes: int
    source: int
    target: int


def single_vertices(graph: WorkGraph) -> tuple[Vertex, ...]:
    """Return every operator as a vertex."""
    return tuple((operator,) for operator in range(len(graph.names)))


def merged_chains(graph: WorkGraph) -> tuple[Vertex, ...]:
    """Return the vertices after all merges of two neighbours with one predecessor and one successor each.

    The merged vertex has one of each as well, and no other vertex changes, so one pass finds every chain.
    """
    after = graph.successors()
    before = [0] * len(graph.names)
    for readers in after:
        for reader in readers:
            before[reader] += 1
    inner = [before[it] == 1 and len(after[it]) == 1 for it in range(len(graph.names))]
    chains: dict[int, list[int]] = {}
    for operator in range(len(graph.names)):
        chain = chains.setdefault(operator, [operator])
        following = next(iter(after[operator]), None)
        if inner[operator] and following is not None and inner[following]:
            chain.append(following)
            chains[following] = chain
    unique = {chain[0]: tuple(chain) for chain in chains.values()}
    return tuple(unique[head] for head in sorted(unique))


def groups_of(graph: WorkGraph, vertices: Sequence[Vertex]) -> tuple[Group, ...]:
    """Return the vertices by depth, the longest path from a vertex without predecessors."""
    vertex_of = {operator: number for number, vertex in enumerate(vertices) for operator in vertex}
    after: list[set[int]] = [set() for _ in vertices]
    for operator, readers in enumerate(graph.successors()):
        after[vertex_of[operator]] |= {vertex_of[reader] for reader in readers} - {vertex_of[operator]}
    before = [0] * len(vertices)
    for followers in after:
        for follower in followers:
            before[follower] += 1
    ready = [number for number, count in enumerate(before) if count == 0]
    groups: list[Group] = []
    while ready:  # a vertex is ready right after the last of its predecessors
        groups.append(tuple(vertices[number] for number in sorted(ready)))
        following = []
        for number in ready:
            for follower in after[number]:
                before[follower] -= 1
                if before[follower] == 0:
                    following.append(follower)
        ready = following
    return tuple(groups)


def single_groups(graph: WorkGraph) -> tuple[Group, ...]:
    """Return every operator as a separate group, in the order of the graph."""
    return tuple((vertex,) for vertex in single_vertices(graph))


def kinds_of_groups(graph: WorkGraph) -> tuple[tuple[Group, ...], tuple[Group, ...], tuple[Group, ...]]:
    """Return three kinds of groups: by depth with merged chains, as in the published method; by depth
    without merging; single operators.
    """
    merged = groups_of(graph, merged_chains(graph))
    return merged, groups_of(graph, single_vertices(graph)), single_groups(graph)


def group_numbers(groups: Sequence[Group]) -> dict[int, int]:
    """Return the group of every operator."""
    return {
        operator: number for number, group in enumerate(groups) for vertex in group for operator in vertex
    }


def group_edges(graph: WorkGraph, groups: Sequence[Group]) -> tuple[GroupEdge, ...]:
    """Return the edges between groups, by ascending weight.

    A value that several vertices of a group read counts once for that group. The weights of several edges
    between two groups are added.
    """
    number = group_numbers(groups)
    weights: dict[tuple[int, int], int] = defaultdict(int)
    for value in graph.values:
        if value.producer is None:
            continue
        source = number[value.producer]
        for target in {number[reader] for reader in value.readers} - {source}:
            weights[source, target] += value.size_bytes
    return tuple(sorted(GroupEdge(size, source, target) for (source, target), size in weights.items()))
