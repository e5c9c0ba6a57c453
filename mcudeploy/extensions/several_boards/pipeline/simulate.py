"""Several frames in flight over stages and the links between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Span = tuple[float, float]
"""An interval from tick to tick."""
BUFFERS = 2
"""Frame buffers on each side of a link: one in use, one in transfer."""


@dataclass(frozen=True, slots=True)
class Simulation:
    """The span of frame f in stage s, `stages[s][f]`, and on the link after that stage, `links[s][f]`."""

    stages: tuple[tuple[Span, ...], ...]
    links: tuple[tuple[Span, ...], ...]

    @property
    def latency(self) -> float:
        """Return the ticks from start to end of the first frame, which never waits for another."""
        return self.stages[-1][0][1]

    @property
    def period(self) -> float:
        """Return the ticks between two frames that leave the pipeline; for a single frame the latency.

        It is the mean over the second half of the frames.
        """
        ends = [end for _, end in self.stages[-1]]
        half = (len(ends) - 1) // 2
        return (ends[-1] - ends[half]) / (len(ends) - 1 - half) if ends[1:] else ends[0]

    def utilisation(self, spans: Sequence[Span]) -> float:
        """Return the share of a period in which the stage or link of these spans is busy."""
        return (spans[-1][1] - spans[-1][0]) / self.period


def simulate(
    stages: Sequence[float | Sequence[float]],
    transfers: Sequence[float | Sequence[float]],
    frames: int = 0,
) -> Simulation:
    """Simulate `frames` frames, or enough for a steady state, with these ticks of stages and transfers.

    A stage or transfer has one number of ticks for all frames, or a sequence with the ticks of each frame,
    whose length is then the number of frames. With two buffers on each side of a link, a stage starts a frame
    when it has arrived and the frame two before it is sent. A link carries one frame at a time, when the next
    stage is done with the frame two before it. Links work while stages compute.
    """
    if len(transfers) != len(stages) - 1:
        raise ValueError(f"{len(stages)} stages have {len(stages) - 1} transfers, not {len(transfers)}")
    lengths = [len(ticks) for ticks in (*stages, *transfers) if not isinstance(ticks, (int, float))]
    frames = min(lengths, default=frames or 8 * (len(stages) + 1))
    computed: list[list[Span]] = [[] for _ in stages]
    sent: list[list[Span]] = [[] for _ in transfers]
    for frame in range(frames):
        for number, stage_ticks in enumerate(stages):
            ticks = _ticks(stage_ticks, frame)
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
                sent[number].append((begin, begin + _ticks(transfers[number], frame)))
    return Simulation(tuple(map(tuple, computed)), tuple(map(tuple, sent)))


def _ticks(ticks: float | Sequence[float], frame: int) -> float:
    return ticks if isinstance(ticks, (int, float)) else ticks[frame]


def _end(spans: Sequence[Span], frame: int) -> float:
    return spans[frame][1] if frame >= 0 else 0.0
