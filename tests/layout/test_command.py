"""`graph place` and its files."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mcudeploy.cli.main import cli

EXAMPLE = "id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\nb3,0,9,4\nb4,9,21,4\nb5,0,21,4\n"


def run(folder: Path, text: str, *arguments: str) -> Result:
    path = folder / "rects.csv"
    path.write_text(text, "utf-8")
    return CliRunner().invoke(cli, ["graph", "place", str(path), *arguments])


def test_offsets_and_report(tmp_path: Path) -> None:
    target = tmp_path / "offsets.csv"
    result = run(tmp_path, EXAMPLE, "--capacity", "12", "-o", str(target), "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["used_bytes"] == report["lower_bound_bytes"] == report["capacity"] == 12
    assert report["status"] == "optimal"
    rows = list(csv.DictReader(target.open(encoding="utf-8")))
    assert [row["id"] for row in rows] == ["b1", "b2", "b3", "b4", "b5"]
    for one in rows:
        for two in rows:
            if (
                one["id"] < two["id"]
                and int(one["lower"]) < int(two["upper"])
                and int(two["lower"]) < int(one["upper"])
            ):
                assert abs(int(one["offset"]) - int(two["offset"])) >= 4


def test_offsets_that_cannot_be_written_are_one_clear_error(tmp_path: Path) -> None:
    target = tmp_path / "nowhere" / "offsets.csv"
    result = run(tmp_path, EXAMPLE, "--capacity", "12", "-o", str(target))
    assert result.exit_code == 2
    assert "nowhere is not a folder" in " ".join(result.output.split())


def test_what_does_not_fit_says_what_is_missing(tmp_path: Path) -> None:
    result = run(tmp_path, EXAMPLE, "--capacity", "9")
    assert result.exit_code == 5
    assert "3 missing" in result.stderr


def test_a_file_without_rectangles_needs_nothing(tmp_path: Path) -> None:
    result = run(tmp_path, "id,lower,upper,size\n", "--capacity", "1", "--json")
    assert json.loads(result.stdout)["used_bytes"] == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "columns id,lower,upper,size"),
        ("id,lower,upper\na,0,1\n", "size is missing"),
        ("id,lower,upper,size\na,0,1\n", "line 2 has 3 cells"),
        ("id,lower,upper,size\na,0,x,4\n", "line 2: upper is 'x'"),
        ("id,lower,upper,size\na,3,3,4\n", "must be above lower"),
        ("id,lower,upper,size\na,0,3,0\n", "size is 0"),
        ("id,lower,upper,size\na,0,3,-4\n", "size is -4"),
        ("id,lower,upper,size\na,0,3,4\na,0,3,4\n", "line 3: an earlier line has the id a"),
        ("id,lower,upper,size\na,0,99999999999999999999,4\n", "below 1099511627776"),
    ],
)
def test_bad_files_are_one_clear_error(tmp_path: Path, text: str, message: str) -> None:
    result = run(tmp_path, text, "--capacity", "12")
    assert result.exit_code == 3
    assert message in result.stderr
