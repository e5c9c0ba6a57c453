"""Searches give the same results without the extra `fast`: their loops then run as plain Python."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from mcudeploy.common.fast import COSTS

ROOT = Path(__file__).parents[1]
PROGRAM = """
import sys

if sys.argv[1:2] == ["light"]:
    sys.modules["numba"] = sys.modules["ortools"] = None
{body}
assert sys.argv[1] != "light" or not any(name.partition(".")[0] == "llvmlite" for name in sys.modules)
"""
SEARCHES = """
import random
from dataclasses import replace
from mcudeploy.common.effort import Effort, endless
from mcudeploy.costs.tiles import CopyCost
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.rectangles import PlacementProblem, Rectangle
from mcudeploy.ir.trace import MemoryLink
from mcudeploy.planner.offload.offload import needed_bytes, plan_residency
from mcudeploy.planner.place.compaction import relocate
from mcudeploy.planner.place import canonical
from mcudeploy.planner.place.greedy import Clusters
from tests.layout.some_rectangles import puzzle
from tests.residency.random_traces import random_trace

def packed(items, capacity):
    problem = PlacementProblem(tuple(items))
    print(canonical.pack(problem, Clusters.of(problem).neighbours, capacity, endless(), work=10**6, seed=3))

for count, stacks in ((12, ()), (30, ()), (30, ((0, 1),))):
    problem = replace(puzzle(count, 4), stacks=stacks)
    effort = Effort.of(0.05)
    print(relocate(problem, 402, {}, CopyCost(1, 1, 1), effort), effort.spent)
    packed(problem.rectangles, 400)
    packed(problem.rectangles, 399)
pieces = puzzle(9, 1).rectangles
lives = [(it, Interval(it.life.lo + n, it.life.hi + n)) for n in range(0, 1_200, 60) for it in pieces]
apart = [replace(it, life=life) for it, life in lives]
packed((*apart, Rectangle(1, Interval(0, 1_200))), 401)  # an unstable sort would mix its equal parts
limit = sys.getrecursionlimit()
sys.setrecursionlimit(60)
packed(puzzle(150, 3).rectangles, 400)  # one level a rectangle
sys.setrecursionlimit(limit)
for seed in range(8):
    trace = random_trace(random.Random(seed))
    room = max(needed_bytes(trace, step) for step in trace.steps) + 10
    effort = Effort.of(0.02)
    print(plan_residency(trace, room, MemoryLink(2.0, 1.0), recompute=True, effort=effort), effort.spent)
"""


def printed(form: str, body: str, *arguments: str) -> Sequence[str]:
    """The lines that a program prints in its own process; the form `light` has no numba and OR-Tools."""
    command = [sys.executable, "-c", PROGRAM.format(body=body), form, *arguments]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert not run.returncode, run.stderr
    note = "; ".join(f"without {name}, {cost}" for name, cost in COSTS.items())
    assert run.stderr.count(f"{note} (pip install numba ortools)\n") == int(form == "light" and body == PLANS)
    return run.stdout.splitlines()


PLANS = """
from pathlib import Path

from mcudeploy.boards.catalogue import load_board
from mcudeploy.commands import commands as api
from mcudeploy.planner.plan_options import Options

model, folder = Path(sys.argv[2]), Path(sys.argv[3])
for board, limits in (("stm32f405", ()), ("mps2-an505", (("sram", 40_000),))):
    options = Options(time_limit=0.5, memory_limits=limits, fresh=True)
    deployment = api.plan_model(model, load_board(board), options)
    api.save_plan(deployment, folder / f"{board}.json")
"""


def test_loops_give_the_same_without_numba() -> None:
    light = printed("light", SEARCHES)
    assert len(light) == 19
    assert light == printed("fast", SEARCHES)


def test_plans_are_the_same_without_the_extra(tmp_path: Path) -> None:
    plans = []
    for form in ("light", "fast"):
        folder = tmp_path / form
        folder.mkdir()
        printed(form, PLANS, str(ROOT / "examples/vww/model.onnx"), str(folder))
        plans.append({path.name: path.read_bytes() for path in folder.iterdir()})
    light, fast = plans
    assert len(light) == 2
    assert light == fast
