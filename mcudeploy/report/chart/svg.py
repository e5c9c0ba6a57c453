"""A drawing as SVG: one file without scripts and links; names of a model are escaped text."""

from __future__ import annotations

import colorsys
import html
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count

from mcudeploy.common.text import count_text, plain
from mcudeploy.ir.interval import Interval
from mcudeploy.report.chart.drawing import Area, ChartGroup, ChartRun, Drawing, Panel

_WIDTH, _LEFT, _RIGHT = 1200, 84, 24
_PANEL, _HEAD, _FOOT = 480, 64, 86
_STRIP = 12
"""Pixels. A panel of bytes over steps has a head above, and the running operators and the axis below."""
_FONT, _CHARACTER = 11, 6.3
"""Size of labels, and the maximum width of a character, on average."""
_LINE, _PLACES_TRIED = _FONT + 3, 8
_OUTLINED = 3.5
"""Pixels of the smallest block with an outline, which would cover smaller ones."""
_GOLDEN_ANGLE = 0.381966

_STYLE = """\
svg { color-scheme: light dark; }
.paper { fill: #ffffff; } .arena { fill: #f1f3f5; } .ink { fill: #1f2328; } .pale { fill: #59636e; }
.grid { stroke: #d1d9e0; } .axis { stroke: #59636e; } .load { stroke: #1f2328; } .halo { stroke: #ffffff; }
.peak { stroke: #cf222e; } .peaktext { fill: #cf222e; } .scratch { fill: #8c959f; stroke: #8c959f; }
.edge { stroke: #ffffff; } .flight { fill: #cf222e; fill-opacity: 0.35; stroke: #cf222e; }
.on { fill: #111111; }
@media (prefers-color-scheme: dark) {
.paper { fill: #0d1117; } .arena { fill: #1c2128; } .ink { fill: #e6edf3; } .pale { fill: #9198a1; }
.grid { stroke: #3d444d; } .axis { stroke: #9198a1; } .load { stroke: #ffffff; } .halo { stroke: #0d1117; }
.peak { stroke: #ff7b72; } .peaktext { fill: #ff7b72; } .edge { stroke: #0d1117; }
}"""


@dataclass(frozen=True, slots=True)
class Scale:
    """Pixels of steps and bytes: step 0 at `left`, byte 0 at `bottom`, the lower edge."""

    left: float
    bottom: float
    per_step: float
    per_byte: float

    def x(self, step: float) -> float:
        return self.left + step * self.per_step

    def y(self, offset: float) -> float:
        return self.bottom - offset * self.per_byte

    def width(self, area: Area) -> float:
        return len(area.steps) * self.per_step

    def height(self, area: Area) -> float:
        return len(area.bytes) * self.per_byte


def safe(text: object) -> str:
    """Return text for SVG and HTML, in an element or an attribute; control characters as escapes."""
    return html.escape(plain(text), quote=True)


def svg_picture(drawing: Drawing) -> str:
    """Return the drawing as an SVG document: one panel for each memory, stacked."""
    panel_height = _HEAD + _PANEL + _FOOT
    height = panel_height * len(drawing.panels)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'font-family="system-ui, Segoe UI, Helvetica, Arial, sans-serif" font-size="{_FONT}">',
        f"<title>{safe(drawing.model)} on {safe(drawing.board)}: arena over steps</title>",
        f"<style>\n{_STYLE}\n</style>",
        f'<rect class="paper" width="{_WIDTH}" height="{height}"/>',
    ]
    for number, (panel, scale) in enumerate(zip(drawing.panels, scales(drawing), strict=True)):
        parts += _panel(drawing, panel, scale, number * panel_height)
    return "\n".join([*parts, "</svg>", ""])


def scales(drawing: Drawing) -> list[Scale]:
    """Return the position of steps and bytes of each panel in the picture."""
    plot = _WIDTH - _LEFT - _RIGHT
    panel_scales = []
    for number, panel in enumerate(drawing.panels):
        bottom = number * (_HEAD + _PANEL + _FOOT) + _HEAD + _PANEL
        tallest = max(panel.arena_bytes, *panel.load, 1)
        panel_scales.append(Scale(_LEFT, bottom, plot / drawing.steps, _PANEL / tallest))
    return panel_scales


def _panel(drawing: Drawing, panel: Panel, scale: Scale, top: float) -> list[str]:
    plot = _WIDTH - _LEFT - _RIGHT
    groups = sorted(panel.groups, key=lambda group: group.colour < 0)  # scratch is short, and would be hidden
    return [
        *_head(drawing, panel, top),
        f'<rect class="arena" x="{_LEFT}" y="{px(scale.y(panel.arena_bytes))}" width="{plot}" '
        f'height="{px(panel.arena_bytes * scale.per_byte)}"/>',
        *_byte_axis(panel, scale),
        *(_blocks(group, scale) for group in groups if group.areas),
        *_flights(panel, scale),
        *_load_curve(panel, scale),
        *_labels(groups, scale),
        *_peak(panel, scale, drawing.steps),
        *_strip(drawing.runs, scale),
        *_step_axis(drawing.steps, scale),
    ]


def _head(drawing: Drawing, panel: Panel, top: float) -> list[str]:
    title = f"{drawing.model} on {drawing.board}"
    line = (
        f"arena {panel.arena_bytes:,} B in {panel.memory}, live peak {max(panel.load):,} B, "
        f"{count_text(drawing.steps, 'step')}"
    )
    return [
        f'<text class="ink" x="{_LEFT}" y="{px(top + 24)}" font-size="16" font-weight="600">'
        f"{safe(title)}</text>",
        f'<text class="pale" x="{_LEFT}" y="{px(top + 43)}" font-size="12">{safe(line)}</text>',
        *_legend(top + 39, bool(panel.flights)),
    ]


def _legend(y: float, has_flights: bool) -> list[str]:
    """Return the legend of everything but axes and tensors, which show their names."""
    x = _WIDTH - _RIGHT - 386
    swatch = f'<rect x="{{x}}" y="{px(y - 5)}" width="14" height="10" class="{{style}}"/>'
    text = f'<text class="pale" x="{{x}}" y="{px(y + 4)}">{{text}}</text>'
    between = (swatch.format(x=x - 142, style="flight"), text.format(x=x - 122, text="between memories"))
    return [
        *(between if has_flights else ()),
        f'<path class="load" fill="none" stroke-width="1.5" d="M{x} {px(y)}h14"/>',
        text.format(x=x + 20, text="bytes alive"),
        f'<path class="peak" fill="none" stroke-dasharray="4 3" d="M{x + 96} {px(y)}h14"/>',
        text.format(x=x + 116, text="peak step"),
        swatch.format(x=x + 186, style="scratch"),
        text.format(x=x + 206, text="scratch"),
        swatch.format(x=x + 264, style="arena"),
        text.format(x=x + 284, text="arena, not in use"),
    ]


def _byte_axis(panel: Panel, scale: Scale) -> list[str]:
    right = _WIDTH - _RIGHT
    parts = []
    for value in round_steps(panel.arena_bytes, 8):
        y = px(scale.y(value))
        parts.append(f'<path class="grid" stroke-width="0.7" d="M{_LEFT} {y}H{right}"/>')
        parts.append(f'<text class="pale" x="{_LEFT - 8}" y="{y}" dy="4" text-anchor="end">{value:,}</text>')
    middle = px(scale.bottom - _PANEL / 2)
    parts.append(
        f'<text class="pale" text-anchor="middle" transform="translate(18 {middle}) rotate(-90)">'
        f"offset in {safe(panel.memory)}, bytes</text>"
    )
    return parts


def _step_axis(steps: int, scale: Scale) -> list[str]:
    y = scale.bottom + _STRIP + 8
    parts = [f'<path class="axis" d="M{_LEFT} {px(y)}H{_WIDTH - _RIGHT}"/>']
    for value in round_steps(steps, 12):
        x = px(scale.x(value))
        parts.append(f'<path class="axis" d="M{x} {px(y)}v4"/>')
        parts.append(f'<text class="pale" x="{x}" y="{px(y + 17)}" text-anchor="middle">{value:,}</text>')
    parts.append(
        f'<text class="pale" x="{px((_LEFT + _WIDTH - _RIGHT) / 2)}" y="{px(y + 36)}" text-anchor="middle">'
        "step; the strip above shows the running operator, in the colour of its output</text>"
    )
    return parts


def _blocks(group: ChartGroup, scale: Scale) -> str:
    """Return all blocks of a group as one shape: thousands of blocks stay a small file."""
    path = "".join(_rectangle(area, scale) for area in group.areas)
    is_outlined = all(min(scale.width(area), scale.height(area)) >= _OUTLINED for area in group.areas)
    if group.colour < 0:
        style = 'class="scratch" stroke-width="0.3"'
    else:
        colour = _colour(group.colour)
        # An outline in the same colour closes the seams between thin blocks that touch.
        edge = 'class="edge" stroke-width="0.8"' if is_outlined else f'stroke="{colour}" stroke-width="0.3"'
        style = f'fill="{colour}" {edge}'
    return f'<path {style} d="{path}"><title>{safe(group.name)}: {safe(group.note)}</title></path>'


def _rectangle(area: Area, scale: Scale) -> str:
    return (
        f"M{px(scale.x(area.steps.lo))} {px(scale.y(area.bytes.hi))}"
        f"h{px(scale.width(area))}v{px(scale.height(area))}h{px(-scale.width(area))}z"
    )


def _flights(panel: Panel, scale: Scale) -> list[str]:
    """Return the transfers to or from another memory as one shape that lies over their blocks."""
    if not panel.flights:
        return []
    path = "".join(_rectangle(area, scale) for area in panel.flights)
    title = f"between memories: {count_text(len(panel.flights), 'transfer')}"
    return [f'<path class="flight" stroke-width="0.8" d="{path}"><title>{title}</title></path>']


def _load_curve(panel: Panel, scale: Scale) -> list[str]:
    points = [f"M{px(scale.x(0))} {px(scale.y(panel.load[0]))}"]
    for step, load in enumerate(panel.load):
        if step and load != panel.load[step - 1]:
            points.append(f"H{px(scale.x(step))}V{px(scale.y(load))}")
    path = "".join([*points, f"H{px(scale.x(len(panel.load)))}"])
    width = min(1.3, max(0.6, scale.per_step / 2))
    return [
        f'<path class="halo" fill="none" stroke-width="{px(width + 1.6)}" stroke-opacity="0.6" d="{path}"/>',
        f'<path class="load" fill="none" stroke-width="{px(width)}" d="{path}"/>',
    ]


def _peak(panel: Panel, scale: Scale, steps: int) -> list[str]:
    x = scale.x(panel.peak_step + 0.5)
    anchor = "start" if panel.peak_step < steps / 2 else "end"
    shift = 5 if anchor == "start" else -5
    top = scale.bottom - _PANEL
    return [
        f'<path class="peak" fill="none" stroke-dasharray="4 3" '
        f'd="M{px(x)} {px(top - 12)}V{px(scale.bottom)}"/>',
        f'<text class="peaktext" x="{px(x + shift)}" y="{px(top - 4)}" text-anchor="{anchor}">'
        f"peak {max(panel.load):,} B, step {panel.peak_step:,}</text>",
    ]


def _strip(runs: Iterable[ChartRun], scale: Scale) -> list[str]:
    """Return the running operators: one shape for all steps of an operator."""
    spans: dict[tuple[str, int], list[Interval]] = {}
    for run in runs:
        spans.setdefault((run.operator, run.colour), []).append(run.steps)
    y = px(scale.bottom + 4)
    parts = []
    for (name, colour), operator_spans in spans.items():
        path = "".join(
            f"M{px(scale.x(span.lo))} {y}h{px(len(span) * scale.per_step)}v{_STRIP}"
            f"h{px(-len(span) * scale.per_step)}z"
            for span in operator_spans
        )
        parts.append(f'<path fill="{_colour(colour)}" d="{path}"><title>{safe(name)} runs</title></path>')
    return parts


def _labels(groups: Iterable[ChartGroup], scale: Scale) -> list[str]:
    """Return names of tensors on blocks with enough room, the large ones first; no two overlap."""
    parts: list[str] = []
    boxes: list[tuple[float, float, float, float]] = []
    tensors = [group for group in groups if group.areas and group.colour >= 0]
    for group in sorted(tensors, key=lambda group: -sum(area.size for area in group.areas)):
        length = len(group.name) * _CHARACTER + 4
        for area, upright in _places(group, scale, length):
            x = scale.x((area.steps.lo + area.steps.hi) / 2)
            y = scale.y((area.bytes.lo + area.bytes.hi) / 2)
            across, along = (_LINE / 2, length / 2) if upright else (length / 2, _LINE / 2)
            box = (x - across, y - along, x + across, y + along)
            if any(box[0] < b[2] and b[0] < box[2] and box[1] < b[3] and b[1] < box[3] for b in boxes):
                continue
            boxes.append(box)
            place = f"translate({px(x)} {px(y)})" + (" rotate(-90)" if upright else "")
            halo = f'stroke="{_colour(group.colour)}" stroke-width="3" aria-hidden="true"'
            for style in (halo, 'class="on"'):
                parts.append(
                    f'<text {style} text-anchor="middle" dy="4" transform="{place}" pointer-events="none">'
                    f"{safe(group.name)}</text>"
                )
            break
    return parts


def _places(group: ChartGroup, scale: Scale, length: float) -> list[tuple[Area, bool]]:
    """Return the largest areas of a group where a name of `length` pixels fits, and whether it is upright."""
    places = []
    wide = max(length / scale.per_step, max(len(area.steps) for area in group.areas) / 3)
    for area in {*group.areas, *_rows(group.areas), *_piles(group.areas, wide)}:
        width, height = scale.width(area), scale.height(area)
        if (width >= length and height >= _LINE) or (height >= length and width >= _LINE):
            places.append((area, width < length))
    places.sort(key=lambda place: (place[1], -place[0].size, place[0].steps.lo, place[0].bytes.lo))
    return places[:_PLACES_TRIED]


def _rows(areas: Iterable[Area]) -> Iterable[Area]:
    """Merge consecutive areas at the same bytes."""
    row: Area | None = None
    for area in sorted(areas, key=lambda area: (area.bytes, area.steps)):
        if row is not None and area.bytes == row.bytes and area.steps.lo <= row.steps.hi:
            row = Area(row.steps.hull(area.steps), row.bytes)
            continue
        if row is not None:
            yield row
        row = area
    if row is not None:
        yield row


def _piles(areas: Iterable[Area], steps: float) -> Iterable[Area]:
    """Merge stacked areas if they have at least `steps` steps in common."""
    pile: Area | None = None
    for area in sorted(areas, key=lambda area: (area.bytes, area.steps)):
        if pile is not None and area.bytes.lo == pile.bytes.hi:
            common = area.steps.clip(pile.steps.lo, pile.steps.hi)
            if len(common) >= steps:
                pile = Area(common, pile.bytes.hull(area.bytes))
                continue
        if pile is not None:
            yield pile
        pile = area
    if pile is not None:
        yield pile


def _colour(number: int) -> str:
    """Return the colour of a number. Neighbours differ much, and dark text is readable on all colours."""
    hue = (0.58 + number * _GOLDEN_ANGLE) % 1
    lightness = (0.72, 0.64, 0.78)[number % 3]
    red, green, blue = colorsys.hls_to_rgb(hue, lightness, 0.55)
    return f"#{round(red * 255):02x}{round(green * 255):02x}{round(blue * 255):02x}"


def round_steps(most: int, wanted: int) -> list[int]:
    """Return round numbers from 0 to `most`, `wanted` of them or fewer."""
    steps = (digit * 10**power for power in count() for digit in (1, 2, 5))
    step = next(step for step in steps if most <= step * wanted)
    return list(range(0, most + 1, step))


def px(value: float) -> str:
    """Return a number of pixels in the shortest form."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if value else "0"
