"""`build --dossier`: its files say what was checked, and the second checker needs nothing else."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from models import fully_connected, quantised_convolutions

from mcudeploy.boards.catalogue import load_board
from mcudeploy.cli.main import cli
from mcudeploy.commands.commands import plan_model
from mcudeploy.extensions.dossier.flash_constants import traced_constants
from mcudeploy.extensions.dossier.static_analysis import accepted
from mcudeploy.planner.plan_options import Options


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a build: a library and its dossier."""
    folder = tmp_path_factory.mktemp("built")
    model = quantised_convolutions(folder / "m.onnx")
    result = invoke(
        f"build {model} --board mps2-an386 --time-limit 1 --bounds -o {folder}/lib --dossier {folder}/dossier"
    )
    assert result == (0, ""), result
    return folder


def invoke(line: str) -> tuple[int, str]:
    """The exit code of a command line, and its errors."""
    result = CliRunner().invoke(cli, line.split())
    return result.exit_code, result.stderr if result.exit_code else ""


def test_the_second_checker_runs_without_mcudeploy(built: Path) -> None:
    command = [sys.executable, "-I", "-S", "check_plan.py", "plan.json", "lib"]
    done = subprocess.run(command, cwd=built / "dossier", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split(":")[0]) == (0, "accepted"), done.stdout
    path = built / "dossier/plan.json"
    text = path.read_text("utf-8")
    try:
        plan = json.loads(text)
        plan["steps"] = plan["steps"][::-1]
        path.write_text(json.dumps(plan), "utf-8")
        done = subprocess.run(command, cwd=built / "dossier", capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout.split(":")[0]) == (1, "refused")
        path.write_text("{", "utf-8")
        done = subprocess.run(command, cwd=built / "dossier", capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (2, "")
    finally:
        path.write_text(text, "utf-8")


def test_the_second_checker_reads_the_calls_of_a_short_schedule(tmp_path: Path) -> None:
    model, folder = fully_connected(tmp_path / "m.onnx", (8, 6, 4), quantised=False), tmp_path / "dossier"
    line = f"build {model} --board mps2-an386 --time-limit 1 -o {tmp_path}/lib --dossier {folder}"
    assert invoke(line) == (0, "")
    calls = [f"mcud_run_whole(&operators[{number}]);" for number in range(2)]
    program = next(it for it in (folder / "lib").rglob("*.c") if calls[0] in it.read_text("utf-8"))
    command = [sys.executable, "-I", "-S", "check_plan.py", "plan.json", "lib"]
    for call in calls:  # in the end none is left
        program.write_text(program.read_text("utf-8").replace(call, ""), "utf-8")
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (1, "refused: calls differ from the schedule\n")
    assert "mcud_run_whole(" not in program.read_text("utf-8")


def test_its_library_is_the_one_that_was_written(built: Path) -> None:
    written = {path.relative_to(built / "lib"): path for path in (built / "lib").rglob("*.[ch]")}
    assert written
    for name, path in written.items():
        assert (built / "dossier/lib" / name).read_bytes() == path.read_bytes()


def test_sums_are_those_of_the_files(built: Path) -> None:
    lines = (built / "dossier/SHA256SUMS").read_text("utf-8").splitlines()
    sums = {name: digest for digest, name in (line.split("  ") for line in lines)}
    assert {"index.html", "plan.json", "check_plan.py", "firmware.elf", "sbom.cdx.json"} <= set(sums)
    for name, digest in sums.items():
        assert hashlib.sha256((built / "dossier" / name).read_bytes()).hexdigest() == digest


def test_the_page_states_what_was_checked(built: Path) -> None:
    page = (built / "dossier/index.html").read_text("utf-8")
    done = subprocess.run(
        [sys.executable, "check_plan.py", "plan.json", "lib"],
        cwd=built / "dossier",
        capture_output=True,
        text=True,
        check=True,
    )
    network = json.loads((built / "dossier/network.json").read_text("utf-8"))
    assert done.stdout.strip() in page and "20 drawn inputs" in page
    assert all(f"<td>{it['name']}</td>" in page for it in network["operators"])
    assert all(f"<td>M_{each}_MAX_INSTRUCTIONS</td>" in page for each in ("RUN", "STEP"))
    assert (built / "dossier/lib/m_bounds.md").read_text() == (built / "lib/m_bounds.md").read_text()
    assert ("cppcheck is not installed" in page) == (shutil.which("cppcheck") is None)


@pytest.mark.skipif(shutil.which("cppcheck") is None, reason="cppcheck is not installed")
def test_every_deviation_has_its_reason(built: Path) -> None:
    page = (built / "dossier/index.html").read_text("utf-8")
    assert "None of" in page and accepted()[("misra", "misra-c2012-11.5", "*")] in page


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ("--no-verify", "leave out --no-verify"),
        ("--arena shared", "leave out --for and --arena"),
        ("--for cmake", "leave out --for and --arena"),
    ],
)
def test_libraries_that_it_cannot_describe(options: str, error: str, built: Path, tmp_path: Path) -> None:
    model = next(built.glob("*.onnx"))
    line = f"build {model} --board mps2-an386 -o {tmp_path}/lib --dossier {tmp_path}/dossier {options}"
    code, text = invoke(line)
    assert (code, error in text, (tmp_path / "lib").exists()) == (2, True, False), text


def test_a_folder_inside_of_the_library_is_refused(built: Path, tmp_path: Path) -> None:
    model = next(built.glob("*.onnx"))
    code, text = invoke(f"build {model} --board mps2-an386 -o {tmp_path}/lib --dossier {tmp_path}/lib/papers")
    assert (code, "name separate folders" in text) == (2, True), text


def test_files_in_the_way_leave_no_library(built: Path, tmp_path: Path) -> None:
    """A dossier that cannot be written is refused before the library is."""
    papers = tmp_path / "papers"
    papers.mkdir()
    (papers / "index.html").write_text("mine", "utf-8")
    model = next(built.glob("*.onnx"))
    code, text = invoke(f"build {model} --board mps2-an386 -o {tmp_path}/lib --dossier {papers}")
    assert (code, "index.html" in text, (tmp_path / "lib").exists()) == (2, True, False), text
    assert (papers / "index.html").read_text("utf-8") == "mine"


def test_a_program_of_several_cores_leaves_no_library(built: Path, tmp_path: Path) -> None:
    model = next(built.glob("*.onnx"))
    line = f"build {model} --board mps2-an521 --parallel 2 -o {tmp_path}/lib --dossier {tmp_path}/dossier"
    code, text = invoke(line)
    assert (code, "--parallel" in text, (tmp_path / "lib").exists()) == (2, True, False), text


def test_an_arena_of_whole_cache_lines_is_that_of_the_plan(built: Path, tmp_path: Path) -> None:
    model = next(built.glob("*.onnx"))
    line = f"build {model} --board stm32h743 --library-only --time-limit 1 -o {tmp_path}/lib"
    assert invoke(f"{line} --dossier {tmp_path}/dossier") == (0, "")
    planned = json.loads((tmp_path / "dossier" / "plan.json").read_text("utf-8"))["arenas"]
    text = (tmp_path / "lib" / "src" / "m.c").read_text("utf-8")
    sizes = {name: int(size) for size, name in re.findall(r"bytes\[(\d+)\];[^}]*\} arena_(\w+)", text)}
    assert sizes.keys() == planned.keys() and any(0 < sizes[it] - planned[it] < 32 for it in sizes)


def test_all_readers_of_a_shared_constant_are_named(tmp_path: Path) -> None:
    weights, bias = np.ones((4, 4, 1, 1), np.float32), np.ones(4, np.float32)
    nodes = [
        onnx.helper.make_node("Conv", ["x", "w", "b"], ["m"], "first"),
        onnx.helper.make_node("Conv", ["m", "w", "b"], ["y"], "second"),
    ]
    io = [onnx.helper.make_tensor_value_info(it, onnx.TensorProto.FLOAT, [1, 4, 5, 5]) for it in "xy"]
    arrays = [onnx.numpy_helper.from_array(it, name) for it, name in ((weights, "w"), (bias, "b"))]
    graph = onnx.helper.make_graph(nodes, "g", io[:1], io[1:], arrays)
    onnx.save(onnx.helper.make_model(graph), tmp_path / "m.onnx")
    deployment = plan_model(tmp_path / "m.onnx", load_board("mps2-an386"), Options(split=False))
    constants = traced_constants(deployment, None)
    assert sorted(len(it.readers) for it in constants) == [2, 2]
    assert all(len({reader.partition(".")[0] for reader in it.readers}) == 2 for it in constants)
