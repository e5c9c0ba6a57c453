"""The rate and latency of frames that went through a chain.

Real boards and processes of this computer share its time: the host's clock and the last board's counter time
the frames. Emulated boards have independent clocks. There every frame has the ticks that its boards counted
while frames were under way, for their runs, copies and links. A simulation with the lines' rate and the
boards' buffers puts them in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from mcudeploy.extensions.several_boards.frames import ChainRecord, RunningBoard
from mcudeploy.extensions.several_boards.pipeline.simulate import simulate

_WRAP = 2**32


@dataclass(frozen=True, slots=True)
class FrameTimes:
    """Measured seconds between two frames, and of the first one.

    `method`: whether clocks timed frames, or counted ticks were replayed.
    """

    method: Literal["clock", "replay"]
    frame_seconds: float
    latency_seconds: float


def replayed(record: ChainRecord, ticks_hz: Sequence[float], transfers: Sequence[float]) -> FrameTimes:
    """Return the times of frames by the counted ticks of their boards, a second each `ticks_hz`.

    A board's work on a frame is its run, copies and links. `transfers`: seconds of a frame on each line.
    """
    frames = len(record.states)
    stages = [
        [ticks / rate for ticks in _ticks_of_frames(record, number, frames)]
        for number, rate in enumerate(ticks_hz)
    ]
    run = simulate(stages, [[seconds] * frames for seconds in transfers])
    return FrameTimes("replay", run.period, run.latency)


def _ticks_of_frames(record: ChainRecord, number: int, frames: int) -> list[float]:
    """Return the ticks of each frame on a board.

    Frames between two states share the ticks of their runs. All share those of the links, which work on the
    next frame as well.
    """
    links = record.states[-1][number].link_ticks / frames
    ticks: list[float] = []
    before = 0
    for states in record.states:
        state = states[number]
        count = state.done - len(ticks)
        ticks += [(state.ticks - before) / max(count, 1) + links] * count
        before = state.ticks if count else before
    return ticks


def timed(record: ChainRecord, last: RunningBoard) -> FrameTimes:
    """Return the times of frames by clocks: the last board's counter, and the host's for the first frame.

    The rate is that of the second half; of one frame it is the latency. The host's clock tells how often the
    counter has wrapped around.
    """
    latency = record.taken[0] - record.put[0]
    if len(record.taken) == 1:
        return FrameTimes("clock", latency, latency)
    half = (len(record.states) - 1) // 2
    start, end = record.states[half][-1], record.states[-1][-1]
    passed = record.taken[-1] - record.taken[half]
    rate = last.session.info.ticks_hz
    ticks = (end.last - start.last) % _WRAP
    wraps = round((passed * rate - ticks) / _WRAP)
    frames = end.done - start.done
    seconds = (ticks + max(wraps, 0) * _WRAP) / rate / frames if frames else passed
    return FrameTimes("clock", seconds, latency)
