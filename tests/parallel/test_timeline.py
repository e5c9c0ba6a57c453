"""The critical path of small core tapes, by hand and against a simulation tick by tick."""

from __future__ import annotations

import random

import pytest

from mcudeploy.costs.timeline import critical_path
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.plan import Lane, Sync, WorkSlice


def part(entry: int) -> WorkSlice:
    return WorkSlice(entry, Interval(0, 1))


def test_parts_follow_each_other_and_what_they_await() -> None:
    lanes = ((part(0), Sync(1, 1, 1), part(1), part(2)), (part(0), Sync(2, 0, 2), part(2)))
    line = critical_path(lanes, ((10, 5, 7), (30, 4)))
    assert line.start == ((0, 30, 35), (0, 35))
    assert line.end == ((10, 35, 42), (30, 39))
    assert line.ticks == 42


def test_an_await_that_is_already_satisfied_costs_nothing() -> None:
    line = critical_path(((part(0), Sync(1, 1, 1), part(1)), (part(0),)), ((10, 5), (3,)))
    assert line.start == ((0, 10), (0,)) and line.ticks == 15


def test_the_last_of_several_awaits_counts() -> None:
    lanes = ((part(0),), (part(0),), (Sync(1, 0, 1), Sync(1, 1, 1), Sync(1, 0, 0), part(1)))
    assert critical_path(lanes, ((8,), (6,), (1,))).start[2] == (8,)


def test_cores_without_parts() -> None:
    line = critical_path(((part(0),), ()), ((4,), ()))
    assert line.ticks == 4
    assert critical_path((), ()).ticks == 0
    assert critical_path(((), (Sync(0, 0, 0),)), ((), ())).ticks == 0


def test_ticks_may_be_fractions() -> None:
    assert critical_path(((part(0), part(1)),), ((0.5, 0.25),)).end == ((0.5, 0.75),)


@pytest.mark.parametrize(
    "lanes",
    [
        ((Sync(0, 1, 1), part(0)), (Sync(0, 0, 1), part(0))),
        ((part(0), Sync(1, 1, 2), part(1)), (part(0),)),
        ((Sync(0, 0, 1), part(0)),),
        ((part(0),), (part(0), Sync(1, 0, 2))),
    ],
    ids=["both", "no such part", "itself", "beyond the last part"],
)
def test_waiting_for_ever_is_an_error(lanes: tuple[Lane, ...]) -> None:
    ticks = [[1] * sum(isinstance(entry, WorkSlice) for entry in lane) for lane in lanes]
    with pytest.raises(ValueError, match=r"core \d waits for ever: Sync\("):
        critical_path(lanes, ticks)


def test_every_part_needs_its_time() -> None:
    with pytest.raises(ValueError, match=r"lanes of \[1\] parts have \[2\] times"):
        critical_path(((part(0),),), ((1, 2),))


def simulated(lanes: tuple[Lane, ...], ticks: list[list[int]]) -> int:
    """The ticks until all cores are done, tick by tick. Every slice takes at least one."""
    places, left, done, now = [0] * len(lanes), [0] * len(lanes), [0] * len(lanes), 0
    while True:
        for core, lane in enumerate(lanes):
            while not left[core] and places[core] < len(lane):
                entry = lane[places[core]]
                if isinstance(entry, WorkSlice):
                    left[core] = ticks[core][done[core]]
                elif done[entry.core] < entry.parts:
                    break
                else:
                    places[core] += 1
        if not any(left):
            return now
        now += 1
        for core in range(len(lanes)):
            if left[core]:
                left[core] -= 1
                done[core] += not left[core]
                places[core] += not left[core]


def test_random_lanes_as_simulated() -> None:
    rng = random.Random(7)
    for _ in range(200):
        cores = rng.randint(1, 4)
        lanes: list[list[WorkSlice | Sync]] = [[] for _ in range(cores)]
        done = [0] * cores
        for entry in range(rng.randint(1, 12)):
            before = list(done)
            for core in rng.sample(range(cores), rng.randint(1, cores)):
                awaited = rng.sample(range(cores), rng.randint(0, cores))
                lanes[core] += [Sync(entry, other, rng.randint(0, before[other])) for other in awaited]
                lanes[core].append(part(entry))
                done[core] += 1
        ticks = [[rng.randint(1, 9) for _ in range(count)] for count in done]
        whole = tuple(map(tuple, lanes))
        assert critical_path(whole, ticks).ticks == simulated(whole, ticks)
