"""The figures of the gate, and the table of what they were.

python -m tests.gate.table      # rewrites table.csv
"""

from __future__ import annotations

import csv
import tempfile
from pathlib import Path

from mcudeploy.boards.catalogue import load_board
from mcudeploy.planner.model.model import load_model
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.planner import find_plans
from mcudeploy.planner.tape.footprint import tables_bytes, weights_bytes
from mcudeploy.planner.tape.plan_view import PlanView
from tests.gate.networks import NETWORKS
from tests.networks.onnx_files import save

TABLE = Path(__file__).with_name("table.csv")
BOARD = "mps2-an386"
WAYS = ("whole", "streamed")
FIGURES = ("arena_bytes", "cycles", "flash_bytes")
SECONDS = 10.0
"""Limit of the search, in counted effort: plans are the same on every machine. A round ends at this limit."""

Figures = tuple[int, int, int]


def figures(name: str, way: str, folder: Path) -> Figures:
    """Arena bytes, modelled cycles, and bytes of weights and tables of one network's plan."""
    board = load_board(BOARD)
    model = load_model(save(NETWORKS[name](), folder), isa=board.isa)
    planned = find_plans(model, board, Options(stream_input=way == "streamed", time_limit=SECONDS))
    plan = planned.choices[0]
    calls = planned.model_of(plan).calls
    flash_bytes = weights_bytes(calls) + tables_bytes(PlanView(plan, calls), board)
    return plan.layout.arena_bytes, round(plan.estimate.ticks), flash_bytes


def read_table() -> dict[tuple[str, str], Figures]:
    """The figures by network and way."""
    with TABLE.open(newline="") as file:
        rows = list(csv.reader(file))[1:]
    return {(name, way): (int(arena), int(ticks), int(flash)) for name, way, arena, ticks, flash in rows}


def _write_table() -> None:
    with tempfile.TemporaryDirectory() as folder, TABLE.open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(("network", "input", *FIGURES))
        for name in NETWORKS:
            for way in WAYS:
                table.writerow((name, way, *figures(name, way, Path(folder))))


if __name__ == "__main__":
    _write_table()
