"""Common rules of cores that issue some neighbouring instructions together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from mcudeploy.execution.cycles.core import Cycles, Executed


@dataclass(frozen=True, slots=True)
class InOrder:
    """Rules of a core in cycles.

    `own`: an instruction alone. `wait`: the second of two, for the results of the first. `refill`: after a
    taken branch. `pairs`: whether two issue together, which saves one cycle. `saves`: average cycles that
    pairing saves for an instruction where all pair that can.
    """

    own: Callable[[Executed], float]
    wait: Callable[[Executed, Executed], float]
    pairs: Callable[[Executed, Executed], bool]
    refill: Cycles = field(default_factory=Cycles)
    saves: Callable[[Executed], float] = lambda _: 0.5

    def cost(self, here: Executed, before: Executed | None, paired: bool) -> tuple[Cycles, bool]:
        """See `Core`. An instruction that is entered by jumps as often as in sequence begins a pair.

        `least` assumes all possible pairs and no wait, `most` no pair and all waits.
        """
        own = self.own(here)
        together = 0 if before is None else min(before.followed, here.count)
        waits = 0.0 if before is None else self.wait(before, here) * together
        pairs = before is not None and not paired and 2 * together > here.count and self.pairs(before, here)
        least = (own - self.saves(here)) * here.count
        most = own * here.count + waits
        return Cycles(least, most - (together if pairs else 0), most) + self.refill * here.jumps, pairs


def depends(before: Executed, here: Executed) -> bool:
    """Whether the second of two reads or overwrites a register that the first writes."""
    return bool(before.instruction.results & (here.instruction.reads | here.instruction.results))
