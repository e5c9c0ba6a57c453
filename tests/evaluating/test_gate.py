"""`gate`: budgets from a file, held against runs; its table, Markdown and JUnit XML."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import pytest
import yaml
from click.testing import CliRunner

from mcudeploy.cli.main import cli
from mcudeploy.common.errors import ConfigError
from mcudeploy.extensions.evaluation.gate import read_budgets
from tests.networks.evaluated import Recogniser, write_recogniser


@pytest.fixture(scope="module")
def recogniser(tmp_path_factory: pytest.TempPathFactory) -> Recogniser:
    return write_recogniser(tmp_path_factory.mktemp("models"))


def gate(recogniser: Recogniser, text: str, *options: str, code: int = 0) -> dict[str, Any]:
    (recogniser.folder / "mcudeploy.toml").write_text(text)
    arguments = ["gate", str(recogniser.folder / "mcudeploy.toml"), "--json", "--quiet", *options]
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == code, result.output
    report: dict[str, Any] = json.loads(result.stdout)
    return report


ROOT = Path(__file__).resolve().parents[2]
INT8 = """
[[gate]]
model = "int8.onnx"
board = "mps2-an386"
options = {split = false}
"""


def figures(result: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {it["figure"]: it for it in result["figures"]}


def test_budgets_that_are_kept_and_exceeded(recogniser: Recogniser, tmp_path: Path) -> None:
    text = (
        f'{INT8}ram = "64k"\nlatency_ms = 1000\ndata = "test.npz"\nfloat = "float.onnx"\nmin_accuracy = 50\n'
        f'{INT8}name = "the <small> | one"\narena = 8\nflash = "1M"\n'
    )
    markdown, junit = tmp_path / "summary.md", tmp_path / "gate.xml"
    report = gate(recogniser, text, "--markdown", str(markdown), "--junit", str(junit), code=13)
    first, second = report["results"]
    assert first["passed"] and first["name"] == "int8.onnx on mps2-an386"
    assert figures(first)["ram"] == {**figures(first)["ram"], "limit": 65536, "passed": True}
    assert figures(first)["accuracy"]["value"] > 50
    assert not second["passed"] and not figures(second)["arena"]["passed"] and second["faults"] == []
    assert figures(second)["flash"]["passed"] and "accuracy" not in figures(second)

    arena = figures(second)["arena"]["value"]
    assert f"**{arena:,.0f} B / 8 B**" in markdown.read_text()
    assert r"the \<small\> \| one" in markdown.read_text()
    suite = Xml.parse(junit).getroot()
    assert suite.get("tests") == "2" and suite.get("failures") == "1"
    (failure,) = suite.iter("failure")
    assert failure.get("message") == f"arena {arena:,.0f} B / 8 B"
    assert f"arena is {arena:,.0f} B, {arena - 8:,.0f} B above the limit" in markdown.read_text()
    assert gate(recogniser, text.replace("arena = 8\n", ""))["passed"]


def test_one_error_does_not_end_the_others(recogniser: Recogniser) -> None:
    (recogniser.folder / "damaged.onnx").write_bytes(b"nothing")
    text = INT8.replace("int8.onnx", "damaged.onnx") + INT8 + INT8.replace("an386", "an999")
    report = gate(recogniser, text, code=13)
    assert [it["passed"] for it in report["results"]] == [False, True, False]
    assert "damaged.onnx" in report["results"][0]["faults"][0]
    assert "no board 'mps2-an999'" in report["results"][2]["faults"][0]


def test_the_code_of_a_board_without_firmware_runs_on_an_emulated_one(recogniser: Recogniser) -> None:
    (it,) = gate(recogniser, INT8.replace("mps2-an386", "stm32h747"), code=0)["results"]
    assert it["passed"]


def test_a_failing_budget_names_ways_out_that_keep_its_limits(recogniser: Recogniser) -> None:
    model = str(recogniser.folder / "int8.onnx")
    plan = CliRunner().invoke(cli, ["plan", model, "--board", "mps2-an386", "--no-split", "--json"])
    arena = json.loads(plan.stdout)["arena_bytes"]
    (it,) = gate(recogniser, f"{INT8}arena = {arena - 1}\n", code=13)["results"]
    assert it["ways"] and not any("-limit" in way for way in it["ways"])


def test_figures_are_compared_with_a_stored_report_and_with_a_revision_of_git(
    recogniser: Recogniser, tmp_path: Path
) -> None:
    file = recogniser.folder / "mcudeploy.toml"
    stored = tmp_path / "base.json"
    report = gate(recogniser, INT8)
    flash = figures(report["results"][0])["flash"]
    assert report["against"] is flash["base"] is None and report["results"][0]["ways"] == []
    flash["value"] -= 1204
    stored.write_text(json.dumps(report))
    done = CliRunner().invoke(cli, ["gate", str(file), "--against", str(stored)])
    assert done.exit_code == 0 and "(+1,204 B)" in done.stdout and "(+0 B)" in done.stdout
    assert f"In brackets: the change against {stored}." in done.stdout

    def git(*arguments: str) -> None:
        names = ("-c", "user.name=a", "-c", "user.email=a@example.com")
        subprocess.run(["git", "-C", str(recogniser.folder), *names, *arguments], check=True)

    git("init", "-q")
    git("add", "mcudeploy.toml", "int8.onnx")
    git("commit", "-qm", "base")
    git("tag", "v1")
    (it,) = gate(recogniser, f"{INT8}arena = '1M'\n", "--against", "v1")["results"]
    assert figures(it)["arena"]["base"] == figures(it)["arena"]["value"]
    for base in ("v2", "--output=x"):
        message = gate(recogniser, INT8, f"--against={base}", code=2)["error"]["message"]
        assert "nor a revision of git with mcudeploy.toml" in message
    assert not (recogniser.folder / "x").exists()
    assert "--against '': neither" in gate(recogniser, INT8, "--against=", code=2)["error"]["message"]
    assert (
        r"--against 'a\nb': neither" in gate(recogniser, INT8, "--against=a\nb", code=2)["error"]["message"]
    )

    (recogniser.folder / "link").symlink_to("/dev/null")
    git("add", "link")
    git("commit", "-qm", "a link that leads out")
    (it,) = gate(recogniser, INT8, "--against", "HEAD")["results"]
    assert figures(it)["arena"]["base"] == figures(it)["arena"]["value"]


@pytest.mark.parametrize(
    "text",
    [
        '{"results": [3]}',
        "[" * 200_000,
        *(
            f'{{"results": [{{"name": "a", "figures": [{{"figure": "ram", "unit": "B", "value": {it}}}]}}]}}'
            for it in ("NaN", "1e308", "1e400", "1" * 400, "-1", '"3"', '3, "unit": "quarks"')
        ),
    ],
)
def test_a_wrong_base_is_not_a_report(text: str, recogniser: Recogniser, tmp_path: Path) -> None:
    (tmp_path / "base.json").write_text(text)
    message = gate(recogniser, INT8, "--against", str(tmp_path / "base.json"), code=2)["error"]["message"]
    assert message.endswith("base.json' is not a report of `mcudeploy gate --json`")


def test_an_error_of_the_search_for_ways_leaves_the_figures(
    recogniser: Recogniser, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ConfigError("no plan")

    monkeypatch.setattr("mcudeploy.extensions.evaluation.gate.plan_model", fail)
    (it,) = gate(recogniser, f"{INT8}arena = 8\n", code=13)["results"]
    assert figures(it)["arena"]["value"] > 8 and it["ways"] == it["faults"] == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no [[gate]] table"),
        ("gate = 3", "has no [[gate]] table"),
        ("[[gate]]\nmodel = 3", "[[gate]] 1: model: "),
        (INT8 + "rma = 3\n", "rma: Extra inputs are not permitted"),
        (INT8 + 'ram = "64 quarks"\n', "ram: "),
        (INT8 + "ram = 0\n", "ram: Input should be greater than 0"),
        (INT8 + "latency_ms = inf\n", "latency_ms: Input should be a finite number"),
        (INT8 + "min_accuracy = 90\n", "an accuracy needs `data`"),
        (INT8 + "samples = 9\n", "an accuracy needs `data`"),
        (INT8 + 'data = "test.npz"\nmax_drop = 1\n', "max_drop: `float` is missing"),
        (INT8.replace("int8.onnx", "gone.onnx"), "there is no "),
        (INT8.replace("split =", "splt ="), "1: options: no such option: splt; did you mean 'split'?"),
        (INT8.replace("split = false", "max_overhead = 'low'"), "[[gate]] 1: options: max_overhead='low': "),
        ("[[gate]", "is not valid TOML"),
    ],
)
def test_a_wrong_file_is_one_error(text: str, message: str, recogniser: Recogniser) -> None:
    assert message in gate(recogniser, text, code=3)["error"]["message"]


def test_paths_are_relative_to_the_file(recogniser: Recogniser) -> None:
    text = INT8.replace('"mps2-an386"', '"./own.toml"').replace("split = false", 'plan = "plan.json"')
    (recogniser.folder / "mcudeploy.toml").write_text(text)
    (budget,) = read_budgets(recogniser.folder / "mcudeploy.toml")
    assert budget.title == "int8.onnx on ./own.toml" and budget.board == str(recogniser.folder / "own.toml")
    assert budget.options["plan"] == recogniser.folder / "plan.json"


def test_other_commands_read_the_settings_beside_the_budgets(
    recogniser: Recogniser, monkeypatch: pytest.MonkeyPatch
) -> None:
    (recogniser.folder / "mcudeploy.toml").write_text(f'board = "stm32f405"\njson = true\n{INT8}')
    monkeypatch.chdir(recogniser.folder)
    result = CliRunner().invoke(cli, ["plan", "int8.onnx", "--no-split"])
    assert json.loads(result.stdout)["board"] == "stm32f405"


def test_the_action_ends_as_the_gate_does(recogniser: Recogniser, tmp_path: Path) -> None:
    """The last step of the action, run by bash as GitHub does."""
    action = yaml.safe_load((ROOT / ".github" / "actions" / "gate" / "action.yml").read_text())
    step = action["runs"]["steps"][-1]
    for limit, code in (("1M", 0), ("8", 13)):
        (recogniser.folder / "budgets.toml").write_text(f'{INT8}arena = "{limit}"\n')
        summary = tmp_path / f"{code}.md"
        environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "FILE": str(recogniser.folder / "budgets.toml"),
            "RUNNER_TEMP": str(tmp_path),
            "GITHUB_STEP_SUMMARY": str(summary),
        }
        ended = subprocess.run(["bash", "-e", "-c", step["run"]], env=environment, check=False)
        assert ended.returncode == code and "int8.onnx" in summary.read_text()
