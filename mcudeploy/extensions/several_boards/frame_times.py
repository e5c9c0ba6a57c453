"""The rate and latency of frames that went through a chain.

Real boards and processes of this computer run in real time: the host's clock and the last board's counter
time the frames. Emulated boards have independent clocks. They count the ticks of their runs, copies and links
for each frame, and a simulation with the links' rate and the boards' buffers makes times of these.
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
    """Seconds between two frames, and from start to end of the first frame.

    `method`: "clock" if clocks timed the frames, "replay" if counted ticks were simulated.
    """

    method: Literal["clock", "replay"]
    frame_seconds: float
    latency_seconds: float


def replayed(record: ChainRecord, ticks_hz: Sequence[float], transfers: Sequence[float]) -> FrameTimes:
    """Return the times of frames from the counted ticks of each board, `ticks_hz` of which are a second.

    A board's work on a frame is its run, copies and links. `transfers`: seconds of a frame on each link.
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

    Frames between two readings of the board's status get equal shares of the ticks of their runs. All frames
    get equal shares of the links' ticks, since links work for several frames at a time.
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
    """Return the times of frames by clocks: the last board's counter, and for the first frame the host's.

    The rate is that of the second half of the frames; for a single frame it is the latency. The host's clock
    determines how often the counter has wrapped around.
    """
    latency = record.taken[0] - record.put[0]
    if len(record.taken) == 1:
        return FrameTimes("clock", latency, latency)
    half = (len(record.states) - 1) // 2
    start, end = record.states[half][-1], record.states[-1][-1]
    host_seconds = record.taken[-1] - record.taken[half]
    rate = last.session.info.ticks_hz
    ticks = (end.last - start.last) % _WRAP
    wraps = round((host_seconds * rate - ticks) / _WRAP)
    frames = end.done - start.done
    seconds = (ticks + max(wraps, 0) * _WRAP) / rate / frames if frames else host_seconds
    return FrameTimes("clock", seconds, latency)
