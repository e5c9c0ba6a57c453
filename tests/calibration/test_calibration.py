"""Calibration: kernels timed on a board with a known factor, on an emulator that stands for a board, and the
estimates that follow.
"""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner
from models import fully_connected

from mcudeploy.boards.board import Board
from mcudeploy.boards.catalogue import load_board
from mcudeploy.cli.main import cli
from mcudeploy.commands.commands import plan_model
from mcudeploy.common.errors import ConfigError, DeployError, UsageError
from mcudeploy.common.resources import resource_dir
from mcudeploy.costs.estimate import board_costs, estimated, modelled_costs, unit_of_estimates
from mcudeploy.costs.factors import KernelFactors, Kind, factors_of
from mcudeploy.device.replies import Ticks
from mcudeploy.device.target import Target
from mcudeploy.extensions.calibration import calibrating, factors_file
from mcudeploy.extensions.calibration.kernel_tiles import KernelTile, kernel_tiles
from mcudeploy.planner.files.plan_cache import search_key
from mcudeploy.planner.plan_options import Options

FACTORS: dict[Kind, float] = {
    "convolution": 1.31, "pointwise": 1.25, "depthwise": 2.0, "dense": 1.4, "elementwise": 0.9,
}  # fmt: skip
TICKS_HZ = 1_000_000_000


@dataclass
class FakeTimer:
    """A chip on which kernels take their estimates times the factors of their kinds; a tick is 1 ns."""

    board: Board
    scale: float = 1.0

    def __post_init__(self) -> None:
        self.tiles = kernel_tiles(self.board)

    def time(self, graph: Any, operator: Any, call: Any, rows: Any) -> Ticks:
        (tile,) = (
            it
            for it in self.tiles
            if (it.call.cost_name, shapes(it.graph)) == (call.cost_name, shapes(graph))
        )
        cycles = self.scale * FACTORS[tile.kind] * tile.estimate
        return Ticks(round(cycles * TICKS_HZ / self.board.clock_hz))


def shapes(graph: Any) -> list[Any]:
    return [(it.shape, graph.operators[0].op) for it in graph.tensors.values()]


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No calibration of the user, and none of another test."""
    monkeypatch.setenv("MCUDEPLOY_CACHE_DIR", str(tmp_path / "cache"))
    calibrating._warn_of_other_kernels.cache_clear()


def fake(monkeypatch: pytest.MonkeyPatch, timer: Any) -> None:
    """Put a timer in the place of the firmware and the board."""

    @contextmanager
    def opened(*_: object) -> Iterator[object]:
        yield SimpleNamespace(session=SimpleNamespace(info=SimpleNamespace(ticks_hz=TICKS_HZ)))

    monkeypatch.setattr(calibrating, "require_port", lambda _: "/dev/null")
    monkeypatch.setattr(calibrating, "build_bench", lambda *_: None)
    monkeypatch.setattr(calibrating, "open_device", opened)
    monkeypatch.setattr(calibrating, "KernelTable", SimpleNamespace(of=lambda *_: None))
    monkeypatch.setattr(calibrating, "TileTimer", lambda *_, **__: timer)
    monkeypatch.setattr(Target, "title", "a fake chip")


@pytest.mark.parametrize("name", ["stm32f405", "stm32h743", "esp32c3", "rp2040", "stm32f100"])
def test_known_factors_come_back_and_estimates_contain_them(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On cores with and without a cycle model."""
    board = load_board(name)
    fake(monkeypatch, FakeTimer(board))
    assert factors_of(board) is None
    before, key = modelled_costs(board), search_key("model", board, Options())
    found = calibrating.calibrate(Target(board)).factors
    assert found.kinds == pytest.approx(FACTORS, rel=0.002)
    assert min(FACTORS.values()) < found.whole < max(FACTORS.values())
    limited = board.limited({board.memories[0].name: 1000}, 9000).with_dma_everywhere()
    for each in (board, limited):
        assert factors_of(each) == found
    costs = board_costs(board)
    assert (costs.unit, unit_of_estimates(board)) == ("cycles", "cycles (calibrated)")
    for tile in kernel_tiles(board):
        counts = dict.fromkeys(before.kernels[tile.call.cost_name], 2.0)
        ticks = costs.ticks(tile.call.cost_name, counts)
        assert ticks == pytest.approx(
            found.of(tile.call.cost_name) * before.ticks(tile.call.cost_name, counts)
        )
        assert costs.flash_waits(tile.call, counts, tile.rows) == pytest.approx(
            found.of(tile.call.cost_name) * before.flash_waits(tile.call, counts, tile.rows)
        )
    assert search_key("model", board, Options()) != key, "plans of the model's estimates would be recalled"
    if before.unit == "cycles":
        assert board_costs(board, "instructions").factors is None, "counts need no factor"


def test_the_last_calibration_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    board = load_board("stm32f405")
    for scale in (1.0, 1.5):
        fake(monkeypatch, FakeTimer(board, scale))
        assert calibrating.calibrate(Target(board)).factors == factors_of(board)
    found = factors_of(board)
    assert found is not None
    assert found.kinds["dense"] == pytest.approx(1.5 * 1.4, rel=0.002)


def test_factors_of_other_kernels_are_not_used(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    board = load_board("stm32f405")
    fake(monkeypatch, FakeTimer(board))
    calibrating.calibrate(Target(board))
    faster = board.model_copy(update={"clock_hz": 2 * board.clock_hz})
    assert factors_of(faster) is None
    assert "stm32f405 was calibrated with other kernels" in caplog.text
    assert factors_of(board) is not None


def test_tiles_that_do_not_fit_are_left_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    board = load_board("stm32f100")

    class Small(FakeTimer):
        def time(self, graph: Any, operator: Any, call: Any, rows: Any) -> Ticks:
            if call.kernel == "add_s8":
                raise ValueError("operator does not fit the arena for timing")
            return super().time(graph, operator, call, rows)

    fake(monkeypatch, Small(board))
    assert calibrating.calibrate(Target(board)).factors.kinds == pytest.approx(FACTORS, rel=0.002)
    assert "add_s8 is not timed: operator does not fit" in caplog.text


def test_only_a_chip_is_calibrated(monkeypatch: pytest.MonkeyPatch) -> None:
    board = load_board("stm32f405")
    with pytest.raises(UsageError, match="host is this computer"):
        calibrating.calibrate(Target(load_board("host")))
    for target in (Target(load_board("mps2-an386")), Target(board, emulate=True)):
        with pytest.raises(
            UsageError, match=r"counts instructions and has no clock of a chip.* would be 1\."
        ):
            calibrating.calibrate(target)
    fake(monkeypatch, SimpleNamespace(time=lambda *_: Ticks(0)))
    with pytest.raises(DeployError, match="took no time on stm32f405: its counter stands still"):
        calibrating.calibrate(Target(board))
    fake(monkeypatch, FakeTimer(board, 1e4))
    with pytest.raises(DeployError, match="over 1000 for each estimated one: its counter"):
        calibrating.calibrate(Target(board))

    def no_room(*_: object) -> Ticks:
        raise ValueError("operator does not fit the arena for timing")

    fake(monkeypatch, SimpleNamespace(time=no_room))
    with pytest.raises(DeployError, match="no kernel fits the memory of stm32f405"):
        calibrating.calibrate(Target(board))
    assert factors_of(board) is None


def test_the_command_and_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    board, path = load_board("stm32f405"), tmp_path / "factors.json"
    fake(monkeypatch, FakeTimer(board))
    printed = CliRunner().invoke(cli, ["calibrate", "--board", "stm32f405"])
    assert printed.exit_code == 0, printed.output
    assert re.search(r"depthwise +2\.00", printed.stdout)
    assert "estimates for stm32f405 contain the factors" in printed.stdout
    for _ in range(2):  # its own file may be written again
        result = CliRunner().invoke(cli, ["calibrate", "--board", "stm32f405", "-o", str(path), "--json"])
    report = json.loads(result.stdout)
    assert {it["kind"]: round(it["factor"], 2) for it in report["kinds"]} == FACTORS
    assert all(len(it["tiles"]) > 1 for it in report["kinds"])
    (tmp_path / "cache" / "measurements.sqlite").unlink()
    assert factors_of(board) is None
    monkeypatch.setattr(factors_file, "measured_file", lambda _: path)
    contributed = factors_of(board)
    assert contributed is not None
    assert contributed.kinds == pytest.approx(FACTORS, rel=0.002)


FILE = {
    "board": "stm32f405", "core": "cortex-m4", "clock_hz": 168_000_000, "estimates": "cycles",
    "version": "0.1.0", "compiler": "gcc 12", "factors": {"dense": 1.4}, "whole": 1.3,
}  # fmt: skip


def text_of(**changes: object) -> str:
    return json.dumps(FILE | changes)


@pytest.mark.parametrize(("text", "said"), [
    (text_of(factor=1.0), "factor: Extra inputs are not permitted"),
    (text_of(factors={"dense": float("nan")}), "factors.dense: Input should be a finite number"),
    (text_of(factors={"dense": 0}), "factors.dense: Input should be greater than 0"),
    (text_of(factors={"dense": "1.3"}), "factors.dense: Input should be a valid number"),
    (text_of(factors={"matrix": 1.0}), "factors.matrix.*: Input should be 'convolution'"),
    (text_of(factors={}), "factors: Dictionary should have at least 1 item"),
    (text_of(whole=-1.5), "whole: Input should be greater than 0"),
    (text_of(whole=1e300), "whole: Input should be less than or equal to 1000"),
    (text_of(whole=float("inf")), "whole: Input should be a finite number|whole: .*1000"),
    (text_of(compiler="\x1b[2J"), "compiler: .*without control characters"),
    (text_of(board="stm32f411"), "board is stm32f411, but has to be stm32f405 for stm32f405: calibrate"),
    (text_of(clock_hz=1), "clock_hz is 1, but has to be 168000000 for stm32f405"),
    (text_of(estimates="instructions"), "estimates is instructions, but has to be cycles for stm32f405"),
    ("[]", "the file: Input should be an object"),
    ('{"board": 1', "the file: Invalid JSON"),
    ("\xff" * 9, "the file: Invalid JSON"),
])  # fmt: skip
def test_what_is_no_file_of_factors(
    text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "stm32f405.json"
    path.write_text(text, "utf-8")
    monkeypatch.setattr(factors_file, "measured_file", lambda _: path)
    with pytest.raises(ConfigError, match=said) as caught:
        board_costs(load_board("stm32f405"))
    assert str(path) in str(caught.value)


def test_shipped_files_are_of_their_boards() -> None:
    for path in (resource_dir("boards") / "measured").glob("*.json"):
        assert factors_file.factors_of_file(load_board(path.stem.replace("_", ":"))) is not None


def test_boards_says_which_have_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def listed(*options: str) -> str:
        return CliRunner().invoke(cli, ["boards", *options]).stdout

    assert "measured factors: of no board yet" in listed()
    path = tmp_path / "file.json"
    path.write_text("{}")
    other = tmp_path / "none.json"
    monkeypatch.setattr(
        "mcudeploy.boards.catalogue.measured_file",
        lambda board: path if board.name == "stm32f405" else other,
    )
    assert "measured factors: stm32f405;" in listed()
    boards = json.loads(listed("--json"))["boards"]
    assert [it["name"] for it in boards if it["calibrated"]] == ["stm32f405"]


def test_plans_and_reports_say_that_they_are_calibrated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "m.onnx"
    fully_connected(model, (16, 12, 4), quantised=True)
    command = ["plan", str(model), "--board", "stm32f405", "--time-limit", "0.1", "--no-split"]

    def planned(*options: str) -> str:
        result = CliRunner().invoke(cli, [*command, *options])
        assert result.exit_code == 0, result.output
        return result.stdout

    before = json.loads(planned("--json"))
    assert before["estimates"]["calibrated"] is False
    monkeypatch.setattr("mcudeploy.costs.estimate.factors_of", lambda _: KernelFactors({}, 3.0))
    after = json.loads(planned("--json"))
    assert after["estimates"] | {"calibrated": True} == after["estimates"]
    assert after["estimated_latency"]["unit"] == "cycles (calibrated)"
    assert after["estimated_latency"]["milliseconds_by"] == "calibration"
    assert 2.5 < after["estimated_latency"]["value"] / before["estimated_latency"]["value"] <= 3.0
    text = planned()
    assert "calibrated by times of kernels" in text
    assert re.search(r"latency +[\d.]+ ms, calibrated", text)
    ranked = CliRunner().invoke(cli, ["fit", str(model), "--boards", "stm32f405,microbit"])
    assert re.search("Latencies of [a-z0-9]+, [a-z0-9]+ are calibrated", ranked.stdout)


def test_kernels_and_cuts_are_chosen_by_the_chip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dense layer has kernels of two kinds; the slower one on the chip is not taken."""
    board, path = load_board("stm32f405"), tmp_path / "m.onnx"
    fully_connected(path, (64, 32), quantised=True)
    for slow, kernel in (("pointwise", "conv2d_s8_full"), ("dense", "conv2d_s8_1x1_dual")):
        found = KernelFactors({slow: 3.0}, 1.0)
        monkeypatch.setattr("mcudeploy.costs.estimate.factors_of", lambda _, found=found: found)
        made = plan_model(path, board, Options(split=False))
        (call,) = (it for name, it in made.model.calls.items() if it.kernel.startswith("conv2d"))
        assert call.kernel == kernel


def test_an_emulator_at_a_port_passes_as_a_board(tmp_path: Path) -> None:
    """The whole way: firmware, flasher, serial line, times. One clock an instruction, as its clock is set."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = int(taken.getsockname()[1])
    emulated = load_board("mps2-an386")
    text = (resource_dir("boards") / "mps2-an386.toml").read_text("utf-8")
    text = re.sub(r"\[emulator\]\n(.+\n)*", "", text).replace("[timer.emulated]", "[timer.hardware]")
    assert emulated.emulator is not None
    clock_hz = 10**9 >> emulated.emulator.icount_shift
    text = re.sub("clock_hz = .*", f"clock_hz = {clock_hz}", text).replace("family_default = true\n", "")
    starter, started = tmp_path / "start.py", tmp_path / "pid"
    starter.write_text(STARTER)
    line = json.dumps([sys.executable, str(starter), str(port), "{elf}", str(started)])
    text = text.replace('"mps2-an386"', '"mine"') + f'\n[[flasher]]\ntool = "command"\nline = {line}\n'
    path = tmp_path / "mine.toml"
    path.write_text(f"patience = 5\n{text}")  # a busy machine is not a failure
    words = ["--board", str(path), "--trust-board", "--port", f"socket://127.0.0.1:{port}", "--json"]
    try:
        result = CliRunner().invoke(cli, ["calibrate", *words])
    finally:
        if started.exists():
            subprocess.run(["kill", started.read_text()], check=False)
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert {it["kind"] for it in report["kinds"]} == set(FACTORS)
    of_instructions = modelled_costs(emulated, "instructions")
    for tile, shown in zip(kernel_tiles(emulated), tiles_of(report), strict=True):
        instructions = estimate_of(tile, of_instructions)
        assert shown["cycles"] == pytest.approx(instructions, rel=0.05), shown["kernel"]
    assert factors_of(load_board(str(path))) is not None


def tiles_of(report: dict[str, Any]) -> list[dict[str, Any]]:
    """The tiles of a report, in the order in which they were timed."""
    known = {(it["kernel"], *it["shape"]): it for kind in report["kinds"] for it in kind["tiles"]}
    order = [
        (it.call.cost_name, *it.graph.tensors["x0"].shape) for it in kernel_tiles(load_board("mps2-an386"))
    ]
    return [known[key] for key in order]


def estimate_of(tile: KernelTile, costs: Any) -> float:
    return estimated(costs)(tile.graph, ())(tile.operator, tile.call, tile.rows)


STARTER = """
import pathlib, subprocess, sys
port, elf, pid = sys.argv[1:]
machine = subprocess.Popen(
    ["qemu-system-arm", "-M", "mps2-an386", "-kernel", elf, "-icount", "shift=7", "-display", "none",
     "-monitor", "none", "-nodefaults", "-serial", f"tcp:127.0.0.1:{port},server=on,wait=on"],
    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
pathlib.Path(pid).write_text(str(machine.pid))
"""
"""The flasher of the board: it starts QEMU with the firmware."""
