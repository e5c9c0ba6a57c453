"""How far each step can move, and what every order needs in memory while it runs.

Sets of steps are integers, one bit per step: of 10,000 steps all ancestors and descendants take 12 MB.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from mcudeploy.scheduler.problem import Problem


@dataclass(frozen=True, eq=False)
class Slack:
    """For each step the set of its ancestors and of its descendants (bit s is step s, itself not included),
    and the first and last place it can have in any order: `asap` and `alap`.
    """

    ancestors: tuple[int, ...]
    descendants: tuple[int, ...]
    asap: tuple[int, ...]
    alap: tuple[int, ...]

    @classmethod
    def of(cls, problem: Problem) -> Slack:
        """Linear in the edges, times the steps / 64."""
        ancestors, descendants = [0] * problem.steps, [0] * problem.steps
        for step, needed in enumerate(problem.before):
            for other in needed:
                ancestors[step] |= ancestors[other] | 1 << other
        for step in reversed(range(problem.steps)):
            for other in problem.after[step]:
                descendants[step] |= descendants[other] | 1 << other
        asap = tuple(each.bit_count() for each in ancestors)
        alap = tuple(problem.steps - 1 - each.bit_count() for each in descendants)
        return cls(tuple(ancestors), tuple(descendants), asap, alap)


def sure_needs(problem: Problem, slack: Slack) -> list[int]:
    """For each step bytes that are in memory while it runs, in every order.

    A buffer is alive during a step that comes after one of the steps that touch it, and before one of them.
    """
    loads = np.zeros(problem.steps, np.int64)
    everything = (1 << problem.steps) - 1
    for buffer in problem.buffers:
        if not buffer.touched_by and not buffer.kept:
            continue  # gone after the first step, whichever that is
        begun = everything if buffer.initial or not buffer.touched_by else 0
        wanted = everything if buffer.kept else 0
        for step in buffer.touched_by:
            begun |= slack.descendants[step] | 1 << step
            wanted |= slack.ancestors[step] | 1 << step
        loads[_places(begun & wanted, problem.steps)] += buffer.size_bytes
    return [load - problem.most_saved(step) for step, load in enumerate(loads.tolist())]


def _places(steps: int, count: int) -> np.ndarray:
    """A set of steps as a Boolean array."""
    packed = np.frombuffer(steps.to_bytes((count + 7) // 8, "little"), np.uint8)
    return np.unpackbits(packed, bitorder="little", count=count).view(bool)


def mask_of(steps: Iterable[int]) -> int:
    """The set of some steps."""
    mask = 0
    for step in steps:
        mask |= 1 << step
    return mask


def members(mask: int) -> list[int]:
    """The steps in a set, ascending."""
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found
