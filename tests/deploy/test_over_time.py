"""Plans whose blocks leave the fast memory and come back: what reports, tables and charts say of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from models import skipping

from mcudeploy.boards.catalogue import load_board
from mcudeploy.cli.main import cli
from mcudeploy.commands import commands as api
from mcudeploy.device.target import Target
from mcudeploy.ir.plan import Step
from mcudeploy.planner.model.model import load_model
from mcudeploy.planner.plan_options import Options
from mcudeploy.report import chart
from mcudeploy.tiling.blocks import TiledGraph
from mcudeploy.tiling.dataflow import Dataflow
from mcudeploy.tiling.traffic import loads_per_byte, step_loads
from tests import reports

BOARD = "mps2-an505"
LIMIT = 33 * 1024
"""Room for the two largest tensors; 8 KiB more are alive beside them."""
LIMITED = Options(split=False, memory_limits=(("sram", LIMIT),))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return skipping(tmp_path_factory.mktemp("skip") / "skip.onnx")


def planned(model: Path, *more: str) -> tuple[int, str]:
    """Exit code and output of `plan`."""
    line = ["plan", str(model), "--board", BOARD, "--no-split", *more]
    result = CliRunner().invoke(cli, line)
    return result.exit_code, result.stdout


def test_what_leaves_comes_back_and_has_its_price(model: Path) -> None:
    code, text = planned(model, "--memory", f"sram={LIMIT}", "--json")
    report = json.loads(text)
    moved = report["transfers"]
    assert code == 0 and report["arenas"]["sram"] <= LIMIT
    assert moved["engines"] == {"dma0": moved["count"]} and moved["count"] >= 2
    assert moved["bytes"] == sum(way["bytes"] for way in moved["ways"].values()) >= 2 * 8192
    assert set(moved["ways"]) == {"sram to psram", "psram to sram"}
    assert moved["exposed_ticks"] == moved["direct_ticks"] + moved["copies_ticks"] + moved["waits_ticks"]
    assert moved["percent"] == moved["exposed_ticks"] == 0 and report["memory_limits"] == {"sram": LIMIT}
    assert report["moves"] >= moved["count"] and report["moved_bytes"] >= moved["bytes"]


def test_what_does_not_hide_is_exit_0_and_has_its_price(model: Path) -> None:
    code, text = planned(model, "--memory", "sram=12k", "--json")
    moved = json.loads(text)["transfers"]
    assert (code, moved["percent"] > 0, moved["direct_ticks"] > 0) == (0, True, True)
    assert moved["exposed_ticks"] == moved["direct_ticks"] + moved["copies_ticks"] + moved["waits_ticks"]
    assert "--memory sram=12k costs" in " ".join(planned(model, "--memory", "sram=12k")[1].split())


def test_the_table_says_the_price(model: Path) -> None:
    code, text = planned(model, "--memory", "sram=33k")
    flat = " ".join(text.split())
    assert code == 0
    assert "sram to psram 1 block (8,192 B)" in flat and "by dma0" in flat
    assert "--memory sram=33k costs" in flat and "% of the latency, modelled" in flat


def test_without_a_limit_nobody_waits(model: Path) -> None:
    code, text = planned(model, "--json")
    moved = json.loads(text)["transfers"]
    assert (code, moved["count"], moved["bytes"], moved["exposed_ticks"]) == (0, 0, 0, 0)
    assert "core waits" not in planned(model)[1]


def test_a_limit_that_no_plan_keeps_is_exit_5(model: Path) -> None:
    code, text = planned(model, "--memory", f"sram={LIMIT}", "--memory", "psram=0", "--json")
    assert (code, json.loads(text)["error"]["exit_code"]) == (5, 5)


def test_a_chart_shows_what_is_between_memories(model: Path, tmp_path: Path) -> None:
    deployment = api.plan_model(model, load_board(BOARD), LIMITED)
    drawn = chart.draw(deployment.view, model.name)
    by_memory = {panel.memory: panel for panel in drawn.panels}
    for panel in by_memory.values():
        assert len(panel.flights) == 2
        areas = [area for group in panel.groups for area in group.areas]
        for flight in panel.flights:
            assert len(flight.bytes) == 8192 and any(area.bytes == flight.bytes for area in areas)
    assert [it.steps for it in by_memory["sram"].flights] == [it.steps for it in by_memory["psram"].flights]
    assert ("between memories", "2") in drawn.facts
    text = chart.svg_picture(drawn)
    assert text.count('class="flight" stroke-width') == 2 and "between memories: 2 transfers" in text


@pytest.mark.usefixtures("small_bench")
@pytest.mark.parametrize("limit", [12 * 1024, LIMIT])
def test_what_the_core_loads_from_the_slow_memory_is_what_is_counted(model: Path, limit: int) -> None:
    options = Options(split=False, memory_limits=(("sram", limit),))
    target = Target(load_board(BOARD), emulate=True)
    report = reports.measure_model(model, target, options, timing="traffic")
    predicted = report["traffic_predicted"]["psram"]
    assert (predicted["loaded"] > 0) == (limit < LIMIT)
    counted = report["traffic_counted"].get("psram", {"loaded": 0, "stored": 0})
    assert counted == pytest.approx(predicted, rel=0.005)  # tables in scratch are not followed


@pytest.mark.parametrize("rows", [1, 3, 16])
def test_steps_of_a_cut_operator_load_together_what_one_step_does(model: Path, rows: int) -> None:
    loaded_model = load_model(model)
    names = [operator.name for operator in loaded_model.graph.operators]
    tiled = TiledGraph(Dataflow.of(loaded_model.graph), dict.fromkeys(names, rows))
    factors = step_loads(tiled, loaded_model.work)
    for at, operator in enumerate(loaded_model.graph.operators):
        steps = [Step(at, block) for block in range(tiled.step_counts[at])]
        reads = [zip(tiled.blocks_read(step), factors[at], strict=True) for step in steps]
        loaded = sum(
            tiled.block_bytes(*each) * factor for one in reads for read, factor in one for each in read
        )
        whole = loads_per_byte(loaded_model.graph, operator, loaded_model.work.get(operator.name, (0, 0))[0])
        sizes = [tensor.size_bytes for tensor in loaded_model.graph.input_tensors(operator)]
        assert loaded == pytest.approx(sum(size * each for size, each in zip(sizes, whole, strict=True)))


def test_windows_in_the_padding_load_nothing(model: Path) -> None:
    """3 x 3 at 16 x 16: of 48 rows of taps 46 are inside; 8 outputs, four at a time."""
    graph = load_model(model).graph
    first, joined = graph.operators[0], next(it for it in graph.operators if len(it.inputs) == 2)
    assert loads_per_byte(graph, first, 0) == [pytest.approx(2 * (46 / 16) ** 2)]
    assert loads_per_byte(graph, first, 3 * 3 * 4 * 4 + 1) == [pytest.approx((46 / 16) ** 2)]
    assert loads_per_byte(graph, joined, 0) == [1, 1]
