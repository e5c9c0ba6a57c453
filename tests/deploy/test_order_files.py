"""`graph export`, `graph order` of a model, and `--order`: an order from a file, completed and judged."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import onnx
import pytest
from click.testing import CliRunner, Result
from models import bottlenecks, skipping
from onnx import helper

from mcudeploy.boards.catalogue import load_board
from mcudeploy.cli.main import cli
from mcudeploy.commands import commands as api
from mcudeploy.common.errors import ConfigError, UsageError
from mcudeploy.extensions.graphs.modelgraph import dependency_graph, unsplit_model
from mcudeploy.extensions.graphs.plaingraph import graph_of
from mcudeploy.planner.order.order_problem import OrderProblem
from mcudeploy.planner.order.tiled import problem_of
from mcudeploy.planner.plan_options import Options
from mcudeploy.tiling.blocks import whole
from tests.networks.onnx_files import build

HOST = load_board("host")
WIDE_FIRST = ["conv_0", "conv_2", "conv_1", "conv_3", "add_0"]
"""Both wide results live at once: the most bytes."""


def branches(path: Path) -> Path:
    """Image float32 [1,2,8,8] -> two branches of a conv to 32 channels and one to 2 -> their sum; the wide
    convs come first.
    """
    rng, constants, nodes = np.random.default_rng(1), dict[str, Any](), []
    for at, (source, outputs, inputs) in enumerate(
        (("x", 32, 2), ("x", 32, 2), ("c0", 2, 32), ("c1", 2, 32))
    ):
        constants[f"w{at}"] = rng.normal(0, 0.2, (outputs, inputs, 1, 1)).astype(np.float32)
        nodes.append(helper.make_node("Conv", [source, f"w{at}"], [f"c{at}"], f"/branch/{at}"))
    nodes.append(helper.make_node("Add", ["c2", "c3"], ["y"], "/sum"))
    onnx.save(build(nodes, {"x": (np.float32, (1, 2, 8, 8))}, ["y"], constants), path)
    return path


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return branches(tmp_path / "branches.onnx")


def run(line: str, *paths: Path) -> Result:
    return CliRunner().invoke(cli, [*line.split(), *map(str, paths)])


def planned(model: Path, file: Path) -> api.Deployment:
    return api.plan_model(model, HOST, Options(order_file=file, time_limit=1))


def some_order(problem: OrderProblem, random: Random) -> list[int]:
    order: list[int] = []
    while len(order) < problem.steps:
        ready = [
            step
            for step in range(problem.steps)
            if step not in order and set(problem.before[step]) <= set(order)
        ]
        order.append(random.choice(ready))
    return order


@pytest.mark.parametrize("build", [branches, skipping, bottlenecks])
def test_an_exported_graph_has_the_peaks_of_the_planner(build: Any, tmp_path: Path) -> None:
    model = unsplit_model(build(tmp_path / "m.onnx"), load_board("stm32f405"), Options())
    exported = graph_of(json.loads(json.dumps(dependency_graph(model)))).problem
    problem, random = problem_of(whole(model.graph), model.work), Random(1)
    assert exported.before == problem.before
    for order in (some_order(problem, random) for _ in range(8)):
        assert exported.peak(order) == problem.peak(order) > 0


def test_ids_are_names_of_tables_beside_those_of_the_file(model: Path, tmp_path: Path) -> None:
    result = run("graph export --json", model, Path("-o"), tmp_path / "g.json")
    assert result.exit_code == 0, result.output
    content = json.loads((tmp_path / "g.json").read_text())
    assert [node["id"] for node in content["nodes"]] == [
        "input:x",
        "conv_0",
        "conv_1",
        "conv_2",
        "conv_3",
        "add_0",
    ]
    assert content["nodes"][1]["name"] == "/branch/1" and content["nodes"][1]["inputs"] == ["x"]
    assert {"id": "conv_0", "bytes": 8 * 8 * 32 * 4} in content["tensors"]
    assert json.loads(result.stdout)["steps"] == 5


def test_export_order_plan(model: Path, tmp_path: Path) -> None:
    graph, order = tmp_path / "g.json", tmp_path / "order.json"
    assert run("graph export --board host", model, Path("-o"), graph).exit_code == 0
    report = json.loads(run("graph order --json", graph, Path("-o"), order).stdout)
    assert report["peak_bytes"] <= report["file_order_peak_bytes"]
    ordered, free = planned(model, order), api.plan_model(model, HOST, Options(split=False, time_limit=1))
    assert ordered.plan.estimate.peak_bytes == report["peak_bytes"] <= free.plan.estimate.peak_bytes
    names = [ordered.plan.graph.operators[step.operator].name for step in ordered.plan.schedule.steps]
    assert names == [name for name in json.loads(order.read_text())["order"] if name != "input:x"]
    assert json.loads(run("graph order --json", model).stdout)["steps"] == 5


def test_a_stated_order_stays_even_if_it_is_bad(model: Path, tmp_path: Path) -> None:
    file = tmp_path / "order.json"
    file.write_text(json.dumps({"order": WIDE_FIRST}))
    ordered, free = planned(model, file), api.plan_model(model, HOST, Options(split=False, time_limit=1))
    assert [step.operator for step in ordered.plan.schedule.steps] == [0, 2, 1, 3, 4]
    assert ordered.plan.estimate.peak_bytes > free.plan.estimate.peak_bytes


FAULTS = {
    "unknown node": ([*WIDE_FIRST[:-1], "conv_9"], "order.4 is 'conv_9', which is not an operator"),
    "missing node": (WIDE_FIRST[:-1], "operator 'add_0' is missing"),
    "duplicate": ([*WIDE_FIRST, "conv_1"], "'conv_1' is named twice, order.2 first"),
    "broken dependency": (
        ["conv_1", "conv_0", "conv_2", "conv_3", "add_0"],
        "order.0, 'conv_1', comes before order.1, 'conv_0', and needs its result",
    ),
    "numbers": ([0, 1, 2, 3, 4], "is not an order: order.0"),
    "no order": (None, "is not an order: order"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_hostile_order_is_one_clear_error(fault: str, model: Path, tmp_path: Path) -> None:
    file, (order, message) = tmp_path / "order.json", FAULTS[fault]
    file.write_text(json.dumps({} if order is None else {"order": order}))
    with pytest.raises(ConfigError) as caught:
        planned(model, file)
    assert message in str(caught.value) and "\n" not in str(caught.value)
    assert caught.value.exit_code == 3


def test_an_order_and_a_plan_exclude_each_other(model: Path, tmp_path: Path) -> None:
    options = Options(order_file=tmp_path / "o.json", plan_file=tmp_path / "p.json")
    with pytest.raises(UsageError, match="--order cannot be combined with --plan"):
        api.plan_model(model, HOST, options)


def test_an_order_excludes_cuts_that_are_asked_for(model: Path, tmp_path: Path) -> None:
    (tmp_path / "o.json").write_text("{}")
    words = ["plan", str(model), "--board", "host", "--order", str(tmp_path / "o.json"), "--split"]
    result = CliRunner().invoke(cli, words)
    assert result.exit_code == 2 and "leave out --split" in result.output


def exported(model: Path) -> dict[str, Any]:
    return dependency_graph(unsplit_model(model, None, Options()))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda g: g["tensors"].append({"id": "x", "bytes": 4}), "have the same id 'x'"),
        (lambda g: g["nodes"][1].update(inputs=["nowhere"]), "tensor 'nowhere' does not exist"),
        (lambda g: g["nodes"][1].update(inputs=["conv_2"]), "reads conv_2, which no node before it makes"),
        (lambda g: g["nodes"][1].update(id="conv_1"), "another node has this id"),
        (lambda g: g["inplace_candidates"].append(("x", "conv_3")), "does not read x"),
    ],
)
def test_a_hostile_graph_is_one_clear_error(change: Any, message: str, model: Path, tmp_path: Path) -> None:
    content = exported(model)
    change(content)
    (tmp_path / "g.json").write_text(json.dumps(content))
    result = run("graph order", tmp_path / "g.json")
    assert result.exit_code == 4 and message in " ".join(result.stderr.split())
