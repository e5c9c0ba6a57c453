"""A model on units: the changes of its graph, and the report of the plan."""

from __future__ import annotations

from pathlib import Path
from time import process_time
from typing import Any, get_args

import pytest

from mcudeploy.common.errors import FitError
from mcudeploy.extensions.several_boards.pipeline.division import Mode, divided, task_of
from mcudeploy.extensions.several_boards.pipeline.pipeline_report import report
from mcudeploy.extensions.several_boards.pipeline.topology import Topology
from mcudeploy.extensions.several_boards.pipeline.unit_regions import Objective, worth
from mcudeploy.extensions.several_boards.pipeline.workgraph import WorkValue, work_graph
from mcudeploy.ir.graph import Graph, Operator
from mcudeploy.ops.move.view import Reshape
from mcudeploy.planner.model.model import Model, load_model
from mcudeploy.planner.tape.footprint import weights_bytes
from mcudeploy.tiling.dataflow import Dataflow
from tests.plan.graphs import conv, graph_io, tensor

VWW = Path(__file__).parents[2] / "examples" / "vww" / "model.onnx"


@pytest.fixture(scope="module")
def vww() -> Model:
    return load_model(VWW)


def topology(**facts: Any) -> Topology:
    link = {"bytes_per_second": 1e6} | facts.pop("link", {})
    return Topology.model_validate({"width": 4, "board": "nrf52840", "link": link} | facts)


def test_every_operator_makes_a_value(vww: Model) -> None:
    graph, positions = work_graph(Dataflow.of(vww.graph))
    assert [vww.graph.operators[at].name for at in positions] == list(graph.names)
    results = [value for value in graph.values if value.producer is not None]
    assert len(results) == len(graph.names)
    assert [value.kept for value in graph.values].count(True) == len(vww.graph.outputs)


def test_views_are_not_operators() -> None:
    tensors = (tensor("x", (4, 1, 2)), tensor("y", (4, 1, 2)), tensor("z", (8, 1, 1)))
    operators = (conv("conv", "x", "y", (2, 2), 1), Operator("view", Reshape((8, 1, 1)), ("y",), "z"))
    borders = (graph_io("x", (4, 1, 2)),), (graph_io("z", (8, 1, 1)),)
    flow = Dataflow.of(Graph("views", {it.name: it for it in tensors}, operators, *borders))
    graph, positions = work_graph(flow)
    assert (graph.names, positions) == (("conv",), (0,))
    assert graph.values == (WorkValue("x", 8, None, (0,)), WorkValue("y", 8, 0, (), kept=True))


def test_four_boards_are_three_and_a_half_times_as_fast(vww: Model) -> None:
    division = divided(*task_of(vww, topology()), "best", "throughput")
    facts = report(division)
    assert facts["throughput_ratio"] >= 3.5
    assert facts["throughput_ratio"] <= facts["bound_throughput_ratio"] + 1e-9
    assert facts["bottleneck"]["ticks"] == pytest.approx(facts["period_ticks"])
    assert sum(it["work_ticks"] for it in facts["regions"]) == pytest.approx(facts["single_unit_ticks"])
    assert [name for it in facts["regions"] for name in it["operators"]] == list(division.line.graph.names)
    weights = sum(it["flash_bytes"] for it in facts["regions"])
    assert weights >= weights_bytes(division.model.calls)
    assert (
        facts["links"][0]["bytes"]
        == facts["regions"][0]["sends_bytes"]
        == facts["regions"][1]["receives_bytes"]
    )


def test_two_boards_are_nearly_twice_as_fast(vww: Model) -> None:
    assert report(divided(*task_of(vww, topology(width=2)), "best", "throughput"))["throughput_ratio"] >= 1.85


@pytest.mark.parametrize("objective", ["latency", "throughput"])
def test_best_is_never_worse(vww: Model, objective: Objective) -> None:
    for facts in ({}, {"link": {"bytes_per_second": 1e8}}, {"ram_bytes": 100_000}):
        model, task = task_of(vww, topology(**facts))
        division = divided(model, task, "best", objective)
        for mode in ("first", "greedy"):
            try:
                other = divided(model, task, mode, objective)
            except FitError:
                continue
            least = worth(other.line, other.regions, objective)
            assert worth(division.line, division.regions, objective) <= least * (1 + 1e-12)


def test_the_exact_mode_says_that_it_is_proven(vww: Model) -> None:
    model, task = task_of(vww, topology(width=2))
    division, exact = (divided(model, task, mode, "throughput") for mode in ("best", "exact"))
    assert exact.division.proven and not division.division.proven
    ticks = [worth(it.line, it.regions, "throughput") for it in (division, exact)]
    assert ticks[0] == pytest.approx(ticks[1], rel=1e-4)


def test_36_chiplets_are_planned_within_a_minute(vww: Model) -> None:
    start = process_time()
    facts = {"height": 6, "width": 6, "board": None, "systolic": 16, "clock_hz": 2e8}
    division = divided(
        *task_of(vww, topology(**facts, link={"bytes_per_second": 1e10})), "best", "throughput"
    )
    assert process_time() - start < 60
    assert (
        len({unit for units in division.places for unit in units})
        == sum(it.units for it in division.regions)
        <= 36
    )
    assert report(division)["throughput_ratio"] > 16


@pytest.mark.parametrize("mode", get_args(Mode))
@pytest.mark.parametrize("limit", ["ram_bytes", "flash_bytes"])
def test_what_fits_nowhere(vww: Model, mode: Mode, limit: str) -> None:
    named = {"ram_bytes": "bytes of RAM, a unit has 1,000", "flash_bytes": "bytes of flash, a unit has 1,000"}
    with pytest.raises(FitError, match=f"region .*conv_.* needs [0-9,]+ {named[limit]}: [0-9,]+ too many"):
        divided(*task_of(vww, topology(**{limit: 1000})), mode, "latency")


def test_too_little_flash_on_all_units_together(vww: Model) -> None:
    with pytest.raises(FitError, match=r"no partition among 2 units fits: region conv_.* bytes of flash"):
        divided(*task_of(vww, topology(width=2, flash_bytes=16_000)), "best", "throughput")
    assert divided(*task_of(vww, topology(flash_bytes=16_000)), "best", "throughput").regions
