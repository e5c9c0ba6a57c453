"""How far arenas are from the liveness peak, as a Markdown table of the plans of a short search.

    python benchmarks/layout_gap.py MODEL.onnx ... [--board mps2-an386] [--time-limit 5] [--seconds 20]
                                   [--all]

For each model the best split plan and the best unsplit one, or all that the search keeps, with the input
whole and streamed. The seconds are those of the placement alone. `least`: it is proven that no offsets use
less in this order.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

from mcudeploy.board import Board, load_board
from mcudeploy.errors import DeployError
from mcudeploy.layout.solve import ARENA_GRAIN_BYTES
from mcudeploy.model import Model, load_model
from mcudeploy.placing import placed
from mcudeploy.plan import Plan
from mcudeploy.planner import Options, find_plans
from mcudeploy.simulator.blocks import TiledGraph
from mcudeploy.simulator.flow import Flow


def placed_again(plan: Plan, model: Model, board: Board, seconds: float) -> tuple[Plan, float]:
    """The plan with other offsets, and the seconds it took."""
    tiled = TiledGraph(Flow.of(model.graph), plan.block_rows)
    start = time.process_time()
    made = placed(model, board, tiled, plan.schedule, seconds=seconds)
    return made, time.process_time() - start


def best_of_each(plans: Sequence[Plan]) -> list[Plan]:
    """The first split one and the first unsplit one: plans are sorted."""
    found = (next((plan for plan in plans if bool(plan.splits) is split), None) for split in (True, False))
    return [plan for plan in found if plan is not None]


def main() -> None:
    """Print the table, then how many plans are at the peak."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--board", default="mps2-an386")
    parser.add_argument("--time-limit", type=float, default=5.0)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--all", action="store_true", help="not the best of each kind alone")
    arguments = parser.parse_args()
    board = load_board(arguments.board)
    print("| model | input | steps | peak | greedy % | arena | gap % | CPU seconds | |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    gaps: list[float] = []
    least_above = 0
    for path in arguments.models:
        for streamed in (False, True):
            try:
                options = Options(stream_input=streamed, time_limit=arguments.time_limit)
                planned = find_plans(load_model(path), board, options)
            except DeployError as error:
                print(
                    f"| {path.parent.name} | {'streamed' if streamed else 'whole'} | {error} ||||||||",
                    flush=True,
                )
                continue
            plans = planned.plans if arguments.all else best_of_each(planned.plans)
            for plan in plans:
                model = planned.model_of(plan)
                greedy = placed_again(plan, model, board, 0.0)[0].layout.arena_bytes
                made, seconds = placed_again(plan, model, board, arguments.seconds)
                peak, arena = made.estimate.peak_bytes, made.layout.arena_bytes
                least = -(-peak // ARENA_GRAIN_BYTES) * ARENA_GRAIN_BYTES
                proven = arena > least and made.layout.status == "optimal"
                least_above += proven
                gaps.append(arena / least - 1)
                cells = (
                    path.parent.name, "streamed" if streamed else "whole", f"{len(plan.schedule.steps):,}",
                    f"{peak:,}", f"{greedy / least - 1:.2%}", f"{arena:,}", f"{gaps[-1]:.2%}",
                    f"{seconds:.2f}", "least" if proven else "",
                )  # fmt: skip
                print("| " + " | ".join(cells) + " |", flush=True)
    reached = sum(gap <= 0 for gap in gaps)
    print(f"\n{reached} of {len(gaps)} plans at the peak, {least_above} proven the least above it;", end=" ")
    print(f"the largest gap is {max(gaps, default=0.0):.2%}")


if __name__ == "__main__":
    main()
