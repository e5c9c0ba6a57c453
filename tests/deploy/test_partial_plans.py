"""`graph complete` and `graph export --plan`: cuts or offsets from files, completed and judged."""

from __future__ import annotations

import csv
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from models import bottlenecks

from mcudeploy.cli.main import cli


def call(*words: str | Path) -> Result:
    return CliRunner().invoke(cli, [*map(str, words)])


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bottlenecks(tmp_path_factory.mktemp("model") / "m.onnx")


@pytest.fixture(scope="module")
def plan(model: Path) -> Path:
    path = model.with_name("plan.json")
    result = call("plan", model, "--board", "host", "--time-limit", "1", "--max-overhead", "100", "-o", path)
    assert result.exit_code == 0, result.output
    assert json.loads(path.read_text())["splits"]
    return path


@pytest.fixture(scope="module")
def rectangles(model: Path, plan: Path) -> Path:
    path = model.with_name("rectangles.csv")
    result = call("graph", "export", model, "--board", "host", "--plan", plan, "-o", path)
    assert result.exit_code == 0, result.output
    return path


def completed(model: Path, to: Path, *words: str | Path) -> Result:
    return call(
        "graph", "complete", model, "--board", "host", "--time-limit", "1", *words, "-o", to, "--json"
    )


def test_the_cuts_of_a_plan_give_a_plan_with_these_cuts_that_runs(
    model: Path, plan: Path, tmp_path: Path
) -> None:
    content = json.loads(plan.read_text())
    file = tmp_path / "cuts.json"
    file.write_text(
        json.dumps({key: content[key] for key in ("splits", "streamed", "fused") if key in content})
    )
    made = tmp_path / "made.json"
    result = completed(model, made, "--cuts", file, "--max-overhead", "100")
    assert result.exit_code == 0, result.output
    assert json.loads(made.read_text())["splits"] == content["splits"]
    assert json.loads(result.stdout)["arena_bytes"] <= 1.1 * sum(content["arenas"].values())
    run = call("run", model, "--board", "host", "--plan", made, "--json")
    assert run.exit_code == 0 and json.loads(run.stdout)["verified"], run.output


def test_a_limit_that_cuts_cannot_keep_gives_the_plan_nearest_to_it(model: Path, tmp_path: Path) -> None:
    file, made = tmp_path / "cuts.json", tmp_path / "made.json"
    file.write_bytes(
        b"\xef\xbb\xbf" + json.dumps({"splits": [{"operators": ["conv_0"], "rows": 2}]}).encode()
    )
    overheads = []
    for limit in ("0", "1000"):
        result = completed(model, made, "--cuts", file, "--max-overhead", limit)
        assert result.exit_code == 0, result.output
        overheads.append(json.loads(result.stdout)["overhead_percent"])
    assert 0 < overheads[0] <= overheads[1]


def test_other_rows_are_other_cuts_and_no_cut_is_the_unsplit_plan(model: Path, tmp_path: Path) -> None:
    file, result = tmp_path / "cuts.json", tmp_path / "made.json"
    for rows in (1, 3):
        file.write_text(json.dumps({"splits": [{"operators": ["conv_0", "conv_1"], "rows": rows}]}))
        assert completed(model, result, "--cuts", file).exit_code == 0
        (written,) = json.loads(result.read_text())["splits"]
        assert written["rows"] == rows and written["operators"] == ["conv_0", "conv_1"]
    file.write_text('{"splits": []}')
    assert completed(model, result, "--cuts", file).exit_code == 0
    assert json.loads(result.read_text())["splits"] == []


@pytest.mark.parametrize(
    ("splits", "message"),
    [
        ([{"operators": ["conv_99"], "rows": 2}], "splits.0: 'conv_99' is not an operator"),
        ([{"operators": ["conv_0"], "rows": 4096}], "rows: parts have at most"),
        ([{"operators": ["conv_0"], "rows": 0}], "is not a file of cuts: splits.0.rows"),
        ([{"operators": ["conv_0", "conv_2"], "rows": 2}], "runs between its operators"),
        ([{"operators": ["conv_0"], "rows": 2}, {"operators": ["conv_0"], "rows": 3}], "two splits overlap"),
        ({}, "is not a file of cuts: splits"),
    ],
)
def test_cuts_that_cannot_be_are_one_clear_error(
    splits: Any, message: str, model: Path, tmp_path: Path
) -> None:
    (tmp_path / "cuts.json").write_text(json.dumps({"splits": splits}))
    result = completed(model, tmp_path / "made.json", "--cuts", tmp_path / "cuts.json")
    assert result.exit_code == 3 and message in json.loads(result.stdout)["error"]["message"]
    assert not (tmp_path / "made.json").exists()


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def written(path: Path, rows: list[dict[str, str]]) -> Path:
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_rectangles_are_placed_elsewhere_and_their_plan_runs(
    model: Path, plan: Path, rectangles: Path, tmp_path: Path
) -> None:
    placed, made = tmp_path / "placed.csv", tmp_path / "made.json"
    report = call(
        "graph", "place", rectangles, "--capacity", "1M", "-o", placed, "--json", "--time-limit", "1"
    )
    used = json.loads(report.stdout)["used_bytes"]
    moved = [row | {"offset": str(int(row["offset"]) + 64)} for row in table(placed)]
    result = completed(model, made, "--plan", plan, "--offsets", written(tmp_path / "moved.csv", moved))
    assert result.exit_code == 0, result.output
    assert used + 64 <= json.loads(result.stdout)["arena_bytes"] < used + 64 + 8
    assert json.loads(made.read_text())["transfers"] == []
    run = call("run", model, "--board", "host", "--plan", made, "--json")
    assert run.exit_code == 0 and json.loads(run.stdout)["verified"], run.output


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows.pop(), "is missing"),
        (lambda rows: rows.append(rows[0] | {"id": "other[0]"}), "'other[0]' is not a rectangle of the plan"),
        (lambda rows: rows[0].update(size=str(int(rows[0]["size"]) - 1)), "in the plan size"),
        (lambda rows: rows[0].update(offset=""), "has no offset"),
        (lambda rows: [row.update(offset="0") for row in rows], "the checker refuses these offsets"),
        (lambda rows: rows[0].update(offset="-8"), "line 2: offset is -8"),
    ],
)
def test_offsets_that_cannot_be_are_one_clear_error(
    change: Any, message: str, model: Path, plan: Path, rectangles: Path, tmp_path: Path
) -> None:
    rows = table(rectangles)
    change(rows)
    file = written(tmp_path / "rows.csv", rows)
    result = completed(model, tmp_path / "made.json", "--plan", plan, "--offsets", file)
    assert result.exit_code == 3 and message in json.loads(result.stdout)["error"]["message"], result.stdout
    assert not (tmp_path / "made.json").exists()


def test_stacks_and_alignments_bind_graph_place(rectangles: Path, tmp_path: Path) -> None:
    rows = table(rectangles)
    assert any(row["stack"] for row in rows)
    placed = tmp_path / "placed.csv"
    assert call("graph", "place", rectangles, "--capacity", "1M", "-o", placed).exit_code == 0
    stacked = [row for row in table(placed) if row["stack"]]
    for one, other in pairwise(stacked):
        assert int(other["offset"]) == int(one["offset"]) + int(one["size"])
    odd = written(tmp_path / "odd.csv", [row | {"alignment": "0"} for row in rows])
    result = call("graph", "place", odd, "--capacity", "1M")
    assert result.exit_code == 3 and "alignment is 0" in result.stderr


def test_cuts_and_offsets_are_given_one_at_a_time(model: Path, plan: Path, tmp_path: Path) -> None:
    for words in ((), ("--cuts", plan, "--plan", plan), ("--offsets", plan), ("--plan", plan)):
        result = completed(model, tmp_path / "made.json", *words)
        assert result.exit_code == 2 and "give --cuts FILE, or --plan PLAN" in result.stdout
