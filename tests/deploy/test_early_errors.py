"""Faults of a command's files or ports are reported before it plans, builds or flashes."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from models import fully_connected

from mcudeploy.boards.catalogue import load_board
from mcudeploy.commands import commands as api
from mcudeploy.common.errors import (
    BoardNotFoundError,
    FitError,
    ModelError,
    PortError,
    UsageError,
)
from mcudeploy.device.target import Target, open_device
from mcudeploy.ir.graph import DType, Graph, GraphIO, Quantization, Tensor
from mcudeploy.planner.plan_options import Options
from mcudeploy.report import as_json
from mcudeploy.verify.samples import load_samples
from tests import reports

HOST = Target(load_board("host"))


@pytest.mark.parametrize("content", [b"", b"\x89PNG", b"\x93NUMPY\x01\x00\x05", "objects", "shape"])
def test_wrong_inputs_are_known_before_the_search(
    content: bytes | str, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(api, "plan_model")
    path = tmp_path / "in.npy"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        np.save(path, np.array([{}]) if content == "objects" else np.zeros(3, np.int8), allow_pickle=True)
    with pytest.raises(UsageError, match=r"in\.npy (is empty|is damaged|has the shape)") as found:
        reports.run_model(model, HOST, Options(), inputs=[path], expected=[])
    assert "pickle" not in str(found.value)


def test_flashing_leaves_no_port_but_that_of_a_board() -> None:
    with pytest.raises(UsageError, match="nothing is flashed"):
        reports.flash_board(None, HOST, Options(), dry_run=False)
    report = reports.flash_board(None, Target(load_board("mps2-an386")), Options(), dry_run=False)
    assert report["port"] is None and report["firmware_hash"]


def test_what_does_not_fit_says_by_how_much(model: Path) -> None:
    need = as_json(api.plan_model(model, HOST.board, Options()))["arena_bytes"]
    with pytest.raises(FitError, match=rf"limit is 1,000: {need - 1000} too many"):
        api.plan_model(model, HOST.board, Options(ram_limit=1000))


def test_weights_without_room_are_known_before_the_search(tmp_path: Path) -> None:
    path = fully_connected(tmp_path / "wide.onnx", (256, 1024, 1024, 64), quantised=False)
    target = Target(load_board("mps2-an386"))
    for options in (Options(), Options(split=False)):
        with pytest.raises(FitError, match=r"weights need 5,[\d,]+ bytes, the flash of mps2-an386 has"):
            reports.tune_model(path, [target], options)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("dtype", [DType.INT8, DType.FLOAT32])
def test_an_input_that_is_not_finite_names_the_file(tmp_path: Path, value: float, dtype: DType) -> None:
    order = np.arange(4, dtype=np.int32)
    io = GraphIO("x", "x", (1, 4), "float32", order)
    tensor = Tensor("x", (1, 1, 4), dtype, Quantization(0.1, 0) if dtype is DType.INT8 else None)
    graph = Graph("g", {"x": tensor}, (), (io,), (io,), {})
    np.save(tmp_path / "nan.npy", np.array([[0, value, 0, 0]], np.float32))
    with pytest.raises(UsageError, match=rf"nan\.npy has .* not finite: {value} at element 1 of 'x'\. "):
        load_samples(graph, [tmp_path / "nan.npy"], [], 0)


def test_a_port_that_is_not_there_is_known_before_flashing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("mcudeploy.device.target.flash", lambda *_: pytest.fail("flashed"))
    target = Target(load_board("stm32f405"), port=str(tmp_path / "ttyACM9"))
    firmware = SimpleNamespace(elf=tmp_path / "x.elf", hash=1)
    with pytest.raises(PortError, match="no such port"), open_device(target, firmware):
        pass


@pytest.mark.parametrize("command", ["run", "measure", "flash", "tune"])
def test_a_port_is_looked_for_before_anything_else(
    command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def start(target: Target) -> object:
        model, options = tmp_path / "missing.onnx", Options()  # the first thing that planning would say
        if command == "run":
            return reports.run_model(model, target, options, inputs=[], expected=[])
        if command == "measure":
            return reports.measure_model(model, target, options)
        if command == "flash":
            return reports.flash_board(model, target, options, dry_run=False)
        return reports.tune_model(model, [target], options)

    board = load_board("stm32f405")
    with pytest.raises(PortError, match="no such port"):
        start(Target(board, port=str(tmp_path / "ttyACM9")))
    monkeypatch.setattr("mcudeploy.toolchain.ports.list_ports.comports", list)
    with pytest.raises(BoardNotFoundError, match="no stm32f405 is attached"):
        start(Target(board))
    with pytest.raises(UsageError, match="stm32f411 cannot be emulated: connect it"):
        start(Target(load_board("stm32f411"), emulate=True))
    with pytest.raises(ModelError):
        start(Target(board, emulate=True))
