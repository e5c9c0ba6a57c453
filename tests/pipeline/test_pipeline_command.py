"""`pipeline`: the keys of its JSON, the files that it writes, and its errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from mcudeploy.cli.main import cli
from tests.pipeline.test_pipeline_models import VWW
from tests.pipeline.test_topology_file import GOOD

Invoke = Callable[[str], Result]


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Invoke:
    """Run the rest of a command line for a model on two boards."""
    (tmp_path / "t.toml").write_text(GOOD)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return lambda rest: CliRunner().invoke(cli, ["graph", "pipeline", str(VWW), *rest.split()])


def test_json_and_files(command: Invoke) -> None:
    result = command("--topology t.toml --json -o p.json --chart c.svg")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert [stage["units"] for stage in report["stages"]] == [1, 1]
    assert all(stage["ticks"] > 0 for stage in report["stages"])
    assert report["throughput_ratio"] >= 1.85 and report["latency_ratio"] < 1
    assert [region["units"] for region in report["regions"]] == [[[0, 0]], [[1, 0]]]
    assert report["modelled"] is True
    written = json.loads(Path("p.json").read_text())
    assert {key: written[key] for key in report} == report
    assert command("--topology t.toml --quiet -o p.json").exit_code == 0  # the file is from an earlier run
    titles = [it.text for it in ElementTree.parse("c.svg").iter("{http://www.w3.org/2000/svg}title")]
    assert titles[0] == "model: stages over time"
    assert [f"frame 1: {title}" in titles for title in titles[1:3]] == [True, True]  # the two stages


def test_the_cuts_of_first_are_told(command: Invoke) -> None:
    Path("t.toml").write_text(GOOD.replace("2", "16", 1))
    report = json.loads(command("--topology t.toml --mode first --json").stdout)
    (decision, *_) = report["decisions"]
    assert (decision["region"], decision["cut"]) == ({"first": 0, "end": 3, "units": 16}, 1)
    assert decision["taken"] is (
        decision["whole"] > max(decision[key] for key in ("left", "right", "transfer"))
    )


@pytest.mark.parametrize("mode", ["first", "greedy"])
def test_a_table_for_people(mode: str, command: Invoke) -> None:
    result = command(f"--topology t.toml --mode {mode} --objective latency")
    assert result.exit_code == 0, result.output
    for text in ("stage", "bottleneck", "throughput", "modelled", "frames over time", "2 of 2 x 1, nrf52840"):
        assert text in result.stdout


@pytest.mark.parametrize(
    ("rest", "code", "message"),
    [
        ("", 2, "--topology"),
        ("--topology no.toml", 2, "no.toml"),
        ("--topology t.toml --chart c.html", 2, "it is written as .svg, not as c.html"),
        ("--topology t.toml -o t.toml", 2, "is also --topology"),
        ("--topology bad.toml", 3, "bad.toml is not a topology: width: Field required"),
        ("--topology small.toml", 5, "too many"),
    ],
)
def test_failures(rest: str, code: int, message: str, command: Invoke) -> None:
    Path("bad.toml").write_text(GOOD.replace("width = 2\n", ""))
    Path("small.toml").write_text("ram_bytes = 1000\n" + GOOD)
    result = command(f"{rest} --json")
    assert (result.exit_code, json.loads(result.stdout)["error"]["exit_code"]) == (code, code), result.output
    assert message in result.stderr.replace("\n", " ")
