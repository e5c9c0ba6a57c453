"""A pipeline as SVG: the regions on the grid of units, and stages and links over time."""

from __future__ import annotations

import colorsys
from collections.abc import Iterator, Sequence

from mcudeploy.extensions.several_boards.pipeline.division import Pipeline
from mcudeploy.extensions.several_boards.pipeline.misfit import region_text
from mcudeploy.extensions.several_boards.pipeline.simulate import Span
from mcudeploy.report.chart.svg import safe

_WIDTH, _LEFT, _RIGHT, _HEAD = 1200, 90, 20, 60
_CELL, _LANE, _LINK, _GAP = 44, 26, 12, 6
"""Pixels: of a unit on the grid, of the lane of a stage, of the lane of a link."""
_GOLDEN_ANGLE = 0.381966
_STYLE = """\
svg { color-scheme: light dark; font: 11px sans-serif; }
.paper { fill: #ffffff; } .ink { fill: #1f2328; } .on { fill: #111111; } .idle { fill: #d1d9e0; }
.link { fill: #8c959f; }
@media (prefers-color-scheme: dark) {
.paper { fill: #0d1117; } .ink { fill: #e6edf3; } .idle { fill: #3d444d; }
}"""


def pipeline_picture(pipeline: Pipeline) -> str:
    """Return the picture: the placement, and below it a lane for each stage, and a thin lane for its link."""
    run = pipeline.simulation(len(pipeline.regions) + 3)
    topology = pipeline.task.topology
    lanes = _HEAD + topology.height * _CELL + 2 * _GAP
    height = lanes + len(run.stages) * (_LANE + _LINK + 2 * _GAP) + 16
    end = run.stages[-1][-1][1]
    name = safe(pipeline.model.path.stem)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" '
        f'height="{height}">',
        f"<title>{name}: stages over time</title>",
        f"<style>{_STYLE}</style>",
        f'<rect class="paper" width="{_WIDTH}" height="{height}"/>',
        f'<text class="ink" x="{_LEFT}" y="20">{name} on {topology.width} x {topology.height} units '
        f"({safe(topology.unit_text)}): a frame every {run.period:,.0f} ticks, "
        f"latency {run.latency:,.0f}, modelled</text>",
        f'<text class="ink" x="{_LEFT}" y="38">above: the region of each unit; below: '
        f"{len(run.stages[0])} frames over {end:,.0f} ticks, links grey</text>",
        *_grid(pipeline),
        *_lanes(pipeline, (run.stages, run.links), lanes),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _colour(number: int) -> str:
    red, green, blue = colorsys.hls_to_rgb(number * _GOLDEN_ANGLE % 1.0, 0.68, 0.6)
    return f"#{round(red * 255):02x}{round(green * 255):02x}{round(blue * 255):02x}"


def _grid(pipeline: Pipeline) -> Iterator[str]:
    region = {unit: number for number, units in enumerate(pipeline.places) for unit in units}
    topology = pipeline.task.topology
    for row in range(topology.height):
        for col in range(topology.width):
            x, y = _LEFT + col * _CELL, _HEAD + row * _CELL
            shape = f'x="{x}" y="{y}" width="{_CELL - 3}" height="{_CELL - 3}"'
            number = region.get((col, row))
            if number is None:
                yield f'<rect class="idle" {shape}><title>idle</title></rect>'
                continue
            note = safe(region_text(pipeline.line, pipeline.regions[number]))
            yield f'<rect fill="{_colour(number)}" {shape}><title>{note}</title></rect>'
            middle = f'x="{x + _CELL / 2 - 2}" y="{y + 25}" text-anchor="middle"'
            yield f'<text class="on" {middle}>{number + 1}</text>'


def _lanes(
    pipeline: Pipeline, spans: tuple[Sequence[Sequence[Span]], Sequence[Sequence[Span]]], top: float
) -> Iterator[str]:
    stages, links = spans
    scale = (_WIDTH - _LEFT - _RIGHT) / stages[-1][-1][1]
    for number, lane in enumerate(stages):
        yield f'<text class="ink" x="8" y="{top + 17}">stage {number + 1}</text>'
        note = region_text(pipeline.line, pipeline.regions[number])
        yield from _bars(lane, (scale, top, _LANE), f'fill="{_colour(number)}"', note)
        top += _LANE + _GAP
        if number < len(links):
            sent = f"{pipeline.line.crossing[pipeline.regions[number].end]:,} B"
            yield from _bars(links[number], (scale, top, _LINK), 'class="link"', sent)
        top += _LINK + _GAP


def _bars(spans: Sequence[Span], lane: tuple[float, float, float], fill: str, note: str) -> Iterator[str]:
    """A bar for each frame; `lane`: pixels per tick, top and height."""
    scale, top, height = lane
    for frame, (start, end) in enumerate(spans, 1):
        left, width = _LEFT + start * scale, max(0.2, (end - start) * scale)
        yield (
            f'<rect {fill} x="{left:.2f}" y="{top}" width="{width:.2f}" height="{height}">'
            f"<title>frame {frame}: {safe(note)}</title></rect>"
        )
        if height == _LANE and width > 12:
            yield f'<text class="on" x="{left + 3:.2f}" y="{top + 17}">{frame}</text>'
