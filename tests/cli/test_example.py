"""The shipped example through the real commands, on this computer and on an emulated board."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from models import fully_connected, quantised_convolutions

from mcudeploy.cli.main import cli
from tests.cli.conftest import BUILD, CHECK, FLASH, PLAN, RUN

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "vww"
MODEL = str(EXAMPLE / "model.onnx")
SAMPLE = ["--input", str(EXAMPLE / "person.npy"), "--expected", str(EXAMPLE / "person_expected.npy")]

Call = Callable[..., Result]


@pytest.fixture
def call(folder: Path) -> Call:
    return lambda *arguments: CliRunner().invoke(cli, arguments)


def _report(result: Result, exit_code: int = 0) -> dict[str, Any]:
    assert result.exit_code == exit_code, result.stderr
    return json.loads(result.stdout)


def test_check(call: Call) -> None:
    report = _report(call("check", MODEL, "--board", "stm32f405", "--json"))
    assert CHECK.keys() <= report.keys()
    assert (report["supported"], report["fits"], report["macs"]) == (True, True, 3766476)


def test_check_of_a_model_that_runs_again_and_again(call: Call, folder: Path) -> None:
    line = ["check", str(quantised_convolutions(folder / "small.onnx")), "--board", "stm32f405"]
    report = _report(call(*line, "--period", "200", "--json"))
    assert (report["period_ms"], report["macs_per_second"]) == (200, 5 * report["macs"])
    latency = report["plans"]["unsplit"]["latency"]
    assert latency["milliseconds"] == 1000 * latency["value"] / latency["clock_hz"]
    assert " ms of 200 ms" in call(*line, "--period", "200").stdout
    assert call("check", MODEL, "--period", "nan").exit_code == 2


def test_a_board_that_is_too_small_is_told_by_how_much(call: Call, folder: Path) -> None:
    wide = str(fully_connected(folder / "wide.onnx", (16_000, 2), quantised=True))
    report = _report(call("plan", wide, "--board", "stm32f100", "--time-limit", "0.5", "--json"), 5)
    assert "too many" in report["error"]["message"]
    assert call("check", wide, "--board", "stm32f100").exit_code == 5


@pytest.mark.parametrize("board", ["host", "stm32f405"])
def test_run_verifies_the_picture_with_a_stored_plan(board: str, call: Call) -> None:
    planned = _report(call("plan", MODEL, "--board", board, "--time-limit", "1", "-o", "plan.json", "--json"))
    options = ["--board", board, "--emulate", "--plan", "plan.json"]
    report = _report(call("run", MODEL, *options, *SAMPLE, "--json"))
    assert PLAN.keys() <= planned.keys(), "what other tests answer for `plan` is what it answers"
    assert RUN.keys() <= report.keys()
    assert RUN["operators"][0].keys() <= report["operators"][0].keys()
    assert {name: type(value) for name, value in PLAN.items()} == {name: type(planned[name]) for name in PLAN}
    assert report["verified"]
    assert report["mismatches"] == 0
    assert report["arena_bytes"] == planned["arena_bytes"]
    assert sum(operator["macs"] for operator in report["operators"]) == 3766476
    assert abs(sum(operator["share"] for operator in report["operators"]) - 1) < 1e-9
    assert 0 < report["stack_bytes"] < report["total_ram_bytes"]
    assert call("run", MODEL, "--board", "microbit", "--emulate", "--plan", "plan.json").exit_code == 3


def test_a_wrong_expectation_exits_11(call: Call, folder: Path) -> None:
    np.save(folder / "wrong.npy", -np.load(EXAMPLE / "person_expected.npy"))
    files = [*SAMPLE[:2], "--expected", "wrong.npy"]
    result = call("run", MODEL, "--board", "host", "--no-split", *files, "--json")
    report = _report(result, 11)
    assert not report["verified"]
    assert report["reason"]


def test_the_built_library_finds_the_person(call: Call, folder: Path) -> None:
    report = _report(
        call("build", MODEL, "--board", "host", "--no-split", "-o", "out", "--name", "person", "--json")
    )
    assert BUILD.keys() <= report.keys()
    assert all(Path(file).is_file() for file in report["files"])
    program = """
        #include <stdio.h>
        #include "person.h"
        int main(void)
        {
            if (fread(person_input(), 1, PERSON_INPUT_COUNT, stdin) != PERSON_INPUT_COUNT) {
                return 1;
            }
            person_run();
            return fwrite(person_output(), 1, PERSON_OUTPUT_COUNT, stdout) != PERSON_OUTPUT_COUNT;
        }
    """
    (folder / "main.c").write_text(program)
    sources = [*map(str, (folder / "out" / "src").glob("*.c")), "main.c"]
    compile_ = ["cc", "-std=c99", "-O2", "-Wall", "-Wextra", "-Werror", "-Iout/include", "-Iout/src"]
    subprocess.run([*compile_, *sources, "-o", "person", "-lm"], check=True, timeout=120)
    picture = np.load(EXAMPLE / "person.npy")
    done = subprocess.run(["./person"], input=picture.tobytes(), capture_output=True, check=True, timeout=60)
    expected = np.load(EXAMPLE / "person_expected.npy")
    assert done.stdout == expected.tobytes()
    assert expected.ravel()[1] > expected.ravel()[0]


def test_a_dry_run_shows_the_command(call: Call) -> None:
    report = _report(call("flash", "--board", "stm32f405", MODEL, "--no-split", "--dry-run", "--json"))
    assert [line[0] for line in report["commands"]] == [report["flasher"]] == ["openocd"]
    assert report.keys() == {"format", *FLASH}


def test_a_model_that_is_cut_off_exits_4(call: Call, folder: Path) -> None:
    (folder / "cut.onnx").write_bytes(Path(MODEL).read_bytes()[:3000])
    for command in (["check"], ["run", "--board", "host"]):
        report = _report(call(*command, "cut.onnx", "--json"), 4)
        assert "cut.onnx" in report["error"]["message"]
