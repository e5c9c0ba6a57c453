"""The first use of compiled code is reported, a later one is not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from numba import njit
from numba.core.event import trigger_event

from mcudeploy.cli import compiling
from mcudeploy.cli.compiling import COMPILING
from mcudeploy.cli.output import Output


def test_compiling_is_told_of_once(capsys: pytest.CaptureFixture[str]) -> None:
    with Output(as_json=True, quiet=False).progress() as progress:
        progress.stage("planning m.onnx")
        njit("int64(int64)")(lambda number: number + 1)
        njit("int64(int64)")(lambda number: number + 2)
    assert capsys.readouterr() == ("", f"planning m.onnx\n{COMPILING}\n")


def test_what_is_in_the_cache_is_not_told_of(capsys: pytest.CaptureFixture[str]) -> None:
    with Output(as_json=False, quiet=False).progress() as progress:
        progress.stage("planning m.onnx")
    assert capsys.readouterr().err == "planning m.onnx\n"


def test_quiet_is_quiet_here_too(capsys: pytest.CaptureFixture[str]) -> None:
    with Output(as_json=False, quiet=True).progress(), trigger_event("numba:compile"):
        pass
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("writable", [True, False])
def test_an_installation_that_cannot_be_written_compiles_elsewhere(
    writable: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "package" / "layout").mkdir(parents=True)
    (tmp_path / "file").write_text("")
    cache = tmp_path / ("cache" if writable else "file")
    monkeypatch.setattr(compiling, "_PACKAGE", tmp_path / "package")
    monkeypatch.setattr(
        os, "access", lambda path, mode, real=os.access: "package" not in str(path) and real(path, mode)
    )
    monkeypatch.setenv("MCUDEPLOY_CACHE_DIR", str(cache))
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")  # restored afterwards
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    with compiling.compiled_code_kept():
        kept = Path(os.environ["NUMBA_CACHE_DIR"])
        assert kept.is_dir() and (kept == cache / "compiled") == writable
    assert kept.is_dir() == writable
