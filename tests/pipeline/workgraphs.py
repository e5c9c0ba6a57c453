"""The hand-worked graphs of GRAPHS.md, and random ones."""

from __future__ import annotations

import random

from mcudeploy.extensions.several_boards.pipeline.cost import OperatorTicks, UnitLink
from mcudeploy.extensions.several_boards.pipeline.group_line import GroupLine, Units, line_of
from mcudeploy.extensions.several_boards.pipeline.groups import Group, groups_of, merged_chains
from mcudeploy.extensions.several_boards.pipeline.workgraph import WorkGraph, WorkValue

FORK = WorkGraph(
    tuple("abcdefgh"),
    (
        WorkValue("a", 8, 0, (1, 3, 4)),
        WorkValue("b", 4, 1, (2,)),
        WorkValue("c", 4, 2, (4,)),
        WorkValue("d", 6, 3, (4,)),
        WorkValue("e", 10, 4, (5,)),
        WorkValue("f", 2, 5, (6,)),
        WorkValue("g", 2, 6, (7,)),
        WorkValue("h", 1, 7, (), kept=True),
    ),
)
"""A fork, a join with a skip over it, a chain."""
FORK_WORK = (4, 3, 3, 6, 2, 4, 4, 6)
FORK_LINK = UnitLink(2.0, 1.0)

WAIST = WorkGraph(
    ("p", "q1", "q2", "r", "s1", "s2", "z"),
    (
        WorkValue("p", 20, 0, (1, 2)),
        WorkValue("q1", 10, 1, (3,)),
        WorkValue("q2", 10, 2, (3,)),
        WorkValue("r", 2, 3, (4, 5)),
        WorkValue("s1", 10, 4, (6,)),
        WorkValue("s2", 10, 5, (6,)),
        WorkValue("z", 1, 6, (), kept=True),
    ),
)
"""Two forks with few bytes between them."""
WAIST_WORK = (4, 4, 4, 4, 4, 4, 8)
WAIST_LINK = UnitLink(1.0, 1.0)

CHAIN = WorkGraph(
    tuple("pqrs"),
    (
        WorkValue("p", 4, 0, (1,)),
        WorkValue("q", 20, 1, (2,)),
        WorkValue("r", 2, 2, (3,)),
        WorkValue("s", 1, 3, (), kept=True),
    ),
)
CHAIN_WORK = (5, 5, 5, 5)
CHAIN_LINK = UnitLink(1.0)


def evenly(work: tuple[int, ...]) -> OperatorTicks:
    """Operators that any number of units can share without loss."""
    return lambda operator, units: work[operator] / units


def merged_line(graph: WorkGraph, work: tuple[int, ...], link: UnitLink, units: Units) -> GroupLine:
    """The linear graph as the source builds it."""
    return line_of(graph, groups_of(graph, merged_chains(graph)), units, (evenly(work), link))


def group_names(graph: WorkGraph, groups: tuple[Group, ...]) -> list[list[str]]:
    """The operators of every vertex of every group."""
    return [["".join(graph.names[it] for it in vertex) for vertex in group] for group in groups]


def random_graph(seed: int, count: int) -> tuple[WorkGraph, tuple[int, ...]]:
    """Operators that read one to three earlier ones, mostly near ones, and their work."""
    draw = random.Random(seed)
    readers: list[set[int]] = [set() for _ in range(count)]
    for reader in range(1, count):
        for _ in range(draw.randint(1, 3)):
            readers[max(0, reader - draw.randint(1, 4))].add(reader)
    values = tuple(
        WorkValue(f"v{producer}", draw.randint(1, 100), producer, tuple(sorted(own_readers)), not own_readers)
        for producer, own_readers in enumerate(readers)
    )
    inputs = (WorkValue("x", draw.randint(1, 100), None, (0,)),)
    work = tuple(draw.randint(0, 200) for _ in range(count))
    return WorkGraph(tuple(f"o{it}" for it in range(count)), inputs + values), work
