"""What must come before what in every order that stays within a bound: learned from suppositions.

Where trying one step at a time (`probing`) learns nothing more, one dependence is supposed, and what follows
from it is learned with little effort. If that ends in a contradiction, its contrary is sure (shaving, after
Martin and Shmoys, and Carlier and Pinson, in job shops). The suppositions that leave a step the least room
under the bound come first: nearly all that are ever refuted are among them.

Import only where it is needed: numba takes its time.
"""

from __future__ import annotations

import numpy as np

from mcudeploy.scheduler import flow
from mcudeploy.scheduler.clock import Deadline
from mcudeploy.scheduler.pieces import Pair
from mcudeploy.scheduler.probing import Probe
from mcudeploy.scheduler.problem import Problem

SUPPOSED_SHARE = 1 / 12
"""Of all cuts: for what follows from one supposition."""

FOLLOWED_CUTS = 300
"""For what follows from its contrary, before the next supposition."""

_TIGHTEST = 20
"""Of so many steps that need the most, and leave anything open, suppositions are made."""

_EACH = 30
"""So many for each of them."""

_ROUND = 8
"""So many are refuted before new ones are chosen."""

_TRIES = 12
"""So many in a row without a contradiction end it: the next ones are less likely still."""


def shave(problem: Problem, bound: int, most_cuts: float, deadline: Deadline) -> tuple[bool, list[Pair]]:
    """As `probing.learn`, with suppositions: half of `most_cuts` at most goes to learning without them."""
    probe = Probe(problem, bound, most_cuts / 2, deadline)
    thinkable = probe.run()
    while thinkable and probe.cuts < most_cuts and not deadline.passed():
        learned = probe.learned
        thinkable = _round(probe, most_cuts, deadline)
        if thinkable and probe.learned == learned:
            probe.most_cuts = most_cuts
            thinkable = probe.run()
            if probe.learned == learned:
                break
    return thinkable, probe.pairs()


def _round(probe: Probe, most_cuts: float, deadline: Deadline) -> bool:
    """False if a contradiction shows without a supposition."""
    refuted = in_vain = 0
    for first, second in _suppositions(probe):
        if probe.decided(first, second):
            continue
        if refuted == _ROUND or in_vain == _TRIES or probe.cuts > most_cuts or deadline.passed():
            break
        supposed = probe.supposing(first, second, SUPPOSED_SHARE * most_cuts)
        thinkable = supposed.run()
        probe.add_work(supposed)
        if thinkable:
            in_vain += 1
            continue
        refuted, in_vain = refuted + 1, 0
        probe.add(second, first)
        probe.most_cuts = probe.cuts + FOLLOWED_CUTS
        if not probe.run():
            return False
    return True


def _suppositions(probe: Probe) -> list[Pair]:
    """Pairs of steps in an order that leaves one of them little room, the least room first."""
    found = []
    order = np.argsort(-probe.known.needs, kind="stable").tolist()
    tightest = [step for step in order if probe.leaves_open(step)]
    for step in tightest[:_TIGHTEST]:
        needs = flow.needs_with(probe.given, probe.known, step, probe.bound)
        harder = needs.max(0)
        for other in np.argsort(-harder, kind="stable")[:_EACH].tolist():
            if harder[other] > probe.known.needs[step]:
                pair = (other, step) if needs[0, other] == harder[other] else (step, other)
                found.append((-int(harder[other]), pair))
    return [pair for _, pair in sorted(found)]
