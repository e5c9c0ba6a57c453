"""Constants that an engine loads from flash into free bytes of the arena, ahead of use."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mcudeploy.boards.board import Board
from mcudeploy.boards.catalogue import load_board
from mcudeploy.boards.facts import BoardRegion
from mcudeploy.checker.judge import PlanFaultError, check
from mcudeploy.codegen.program import make_program
from mcudeploy.codegen.render import Source, render_firmware
from mcudeploy.common.errors import ConfigError, FitError
from mcudeploy.device.target import Target, open_device
from mcudeploy.ir.engine import FLASH
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.plan import Layout, Plan, Transfer, constants_name
from mcudeploy.planner.files.planfile import save_plan
from mcudeploy.planner.files.stored_plan import stored_plan
from mcudeploy.planner.model.model import Model, load_model
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.planner import Planned, find_plans
from mcudeploy.planner.tape.plan_view import PlanView
from mcudeploy.toolchain import build_firmware
from mcudeploy.toolchain.disassembly import read_symbols
from mcudeploy.toolchain.project import SoftEngine
from mcudeploy.verify.compare import Storage, run_once
from mcudeploy.verify.samples import load_samples
from tests.networks.onnx_files import save
from tests.networks.trained import Network

UNSPLIT = Options(split=False, time_limit=1.0)


def slow_flash(name: str = "mps2-an505", rate: float = 0.25) -> Board:
    """The emulated board with flash of this rate in bytes per clock, from which its engine loads."""
    board = load_board(name)
    (link,) = board.links
    return board.model_copy(
        update={
            "flash": board.flash.model_copy(update={"read_rate": rate}),
            "links": (link.model_copy(update={"memories": (*link.memories, FLASH)}),),
        }
    )


BOARD = slow_flash()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    """Layers whose tensors shrink while their weights grow, as in networks for images."""
    net = Network(3, (3, 24, 24))
    for channels in (8, 16, 24, 32):
        net.conv(channels, 3, 2 if channels > 8 else 1)
        net.activation("Relu")
    net.dense(10)
    return load_model(save(net.model(), tmp_path_factory.mktemp("net")), isa=BOARD.isa)


@pytest.fixture(scope="module")
def planned(model: Model) -> Planned:
    return find_plans(model, BOARD, UNSPLIT)


@pytest.fixture(scope="module")
def plan(planned: Planned) -> Plan:
    (plan,) = planned.candidates
    return plan


def outputs(model: Model, plan: Plan, engine: SoftEngine | None = None, board: Board = BOARD) -> bytes:
    """The outputs of a program on the emulated board."""
    program = make_program(PlanView(plan, model.with_kernels(plan.kernels).calls), "net", board)
    files = render_firmware(program, plan, Source(model.path.name, model.sha256))
    firmware = build_firmware(board, files, program.kernels, emulate=True, engine=engine)
    with open_device(Target(board, emulate=True), firmware) as device:
        storage = Storage.of(plan)
        run_once(device, storage, load_samples(plan.graph, [], [], 1)[0].stored)
        values = [storage.get_tensor(device, it.tensor) for it in plan.graph.outputs]
    return b"".join(np.asarray(it).tobytes() for it in values)


def test_loads_save_time_and_no_arena_grows(planned: Planned, plan: Plan) -> None:
    whole = planned.baseline
    assert not whole.layout.constants
    assert len(plan.layout.constants) >= 3
    assert plan.layout.arenas == whole.layout.arenas
    assert plan.estimate.latency_ticks < 0.8 * whole.estimate.latency_ticks
    ways = {tuple(place.memory for place in plan.layout.way(it)) for it in plan.layout.transfers}
    assert ways == {(FLASH, "sram")}
    assert any(it.end > plan.layout.begin(it) for it in plan.layout.transfers)


def test_a_limit_of_ram_lets_the_arena_grow(model: Model, planned: Planned) -> None:
    own = planned.baseline.layout.arena_bytes
    (plan,) = find_plans(model, BOARD, replace(UNSPLIT, ram_limit=2 * own)).candidates
    assert own < plan.layout.arena_bytes <= 2 * own
    assert plan.estimate.latency_ticks < planned.candidates[0].estimate.latency_ticks


def test_nothing_is_loaded_without_need(model: Model) -> None:
    assert not find_plans(model, BOARD, replace(UNSPLIT, load_constants="never")).candidates
    assert not find_plans(model, load_board("mps2-an505"), UNSPLIT).candidates


def test_the_driver_and_a_late_engine_compute_the_same_bits(
    model: Model, planned: Planned, plan: Plan
) -> None:
    expected = outputs(model, planned.baseline)
    assert outputs(model, plan) == expected
    assert outputs(model, plan, "half") == expected


def test_a_late_engine_shows_missing_waits(model: Model, planned: Planned, plan: Plan) -> None:
    late = tuple(replace(it, end=len(plan.schedule.steps)) for it in plan.layout.transfers)
    wrong = replace(plan, layout=replace(plan.layout, transfers=late))
    assert outputs(model, wrong, "half") != outputs(model, planned.baseline)


def _waits_late(layout: Layout) -> Layout:
    first = layout.transfers[-1]
    return replace(layout, transfers=(*layout.transfers[:-1], replace(first, end=first.end + 1)))


def _is_missing(layout: Layout) -> Layout:
    return replace(layout, transfers=layout.transfers[:-1])


def _from_its_place(layout: Layout) -> Layout:
    return replace(layout, transfers=(*layout.transfers[:-1], replace(layout.transfers[-1], source=1)))


def _placed(layout: Layout, **changes: Any) -> Layout:
    name, last = list(layout.constants.items())[-1]
    place = replace(last.place, **changes)
    return replace(layout, constants={**layout.constants, name: replace(last, place=place)})


def _over_a_tensor(layout: Layout) -> Layout:
    life = list(layout.constants.values())[-1].place.life
    blocks = (it for name in layout.blocks for block in layout.blocks[name] for it in block)
    live = next(it for it in blocks if it.life.lo < life.hi - 1 < it.life.hi - 1 or it.life.hi == life.hi)
    return _placed(layout, offset=live.offset)


def _ends_early(layout: Layout) -> Layout:
    life = list(layout.constants.values())[-1].place.life
    return _placed(layout, life=Interval(life.lo, life.hi - 1))


def _same_home(layout: Layout) -> Layout:
    name, last = list(layout.constants.items())[-1]
    return replace(layout, constants={**layout.constants, name: replace(last, home=0)})


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (_waits_late, "not loaded yet or overwritten|residence before"),
        (_is_missing, "0 transfers, not one"),
        (_from_its_place, "does not contain the block|residence"),
        (_over_a_tensor, "overlaps|overwritten|needs"),
        (_ends_early, "reside nowhere|the residence before"),
        (_same_home, "overlap others"),
        (lambda layout: _placed(layout, offset=1 << 20), "leaves its arena"),
        (lambda layout: _placed(layout, offset=2), "not aligned"),
        (lambda layout: _placed(layout, memory="psram"), "no arena|does not join"),
    ],
)
def test_the_checker_refuses(
    change: Callable[[Layout], Layout], fault: str, model: Model, plan: Plan
) -> None:
    work = model.with_kernels(plan.kernels).work
    check(plan, work, BOARD)
    with pytest.raises(PlanFaultError, match=fault):
        check(replace(plan, layout=change(plan.layout)), work, BOARD)


def test_plan_files_keep_loads(model: Model, plan: Plan, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    save_plan(plan, model.sha256, path)
    again = stored_plan(model, BOARD, path, ()).plan
    assert again.layout.constants == plan.layout.constants
    assert again.layout.transfers == plan.layout.transfers
    (planned,) = find_plans(model, BOARD, replace(UNSPLIT, plan_file=path)).candidates
    assert planned.estimate.ticks == pytest.approx(plan.estimate.ticks)
    content = json.loads(path.read_text("utf-8"))
    content["constants"][next(iter(content["constants"]))][0] //= 2
    path.write_text(json.dumps(content), "utf-8")
    with pytest.raises(ConfigError, match="loads other constants"):
        stored_plan(model, BOARD, path, ())


def test_transfers_name_their_operator(plan: Plan) -> None:
    loaded = [it.tensor for it in plan.layout.transfers if isinstance(it, Transfer)]
    assert loaded == [constants_name(name) for name in plan.layout.constants]


def test_the_core_loads_on_request(model: Model) -> None:
    """A network whose weights are read often, on a board whose flash no engine reads."""
    board = BOARD.model_copy(update={"links": ()})
    assert not find_plans(model, board, UNSPLIT).candidates
    (plan,) = find_plans(model, board, replace(UNSPLIT, load_constants="core")).candidates
    assert {it.engine for it in plan.layout.transfers} == {"cpu"}
    assert plan.estimate.stalls.copies > 0


def test_constants_lie_in_a_second_flash(model: Model) -> None:
    """The PSRAM of the board stands for it: the emulator fills it with the program."""
    psram = BOARD.memory("psram")
    flash = BOARD.flash.model_copy(update={"external": BoardRegion(origin=psram.origin, bytes=psram.bytes)})
    links = (BOARD.links[0].model_copy(update={"memories": (FLASH, "sram")}),)
    facts = {"flash": flash, "memories": BOARD.memories[:1], "links": links, "name": "external"}
    board = BOARD.model_copy(update=facts)
    planned = find_plans(model, board, UNSPLIT)
    (plan,) = planned.candidates
    assert plan.layout.constants
    program = make_program(PlanView(plan, model.with_kernels(plan.kernels).calls), "net", board)
    files = render_firmware(program, plan, Source(model.path.name, model.sha256))
    firmware = build_firmware(board, files, program.kernels, emulate=True)
    assert "second flash at 0x80000000" in files["net.h"]
    weights = [
        it.value for it in read_symbols(firmware.elf) if it.name in {x.name for x in program.constants}
    ]
    assert len(weights) == len(program.constants) > 1
    assert all(it in flash.constants.addresses for it in weights)
    assert outputs(model, plan, board=board) == outputs(model, planned.baseline, board=board)
    assert outputs(model, plan, board=board) == outputs(model, planned.baseline)


def test_a_second_flash_limits_weights(model: Model) -> None:
    small = BoardRegion(origin=0x90000000, bytes=4096)
    board = BOARD.model_copy(update={"flash": BOARD.flash.model_copy(update={"external": small})})
    with pytest.raises(FitError, match=r"weights need .* bytes, the flash of .* has 4,096"):
        find_plans(model, board, UNSPLIT)


def test_loads_and_blocks_that_return_share_an_engine(model: Model, planned: Planned) -> None:
    limits = (("sram", 20_000),)
    plan = find_plans(model, BOARD, replace(UNSPLIT, memory_limits=limits)).choices[0]
    ways = {tuple(place.memory for place in plan.layout.way(it)) for it in plan.layout.transfers}
    assert ways == {(FLASH, "sram"), ("psram", "sram")}
    assert outputs(model, plan, "half") == outputs(model, planned.baseline)


def test_a_search_goes_on_from_a_plan_with_loads(model: Model, tmp_path: Path) -> None:
    """Times of tiles contain waits for flash, so the search compares the plan without its loads."""
    options = Options(time_limit=0.2, max_overhead=50, ram_limit=20_000)
    plan = find_plans(model, BOARD, options).candidates[0]
    assert plan.splits and plan.layout.constants
    save_plan(plan, model.sha256, tmp_path / "plan.json")
    resuming = replace(options, plan_file=tmp_path / "plan.json", resume=True, time_limit=1e-9)
    resumed = [it for it in find_plans(model, BOARD, resuming).candidates if it.splits == plan.splits]
    assert min(it.estimate.latency_ticks for it in resumed) <= plan.estimate.latency_ticks
