"""Chains, groups and merged edges, as in GRAPHS.md."""

from __future__ import annotations

import pytest

from mcudeploy.extensions.several_boards.pipeline.groups import (
    GroupEdge,
    group_edges,
    groups_of,
    merged_chains,
    single_groups,
    single_vertices,
)
from mcudeploy.extensions.several_boards.pipeline.workgraph import WorkGraph, WorkValue
from tests.pipeline.workgraphs import CHAIN, FORK, WAIST, group_names, random_graph


def test_chains_become_one_vertex() -> None:
    assert merged_chains(FORK) == ((0,), (1, 2), (3,), (4,), (5, 6), (7,))
    assert merged_chains(CHAIN) == ((0,), (1, 2), (3,))
    assert merged_chains(WAIST) == single_vertices(WAIST)


def test_groups_are_vertices_of_equal_depth() -> None:
    groups = groups_of(FORK, merged_chains(FORK))
    assert group_names(FORK, groups) == [["a"], ["bc", "d"], ["e"], ["fg"], ["h"]]
    apart = groups_of(FORK, single_vertices(FORK))
    assert group_names(FORK, apart) == [["a"], ["b", "d"], ["c"], ["e"], ["f"], ["g"], ["h"]]


def test_edges_count_once_for_a_group_and_merge() -> None:
    edges = group_edges(FORK, groups_of(FORK, merged_chains(FORK)))
    assert edges == (
        GroupEdge(2, 3, 4),
        GroupEdge(8, 0, 1),
        GroupEdge(8, 0, 2),
        GroupEdge(10, 1, 2),
        GroupEdge(10, 2, 3),
    )
    edges = group_edges(WAIST, groups_of(WAIST, merged_chains(WAIST)))
    assert edges == (GroupEdge(2, 2, 3), GroupEdge(20, 0, 1), GroupEdge(20, 1, 2), GroupEdge(20, 3, 4))


@pytest.mark.parametrize("seed", range(20))
def test_random_graphs_keep_operators_and_dependencies(seed: int) -> None:
    graph, _ = random_graph(seed, 5 + 2 * seed)
    for groups in (
        groups_of(graph, merged_chains(graph)),
        groups_of(graph, single_vertices(graph)),
        single_groups(graph),
    ):
        number = {it: at for at, group in enumerate(groups) for vertex in group for it in vertex}
        assert sorted(number) == list(range(len(graph.names)))
        vertex_of = {it: vertex for group in groups for vertex in group for it in vertex}
        for value in graph.values:
            for reader in value.readers if value.producer is not None else ():
                producer = value.producer
                assert number[producer] < number[reader] or vertex_of[producer] == vertex_of[reader]


def test_a_graph_out_of_order_is_refused() -> None:
    with pytest.raises(ValueError, match="x is read before it is made"):
        WorkGraph(("a", "b"), (WorkValue("x", 1, 1, (0,)),))
