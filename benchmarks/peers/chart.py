"""A chart of the league: RAM against time of each tool, relative to ours."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from peers.judge import geometric_mean, ram_ratio, time_ratio
from peers.rows import OWN, Row

WIDTH, PLOT_WIDTH, HEIGHT, MARGIN = 890, 620, 420, 60
ROOM = 1.5
COLOURS = ("#1b6ca8", "#5aa2d6", "#c0392b", "#d98880", "#27864a", "#82c49b", "#8e44ad", "#7f6000")


@dataclass(frozen=True, slots=True)
class ToolPoint:
    """Geometric means of a tool's time and RAM, as multiples of ours, over `rows` networks and boards."""

    tool: str
    time: float
    ram: float
    rows: int


def tool_points(rows: Iterable[Row]) -> list[ToolPoint]:
    """Return a point for each tool with right outputs for at least one network."""
    right = [row for row in rows if row.is_int8 and row.is_convolutional and not row.is_wrong]
    ours = {(row.network, row.board): row for row in right if row.tool == OWN}
    ratios: dict[str, list[tuple[float, float]]] = {}
    for row in right:
        base = ours.get((row.network, row.board))
        time, ram = (None, None) if base is None else (time_ratio(base, row), ram_ratio(base, row))
        if time is not None and ram is not None:
            ratios.setdefault(row.tool, []).append((1 / time.value, 1 / ram.value))
    return [
        ToolPoint(
            tool, geometric_mean([it[0] for it in pairs]), geometric_mean([it[1] for it in pairs]), len(pairs)
        )
        for tool, pairs in ratios.items()
    ]


def drawing(points: Sequence[ToolPoint]) -> str:
    """Return the points as SVG, with logarithmic axes and a legend at the right."""
    times = _Axis.around([it.time for it in points], MARGIN, PLOT_WIDTH - MARGIN)
    rams = _Axis.around([it.ram for it in points], HEIGHT - MARGIN, MARGIN)
    middle = (MARGIN + PLOT_WIDTH - MARGIN) / 2
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        'font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<path d="M{MARGIN},{MARGIN} V{HEIGHT - MARGIN} H{PLOT_WIDTH - MARGIN}" fill="none" '
        'stroke="black"/>',
        f'<text x="{middle}" y="{HEIGHT - 12}" text-anchor="middle">'
        "time, as a multiple of mcudeploy's</text>",
        f'<text x="16" y="{HEIGHT / 2}" text-anchor="middle" transform="rotate(-90 16 {HEIGHT / 2})">'
        "RAM, as a multiple of mcudeploy's</text>",
    ]
    for value in times.marks():
        x = times.place(value)
        parts.append(f'<path d="M{x:.1f},{HEIGHT - MARGIN} v5" stroke="black"/>')
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - MARGIN + 18}" text-anchor="middle">{value:g}</text>')
    for value in rams.marks():
        y = rams.place(value)
        parts.append(f'<path d="M{MARGIN},{y:.1f} h-5" stroke="black"/>')
        parts.append(f'<text x="{MARGIN - 8}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>')
    for number, point in enumerate(points):
        colour, line = COLOURS[number % len(COLOURS)], MARGIN + 20 * number
        parts.append(_sign(point, times.place(point.time), rams.place(point.ram), colour))
        parts.append(_sign(point, PLOT_WIDTH, line, colour))
        label = f"{escape(point.tool)} ({point.rows})"
        parts.append(f'<text x="{PLOT_WIDTH + 12}" y="{line + 4}" fill="{colour}">{label}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


@dataclass(frozen=True, slots=True)
class _Axis:
    """A logarithmic axis: the places of its least and largest value."""

    least: float
    largest: float
    first: float
    last: float

    @classmethod
    def around(cls, values: Sequence[float], first: float, last: float) -> _Axis:
        return cls(min(values, default=1.0) / ROOM, max(values, default=1.0) * ROOM, first, last)

    def place(self, value: float) -> float:
        share = math.log(value / self.least) / math.log(self.largest / self.least)
        return self.first + (self.last - self.first) * share

    def marks(self) -> list[float]:
        """Return the powers of two on the axis."""
        powers = range(math.ceil(math.log2(self.least)), math.floor(math.log2(self.largest)) + 1)
        return [2.0**power for power in powers]


def _sign(point: ToolPoint, x: float, y: float, colour: str) -> str:
    if point.tool.startswith(OWN):
        return f'<rect x="{x - 4.5:.1f}" y="{y - 4.5:.1f}" width="9" height="9" fill="{colour}"/>'
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{colour}"/>'
