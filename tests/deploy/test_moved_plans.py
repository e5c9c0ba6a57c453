"""Plans with moves all the way: stored, loaded, built, run on a board under emulation, measured, drawn."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from models import quantised_convolutions

from mcudeploy.boards.catalogue import load_board
from mcudeploy.commands import commands as api
from mcudeploy.common.errors import ConfigError
from mcudeploy.device.target import Target
from mcudeploy.execution.deployment import Deployment
from mcudeploy.planner.plan_options import Options
from mcudeploy.report import chart, objects
from tests import reports
from tests.moves import with_moves


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return quantised_convolutions(tmp_path_factory.mktemp("moved") / "small.onnx")


def moved(model: Path, board: str, *, streamed: bool = False) -> Deployment:
    """A split plan with the input in one piece, or fed, and moves before half of its steps."""
    target = load_board(board)
    deployment = api.plan_model(
        model, target, Options(time_limit=0.5, max_overhead=30, stream_input=streamed)
    )
    plan = with_moves(deployment.plan, alignment=target.offset_unit)
    assert plan.splits and len(plan.layout.transfers) > 3
    return replace(deployment, plan=plan, board=target, prefix="small")


@pytest.mark.parametrize(("board", "streamed"), [("host", False), ("host", True), ("mps2-an386", True)])
def test_they_are_built_run_and_verified(board: str, streamed: bool, model: Path, tmp_path: Path) -> None:
    moved_plan = moved(model, board, streamed=streamed)
    target, options = Target(load_board(board), emulate=True), Options(plan_file=tmp_path / "plan.json")
    api.save_plan(moved_plan, tmp_path / "plan.json")
    report = reports.run_model(model, target, options, inputs=[], expected=[])
    assert report["verified"], report["reason"]
    moves = moved_plan.plan.layout.transfers
    assert (report["moves"], report["steps"]) == (len(moves), len(moved_plan.plan.schedule.steps))
    assert report["moved_bytes"] > 0 and report["arena_bytes"] == moved_plan.plan.layout.arena_bytes
    names = [operator["name"] for operator in report["operators"]]
    (entry,) = (operator for operator in report["operators"] if operator["name"] == "moves")
    assert len(set(names)) == len(names) == len(moved_plan.model.calls) + 1
    assert (entry["kernel"], entry["variant"], entry["steps"], entry["macs"]) == (
        "move_blocks", "move_blocks", len(moves), 0
    )  # fmt: skip
    assert entry["ticks"] > 0 or board == "host"
    assert sum(operator["share"] for operator in report["operators"]) == pytest.approx(1)
    # The linker may put two bytes after each of the two tables of 16-bit numbers.
    padding = report["tables_bytes"] - objects.plan(moved_plan)["tables_bytes"]
    assert padding == 0 if board == "host" else padding in (0, 2, 4)


def test_measurements_of_moves_are_kept(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCUDEPLOY_CACHE_DIR", str(tmp_path / "cache"))
    moved_plan, target = moved(model, "mps2-an386"), Target(load_board("mps2-an386"), emulate=True)
    api.save_plan(moved_plan, tmp_path / "plan.json")
    measured = reports.measure_model(model, target, Options(plan_file=tmp_path / "plan.json", name="small"))
    again = moved_plan.measured()
    assert again is not None
    times = {operator["name"]: (operator["steps"], operator["ticks"]) for operator in measured["operators"]}
    assert {time.operator: (time.steps, time.ticks) for time in again.operators} == times


def test_the_cycle_model_counts_moves(model: Path, tmp_path: Path) -> None:
    moved_plan, target = moved(model, "mps2-an386"), Target(load_board("mps2-an386"), emulate=True)
    api.save_plan(moved_plan, tmp_path / "plan.json")
    report = reports.measure_model(
        model, target, Options(plan_file=tmp_path / "plan.json"), timing="cycles-model"
    )
    (entry,) = (operator for operator in report["operators"] if operator["name"] == "moves")
    assert entry["instructions"] > 0 and "mcud_move_blocks" in report["cycles_model"]["functions"]


def test_the_library_runs_without_the_measurer(model: Path, tmp_path: Path) -> None:
    moved_plan = moved(model, "host")
    api.save_plan(moved_plan, tmp_path / "plan.json")
    options = Options(plan_file=tmp_path / "plan.json", name="small")
    built = reports.build_models([model], load_board("host"), options, tmp_path / "out")
    names = {Path(name).name for name in built["files"]}
    assert {"move_blocks.c", "move_blocks.h"} <= names
    header = (tmp_path / "out" / "include" / "small.h").read_text()
    assert f"#define SMALL_STEPS {len(moved_plan.plan.tape)}u" in header


def test_plan_files_come_back(model: Path, tmp_path: Path) -> None:
    moved_plan = moved(model, "host")
    api.save_plan(moved_plan, tmp_path / "plan.json")
    again = api.plan_model(model, moved_plan.board, Options(plan_file=tmp_path / "plan.json"))
    assert again.plan.layout.transfers == moved_plan.plan.layout.transfers
    assert again.plan.layout.blocks == moved_plan.plan.layout.blocks
    assert (
        again.plan.layout.arenas == moved_plan.plan.layout.arenas and again.plan.tape == moved_plan.plan.tape
    )


File = dict[str, Any]


def first(content: File) -> list[Any]:
    """The first transfer."""
    transfer: list[Any] = content["transfers"][0]
    return transfer


def arrival(content: File) -> list[Any]:
    """The residence that the first transfer comes to."""
    _, tensor, block, _, to, _ = first(content)
    residence: list[Any] = content["blocks"][tensor][block][to]
    return residence


def departure(content: File) -> list[Any]:
    """The residence that the first transfer comes from."""
    _, tensor, block, source, _, _ = first(content)
    residence: list[Any] = content["blocks"][tensor][block][source]
    return residence


CHANGES: dict[str, tuple[Callable[[File], object], str]] = {
    "no transfers": (lambda p: p.pop("transfers"), "transfers: Field required"),
    "a tensor that is not": (lambda p: first(p).__setitem__(1, "other"), "not a tensor that owns memory"),
    "no such block": (lambda p: first(p).__setitem__(2, 99), "no block 99 to move"),
    "no such residence": (lambda p: first(p).__setitem__(4, 999), "to its residence 999, of"),
    "from no such residence": (lambda p: first(p).__setitem__(3, 999), "to its residence 999, of"),
    "to where the block is made": (lambda p: first(p).__setitem__(4, 0), r"transfers\.0\.4"),
    "an end that comes later": (
        lambda p: first(p).__setitem__(5, first(p)[5] + 1), "from step|while it runs"
    ),
    "another engine": (lambda p: first(p).__setitem__(0, "dma"), "there is no engine 'dma'"),
    "turned round": (lambda p: p["transfers"].reverse(), "out of order"),
    "a transfer is missing": (
        lambda p: p["transfers"].pop(0), "not written yet|does not contain the block"
    ),
    "a transfer twice": (lambda p: p["transfers"].insert(0, first(p)), "does not contain the block"),
    "at another step": (lambda p: arrival(p).__setitem__(0, 10**6), "resides|ends before|from step"),
    "an offset beyond 32 bits": (lambda p: arrival(p).__setitem__(3, 2**32), r"blocks\.\w+\.\d+\.\d+\.3"),
    "an offset beyond the arena": (lambda p: arrival(p).__setitem__(3, 2**20), "what lies in them needs"),
    "to where it is": (lambda p: arrival(p).__setitem__(3, departure(p)[3]), "both have the same offset"),
    "the arena without the moves": (
        lambda p: p["arenas"].update(dict.fromkeys(p["arenas"], 2048)), "what lies in them needs"
    ),
    "a number too much": (lambda p: first(p).append(0), r"transfers\.0"),
    "the format before": (
        lambda p: (p.update(format=7), p.pop("transfers")), "its format is 7, not 10. .* Make a new one"
    ),
    "a name of two lines": (lambda p: first(p).__setitem__(1, "a\nb"), r"'a\\nb' is moved"),
}  # fmt: skip


@pytest.mark.parametrize("what", CHANGES)
def test_changed_files_are_refused(what: str, model: Path, tmp_path: Path) -> None:
    moved_plan = moved(model, "host")
    api.save_plan(moved_plan, tmp_path / "plan.json")
    content = json.loads((tmp_path / "plan.json").read_text())
    change, message = CHANGES[what]
    change(content)
    (tmp_path / "plan.json").write_text(json.dumps(content))
    with pytest.raises(ConfigError, match=message):
        api.plan_model(model, moved_plan.board, Options(plan_file=tmp_path / "plan.json"))


def test_blocks_are_drawn_at_each_place(model: Path) -> None:
    moved_plan = moved(model, "host")
    layout = moved_plan.plan.layout
    (panel,) = (drawn := chart.draw(moved_plan.view, "small")).panels
    assert ("moves", f"{len(layout.transfers):,}") in drawn.facts
    groups = {group.name: group for group in panel.groups}
    for name, blocks in layout.blocks.items():
        expected = [(each.life, each.offset) for block in blocks for each in block if len(each.life)]
        assert [(area.steps, area.bytes.lo) for area in groups[name].areas] == expected
        assert ("move" in groups[name].note) == any(transfer.tensor == name for transfer in layout.transfers)
    assert sum(len(group.areas) for group in panel.groups) > sum(map(len, layout.blocks.values()))
