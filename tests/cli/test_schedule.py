"""`schedule`: the keys of its JSON, the file it writes, and how it fails."""

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
    result = mcudeploy_command(f"schedule {graph.name} --json -o order.json")
    assert result.exit_code == 0
    told = json.loads(result.stdout)
    assert told["peak_bytes"] == told["lower_bound_bytes"] == 66
    assert told["file_order_peak_bytes"] == 129
    assert told["status"] == "optimal"
    assert told["method"]
    order = json.loads((graph.parent / "order.json").read_text())["order"]
    assert order in ([0, 2, 1, 3, 4], [1, 3, 0, 2, 4])


@pytest.mark.parametrize(
    "method", ["rpo", "lifetime_bfs", "chain_dfs", "deferred_updates", "beam", "refine", "exact", "ilp"]
)
def test_every_method_alone(method: str, mcudeploy_command: Invoke, graph: Path) -> None:
    told = json.loads(mcudeploy_command(f"schedule {graph.name} --json --method {method}").stdout)
    assert 66 <= told["peak_bytes"] <= 129


def test_a_table_for_people(mcudeploy_command: Invoke, graph: Path) -> None:
    result = mcudeploy_command(f"schedule {graph.name} --time-limit 5")
    assert result.exit_code == 0
    assert "66 B" in result.stdout
    assert "129 B" in result.stdout


def test_a_malformed_graph_is_a_model_error(mcudeploy_command: Invoke, folder: Path) -> None:
    (folder / "bad.json").write_text("{}")
    result = mcudeploy_command("schedule bad.json --json")
    assert result.exit_code == 4
    assert json.loads(result.stdout)["error"]["message"].startswith(
        "bad.json is no dependency graph: nodes: "
    )


@pytest.mark.parametrize("line", ["schedule", "schedule no.json", "schedule step.json --method best"])
def test_usage_errors(line: str, mcudeploy_command: Invoke, graph: Path) -> None:
    assert mcudeploy_command(line).exit_code == 2
