"""Plans with blocks that move between memories: drawn, and run beside those without moves in all modes of the
software engine.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, get_args

import numpy as np
from graphs import pooled, residual
from numpy.typing import NDArray

from fuzzing import plans, programs
from fuzzing.generate import draw
from fuzzing.plans import Made
from fuzzing.wandering import BOARDS, wandering
from mcudeploy.boards.board import Board
from mcudeploy.common.effort import Effort
from mcudeploy.common.errors import ModelError
from mcudeploy.cost.tiles import MovePrice
from mcudeploy.ir.graph import Graph
from mcudeploy.ir.plan import CPU, Form, Plan
from mcudeploy.layout.arena import Relocation
from mcudeploy.layout.check import check
from mcudeploy.layout.overtime import over_time
from mcudeploy.memory.blocks import TiledGraph
from mcudeploy.memory.flow import Flow
from mcudeploy.memory.live import live_peak
from mcudeploy.model.model import Model, kernel_variants, load_model
from mcudeploy.targets.project import SoftEngine
from mcudeploy.verify.compare import Storage, run_once
from mcudeploy.verify.samples import load_samples

WAYS = ("unsplit", "cut", "again")
"""How plans are made that blocks then wander in."""
MODES: tuple[SoftEngine | None, ...] = (None, *get_args(SoftEngine))
"""Who transfers: the core, or an engine in software that copies then."""
MOST_STEPS = 120
"""Plans with more are left out: each change takes a replay."""


@dataclass(frozen=True, slots=True, eq=False)
class Trip:
    """A plan with blocks that move, and the one without, unsplit; `name` says how it was drawn."""

    name: str
    base: Made
    made: Made


def graph_model(name: str, graph: Graph) -> Model:
    """The model that a graph is, as if it came from a file."""
    variants = kernel_variants(graph)
    calls = {operator: found[0] for operator, found in variants.items()}
    return Model(Path(f"{name}.onnx"), "0" * 64, graph, Form(), variants, calls)


@cache
def models(count: int) -> tuple[Model, ...]:
    """The graphs by hand, and those of the first seeds that can be deployed: so many in all."""
    found = [graph_model("residual", residual()), graph_model("pooled", pooled())]
    seed = 0
    with tempfile.TemporaryDirectory(prefix="mcudeploy-trips-") as folder:
        while len(found) < count:
            path = Path(folder) / f"g{seed}.onnx"
            path.write_bytes(draw(seed).model.SerializeToString())
            seed += 1
            try:
                model = load_model(path)
            except ModelError:
                continue
            if len(model.graph.operators) <= 30:
                found.append(model)
    return tuple(found[:count])


@cache
def unsplit(model: Model) -> Made:
    """The plan without moves."""
    return plans.unsplit(model)


@cache
def start_of(model: Model, way: str, seed: int) -> Made | None:
    """A plan to begin with, in one memory; None where it is too long."""
    base = unsplit(model)
    if way == "unsplit":
        return base
    made = dict(plans.others(model, base, seed))[way]()
    return made if len(made.plan.schedule.steps) <= MOST_STEPS else None


def wander(model: Model, way: str, seed: int) -> Trip | None:
    """A trip at random; None where the plan has too many steps."""
    random = Random(seed)
    start = start_of(model, way, seed % 3)
    if start is None:
        return None
    board = random.choice(BOARDS)
    plan = wandering(start.plan, start.model.work, board, random, random.randint(1, 14))
    name = f"{model.path.stem}, {way}, seed {seed}"
    return Trip(name, unsplit(model), replace(start, way="wandering", plan=plan, board=board))


def planned(model: Model, way: str, seed: int, board: Board) -> Trip | None:
    """A trip as the planner makes it for a fast memory that is too small; None where it makes none, or the
    plan has too many steps. `board`: its first memory is the fast one.
    """
    random = Random(seed)
    start = start_of(model, way, seed % 3)
    if start is None:
        return None
    tiled, steps = TiledGraph(Flow.of(start.model.graph), start.plan.block_rows), start.plan.schedule.steps
    work = start.model.work
    room = int(live_peak(tiled, steps, work)[0] * random.uniform(0.3, 0.95)) // 8 * 8
    small = board.limited({board.memories[0].name: max(room, 8)})
    relocation = Relocation(MovePrice(30.0, 60.0, 0.4), Effort(200_000))
    cycles = [10 ** random.uniform(1, 4) for _ in steps]
    plan = replace(start.plan, board=small.name)
    found = [layout for layout, _ in over_time(tiled, plan, work, small, relocation, cycles)]
    found = [layout for layout in found if any(_crosses(layout.way(it)) for it in layout.transfers)]
    if not found:
        return None
    plan = replace(plan, layout=random.choice(found))
    check(plan, work, small)
    name = f"{model.path.stem}, {way}, seed {seed}, {room} bytes"
    return Trip(name, unsplit(model), replace(start, way="planned", plan=plan, board=small))


def _crosses(way: Sequence[Any]) -> bool:
    return len({place.memory for place in way}) > 1


def crossings(plan: Plan) -> tuple[int, int]:
    """How many transfers go to another memory, and how many of them take steps."""
    found = [it for it in plan.layout.transfers if _crosses(plan.layout.way(it))]
    return len(found), sum(it.engine != CPU and it.end > plan.layout.begin(it) for it in found)


def differing(trips: Sequence[Trip], folder: Path) -> Iterator[str]:
    """What goes wrong with trips in any mode: programs that end, and outputs of other bits."""
    bases = {id(trip.base): trip.base for trip in trips}
    written = {key: programs.write(base, f"base{at}", folder) for at, (key, base) in enumerate(bases.items())}
    moved = [programs.write(trip.made, f"trip{at}", folder) for at, trip in enumerate(trips)]
    everything = [*written.values(), *moved]
    numbers = {it.symbol: at for at, it in enumerate(everything)}
    for it in everything:
        programs.compile_program(it)
        programs.compile_program(it, soft=True)
    expected: dict[int, list[bytes]] = {}
    for mode in MODES:
        executable = programs.link(everything, folder, mode)
        if mode is None:
            for key, base in bases.items():
                (expected[key],) = _outputs(base, executable, numbers[written[key].symbol], runs=1)
        for trip, program in zip(trips, moved, strict=True):
            try:
                found = _outputs(trip.made, executable, numbers[program.symbol], runs=2)
            except programs.RunError as error:
                yield f"{trip.name}, {mode or 'core'}: {error}"
                continue
            for again, values in enumerate(found):
                if values != expected[id(trip.base)]:
                    yield f"{trip.name}, {mode or 'core'}, run {again}: {_where(values, expected[id(trip.base)])}"


def _where(found: Sequence[bytes], expected: Sequence[bytes]) -> str:
    wrong = [np.frombuffer(a, np.uint8) != np.frombuffer(b, np.uint8) for a, b in zip(found, expected, strict=True)]
    return ", ".join(f"{int(it.sum())} of {it.size} bytes differ" for it in wrong)


Runs = list[list[bytes]]


def _outputs(made: Made, executable: Path, number: int, *, runs: int) -> Runs:
    """The outputs of a program, for inputs that are the same for all plans of a model."""
    with programs.Runner(executable) as runner:
        runner.select(number, 1)
        storage = Storage.of(made.plan)
        stored: dict[str, NDArray[Any]] = dict(load_samples(made.model.graph, [], [], 1)[0].stored)
        found = []
        for _ in range(runs):
            run_once(runner, storage, stored)
            borders = made.plan.graph.outputs
            found.append([storage.get_tensor(runner, border.tensor).tobytes() for border in borders])
    return found
