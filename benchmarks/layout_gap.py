"""The distance of arenas from the live peak, as a Markdown table of the final plans of a search.

    python benchmarks/layout_gap.py MODEL.onnx ... [--board mps2-an386] [--time-limit 60] [--all]

For each model the best split plan and the unsplit one, or all plans of the search, with the input whole and
streamed. `greedy`: bytes that first fit leaves above the peak. `moves`: of blocks between steps. `least`:
proven that no fixed offsets use less in this order. Seconds are those of search and packing.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

from mcudeploy.boards.board import Board
from mcudeploy.boards.catalogue import load_board
from mcudeploy.common.errors import DeployError
from mcudeploy.ir.plan import Plan
from mcudeploy.planner.model.model import Model, load_model
from mcudeploy.planner.place.arena import ARENA_GRAIN_BYTES
from mcudeploy.planner.place.placement_problem import align_up
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.planner import find_plans
from mcudeploy.planner.search.placing import placed
from mcudeploy.tiling.blocks import TiledGraph


def greedy_bytes(plan: Plan, model: Model, board: Board) -> int:
    """Return the arena with the offsets of first fit."""
    tiled = TiledGraph.of(plan)
    return placed(model, board, tiled, plan.schedule).layout.arena_bytes


def best_of_each(plans: Sequence[Plan]) -> list[Plan]:
    """Return the first split one and the first unsplit one: plans are sorted."""
    best = (next((plan for plan in plans if bool(plan.splits) is split), None) for split in (True, False))
    return [plan for plan in best if plan is not None]


def main() -> None:
    """Print the table, then the number of plans at the peak."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--board", default="mps2-an386")
    parser.add_argument("--time-limit", type=float, default=60.0)
    parser.add_argument("--all", action="store_true", help="not the best of each kind alone")
    arguments = parser.parse_args()
    board = load_board(arguments.board)
    print("| model | input | steps | peak | greedy % | arena | gap % | moves | seconds | |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    gaps: list[float] = []
    least_above = 0
    for path in arguments.models:
        for streamed in (False, True):
            how, start = "streamed" if streamed else "whole", time.monotonic()
            try:
                options = Options(stream_input=streamed, time_limit=arguments.time_limit)
                planned = find_plans(load_model(path), board, options)
            except DeployError as error:
                print(f"| {path.parent.name} | {how} | {error} |||||||||", flush=True)
                continue
            seconds = time.monotonic() - start
            for plan in planned.choices if arguments.all else best_of_each(planned.choices):
                peak, arena = plan.estimate.peak_bytes, plan.layout.arena_bytes
                least = align_up(peak, ARENA_GRAIN_BYTES)
                greedy = greedy_bytes(plan, planned.model_of(plan), board)
                proven = arena > least and plan.layout.status == "optimal"
                least_above += proven
                gaps.append(arena / least - 1)
                cells = (
                    path.parent.name, how, f"{len(plan.schedule.steps):,}", f"{peak:,}",
                    f"{greedy / least - 1:.2%}", f"{arena:,}", f"{gaps[-1]:.2%}",
                    f"{len(plan.layout.transfers)}", f"{seconds:.0f}",
                    "least" if proven else "",
                )  # fmt: skip
                print("| " + " | ".join(cells) + " |", flush=True)
    reached = sum(gap <= 0 for gap in gaps)
    print(f"\n{reached} of {len(gaps)} plans at the peak, {least_above} proven the least above it;", end=" ")
    print(f"the largest gap is {max(gaps, default=0.0):.2%}")


if __name__ == "__main__":
    main()
