"""Several frames in flight over stages and the links between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Span = tuple[float, float]
"""From tick to tick."""
BUFFERS = 2
"""Frames that the border of a region holds: one in use, one that comes or goes. They are its credits."""


@dataclass(frozen=True, slots=True)
class Simulation:
    """When each frame is in each stage, `stages[s][f]`, and on the link behind stage s, `links[s][f]`."""

    stages: tuple[tuple[Span, ...], ...]
    links: tuple[tuple[Span, ...], ...]

    @property
    def latency(self) -> float:
        """Ticks from the start of the first frame to its end: it meets no other."""
        return self.stages[-1][0][1]

    @property
    def period(self) -> float:
        """Ticks between two frames that leave the pipeline, on average over its second half."""
        ends = [end for _, end in self.stages[-1]]
        half = (len(ends) - 1) // 2
        return (ends[-1] - ends[half]) / (len(ends) - 1 - half)

    def utilisation(self, spans: Sequence[Span]) -> float:
        """The share of a period in which a stage or link is busy."""
        return (spans[-1][1] - spans[-1][0]) / self.period


def simulate(stages: Sequence[float], transfers: Sequence[float], frames: int = 0) -> Simulation:
    """So many frames, or enough for a steady state, through stages that take these ticks, with transfers
    between them that take those.

    A stage sends a frame once it is done with it. It begins a frame when that has come, and the one but last
    is sent: two buffers on either side. A link carries one frame at a time, each once the stage behind it is
    done with the one but last. Links work while stages compute.
    """
    if len(transfers) != len(stages) - 1:
        raise ValueError(f"{len(stages)} stages have {len(stages) - 1} transfers, not {len(transfers)}")
    frames = frames or 8 * (len(stages) + 1)
    computed: list[list[Span]] = [[] for _ in stages]
    sent: list[list[Span]] = [[] for _ in transfers]
    for frame in range(frames):
        for number, ticks in enumerate(stages):
            begin = max(_end(computed[number], frame - 1), _end(sent[number - 1], frame) if number else 0.0)
            if number < len(sent):
                begin = max(begin, _end(sent[number], frame - BUFFERS))
            computed[number].append((begin, begin + ticks))
            if number < len(sent):
                begin = max(
                    begin + ticks,
                    _end(sent[number], frame - 1),
                    _end(computed[number + 1], frame - BUFFERS),
                )
                sent[number].append((begin, begin + transfers[number]))
    return Simulation(tuple(map(tuple, computed)), tuple(map(tuple, sent)))


def _end(spans: Sequence[Span], frame: int) -> float:
    return spans[frame][1] if frame >= 0 else 0.0
