"""The source's recursion, step by step, as in GRAPHS.md."""

from __future__ import annotations

from math import inf

import pytest

from mcudeploy.extensions.several_boards.pipeline.cost import UnitLink, group_ticks, shares, systolic_ticks
from mcudeploy.extensions.several_boards.pipeline.group_line import Units
from mcudeploy.extensions.several_boards.pipeline.unit_regions import (
    Decision,
    Region,
    first_admissible,
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
)


def test_what_a_line_costs() -> None:
    line = merged_line(FORK, FORK_WORK, FORK_LINK, Units(4))
    assert line.works == (4, 12, 2, 8, 6)
    assert line.crossing == (0, 8, 18, 10, 2, 1)
    assert line.transfers.tolist() == [0, 5, 10, 6, 2, 0]
    assert line.stages[0, 5, 1] == 32
    assert line.stages[0, 5, 4] == 8 + 14.5


def test_latency_stays_together_where_cuts_cost_more() -> None:
    line = merged_line(FORK, FORK_WORK, FORK_LINK, Units(4))
    regions, decisions = first_admissible(line, "latency")
    assert regions == (Region(0, 5, 4),)
    assert decisions == (Decision(Region(0, 5, 4), 2, 2, 22.5, 12, 12.5, 10, taken=False),)


def test_throughput_parts_at_the_first_admissible_edge() -> None:
    line = merged_line(FORK, FORK_WORK, FORK_LINK, Units(4))
    regions, decisions = first_admissible(line, "throughput")
    assert regions == (Region(0, 2, 2), Region(2, 5, 2))
    assert decisions == (Decision(Region(0, 5, 4), 2, 2, 22.5, 12, 12.5, 10, taken=True),)
    assert worth(line, regions, "throughput") == 12.5
    assert worth(line, regions, "latency") == 34.5


def test_latency_parts_at_the_waist() -> None:
    line = merged_line(WAIST, WAIST_WORK, WAIST_LINK, Units(2))
    regions, decisions = first_admissible(line, "latency")
    assert decisions == (Decision(Region(0, 5, 2), 3, 1, 48, 16, 16, 3, taken=True),)
    assert regions == (Region(0, 3, 1), Region(3, 5, 1))
    assert worth(line, regions, "latency") == 35


def test_a_chain_is_never_parted() -> None:
    line = merged_line(CHAIN, CHAIN_WORK, CHAIN_LINK, Units(2))
    assert first_admissible(line, "throughput") == ((Region(0, 3, 2),), ())
    assert line.stages[0, 3, 2] == 23


def test_a_region_that_does_not_fit_is_parted_whatever_it_costs() -> None:
    line = merged_line(FORK, FORK_WORK, FORK_LINK, Units(4, ram_bytes=29))
    assert line.loads == (8, 18, 28, 12, 3)
    assert line.ram_bytes(0, 5) == 28 + 0 + 1
    assert not first_admissible(line, "latency")[1][0].taken
    line = merged_line(FORK, FORK_WORK, FORK_LINK, Units(4, ram_bytes=28))
    (decision,) = first_admissible(line, "latency")[1]
    assert (decision.whole, decision.left, decision.right, decision.taken) == (inf, inf, inf, True)


@pytest.mark.parametrize(
    ("works", "units", "counts"),
    [([6.0, 6.0], 4, [2, 2]), ([9.0, 3.0], 4, [3, 1]), ([1.0], 5, [5]), ([0.0, 0.0], 2, [1, 1])],
)
def test_units_go_in_proportion_to_work(works: list[float], units: int, counts: list[int]) -> None:
    assert shares(works, units) == counts


def test_a_group_with_fewer_units_than_vertices() -> None:
    group, ticks = ((0,), (1,), (2,), (3,)), evenly((5, 4, 3, 3))
    assert [group_ticks(group, units, ticks) for units in (1, 2, 3, 4, 8)] == [15, 8, 6, 5, 2.5]


def test_the_systolic_formula() -> None:
    assert systolic_ticks(16, 9, 16, 16) == 16 + 9 + 16 - 1
    assert systolic_ticks(64, 27, 8, 16) == 64 * 27 * 8 / 256 + 30
    assert systolic_ticks(4, 27, 32, 16) == 4 * 27 * 32 / 256 + 30
    assert systolic_ticks(64, 9, 32, 16, groups=32) == 64 * 9 * 32 / 16 + 30  # depthwise: one column
    assert systolic_ticks(64, 9, 64, 16, groups=2) == systolic_ticks(64, 9, 64, 16)


def test_what_units_tell_each_other() -> None:
    link = UnitLink(rate=2.0, latency=5.0, links=2)
    assert [link.within(80, units) for units in (1, 2, 4)] == [0, 15, 20]
    assert link.across(80) == 45
