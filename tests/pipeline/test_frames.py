"""Regions on the grid, and frames through them."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from mcudeploy.extensions.several_boards.pipeline.division import boustrophedon, place
from mcudeploy.extensions.several_boards.pipeline.simulate import BUFFERS, simulate
from mcudeploy.extensions.several_boards.pipeline.unit_regions import Region


def test_rows_alternate() -> None:
    assert boustrophedon(3, 3) == ((0, 0), (1, 0), (2, 0), (2, 1), (1, 1), (0, 1), (0, 2), (1, 2), (2, 2))


def test_a_region_goes_on_in_the_next_row() -> None:
    placed = place((Region(0, 1, 2), Region(1, 2, 3), Region(2, 3, 1)), 3, 2)
    assert placed == (((0, 0), (1, 0)), ((2, 0), (2, 1), (1, 1)), ((0, 1),))


@pytest.mark.parametrize(("width", "height"), [(1, 5), (5, 1), (4, 3), (6, 6)])
def test_neighbours_in_the_line_are_neighbours_on_the_grid(width: int, height: int) -> None:
    path = boustrophedon(width, height)
    assert len(set(path)) == width * height
    assert all(abs(a - c) + abs(b - d) == 1 for (a, b), (c, d) in pairwise(path))


def test_more_units_than_there_are() -> None:
    with pytest.raises(ValueError, match="5 units wanted, 2 x 2 are 4"):
        place((Region(0, 1, 5),), 2, 2)


def test_one_stage_runs_frame_by_frame() -> None:
    run = simulate([7.0], [])
    assert (run.latency, run.period, run.utilisation(run.stages[0])) == (7, 7, 1)


def test_two_stages_overlap() -> None:
    run = simulate([10.0, 10.0], [4.0], frames=3)
    assert run.stages == (((0, 10), (10, 20), (20, 30)), ((14, 24), (24, 34), (34, 44)))
    assert run.links == (((10, 14), (20, 24), (30, 34)),)
    assert (run.latency, run.period) == (24, 10)


def test_credits_hold_a_fast_stage_back() -> None:
    sent = simulate([1.0, 1.0], [4.0], frames=3)
    assert sent.stages[0][2][0] == sent.links[0][0][1] == 5  # the buffer of frame 0 is free once it was sent
    run = simulate([1.0, 10.0], [1.0], frames=6)
    assert run.stages[0][2][0] == run.links[0][0][1]  # frame 2 needs the buffer from which frame 0 was sent
    assert run.links[0][2][0] == run.stages[1][0][1]  # and arrives once the next stage has completed frame 0
    assert run.period == 10


@pytest.mark.parametrize("seed", range(20))
def test_the_longest_stage_or_link_sets_the_pace(seed: int) -> None:
    draw = random.Random(seed)
    stages = [draw.uniform(0, 10) for _ in range(1 + seed % 7)]
    transfers = [draw.uniform(0, 10) for _ in stages[1:]]
    run = simulate(stages, transfers)
    assert run.latency == pytest.approx(sum(stages) + sum(transfers))
    assert run.period == pytest.approx(max(stages + transfers))
    for spans in (*run.stages, *run.links):
        assert all(one[1] <= two[0] for one, two in pairwise(spans))
    for number, link in enumerate(run.links):
        for frame in range(len(link)):
            assert run.stages[number][frame][1] <= link[frame][0]
            assert link[frame][1] <= run.stages[number + 1][frame][0]
            if frame >= BUFFERS:
                assert run.stages[number + 1][frame - BUFFERS][1] <= link[frame][0]


def test_a_transfer_stands_between_every_two_stages() -> None:
    with pytest.raises(ValueError, match="2 stages have 1 transfers, not 0"):
        simulate([1.0, 2.0], [])
