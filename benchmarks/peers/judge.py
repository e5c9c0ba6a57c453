"""The rule of the league: our default plan against the best of the other tools, by network and board."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from peers.rows import OWN, SMALL, Row

RAM_GOAL = 0.5
TIME_GOAL = 0.8
FLASH_LIMIT = 1.5
"""Flash has no goal. Beyond this ratio, a row states what the program with the least flash takes."""
OTHER_GOAL = 1.0
"""The goal of RAM and time for networks that are not int8 or have no convolution: no tool needs less."""
SHARE_GOAL = 0.9


@dataclass(frozen=True, slots=True)
class Ratio:
    """A figure of ours beside that of another tool, in the same unit."""

    ours: int
    theirs: int
    tool: str
    unit: str

    @property
    def value(self) -> float:
        return self.ours / self.theirs


@dataclass(frozen=True, slots=True)
class Comparison:
    """Our default plan against the best other tool; None without one, or if we have no figures.

    `has_goals`: whether it is an int8 network with convolutions. `missing`: why we have no figures although
    another tool has. `trade`: what the program with the least flash takes.
    """

    network: str
    board: str
    has_goals: bool
    ram: Ratio | None
    time: Ratio | None
    flash: Ratio | None
    missing: str = ""
    trade: str = ""

    def losses(self) -> Iterator[tuple[str, Ratio]]:
        """Yield the figures beyond their goals or limit: `ram`, `time` or `flash`, with the ratio."""
        ram, time = (RAM_GOAL, TIME_GOAL) if self.has_goals else (OTHER_GOAL, OTHER_GOAL)
        goals = ("ram", self.ram, ram), ("time", self.time, time), ("flash", self.flash, FLASH_LIMIT)
        for figure, ratio, goal in goals:
            if ratio is not None and ratio.value > goal:
                yield figure, ratio


def is_ours(row: Row) -> bool:
    return row.tool.startswith(OWN)


def compare(rows: Iterable[Row]) -> list[Comparison]:
    """Return a comparison for each network and board. Tools with wrong outputs do not count."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.network, row.board), []).append(row)
    return [_compared(*key, group) for key, group in groups.items()]


def _compared(network: str, board: str, rows: Sequence[Row]) -> Comparison:
    peers = [it for it in rows if not is_ours(it) and not it.is_wrong and not it.refusal]
    own = {it.tool: it for it in rows if is_ours(it)}
    ours, small = own.get(OWN), own.get(SMALL)
    has_goals = rows[0].is_int8 and rows[0].is_convolutional
    if ours is None or ours.refusal or ours.is_wrong:
        message = "not run" if ours is None else ours.refusal or "wrong outputs"
        return Comparison(network, board, has_goals, None, None, None, message if peers else "")
    ratios = (_worst(ours, peers, ratio) for ratio in (ram_ratio, time_ratio, flash_ratio))
    trade = "" if small is None or small.refusal or small.is_wrong else _trade(ours, small)
    return Comparison(network, board, has_goals, *ratios, trade=trade)


def _trade(ours: Row, small: Row) -> str:
    time = time_ratio(small, ours)
    assert time is not None
    return f"`--optimize size --no-split`: {small.flash_bytes:,} B at {time.value:.2f} times the {time.unit}"


def _worst(ours: Row, peers: Iterable[Row], ratio: Callable[[Row, Row], Ratio | None]) -> Ratio | None:
    ratios = (ratio(ours, peer) for peer in peers)
    return max((it for it in ratios if it is not None), key=lambda it: it.value, default=None)


def ram_ratio(ours: Row, peer: Row) -> Ratio | None:
    """Return the ratio of RAM, if both rows have it."""
    if ours.ram_bytes is None or peer.ram_bytes is None:
        return None
    return Ratio(ours.ram_bytes, peer.ram_bytes, peer.tool, "B")


def flash_ratio(ours: Row, peer: Row) -> Ratio | None:
    """Return the ratio of flash, if both rows have it."""
    if ours.flash_bytes is None or peer.flash_bytes is None:
        return None
    return Ratio(ours.flash_bytes, peer.flash_bytes, peer.tool, "B")


def time_ratio(ours: Row, peer: Row) -> Ratio | None:
    """Return the ratio of cycles, if both rows have them; else of instructions, else None."""
    if ours.cycles is not None and peer.cycles is not None:
        return Ratio(ours.cycles, peer.cycles, peer.tool, "cycles")
    if ours.instructions is not None and peer.instructions is not None:
        return Ratio(ours.instructions, peer.instructions, peer.tool, "instructions")
    return None


def share_within(ratios: Sequence[Ratio], goal: float) -> float:
    """Return the share of ratios that reach a goal; 1 for no ratios."""
    return sum(it.value <= goal for it in ratios) / len(ratios) if ratios else 1.0


def geometric_mean(values: Iterable[float]) -> float:
    return math.exp(statistics.fmean(map(math.log, values)))
