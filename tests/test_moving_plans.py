"""Random plans with blocks that move between memories: sound, stored and loaded, and the same bits in all
modes of the engine. `benchmarks/moved_plans.py` has more of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from fuzzing.trips import (
    MODES,
    Trip,
    crossings,
    differing,
    differing_on,
    drawn,
    drawn_by_planner,
    stored_again,
)
from fuzzing.wandering import BOARDS

from mcudeploy.boards.catalogue import load_board
from mcudeploy.checker.judge import PlanFaultError, check
from mcudeploy.codegen.program import make_program
from mcudeploy.codegen.render import Source, render_firmware
from mcudeploy.common.errors import ConfigError
from mcudeploy.costs.stalls import Pace
from mcudeploy.device.target import Target, open_device
from mcudeploy.ir.engine import CPU
from mcudeploy.ir.plan import Entry, Plan, Transfer, Wait
from mcudeploy.planner.place.solve import estimate
from mcudeploy.planner.tape.plan_view import PlanView
from mcudeploy.tiling.blocks import TiledGraph
from mcudeploy.tiling.live import work_bytes
from mcudeploy.toolchain import build_firmware
from mcudeploy.toolchain.project import SoftEngine
from mcudeploy.verify.compare import Storage, run_once
from mcudeploy.verify.samples import load_samples
from tests.weekly import sample

_GRAPHS, _TOGETHER = 14, 20


@pytest.mark.parametrize("seed", sample(range(2), 1))
def test_moves_change_no_bit_of_an_output(seed: int, tmp_path: Path) -> None:
    trips = drawn(_TOGETHER, seed, _GRAPHS)
    assert len(trips) == _TOGETHER
    across, flying = (sum(each) for each in zip(*(crossings(it.judged.plan) for it in trips), strict=True))
    assert across > 2 * _TOGETHER and flying > 2
    wrong = list(differing(trips, tmp_path))
    assert not wrong, "\n".join(wrong)


@pytest.fixture(scope="module")
def flying() -> list[Trip]:
    """Some of the planner's plans with transfers that take steps."""
    trips = drawn_by_planner(12, 1, _GRAPHS, BOARDS[0])
    return [it for it in trips if crossings(it.judged.plan)[1] > 2]


def test_programs_without_waits_are_found(
    flying: list[Trip], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Engines that copy at the wait show it, the core does not."""
    usual = Plan.tape

    def without_waits(plan: Plan) -> tuple[Entry, ...]:
        entries: tuple[Entry, ...] = usual.__get__(plan)
        return tuple(entry for entry in entries if not isinstance(entry, Wait))

    monkeypatch.setattr(Plan, "tape", property(without_waits))
    names = list(differing(flying[:1], tmp_path))
    assert {line.split(", ")[-2 if "run" in line else -1].split(":")[0] for line in names} >= {"wait", "half"}
    assert not any(", core" in line or ", start" in line for line in names)


@pytest.mark.parametrize("engine", MODES)
def test_firmware_of_several_memories_runs_on_the_host(engine: SoftEngine | None, flying: list[Trip]) -> None:
    judged, results = flying[0].judged, list[bytes]()
    for one in (flying[0].base, judged):
        program = make_program(PlanView(one.plan, one.model.calls), "net", one.board)
        files = render_firmware(program, one.plan, Source(one.model.path.name, one.model.sha256))
        soft = engine if one is judged else None
        firmware = build_firmware(
            one.board, files, program.kernels, emulate=False, sanitize=True, engine=soft
        )
        with open_device(Target(one.board), firmware) as device:
            storage = Storage.of(one.plan)
            run_once(device, storage, load_samples(one.model.graph, [], [], 1)[0].stored)
            outputs = (storage.get_tensor(device, it.tensor) for it in one.plan.graph.outputs)
            results.append(b"".join(np.asarray(it).tobytes() for it in outputs))
    assert results[0] == results[1]


def test_the_driver_of_a_board_moves_them(tmp_path: Path) -> None:
    trips = drawn_by_planner(3, 2, _GRAPHS, load_board("mps2-an505"))
    wrong = list(differing_on(trips, tmp_path))
    assert not wrong, "\n".join(wrong)


def _numbers(content: Any) -> Iterator[tuple[Any, Any]]:
    """The places of all numbers and names below a value."""
    pairs = content.items() if isinstance(content, dict) else enumerate(content)
    for key, value in list(pairs):
        if isinstance(value, list | dict):
            yield from _numbers(value)
        else:
            yield content, key


def _changed(text: str, random: Random) -> str:
    """A plan file with something changed in its residences, transfers or arenas."""
    content = json.loads(text)
    part = content[random.choice(("blocks", "blocks", "transfers", "transfers", "arenas"))]
    what = random.choice(("number", "number", "drop", "twice", "turn"))
    if what == "number" or isinstance(part, dict):
        table, key = random.choice(list(_numbers(part)))
        value = table[key]
        other = random.choice(["ram", "bulk", "far", "dma0", "cpu", "x\ny", 0])
        table[key] = other if isinstance(value, str) else value + random.choice((-4, -1, 1, 4, 2**20))
    elif what == "drop":
        part.pop(random.randrange(len(part)))
    elif what == "twice":
        part.insert(random.randrange(len(part)), random.choice(part))
    else:
        part.reverse()
    return json.dumps(content)


def test_changed_files_are_sound_or_refused_in_one_line() -> None:
    trips, random, refused = drawn(12, 7, 6), Random(3), 0
    for trip in trips:
        for _ in range(25):
            try:
                plan = stored_again(trip, lambda text: _changed(text, random))
                check(plan, trip.judged.model.work, trip.judged.board)
            except (ConfigError, PlanFaultError) as error:
                assert "\n" not in str(error) and str(error)
                refused += 1
    assert 200 < refused < 300  # some are as good: a place that is free, a transfer that ends earlier


def test_a_changed_file_is_not_taken_for_the_plan() -> None:
    (trip,) = drawn(1, 9, 2)
    content = json.loads(_text(trip))
    content["transfers"] = []
    with pytest.raises(
        (ConfigError, PlanFaultError), match=r"not written yet|in one memory|is moved|resides"
    ):
        check(stored_again(trip, lambda _: json.dumps(content)), trip.judged.model.work, trip.judged.board)


def _text(trip: Trip) -> str:
    lines: list[str] = []
    stored_again(trip, lambda text: lines.append(text) or text)
    return lines[0]


def test_a_copy_by_the_core_reads_one_memory_and_writes_the_other() -> None:
    checked = 0
    for trip in drawn(3, 7, _GRAPHS):
        plan = trip.judged.plan
        rates = {"read_rate": 0.5, "write_rate": 0.125}
        memories = {
            it.name: it if it.is_fast else it.model_copy(update=rates) for it in trip.judged.board.memories
        }
        board = trip.judged.board.model_copy(update={"memories": tuple(memories.values())})
        tiled, wanted = TiledGraph.of(plan), 0.0
        for entry in plan.tape:
            if isinstance(entry, Transfer) and entry.engine == CPU:
                old, new = plan.layout.way(entry)
                to_slow, from_slow = (not memories[it.memory].is_fast for it in (new, old))
                wanted += tiled.block_bytes(entry.tensor, entry.block) * (2 * from_slow + 8 * to_slow)
                checked += to_slow != from_slow
        work, steps = work_bytes(trip.judged.model.calls), plan.schedule.steps
        assert estimate(tiled, steps, work, plan.layout, Pace(board)).stalls.copies == wanted
    assert checked
