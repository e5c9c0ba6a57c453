"""`best` against all partitions, the exact one by CP-SAT, `first` and greedy."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import inf, isclose

import pytest

from mcudeploy.extensions.several_boards.pipeline.best import best
from mcudeploy.extensions.several_boards.pipeline.cost import UnitLink
from mcudeploy.extensions.several_boards.pipeline.exact_regions import exact
from mcudeploy.extensions.several_boards.pipeline.group_line import GroupLine, OperatorBytes, Units, line_of
from mcudeploy.extensions.several_boards.pipeline.groups import groups_of, merged_chains, single_groups
from mcudeploy.extensions.several_boards.pipeline.unit_regions import (
    Objective,
    Region,
    first_admissible,
    greedy,
    worth,
)
from tests.pipeline.workgraphs import (
    CHAIN,
    CHAIN_LINK,
    CHAIN_WORK,
    FORK,
    FORK_LINK,
    FORK_WORK,
    WAIST,
    WAIST_LINK,
    WAIST_WORK,
    evenly,
    merged_line,
    random_graph,
)

OBJECTIVES: tuple[Objective, ...] = ("latency", "throughput")


def every_partition(count: int, units: int, start: int = 0) -> Iterator[tuple[Region, ...]]:
    """All ways to divide groups start to count - 1 among at most `units` units."""
    if start == count:
        yield ()
        return
    for end in range(start + 1, count + 1):
        for part in range(1, units + 1):
            for rest in every_partition(count, units - part, end):
                yield (Region(start, end, part), *rest)


def random_line(seed: int, count: int, units: int, *, single: bool, ram_bytes: float = inf) -> GroupLine:
    graph, work = random_graph(seed, count)
    groups = single_groups(graph) if single else groups_of(graph, merged_chains(graph))
    needs = OperatorBytes(tuple(it % 7 for it in range(count)), (3,) * count)
    link = UnitLink(0.5 + seed % 5, seed % 3)
    return line_of(graph, groups, Units(units, ram_bytes, inf), (evenly(work), link), needs)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("seed", range(12))
def test_best_is_the_least_of_all(seed: int, objective: Objective) -> None:
    line = random_line(seed, 5 + seed % 4, 2 + seed % 3, single=seed % 2 == 0, ram_bytes=(inf, 400)[seed % 2])
    values = [
        (worth(line, it, objective), worth(line, it, "latency"))
        for it in every_partition(len(line.groups), line.units.count)
    ]
    partition = best(line, objective)
    if partition is None:
        assert min(values)[0] == inf
        return
    assert worth(line, partition, objective) == pytest.approx(min(values)[0])
    least = min(latency for value, latency in values if isclose(value, min(values)[0]))
    assert worth(line, partition, "latency") == pytest.approx(least)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("seed", range(30))
def test_best_is_never_worse_than_first_and_greedy(seed: int, objective: Objective) -> None:
    line = random_line(seed, 10 + 2 * seed, 2 + seed % 15, single=seed % 3 == 0)
    partition = best(line, objective)
    assert partition is not None
    for other in (first_admissible(line, objective)[0], greedy(line)):
        assert other[0].first == 0 and other[-1].end == len(line.groups)
        assert all(one.end == two.first for one, two in pairwise(other))
        assert sum(it.units for it in other) <= line.units.count
        assert worth(line, partition, objective) <= worth(line, other, objective) * (1 + 1e-12)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize(("seed", "count", "units"), [(1, 12, 3), (2, 20, 4), (3, 30, 3), (4, 30, 2)])
def test_best_is_within_5_percent_of_the_exact_partition(
    seed: int, count: int, units: int, objective: Objective
) -> None:
    line = random_line(seed, count, units, single=True)
    partition, proven = best(line, objective), exact(line, objective, 20)
    assert partition is not None and proven is not None and proven.optimal
    least = worth(line, proven.regions, objective)
    assert worth(line, partition, objective) == pytest.approx(least, rel=1e-4)
    assert worth(line, partition, objective) <= 1.05 * least


def test_the_graphs_of_the_docs() -> None:
    fork = merged_line(FORK, FORK_WORK, FORK_LINK, Units(4))
    assert best(fork, "latency") == (Region(0, 5, 4),)
    partition = best(fork, "throughput")
    assert partition == (Region(0, 2, 2), Region(2, 4, 1), Region(4, 5, 1))
    assert worth(fork, partition, "throughput") == 12
    waist = merged_line(WAIST, WAIST_WORK, WAIST_LINK, Units(2))
    assert best(waist, "latency") == (Region(0, 5, 1),)
    assert best(waist, "throughput") == (Region(0, 3, 1), Region(3, 5, 1))
    chain = line_of(CHAIN, single_groups(CHAIN), Units(2), (evenly(CHAIN_WORK), CHAIN_LINK))
    partition = best(chain, "throughput")
    assert partition == (Region(0, 3, 1), Region(3, 4, 1))
    assert worth(chain, partition, "throughput") == 15


def test_nothing_fits() -> None:
    line = random_line(1, 8, 3, single=True, ram_bytes=1)
    assert best(line, "latency") is None and best(line, "throughput") is None
    assert exact(line, "latency", 1) is None


def test_greedy_fills_units_from_the_front() -> None:
    chain = line_of(CHAIN, single_groups(CHAIN), Units(2), (evenly(CHAIN_WORK), CHAIN_LINK))
    assert greedy(chain) == (Region(0, 2, 1), Region(2, 4, 1))
