"""Programs of others start in one place, and the working directory brings none."""

from __future__ import annotations

import os
import re
import stat
import sys
from pathlib import Path

import pytest

import mcudeploy
from mcudeploy.common.programs import empty_folder, find_program, output_of, python_module, trusted_entries
from mcudeploy.toolchain.tools import run_tool

PACKAGE = Path(mcudeploy.__file__).parent
STARTS = re.compile(
    r"\b(subprocess\.(run|call|check_\w+)|Popen|os\.(system|exec\w+|spawn\w+|popen)|which|CDLL)\("
)


def test_one_module_starts_and_finds_programs() -> None:
    modules = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if STARTS.search(path.read_text("utf-8"))
    }
    compiled = "extensions/text/host_text.py"  # loads the library that it has compiled, by its absolute path
    assert modules == {"common/programs.py", compiled}


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, which contains a program and Python modules."""
    (tmp_path / "tool").write_text("#!/bin/sh\necho hostile\n")
    (tmp_path / "tool").chmod(0o755)
    (tmp_path / "json.py").write_text("print('hostile')\n")
    (tmp_path / "sitecustomize.py").write_text("print('hostile')\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("entries", ["", ".", "{here}", "./", "{here}/", "{here}/../{name}", ":/nowhere"])
def test_the_working_directory_has_no_programs(
    entries: str, hostile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = entries.format(here=hostile, name=hostile.name) + os.pathsep + "/usr/bin:/bin"
    monkeypatch.setenv("PATH", path)
    assert find_program("tool") is None
    assert find_program("sh") in {"/usr/bin/sh", "/bin/sh"}
    assert trusted_entries(path).startswith(("/usr/bin", "/nowhere"))
    with pytest.raises(FileNotFoundError):
        run_tool(["tool"], 10)
    assert find_program("./tool") == str(hostile / "tool")  # a path that the user gives is one


@pytest.mark.skipif(getattr(os, "geteuid", int)() == 0, reason="root may search every folder")
def test_a_folder_that_one_may_not_search_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0)
    monkeypatch.setenv("PATH", f"{closed}:{os.environ['PATH']}")
    assert find_program("sh") is not None


def test_programs_run_in_an_empty_folder(hostile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", f":{hostile}:.")
    monkeypatch.setenv("PYTHONSTARTUP", "json.py")
    script = "pwd; ls -A; echo $PYTHONPATH $PYTHONSTARTUP"
    assert run_tool(["sh", "-c", script], 10).output.strip().startswith("/")
    assert len(run_tool(["sh", "-c", script], 10).output.split()) == 1
    assert run_tool(["sh", "-c", "pwd"], 10).output.strip() != str(hostile)
    assert output_of([*python_module("json.tool"), "--help"], 20).startswith(b"usage")
    imported = run_tool([sys.executable, "-c", "import json; print(json.__file__)"], 20).output
    assert "hostile" not in imported and str(hostile) not in imported


def test_the_folder_of_a_program_is_private(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with empty_folder() as folder:
        assert stat.S_IMODE(Path(folder).stat().st_mode) == 0o700
    long = tmp_path / ("x" * 100)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    with empty_folder() as folder:
        assert len(folder) < 80  # a socket in it has a path of 107 bytes at most
