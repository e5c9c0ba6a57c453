"""The trade between memory and time: tunes a model under several latency limits, prints arena and overhead.

python benchmarks/tradeoff.py MODEL.onnx ... --board mps2-an386 [--svg docs/tradeoff.svg]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from html import escape
from pathlib import Path

from mcudeploy.boards.catalogue import load_board
from mcudeploy.commands.tune import tune_model
from mcudeploy.device.target import Target
from mcudeploy.planner.plan_options import Options
from mcudeploy.report import as_json

LIMITS = (0.05, 0.5, 2.0, 5.0, 20.0)
WIDTH, HEIGHT, MARGIN = 640, 360, 60
COLOURS = ("#1b6ca8", "#c0392b", "#27864a", "#8e44ad")

Point = tuple[float, float]


def points(model: Path, target: Target, limits: Sequence[float], seconds: float) -> tuple[int, list[Point]]:
    """Return the unsplit arena in bytes; for each limit the measured overhead in percent and the arena."""
    curve: list[Point] = []
    unsplit = 0
    for limit in limits:
        report = as_json(tune_model(model, [target], Options(max_overhead=limit, time_limit=seconds)))
        unsplit = report["unsplit_arena_bytes"]
        curve.append((report["overhead_percent"], report["arena_bytes"]))
        print(
            f"| {model.parent.name} | {limit} | {unsplit:,} | {report['arena_bytes']:,} | "
            f"{report['overhead_percent']:+.2f} | {len(report['splits'])} |",
            flush=True,
        )
    return unsplit, curve


def drawing(curves: dict[str, tuple[int, list[Point]]]) -> str:
    """Return the curves as SVG: share of the unsplit arena over measured overhead."""
    most = max(x for _, curve in curves.values() for x, _ in curve) or 1.0

    def place(x: float, y: float) -> str:
        across = MARGIN + (WIDTH - 2 * MARGIN) * max(x, 0.0) / most
        return f"{across:.1f},{HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * y:.1f}"

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        'font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<polyline points="{place(0, 1)} {place(0, 0)} {place(most, 0)}" fill="none" stroke="black"/>',
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 20}" text-anchor="middle">'
        f"measured latency over unsplit, 0 to {most:.1f} %</text>",
        f'<text x="20" y="{HEIGHT / 2}" text-anchor="middle" transform="rotate(-90 20 {HEIGHT / 2})">'
        "arena as a share of unsplit, 0 to 1</text>",
    ]
    for number, (name, (unsplit, curve)) in enumerate(curves.items()):
        colour = COLOURS[number % len(COLOURS)]
        line = [(0.0, float(unsplit)), *sorted(curve)]
        spots = [place(x, y / unsplit) for x, y in line]
        parts.append(f'<polyline points="{" ".join(spots)}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [
            f'<circle cx="{at.split(",")[0]}" cy="{at.split(",")[1]}" r="3" fill="{colour}"/>' for at in spots
        ]
        parts.append(
            f'<text x="{WIDTH - MARGIN}" y="{MARGIN + 18 * number}" text-anchor="end" fill="{colour}">'
            f"{escape(name)}, unsplit {unsplit:,} B</text>"
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


def main() -> None:
    """Print the points, draw the curves."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--board", default="mps2-an386")
    parser.add_argument("--time-limit", type=float, default=60.0)
    parser.add_argument("--limit", type=float, action="append", help="percent")
    parser.add_argument("--svg", type=Path)
    arguments = parser.parse_args()
    target = Target(load_board(arguments.board), emulate=True)
    print("| model | limit % | unsplit arena | arena | measured overhead % | splits |")
    print("| --- | --- | --- | --- | --- | --- |")
    limits = arguments.limit or LIMITS
    curves = {
        model.parent.name: points(model, target, limits, arguments.time_limit) for model in arguments.models
    }
    if arguments.svg:
        arguments.svg.write_text(drawing(curves), "utf-8")


if __name__ == "__main__":
    main()
