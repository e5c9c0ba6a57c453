"""An output over a sequence of runs as a picture."""

from __future__ import annotations

from mcudeploy.report.chart.svg import px, round_steps, safe
from mcudeploy.report.output_curves import OutputCurve

_WIDTH, _HEIGHT = 720, 120
_LEFT, _RIGHT, _TOP, _FOOT = 90, 24, 10, 28


def output_picture(curve: OutputCurve) -> str:
    """Return the picture as SVG; its colours are the page's."""
    low, high = curve.reach
    tall, wide = _HEIGHT - _TOP - _FOOT, _WIDTH - _LEFT - _RIGHT
    last = max(len(curve.values) - 1, 1)

    def x(run: float) -> str:
        return px(_LEFT + wide * run / last)

    def y(value: float) -> str:
        return px(_TOP + tall * ((high - value) / (high - low) if high > low else 0.5))

    path = "M" + "L".join(f"{x(run)} {y(value)}" for run, value in enumerate(curve.values))
    bottom = _HEIGHT - _FOOT
    parts = [
        f'<svg class="curve" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">',
        f"<title>{safe(curve.name)}: {safe(curve.summary)}</title>",
        f'<path class="axis-line" d="M{_LEFT} {bottom}H{_WIDTH - _RIGHT}"/>',
    ]
    for value in dict.fromkeys(curve.reach):
        parts.append(
            f'<text class="label" x="{_LEFT - 8}" y="{y(value)}" dy="4" text-anchor="end">{value:.4g}</text>'
        )
    for run in round_steps(last, 6):
        parts.append(f'<text class="label" x="{x(run)}" y="{bottom + 18}" text-anchor="middle">{run}</text>')
    return "\n".join([*parts, f'<path class="stairs" d="{path}"/>', "</svg>"])
