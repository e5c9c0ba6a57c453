"""RAM or flash against latency as a picture: plans, the best ones, and the one that ran."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from mcudeploy.report.chart.svg import px, round_steps, safe

Point = tuple[int, float]
"""Bytes of the arena or in flash, and latency."""
_WIDTH, _HEIGHT = 720, 340
_LEFT, _RIGHT, _TOP, _FOOT = 90, 24, 34, 52
_MARGIN = 0.06
_RADII = {"candidate": 2.5, "front": 4.5, "chosen": 6.5, "measured": 9}


@dataclass(frozen=True, slots=True)
class Words:
    """Text of a picture: its title, the axis of bytes, the name of the reference plan (square), and that of
    the best plans (stairs).
    """

    title: str
    size: str
    reference: str
    front: str


RAM = Words("RAM against latency", "arena, bytes", "unsplit plan", "best of them")
FLASH = Words("Flash against latency", "constants and tables, bytes", "default kernels", "smaller ones")


@dataclass(frozen=True, slots=True)
class Curve:
    """The points of the picture.

    `front`: plans that no other plan beats in both bytes and latency; `reference`: the plan with which
    latencies are compared; `measured`: the chosen plan with its measured overhead over the reference. `unit`
    is the unit of latency.
    """

    words: Words
    candidates: tuple[Point, ...]
    front: tuple[Point, ...]
    reference: Point
    chosen: Point
    measured: Point | None
    unit: str
    commands: Mapping[Point, str] = field(default_factory=dict)
    """The command line that leads to a point of `front`, for those that have one."""


@dataclass(frozen=True, slots=True)
class _Axes:
    """Conversion of latency and bytes to pixels."""

    ticks: tuple[float, float]
    most_bytes: float

    @classmethod
    def of(cls, points: Iterable[Point]) -> _Axes:
        known = list(points)
        latencies = [ticks for _, ticks in known]
        least, most = min(latencies), max(latencies)
        margin = _MARGIN * ((most - least) or most or 1.0)
        return cls(
            (least - margin, most + margin),
            (1 + 2 * _MARGIN) * max((size for size, _ in known), default=1) or 1.0,
        )

    def x(self, ticks: float) -> float:
        low, high = self.ticks
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (ticks - low) / (high - low)

    def y(self, size: float) -> float:
        return _HEIGHT - _FOOT - (_HEIGHT - _TOP - _FOOT) * size / self.most_bytes


def curve_picture(curve: Curve) -> str:
    """Return the picture as SVG; its colours are the page's."""
    measured = () if curve.measured is None else (curve.measured,)
    axes = _Axes.of((*curve.candidates, *curve.front, curve.reference, curve.chosen, *measured))
    steps = sorted(set(curve.front), key=lambda point: point[1])
    parts = [
        f'<svg class="curve" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">',
        f"<title>{curve.words.title}</title>",
        *_grid(axes, curve),
        *(_dot(axes, point, "candidate", "a candidate plan") for point in curve.candidates),
        _line(axes, steps),
        *(_dot(axes, point, "front", "no plan is better in both", curve.commands) for point in steps),
        _square(axes, curve),
        _dot(axes, curve.chosen, "chosen", "chosen"),
    ]
    if curve.measured is not None:
        parts.append(_dot(axes, curve.measured, "measured", "as run"))
    return "\n".join([*parts, *_legend(curve), "</svg>"])


def _grid(axes: _Axes, curve: Curve) -> Iterable[str]:
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _FOOT
    for size in round_steps(int(axes.most_bytes), 6):
        y = px(axes.y(size))
        yield f'<path class="grid-line" d="M{_LEFT} {y}H{right}"/>'
        yield f'<text class="label" x="{_LEFT - 8}" y="{y}" dy="4" text-anchor="end">{size:,}</text>'
    for at, label in _latencies(axes, curve.reference[1]):
        x = px(axes.x(at))
        yield f'<path class="axis-line" d="M{x} {bottom}v4"/>'
        yield f'<text class="label" x="{x}" y="{bottom + 18}" text-anchor="middle">{label}</text>'
    yield f'<path class="axis-line" d="M{_LEFT} {bottom}H{right}"/>'
    yield (
        f'<text class="label" x="{(_LEFT + right) / 2}" y="{bottom + 40}" text-anchor="middle">'
        f"{_axis_title(curve)}</text>"
    )
    middle = (_TOP + bottom) / 2
    yield (
        f'<text class="label" text-anchor="middle" transform="translate(16 {middle}) rotate(-90)">'
        f"{curve.words.size}</text>"
    )


def _latencies(axes: _Axes, reference: float) -> Iterable[tuple[float, str]]:
    """Return marks of the axis and their text: percent over the reference, or ticks without one."""
    low, high = axes.ticks
    if not reference:
        return [(low + each, f"{low + each:,.0f}") for each in round_steps(int(high - low), 4)]
    first, last = (round(1000 * (each / reference - 1)) for each in (low, high))
    marks = round_steps(max(last, -first), 6)
    both = sorted({*marks, *(-mark for mark in marks)})
    return [
        (reference * (1 + each / 1000), f"{each / 10:+g} %" if each else "0 %")
        for each in both
        if first <= each <= last
    ]


def _axis_title(curve: Curve) -> str:
    if not curve.reference[1]:
        return f"latency, {safe(curve.unit)}"
    return f"latency over that of the {curve.words.reference}, {curve.reference[1]:,.0f} {safe(curve.unit)}"


def _dot(
    axes: _Axes, point: Point, style: str, caption: str, commands: Mapping[Point, str] | None = None
) -> str:
    size, ticks = point
    command = (commands or {}).get(point)
    copied, way = "", ""
    if command is not None:
        copied, way = f' data-command="{safe(command)}"', ", click to copy its command"
    place = f'cx="{px(axes.x(ticks))}" cy="{px(axes.y(size))}" r="{_RADII[style]}"'
    title = f"{caption}: {size:,} B, {ticks:,.0f}{way}"
    return f'<circle class="{style}" {place}{copied}><title>{title}</title></circle>'


def _square(axes: _Axes, curve: Curve) -> str:
    size, ticks = curve.reference
    x, y = axes.x(ticks) - 5, axes.y(size) - 5
    return (
        f'<rect class="unsplit" x="{px(x)}" y="{px(y)}" width="10" height="10">'
        f"<title>{curve.words.reference}: {size:,} B, {ticks:,.0f}</title></rect>"
    )


def _line(axes: _Axes, steps: list[Point]) -> str:
    """Return the front as stairs: a plan holds until the next one needs less RAM."""
    if not steps:
        return ""
    path = f"M{px(axes.x(steps[0][1]))} {px(axes.y(steps[0][0]))}"
    path += "".join(f"H{px(axes.x(ticks))}V{px(axes.y(size))}" for size, ticks in steps[1:])
    return f'<path class="stairs" d="{path}"/>'


def _legend(curve: Curve) -> Iterable[str]:
    shown = [("candidate", "candidate plans")] * bool(curve.candidates)
    shown += [("front", curve.words.front), ("chosen", "chosen")]
    shown += [("measured", "chosen, as run")] * (curve.measured is not None)
    x = _LEFT
    yield f'<rect class="unsplit" x="{x}" y="10" width="9" height="9"/>'
    yield f'<text class="label" x="{x + 14}" y="18">{curve.words.reference}</text>'
    x += 34 + 6 * len(curve.words.reference)
    for style, text in shown:
        yield f'<circle class="{style}" cx="{x + 4}" cy="14" r="4.5"/>'
        yield f'<text class="label" x="{x + 14}" y="18">{text}</text>'
        x += 34 + 6 * len(text)
