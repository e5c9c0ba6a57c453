"""A residency over time as SVG: work of the core and the engine, and content of the fast memory."""

from __future__ import annotations

from collections.abc import Iterator

from mcudeploy.costs.timeline import Timeline
from mcudeploy.ir.trace import Residency
from mcudeploy.report.chart.svg import safe

_WIDTH, _LEFT, _RIGHT, _LANE, _MEMORY, _GAP = 1200, 90, 20, 30, 220, 16
"""Sizes in pixels."""
_STYLE = """\
svg { color-scheme: light dark; font: 11px sans-serif; }
.paper { fill: #ffffff; } .ink { fill: #1f2328; } .once { fill: #0969da; } .again { fill: #bf8700; }
.wait { fill: #cf222e; } .in { fill: #1a7f37; } .out { fill: #8250df; } .load { fill: #afb8c1; }
.limit { stroke: #cf222e; }
@media (prefers-color-scheme: dark) {
.paper { fill: #0d1117; } .ink { fill: #e6edf3; } .load { fill: #57606a; }
}"""


def gantt_picture(name: str, plan: Residency, run: Timeline, limit_bytes: int) -> str:
    """Return lanes of the core and the engine over cycles, and below them the bytes in the fast memory."""
    end = max(run.starts[-1], 1.0)
    scale = (_WIDTH - _LEFT - _RIGHT) / end
    top = 46
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} 400" width="{_WIDTH}" height="400">',
        f"<title>{safe(name)}: memory over time</title>",
        f"<style>{_STYLE}</style>",
        f'<rect class="paper" width="{_WIDTH}" height="400"/>',
        f'<text class="ink" x="{_LEFT}" y="20">{safe(name)}: {end:,.0f} cycles, '
        f"{run.exposed_cycles:,.0f} of them exposed, {plan.repeated_cycles:,.0f} repeated; "
        f"limit {limit_bytes:,} B</text>",
        f'<text class="ink" x="{_LEFT}" y="36">core: steps blue, repeated yellow, waits red; '
        "engine: in green, out violet</text>",
        f'<text class="ink" x="8" y="{top + 19}">core</text>',
        *_core(plan, run, scale, top),
    ]
    top += _LANE + _GAP
    lines += [f'<text class="ink" x="8" y="{top + 19}">engine</text>', *_engine(plan, run, scale, top)]
    top += _LANE + _GAP
    lines += [
        f'<text class="ink" x="8" y="{top + 12}">fast memory</text>',
        *_memory(run, scale, top, limit_bytes),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _bar(kind: str, span: tuple[float, float], scale: float, top: float, note: str) -> str:
    left, width = _LEFT + span[0] * scale, max(0.2, (span[1] - span[0]) * scale)
    return (
        f'<rect class="{kind}" x="{left:.2f}" y="{top}" width="{width:.2f}" height="{_LANE}">'
        f"<title>{safe(note)}</title></rect>"
    )


def _core(plan: Residency, run: Timeline, scale: float, top: float) -> Iterator[str]:
    seen: set[int] = set()
    waits: dict[int, float] = {}
    for wait in run.waits:
        waits[wait.step] = waits.get(wait.step, 0.0) + wait.cycles
    for place, step in enumerate(plan.trace.steps):
        start = run.starts[place]
        kind = "again" if step.origin in seen else "once"
        seen.add(step.origin)
        if place in waits:
            yield _bar("wait", (start - waits[place], start), scale, top, f"wait before step {place}")
        done = start + step.cycles
        yield _bar(kind, (start, done), scale, top, f"step {place}: {step.name}")
        if run.direct_cycles[place]:
            yield _bar("wait", (done, done + run.direct_cycles[place]), scale, top, f"direct: {step.name}")


def _engine(plan: Residency, run: Timeline, scale: float, top: float) -> Iterator[str]:
    for transfer, span in zip(plan.transfers, run.served, strict=True):
        item = plan.trace.items[transfer.item]
        yield _bar(transfer.direction, span, scale, top, f"{item.name}, {item.size_bytes:,} B")


def _memory(run: Timeline, scale: float, top: float, limit_bytes: int) -> Iterator[str]:
    most = max(limit_bytes, *run.loads, 1)
    foot = top + _MEMORY
    points = [f"{_LEFT},{foot}"]
    for place, load in enumerate(run.loads):
        y = foot - load / most * _MEMORY
        points += [f"{_LEFT + run.starts[at] * scale:.2f},{y:.2f}" for at in (place, place + 1)]
    yield f'<polygon class="load" points="{" ".join(points)} {_WIDTH - _RIGHT},{foot}"/>'
    y = foot - limit_bytes / most * _MEMORY
    yield f'<line class="limit" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.2f}" y2="{y:.2f}"/>'
