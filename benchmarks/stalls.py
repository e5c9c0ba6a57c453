"""Plan models whose fast memory is too small, and compare the time that the core waits with limits.

    python benchmarks/stalls.py MODELS [NAME ...]

Times are modelled. A plan of 10 s may wait at most 1.2 times as long as one of 60 s; a training step takes at
most 1.02 times the cycles of the unsplit one. Exit code 1 if a limit is not kept.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mcudeploy.boards.catalogue import load_board
from mcudeploy.common.progress import SILENT
from mcudeploy.common.sizes import parse_limit
from mcudeploy.extensions.training.recipe import Recipe, Update
from mcudeploy.extensions.training.training_steps import smallest_step
from mcudeploy.ir.plan import Plan
from mcudeploy.planner.model.model import read_model
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.planner import find_plans

BOARD = "mps2-an505"

MOST_CYCLES = {("densenet_k8_32_int8", "sram=8k"): 1_800_000, ("nasnet_a_c8_64_int8", "sram=40k"): 33_000}
"""Cycles that the core may wait in a plan of 40 s."""

RATIO = 1.2
SHORT = (
    ("densenet_k8_32_fp32", "sram=48k"),
    ("mbv2_w035_144_fp32", "sram=64k"),
    ("vww01_fp32", "sram=40k"),
)
"""Plans of 10 s that wait at most `RATIO` times as long as those of 60 s."""

TRAINED, TRAINED_RATIO = ("kws01_fp32", "sram=200k"), 1.02


def plan_of(path: Path, limits: str, seconds: float, *, split: bool = True) -> Plan:
    """Return the best plan of a model."""
    board = load_board(BOARD)
    options = Options(time_limit=seconds, memory_limits=(parse_limit(limits),), split=split)
    return find_plans(read_model(path, options, isa=board.isa), board, options).choices[0]


def step_cycles(path: Path, limits: str, *, split: bool) -> float:
    """Return the cycles of a step that trains all parameters, stalls included."""
    options = Options(time_limit=20, memory_limits=(parse_limit(limits),), split=split)
    board, recipe = load_board(BOARD), Recipe(update=Update.parse("full"))
    with smallest_step(path, board, options, recipe, SILENT) as written:
        model = read_model(written.path, written.options, isa=board.isa)
        return find_plans(model, board, written.options).choices[0].estimate.latency_ticks


def rows(models: Path, names: list[str]) -> list[tuple[str, str, float, float]]:
    """Return name, memory, cycles and their limit of each case."""
    paths = {path.parent.name: path for path in sorted(models.rglob("model.onnx"))}

    def waits(name: str, limits: str, seconds: float) -> float:
        return plan_of(paths[name], limits, seconds).estimate.exposed_ticks

    cases = [(*case, waits(*case, 40), limit) for case, limit in MOST_CYCLES.items() if case[0] in names]
    cases += [(*case, waits(*case, 10), RATIO * waits(*case, 60)) for case in SHORT if case[0] in names]
    if TRAINED[0] in names:
        split, whole = (step_cycles(paths[TRAINED[0]], TRAINED[1], split=split) for split in (True, False))
        cases.append((*TRAINED, split, TRAINED_RATIO * whole))
    return cases


def main() -> int:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", type=Path)
    every = [*(name for name, _ in MOST_CYCLES), *(name for name, _ in SHORT), TRAINED[0]]
    parser.add_argument("names", nargs="*", metavar="NAME")
    arguments = parser.parse_args()
    cases = rows(arguments.models, arguments.names or every)
    print("| model | memory | cycles | limit | |\n|---|---|---|---|---|")
    for name, limits, cycles, limit in cases:
        print(
            f"| {name} | `{limits}` | {cycles:,.0f} | {limit:,.0f} | {'' if cycles <= limit else 'FAILED'} |"
        )
    return int(any(cycles > limit for *_, cycles, limit in cases))


if __name__ == "__main__":
    sys.exit(main())
