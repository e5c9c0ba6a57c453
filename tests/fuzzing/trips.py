"""Plans with blocks that move between memories: drawn, and compared with plans without moves in all modes of
the software engine.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, get_args

import hypothesis
import numpy as np
from graphs import pooled, residual
from hypothesis import strategies as st

from fuzzing import plans, programs
from fuzzing.generate import draw
from fuzzing.plans import JudgedPlan, with_splits
from fuzzing.wandering import BOARDS, wandering
from mcudeploy.boards.board import Board
from mcudeploy.checker.judge import check
from mcudeploy.codegen.program import make_program
from mcudeploy.codegen.render import Source, render_firmware
from mcudeploy.common.effort import Effort
from mcudeploy.common.errors import ModelError
from mcudeploy.costs.tiles import CopyCost
from mcudeploy.device.target import Target, open_device
from mcudeploy.ir.engine import CPU
from mcudeploy.ir.graph import DType, Graph
from mcudeploy.ir.plan import Plan, Rewrites
from mcudeploy.planner.files.planfile import plan_of, plan_text, read_plan
from mcudeploy.planner.model.model import Model, kernel_variants, load_model
from mcudeploy.planner.offload.access_trace import draft_of
from mcudeploy.planner.offload.memory_pair import MemoryPair
from mcudeploy.planner.offload.room import over_time
from mcudeploy.planner.place.arena import Budget
from mcudeploy.planner.tape.plan_view import PlanView
from mcudeploy.tiling.blocks import TiledGraph
from mcudeploy.tiling.live import live_peak
from mcudeploy.toolchain import build_firmware
from mcudeploy.toolchain.project import SoftEngine
from mcudeploy.verify.compare import Machine, Storage, as_array, run_once
from mcudeploy.verify.difference import difference
from mcudeploy.verify.samples import load_samples
from mcudeploy.verify.verdict import DEVICE_SHARE_OF_RANGE

WAYS = ("unsplit", "cut", "again")
"""Methods for plans in which blocks then move."""
MODES: tuple[SoftEngine | None, ...] = (None, *get_args(SoftEngine))
"""Who transfers: the core, or an engine in software that copies then."""
MOST_STEPS = 120
"""Plans with more are left out: each change takes a replay."""


Outputs = list[bytes]


@dataclass(frozen=True, slots=True, eq=False)
class Trip:
    """A plan with blocks that move, or that several cores run, and the unsplit one without; `name` tells how
    it was drawn.
    """

    name: str
    base: JudgedPlan
    judged: JudgedPlan

    def __repr__(self) -> str:
        return f"<trip: {self.name}>"


def graph_model(name: str, graph: Graph) -> Model:
    """The model that a graph is, as if it came from a file."""
    variants = kernel_variants(graph)
    calls = {operator: calls_found[0] for operator, calls_found in variants.items()}
    return Model(Path(f"{name}.onnx"), "0" * 64, graph, Rewrites(), variants, calls)


@cache
def models(count: int) -> tuple[Model, ...]:
    """The hand-written graphs, then graphs of the first supported seeds, `count` in total."""
    graphs = [graph_model("residual", residual()), graph_model("pooled", pooled())]
    seed = 0
    with tempfile.TemporaryDirectory(prefix="mcudeploy-trips-") as folder:
        while len(graphs) < count:
            path = Path(folder) / f"g{seed}.onnx"
            path.write_bytes(draw(seed).model.SerializeToString())
            seed += 1
            try:
                model = load_model(path)
            except ModelError:
                continue
            if len(model.graph.operators) <= 30:
                graphs.append(model)
    return tuple(graphs[:count])


@cache
def unsplit(model: Model) -> JudgedPlan:
    """The plan without moves."""
    return plans.unsplit(model)


@cache
def start_of(model: Model, way: str, seed: int) -> JudgedPlan | None:
    """A plan to begin with, in one memory; None if it is too long."""
    base = unsplit(model)
    if way == "unsplit":
        return base
    judged = with_splits(dict(plans.others(model, base, seed))[way]())
    return judged if len(judged.plan.schedule.steps) <= MOST_STEPS else None


def wander(model: Model, way: str, seed: int) -> Trip | None:
    """A trip at random; None if the plan has too many steps."""
    random = Random(seed)
    start = start_of(model, way, seed % 3)
    if start is None:
        return None
    board = random.choice(BOARDS)
    plan = wandering(start.plan, start.model.work, board, random, random.randint(1, 14))
    name = f"{model.path.stem}, {way}, seed {seed}"
    return Trip(name, unsplit(model), replace(start, way="wandering", plan=plan, board=board))


def planned(model: Model, way: str, seed: int, board: Board) -> Trip | None:
    """A trip as the planner computes it for a fast memory that is too small.

    None if it finds none, or the plan has too many steps. `board`: its first memory is the fast one.
    """
    random = Random(seed)
    start = start_of(model, way, seed % 3)
    if start is None:
        return None
    tiled, steps = TiledGraph.of(start.plan), start.plan.schedule.steps
    work = start.model.work
    room = int(live_peak(tiled, steps, work)[0] * random.uniform(0.3, 0.95)) // 8 * 8
    small = board.limited({board.memories[0].name: max(room, 8)})
    budget = Budget(CopyCost(30.0, 60.0, 0.4), Effort(200_000))
    cycles = [10 ** random.uniform(1, 4) for _ in steps]
    plan = replace(start.plan, board=small.name)
    pair = MemoryPair.serving(plan, small)
    layouts = over_time(draft_of(tiled, plan, work, small), pair, budget, cycles) if pair else ()
    crossing = [it for it in layouts if any(_crosses(it[1].way(each)) for each in it[1].transfers)]
    if not crossing:
        return None
    numbers, layout = random.choice(crossing)
    schedule = replace(plan.schedule, steps=tuple(plan.schedule.steps[at] for at in numbers))
    plan = replace(plan, schedule=schedule, layout=layout)
    check(plan, work, small)
    name = f"{model.path.stem}, {way}, seed {seed}, {room} bytes"
    return Trip(name, unsplit(model), replace(start, way="planned", plan=plan, board=small))


def _crosses(way: Sequence[Any]) -> bool:
    return len({place.memory for place in way}) > 1


def crossings(plan: Plan) -> tuple[int, int]:
    """Number of transfers to another memory, and number of these that take steps."""
    crossing = [it for it in plan.layout.transfers if _crosses(plan.layout.way(it))]
    return len(crossing), sum(it.engine != CPU and it.end > plan.layout.begin(it) for it in crossing)


def drawn(count: int, seed: int, among: int) -> list[Trip]:
    """`count` trips from hypothesis, of the first models: some planned, most at random. All passed the check,
    and a round trip through their files.
    """
    drawn_trips: list[Trip] = []
    names: set[str] = set()

    def one(at: int, way: str, number: int, by_planner: bool) -> Trip | None:
        model = models(among)[at]
        board = BOARDS[0] if number % 3 else BOARDS[-1]
        return planned(model, way, number, board) if by_planner else wander(model, way, number)

    trips = st.builds(
        one,
        st.integers(0, among - 1),
        st.sampled_from(WAYS),
        st.integers(0, 2**32 - 1),
        st.sampled_from((False, False, False, False, True)),
    )

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(trips.filter(lambda it: it is not None and it.judged.plan.layout.transfers))
    def draw_one(trip: Trip) -> None:
        if trip.name in names:
            hypothesis.reject()
        names.add(trip.name)
        check(trip.judged.plan, trip.judged.model.work, trip.judged.board)
        again = stored_again(trip)
        assert again.layout == replace(trip.judged.plan.layout, status=again.layout.status), trip.name
        assert again.tape == trip.judged.plan.tape, trip.name
        drawn_trips.append(trip)

    draw_one()
    return drawn_trips


def drawn_by_planner(count: int, seed: int, among: int, board: Board) -> list[Trip]:
    """`count` plans of the planner for a board with less fast memory than they need, at random."""
    random, trips = Random(seed), list[Trip]()
    while len(trips) < count:
        model, way = random.choice(models(among)), random.choice(WAYS)
        trip = planned(model, way, random.randrange(2**32), board)
        if trip is not None:
            trips.append(trip)
    return trips


def stored_again(trip: Trip, change: Callable[[str], str] = str) -> Plan:
    """The plan of a trip after a round trip through its file, whose text is changed before."""
    model = trip.judged.model
    with tempfile.TemporaryDirectory(prefix="mcudeploy-trips-") as folder:
        path = Path(folder) / "plan.json"
        path.write_text(change(plan_text(trip.judged.plan, model.sha256)), "utf-8")
        return plan_of(read_plan(path, model.sha256, trip.judged.board.name), path, model.graph, model.work)


def differing(trips: Sequence[Trip], folder: Path) -> Iterator[str]:
    """Faults of trips in any mode: programs that end, and outputs of other bits."""
    bases = {id(trip.base): trip.base for trip in trips}
    of_base = {key: programs.write(base, f"base{at}", folder) for at, (key, base) in enumerate(bases.items())}
    moved = [programs.write(trip.judged, f"trip{at}", folder) for at, trip in enumerate(trips)]
    everything = [*of_base.values(), *moved]
    numbers = {it.symbol: at for at, it in enumerate(everything)}
    for soft in (False, True):
        programs.compile_programs(everything, soft=soft)
    expected: dict[int, Outputs] = {}
    for mode in MODES:
        executable = programs.link(everything, folder, mode)
        for key, base in bases.items() if mode is None else ():
            (expected[key],) = _outputs(base, executable, numbers[of_base[key].symbol], runs=1)
        for trip, program in zip(trips, moved, strict=True):
            where = f"{trip.name}, {mode or 'core'}"
            try:
                outputs = _outputs(trip.judged, executable, numbers[program.symbol], runs=2)
            except programs.RunError as error:
                yield f"{where}: {error}"
                continue
            wrong = [difference_of(values, expected[id(trip.base)]) for values in outputs]
            if any(wrong):
                yield f"{where}: bytes that differ in two runs {wrong}"


def differing_on(trips: Sequence[Trip], folder: Path) -> Iterator[str]:
    """Faults of trips on their emulated board, whose own driver transfers.

    int8 outputs must have the bits of the host; floats may differ as exponentials of two C libraries do.
    """
    bases = {id(trip.base): trip.base for trip in trips}
    of_base = {key: programs.write(base, f"base{at}", folder) for at, (key, base) in enumerate(bases.items())}
    programs.compile_programs(list(of_base.values()))
    executable = programs.link(list(of_base.values()), folder)
    keys = list(bases)
    for trip in trips:
        (expected,) = _outputs(trip.base, executable, keys.index(id(trip.base)), runs=1)
        judged, board = trip.judged, trip.judged.board
        program = make_program(PlanView(judged.plan, judged.model.calls), "net", board)
        files = render_firmware(program, judged.plan, Source(judged.model.path.name, judged.model.sha256))
        firmware = build_firmware(board, files, program.kernels, emulate=True)
        with open_device(Target(board, emulate=True), firmware) as device:
            outputs = _run(judged, device)
        for io, one, other in zip(judged.plan.graph.outputs, outputs, expected, strict=True):
            tensor = judged.plan.graph.tensors[io.tensor]
            diff = difference(as_array(one, tensor), as_array(other, tensor))
            share = DEVICE_SHARE_OF_RANGE if tensor.dtype is DType.FLOAT32 else 0.0
            if diff.worst > share * diff.range:
                yield f"{trip.name}, {board.name}: {io.name} differs by {diff.worst}"


def difference_of(computed: Outputs, expected: Outputs) -> int:
    """Number of bytes differ."""
    pairs = zip(computed, expected, strict=True)
    return sum(int((np.frombuffer(a, np.uint8) != np.frombuffer(b, np.uint8)).sum()) for a, b in pairs)


def _outputs(judged: JudgedPlan, executable: Path, number: int, *, runs: int) -> list[Outputs]:
    """The outputs of a program, for inputs that are equal for all plans of a model."""
    with programs.Runner(executable) as runner:
        runner.select(number, 1)
        return [_run(judged, runner) for _ in range(runs)]


def _run(judged: JudgedPlan, machine: Machine) -> Outputs:
    storage = Storage.of(judged.plan)
    run_once(machine, storage, load_samples(judged.model.graph, [], [], 1)[0].stored)
    return [storage.get_tensor(machine, it.tensor).tobytes() for it in judged.plan.graph.outputs]
