"""Old names of commands and options: they work, stdout is unchanged, and stderr names the new one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from models import fully_connected

from mcudeploy.cli.main import cli
from tests.pipeline.test_topology_file import GOOD


def call(line: str) -> Result:
    return CliRunner().invoke(cli, line.split())


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    nodes = [{"id": n, "op": "op", "inputs": [n - 1] * bool(n), "outputs": [n]} for n in range(3)]
    graph = {"nodes": nodes, "tensors": [{"bytes": 4}] * 3, "outputs": [2]}
    Path("graph.json").write_text(json.dumps(graph))
    Path("rects.csv").write_text("id,lower,upper,size\na,0,2,4\nb,1,3,5\n")
    Path("units.toml").write_text(GOOD)
    fully_connected(Path("net.onnx"), (8, 6, 4), quantised=False)


@pytest.mark.parametrize(
    ("old", "new", "rest"),
    [
        ("schedule", "graph order", "graph.json --time-limit 1"),
        ("place", "graph place", "rects.csv --capacity 9"),
        ("pipeline", "graph pipeline", "net.onnx --topology units.toml"),
    ],
)
def test_old_commands_are_hidden_aliases(old: str, new: str, rest: str) -> None:
    before, now = call(f"{old} {rest} --json"), call(f"{new} {rest} --json")
    assert before.exit_code == now.exit_code == 0
    ours, theirs = json.loads(now.stdout), json.loads(before.stdout)
    assert ours.keys() == theirs.keys()
    assert f"mcudeploy {old} is deprecated: use mcudeploy {new}" in before.stderr
    assert "deprecated" not in now.stderr
    assert f"\u2502 {old} " not in call("--help").stdout and new.split()[1] in call("graph --help").stdout


def test_settings_reach_the_commands_of_a_group() -> None:
    Path("mcudeploy.toml").write_text("json = true\n")
    assert json.loads(call("graph place rects.csv --capacity 9").stdout)["used_bytes"] == 9


def test_boards_in_a_row_are_a_chain() -> None:
    line = "run net.onnx --boards host,nope"
    assert "no board 'nope'" in call(line).stderr and "use mcudeploy run --chain" in call(line).stderr
    new = call("run net.onnx --chain host,nope")
    assert "no board 'nope'" in new.stderr and "deprecated" not in new.stderr
    both = call("run net.onnx --chain host,host --boards host,host")
    assert both.exit_code == 2 and "give --chain alone" in both.stderr
    assert "--board and --chain" in call("run net.onnx --board host --chain host,host").stderr
    Path("mcudeploy.toml").write_text('boards = "host,nope"\n')
    assert "use mcudeploy run --chain" in call("run net.onnx").stderr
    Path("mcudeploy.toml").write_text('chain = "host,nope"\n')
    set_by_file = call("run net.onnx")
    assert "no board 'nope'" in set_by_file.stderr and "deprecated" not in set_by_file.stderr
    assert "--boards" not in call("run --help").stdout


def test_labels_of_run_are_classes() -> None:
    Path("names.txt").write_text("a\nb\nc\nd\n")
    line = "run net.onnx --board host --time-limit 0.2 --json"
    old, new = call(f"{line} --labels names.txt"), call(f"{line} --classes names.txt")
    assert "use mcudeploy run --classes" in old.stderr and "deprecated" not in new.stderr
    tops = [[it["label"] for it in json.loads(each.stdout)["outputs"][0]["top"]] for each in (old, new)]
    assert tops[0] == tops[1] and set(tops[0]) == set("abcd")
