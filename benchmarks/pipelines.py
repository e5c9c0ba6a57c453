"""Pipelines over 2 and 4 microcontrollers and over chiplets, by every mode: tables of docs/pipeline.md.

PYTHONPATH=. python benchmarks/pipelines.py MODELS [--only TABLE] [--rows N]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from time import process_time

from mcudeploy.common.errors import FitError
from mcudeploy.extensions.several_boards.pipeline.division import (
    Mode,
    Pipeline,
    PipelineTask,
    divided,
    task_of,
)
from mcudeploy.extensions.several_boards.pipeline.exact_regions import exact
from mcudeploy.extensions.several_boards.pipeline.pipeline_report import bottleneck
from mcudeploy.extensions.several_boards.pipeline.topology import Topology
from mcudeploy.extensions.several_boards.pipeline.unit_regions import Objective, worth
from mcudeploy.planner.model.model import Model, load_model

TINY = ("mlperf_tiny/vww01_int8", "mlperf_tiny/ic01_int8", "mcu/mbv2_w035_96_int8")
LARGE = (*TINY, "irregular/nasnet_a_c8_64_int8", "irregular/darts_v2_c12_32_int8")
BOARDS = ("nrf52840", "stm32f405")
SPI = {"bytes_per_second": 1_000_000}
CHIPLET = {
    "systolic": 16,
    "clock_hz": 200_000_000.0,
    "ram_bytes": 2**20,
    "flash_bytes": 2**22,
    "link": {"bytes_per_second": 10e9, "latency_seconds": 50e-9, "links": 2},
}
MODES: tuple[Mode, ...] = ("first", "best", "greedy")
_EXACT_GROUPS, _EXACT_S = 63, 60.0


def spi(board: str, units: int) -> Topology:
    """Return boards in a row."""
    return Topology.model_validate({"width": units, "board": board, "link": SPI})


def mesh(edge: int) -> Topology:
    """Return chiplets in a square."""
    return Topology.model_validate({"width": edge, "height": edge, **CHIPLET})


class Models:
    """Models of a folder, each read once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, Model] = {}

    def __getitem__(self, name: str) -> Model:
        if name not in self._known:
            self._known[name] = load_model(self._folder / name / "model.onnx")
        return self._known[name]


def ratios(task: PipelineTask, model: Model, mode: Mode, objective: Objective) -> tuple[str, Pipeline | None]:
    """Return throughput and latency of one unit over those of the pipeline."""
    try:
        division = divided(model, task, mode, objective)
    except FitError as error:
        return str(error).partition(" Try")[0], None
    run, single = division.simulation(), task.single_ticks
    return f"{single / run.period:.2f}x / {single / run.latency:.2f}x", division


def row(models: Models, name: str, topology: Topology, objective: Objective) -> str:
    """Return a model on a topology: all modes, the bottleneck of the best, its bound, CPU seconds."""
    start = process_time()
    model, task = task_of(models[name], topology)
    cells, best = [], None
    for mode in MODES:
        text, division = ratios(task, model, mode, objective)
        cells.append(text)
        best = division if mode == "best" else best
    seconds = process_time() - start
    size = f"{topology.width} x {topology.height}"
    head = f"| {name.rpartition('/')[2]} | {topology.unit_text} {size} | {' | '.join(cells)} |"
    if best is None:
        return f"{head} | | {seconds:.1f} |"
    slowest = bottleneck(best)
    return (
        f"{head} {slowest['kind']} {slowest['region']} of {len(best.regions)} | {best.bound_ratio:.2f}x | "
        f"{seconds:.1f} |"
    )


def exact_row(models: Models, name: str, topology: Topology, objective: Objective) -> str:
    """Return `best` beside CP-SAT, for each kind of groups."""
    model, task = task_of(models[name], topology)
    division = divided(model, task, "best", objective)
    best_ticks, start = worth(division.line, division.regions, objective), process_time()
    least, proven, counts = float("inf"), True, []
    for groups in task.groups("best"):
        line = task.line(groups)
        counts.append(str(len(groups)))
        solved = exact(line, objective, _EXACT_S) if len(groups) <= _EXACT_GROUPS else None
        if solved is None:
            proven = False
            continue
        least, proven = min(least, worth(line, solved.regions, objective)), proven and solved.optimal
    gap = f"{100 * (best_ticks / least - 1):.2f} %" if least < float("inf") else ""
    size = f"{topology.width} x {topology.height}"
    return (
        f"| {name.rpartition('/')[2]} | {topology.unit_text} {size} | {objective} | {', '.join(counts)} | "
        f"{best_ticks:,.0f} | {least:,.0f}{'' if proven else ' (not proven)'} | {gap} | "
        f"{process_time() - start:.1f} |"
    )


def tables(models: Models) -> Iterator[tuple[str, Iterator[str]]]:
    """Yield names and lines."""
    rows = [(name, spi(board, units)) for board in BOARDS for units in (2, 4) for name in TINY]
    yield "spi", (row(models, *case, "throughput") for case in rows)
    grids = [(name, mesh(edge)) for edge in (4, 6) for name in LARGE]
    yield "mesh", (row(models, *case, "throughput") for case in grids)
    yield "latency", (row(models, *case, "latency") for case in grids)
    cases = [(name, spi(BOARDS[0], units)) for units in (2, 4) for name in TINY]
    yield "exact", (exact_row(models, *case, goal) for case in cases for goal in ("throughput", "latency"))
    small = [("mlperf_tiny/ic01_int8", mesh(4)), ("mlperf_tiny/vww01_int8", mesh(4))]
    yield "exact mesh", (exact_row(models, *case, "throughput") for case in small)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--rows", type=int, help="of each table, the first")
    options = parser.parse_args()
    for name, lines in tables(Models(options.folder)):
        if options.only in {"", name}:
            print(f"\n{name}", flush=True)
            for line in islice(lines, options.rows):
                print(line, flush=True)


if __name__ == "__main__":
    main()
