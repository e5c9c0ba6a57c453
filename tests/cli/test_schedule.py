"""`graph order`: the keys of its JSON, the file it writes, and how it fails."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

Invoke = Callable[[str], Result]


@pytest.fixture
def graph(folder: Path) -> Path:
    """Two branches of 64 bytes that end in 1 byte each; the file has them interleaved."""
    content: dict[str, Any] = {"nodes": [], "tensors": [], "outputs": [4]}
    for number, (inputs, size) in enumerate([([], 64), ([], 64), ([0], 1), ([1], 1), ([2, 3], 1)]):
        content["nodes"].append({"id": number, "op": "op", "inputs": inputs, "outputs": [number]})
        content["tensors"].append({"bytes": size})
    path = folder / "step.json"
    path.write_text(json.dumps(content))
    return path


def test_json_and_order_file(mcudeploy_command: Invoke, graph: Path) -> None:
    result = mcudeploy_command(f"graph order {graph.name} --json -o order.json")
    assert result.exit_code == 0
    report = json.loads(result.stdout)
    assert report["peak_bytes"] == report["lower_bound_bytes"] == 66
    assert report["file_order_peak_bytes"] == 129
    assert report["status"] == "optimal"
    assert report["method"]
    order = json.loads((graph.parent / "order.json").read_text())["order"]
    assert order in ([0, 2, 1, 3, 4], [1, 3, 0, 2, 4])


@pytest.mark.parametrize(
    "method", ["rpo", "lifetime_bfs", "chain_dfs", "deferred_updates", "beam", "refine", "exact", "ilp"]
)
def test_every_method_alone(method: str, mcudeploy_command: Invoke, graph: Path) -> None:
    report = json.loads(mcudeploy_command(f"graph order {graph.name} --json --method {method}").stdout)
    assert 66 <= report["peak_bytes"] <= 129


def test_a_table_for_people(mcudeploy_command: Invoke, graph: Path) -> None:
    result = mcudeploy_command(f"graph order {graph.name} --time-limit 5")
    assert result.exit_code == 0
    assert "66 B" in result.stdout
    assert "129 B" in result.stdout


def test_a_malformed_graph_is_a_model_error(mcudeploy_command: Invoke, folder: Path) -> None:
    (folder / "bad.json").write_text("{}")
    result = mcudeploy_command("graph order bad.json --json")
    assert result.exit_code == 4
    assert json.loads(result.stdout)["error"]["message"].startswith(
        "bad.json is not a dependency graph: nodes: "
    )


@pytest.mark.parametrize(
    "line", ["graph order", "graph order no.json", "graph order step.json --method best"]
)
def test_usage_errors(line: str, mcudeploy_command: Invoke, graph: Path) -> None:
    assert mcudeploy_command(line).exit_code == 2


@pytest.fixture
def training(folder: Path) -> Path:
    """Three steps forwards of 64 bytes each, and backwards over what they made; a step needs 192 bytes."""
    content: dict[str, Any] = {"nodes": [], "tensors": [], "outputs": [6]}
    inputs = [[], [0], [1], [2], [2, 3], [1, 4], [0, 5]]
    for number, read in enumerate(inputs):
        op = "input" if not read else "op"
        content["nodes"].append({"id": number, "op": op, "inputs": read, "outputs": [number], "flops": 1000})
        content["tensors"].append({"bytes": 64})
    path = folder / "training.json"
    path.write_text(json.dumps(content))
    return path


def test_a_memory_limit_with_a_link(mcudeploy_command: Invoke, training: Path) -> None:
    options = "--memory 75% --link 0.5 --link-latency 10 --chart c.svg -o plan.json --json"
    result = mcudeploy_command(f"graph order {training.name} {options}")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["peak_bytes"] == 320
    assert report["fast_peak_bytes"] <= report["memory_limit_bytes"] == 240
    assert report["transfers"]["count"] >= 2
    assert report["transfers"]["bytes"] == 64 * report["transfers"]["count"]
    assert report["recompute"] == {"steps": 0, "cycles": 0}
    assert report["overhead_percent"] == pytest.approx(100 * (report["cycles"] / report["base_cycles"] - 1))
    assert (
        report["base_cycles"] <= report["least_cycles"] <= report["cycles"] * 1.001
    )  # it counts in larger ticks
    written = json.loads((training.parent / "plan.json").read_text())
    assert len(written["passages"]) == report["transfers"]["count"]
    assert (training.parent / "c.svg").read_text().startswith("<svg")
    assert mcudeploy_command(f"graph order {training.name} {options}").exit_code == 0  # its files are ours


def test_a_memory_limit_by_recomputing_alone(mcudeploy_command: Invoke, training: Path) -> None:
    result = mcudeploy_command(f"graph order {training.name} --memory 80% --recompute --json")
    report = json.loads(result.stdout)
    assert report["transfers"]["count"] == 0 and report["least_cycles"] is None
    assert report["recompute"]["steps"] >= 1
    assert report["recompute"]["cycles"] == pytest.approx(report["cycles"] - report["base_cycles"])
    shown = mcudeploy_command(f"graph order {training.name} --memory 80% --recompute").stdout
    assert "memory limit" in shown and "256 B" in shown and "recomputed" in shown


def test_less_memory_than_a_step_needs(mcudeploy_command: Invoke, training: Path) -> None:
    result = mcudeploy_command(f"graph order {training.name} --memory 50% --link 1 --json")
    assert result.exit_code == 5
    assert "needs 192 B of fast memory by itself, the limit is 160 B" in result.stdout


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ("--memory 25", "not a percentage"),
        ("--memory -5%", "not a percentage"),
        ("--memory nan%", "not a percentage"),
        ("--memory 50%", "add --link RATE, --recompute"),
        ("--memory 50% --link 0", "add --link RATE, --recompute"),
        ("--memory 50% --recompute --link-latency 5", "belongs to a link"),
        ("--memory 50% --link -1", "-1"),
        ("--recompute", "add --memory"),
        ("--memory 50% --link 1 --chart c.html", "written as .svg"),
    ],
)
def test_options_that_say_nothing(mcudeploy_command: Invoke, training: Path, options: str, why: str) -> None:
    result = mcudeploy_command(f"graph order {training.name} {options}")
    assert result.exit_code == 2
    assert why in result.output + result.stderr
