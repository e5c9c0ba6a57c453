"""Every way to fail ends in one message, one exit code and, with --json, one object."""

from __future__ import annotations

import errno
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO

import pytest
from click.testing import CliRunner, Result

import mcudeploy
from mcudeploy.boards.board import Board
from mcudeploy.boards.catalogue import list_boards
from mcudeploy.cli.help import leaves
from mcudeploy.cli.main import cli
from mcudeploy.common import errors, interrupts
from mcudeploy.common.files import work_folder
from mcudeploy.common.interrupts import Terminated
from mcudeploy.common.resources import cache_fault
from mcudeploy.ir.clock import LOWER_BOUND
from tests.cli.conftest import RUN, Deploy

Invoke = Callable[[str], Result]
RUN_LINE = "run m.onnx --board tiny"


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (errors.DeployError("a file cannot be written"), 1),
        (errors.UsageError("host is not flashed"), 2),
        (errors.ConfigError("plan p.json is of another model"), 3),
        (errors.ModelError("m.onnx is truncated"), 4),
        (errors.FitError("arena needs 310 KiB, sram has 128 KiB"), 5),
        (errors.BuildError("model.c:3: error"), 6),
        (errors.BoardNotFoundError("none is attached"), 7),
        (errors.PortError("/dev/ttyACM0 is taken"), 8),
        (errors.FlashError("openocd found no probe"), 9),
        (errors.ProtocolError("no answer for 2 s"), 10),
        (errors.OutputsDifferError("conv_0 differs"), 11),
        (errors.LatencyError("no plan is fast enough"), 12),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_each_stage_has_its_exit_code(
    failure: errors.DeployError, code: int, mcudeploy_command: Invoke, deploy: Deploy
) -> None:
    deploy.answers["run_model"] = failure
    result = mcudeploy_command(RUN_LINE)
    assert (result.exit_code, result.stdout) == (code, "")
    assert result.stderr.strip().splitlines()[-1] == f"error: {failure}"
    report = json.loads(mcudeploy_command(f"{RUN_LINE} --json").stdout)
    assert report == {"format": 1, "error": {"exit_code": code, "message": str(failure), "problems": []}}


def test_unsupported_nodes_are_all_listed(mcudeploy_command: Invoke, deploy: Deploy) -> None:
    problems = tuple(errors.Problem(f"node{i}", "Loop", "no such operator") for i in range(2))
    deploy.answers["plan_model"] = errors.ModelError.unsupported(problems)
    result = mcudeploy_command("plan m.onnx --board tiny --json")
    assert result.exit_code == 4
    assert [problem["node"] for problem in json.loads(result.stdout)["error"]["problems"]] == [
        "node0",
        "node1",
    ]
    assert result.stderr.splitlines() == [
        "error: 2 nodes are not supported",
        "  2 nodes (Loop): no such operator; first: 'node0'",
    ]


def test_what_would_fit_is_a_command_to_paste(folder: Path, deploy: Deploy) -> None:
    (folder / "my m.onnx").write_bytes(b"data")
    wider = "--memory sram=2048 --memory ccm=0"
    options = ("--stream-input", "--board stm32f100", wider, "mcudeploy quantize 'my m.onnx'")
    proposals = tuple(errors.Proposal(option, "an arena of 9 bytes") for option in options)
    deploy.answers["run_model"] = errors.FitError("too large", proposals)
    line = ["run", "my m.onnx", "--board=tiny", "--emulate", "--memory", "sram=64", "--no-stream-input"]
    result = CliRunner().invoke(cli, line)
    commands = (
        "mcudeploy run 'my m.onnx' --board=tiny --emulate --memory sram=64 --stream-input",
        "mcudeploy plan 'my m.onnx' --memory sram=64 --no-stream-input --board stm32f100",
        f"mcudeploy run 'my m.onnx' --board=tiny --emulate --no-stream-input {wider}",
        "mcudeploy quantize 'my m.onnx'",
    )
    told = [part for command in commands for part in ("  an arena of 9 bytes:", f"    {command}")]
    assert (result.exit_code, result.stderr.splitlines()[1:]) == (5, ["This would fit:", *told])
    proposed = json.loads(CliRunner().invoke(cli, [*line, "--json"]).stdout)["error"]["proposals"]
    assert [it["option"] for it in proposed] == list(options) and "--json" in proposed[0]["command"]


@pytest.mark.parametrize(("rooms", "code"), [("tiny", 0), ("none", 5)])
def test_of_several_boards_one_that_fits_is_enough(
    rooms: str, code: int, mcudeploy_command: Invoke, deploy: Deploy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcudeploy.boards.catalogue.list_boards", list_boards)

    def planned(_: Path, board: Board, *__: object) -> object:
        if board.name != rooms:
            raise errors.FitError("too large", (errors.Proposal("--stream-input", "fits"),))
        return {"board": "tiny"}

    deploy.answers["plan_model"] = planned
    result = mcudeploy_command("plan m.onnx --board microbit,tiny --json")
    assert result.exit_code == code
    boards = json.loads(result.stdout)["boards"]
    assert [it["fits"] for it in boards] == [False, code == 0]
    assert "mcudeploy plan m.onnx --json --board microbit --stream-input" in boards[0]["message"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("run m.onnx", "--board"),
        ("run missing.onnx --board tiny", "missing.onnx"),
        ("run m.onnx --board tiny --ram-limit 12parsecs", "12parsecs"),
        ("run m.onnx --board tiny --seed -1", "--seed"),
        ("run m.onnx --board tiny --time-limit 0", "--time-limit"),
        ("run m.onnx --board tiny --time-limit nan", "--time-limit"),
        ("run m.onnx --board tiny --time-limit abc", "'abc' is not a number"),
        ("run m.onnx --board tiny --optimize smallest", "--optimize"),
        ("run m.onnx --board tiny --stream-inputs", "--stream-inputs"),
        ("build m.onnx --board tiny", "--output"),
        ("run m.onnx --board tiny --emulate --port /dev/ttyACM0", "tiny runs in the emulator"),
        ("plan m.onnx --board tiny --memory sram=1k --memory sram=2k", "--memory sram is given twice"),
        ("plan m.onnx --board tiny --placement tags", "add --no-split"),
        ("build m.onnx --board tiny -o m.onnx/sub", "is not a folder that files can be written to"),
        ("build m.onnx --board tiny -o m.onnx", "m.onnx"),
        ("frobnicate", "frobnicate"),
    ],
)
def test_usage_errors_exit_2(line: str, message: str, mcudeploy_command: Invoke, deploy: Deploy) -> None:
    result = mcudeploy_command(line)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    report = json.loads(mcudeploy_command(f"{line} --json").stdout)
    assert report["error"]["exit_code"] == 2


def test_a_folder_that_is_a_broken_link_is_refused_before_planning(
    mcudeploy_command: Invoke, deploy: Deploy
) -> None:
    Path("lib").symlink_to("nowhere")
    result = mcudeploy_command("build m.onnx --board tiny -o lib")
    assert (result.exit_code, "lib is a link to 'nowhere'" in result.stderr) == (2, True), result.stderr


@pytest.mark.parametrize(
    ("board", "message"),
    [
        ("host", "host is this machine"),
        ("mps2-an386", "mps2-an386 runs in the emulator"),
        ("stm32f405 --emulate", "stm32f405 runs in the emulator"),
    ],
)
def test_a_port_without_a_real_board_exits_2(board: str, message: str, mcudeploy_command: Invoke) -> None:
    result = mcudeploy_command(f"measure m.onnx --board {board} --port /dev/ttyACM0")
    assert result.exit_code == 2
    assert message in result.stderr


def test_an_unknown_board_exits_7(mcudeploy_command: Invoke, deploy: Deploy) -> None:
    result = mcudeploy_command("run m.onnx --board nope")
    assert result.exit_code == 7
    assert "no board 'nope'" in result.stderr


@pytest.mark.parametrize("line", ["plan m.onnx", "check m.onnx", "doctor", "run m.onnx"])
def test_an_empty_board_name_is_not_a_board(line: str, folder: Path) -> None:
    result = CliRunner().invoke(cli, [*line.split(), "--board", ""])
    assert result.exit_code == 7 and "no board ''" in result.stderr


@pytest.mark.parametrize("path", ["", "a\0b"])
@pytest.mark.parametrize("line", ["build m.onnx --board tiny -o", "plan m.onnx --board tiny -o"])
def test_what_is_not_a_path_exits_2(line: str, path: str, folder: Path, deploy: Deploy) -> None:
    assert CliRunner().invoke(cli, [*line.split(), path]).exit_code == 2
    assert not deploy.calls


def test_control_c_exits_130_with_one_line(mcudeploy_command: Invoke, deploy: Deploy) -> None:
    deploy.answers["run_model"] = KeyboardInterrupt()
    result = mcudeploy_command(f"{RUN_LINE} --json")
    assert result.exit_code == 130
    assert result.stderr.strip() == "error: interrupted"
    assert json.loads(result.stdout)["error"]["exit_code"] == 130


@pytest.mark.usefixtures("default_signals")
@pytest.mark.parametrize(
    ("option", "name", "code", "message"),
    [
        ("", "SIGINT", 130, "interrupted"),
        ("--json", "SIGINT", 130, "interrupted"),
        ("--json", "SIGTERM", 143, "terminated"),
        ("--json", "SIGHUP", 129, "ended with its terminal"),
    ],
)
def test_a_signal_while_importing_ends_with_one_line(
    option: str, name: str, code: int, message: str, folder: Path
) -> None:
    (folder / "rich_click.py").write_text(f"import os, signal\nos.kill(os.getpid(), signal.{name})\n")
    result = subprocess.run(
        [sys.executable, "-m", "mcudeploy", "boards", *option.split()],
        env=os.environ | {"PYTHONPATH": f"{folder}:{Path(mcudeploy.__file__).parents[1]}"},
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=60,
        check=False,
    )
    assert (result.returncode, result.stderr) == (code, f"error: {message}\n")
    assert (json.loads(result.stdout)["error"]["exit_code"] == code) if option else result.stdout == ""


def test_a_defect_is_one_line_unless_the_traceback_is_wanted(
    mcudeploy_command: Invoke, deploy: Deploy
) -> None:
    deploy.answers["run_model"] = KeyError("conv_0")
    result = mcudeploy_command(RUN_LINE)
    assert result.exit_code == 1
    assert len(result.stderr.strip().splitlines()) == 1
    assert "KeyError" in result.stderr
    assert "--traceback" in result.stderr
    assert "Traceback (most recent call last)" in mcudeploy_command(f"{RUN_LINE} --traceback").stderr


def test_a_full_disk_names_the_file(mcudeploy_command: Invoke, deploy: Deploy) -> None:
    deploy.answers["build_models"] = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "out/weights.c")
    result = mcudeploy_command("build m.onnx --board tiny -o out")
    assert result.exit_code == 1
    assert result.stderr.strip().splitlines()[-1] == "error: out/weights.c: No space left on device"


def _process(line: str, stdout: IO[str] | int, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from mcudeploy.cli.main import main; main()", *line.split()],
        env=os.environ | {"PYTHONPATH": str(Path(mcudeploy.__file__).parents[1])},
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        timeout=60,
        check=False,
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("line", ["boards", "boards --json", "nope --json"])
def test_a_full_stdout_ends_without_a_traceback(line: str, folder: Path) -> None:
    with Path("/dev/full").open("w") as full:
        result = _process(line, full, folder)
    assert result.returncode in (1, 2)
    said = "No such command" if "nope" in line else "error: stdout: No space left on device\n"
    assert said in result.stderr
    assert "Traceback" not in result.stderr
    assert "Exception ignored" not in result.stderr


@pytest.mark.parametrize("line", ["boards", "boards --json", "nope --json"])
def test_a_closed_pipe_ends_without_a_traceback(line: str, folder: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        result = _process(line, write, folder)
    finally:
        os.close(write)
    assert result.returncode in (1, 2)
    assert "nope" in line or result.stderr == ""
    assert "Traceback" not in result.stderr
    assert "Exception ignored" not in result.stderr


@pytest.mark.parametrize(
    "name", ["[red]x[/red]", "[/]", "a\nb", "\x1b[31mred\x1b[0m", "\x9b31m", "\u202egpj", ":smile:"]
)
def test_text_of_a_model_neither_styles_nor_steers(
    name: str, mcudeploy_command: Invoke, deploy: Deploy
) -> None:
    shown = name.encode("unicode_escape").decode()
    deploy.answers["run_model"] = RUN | {"operators": [RUN["operators"][0] | {"name": name}]}
    result = mcudeploy_command(RUN_LINE)
    assert shown in result.stdout
    deploy.answers["run_model"] = errors.ModelError.unsupported((errors.Problem(name, name, name),))
    result = mcudeploy_command(f"{RUN_LINE} --json")
    assert f"  {shown} ({shown}): {shown}\n" in result.stderr
    assert json.loads(result.stdout)["error"]["problems"][0]["node"] == name
    assert result.stdout.isascii()


def test_numbers_that_json_cannot_say_become_null(mcudeploy_command: Invoke, deploy: Deploy) -> None:
    deploy.answers["run_model"] = RUN | {"max_abs_error": float("nan")}
    assert json.loads(mcudeploy_command(f"{RUN_LINE} --json").stdout)["max_abs_error"] is None


def _shell(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a script of the shell, in which $0 is Python."""
    return subprocess.run(
        ["/bin/sh", "-c", script, sys.executable],
        env=os.environ | {"PYTHONPATH": str(Path(mcudeploy.__file__).parents[1])},
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("line", ["boards", "boards --json", "nope"])
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_end_without_a_traceback(line: str, closed: str, folder: Path) -> None:
    result = _shell(f'"$0" -m mcudeploy {line} {closed}', folder)
    assert result.returncode == (2 if line == "nope" else 0)
    assert "Traceback" not in result.stderr
    assert bool(result.stdout) == (line != "nope" and ">&-" not in closed.replace("2>&-", ""))


def test_a_deleted_working_directory_is_named(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    result = _shell(f'rmdir {gone} && exec "$0" -m mcudeploy boards', gone)
    assert result.returncode == 3 and "the working directory does not exist any more" in result.stderr


@pytest.mark.parametrize("place", ["m.onnx", "--plan p.json m.onnx"])
def test_a_folder_that_one_may_not_search_is_named(
    place: str, mcudeploy_command: Invoke, deploy: Deploy, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(path: Path, **options: bool) -> os.stat_result:
        if path.name in place.split():
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return stat(path, **options)

    stat = Path.stat
    monkeypatch.setattr(Path, "stat", closed)
    result = mcudeploy_command(f"plan {place} --board tiny")
    assert result.exit_code == 2 and "cannot be read: Permission denied" in result.stderr


def test_termination_ends_in_one_object_too(mcudeploy_command: Invoke, deploy: Deploy) -> None:
    deploy.answers["run_model"] = Terminated(143)
    result = mcudeploy_command(f"{RUN_LINE} --json")
    assert result.exit_code == 143
    assert json.loads(result.stdout)["error"] == {"exit_code": 143, "message": "terminated", "problems": []}


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        RuntimeError("std::bad_alloc"),
        ImportError("libhighs.so.1: failed to map segment from shared object"),
    ],
)
def test_want_of_memory_is_not_a_defect(
    error: Exception, mcudeploy_command: Invoke, deploy: Deploy, monkeypatch: pytest.MonkeyPatch
) -> None:
    deploy.answers["run_model"] = error
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    result = mcudeploy_command(RUN_LINE)
    assert (result.exit_code, result.stderr.splitlines()[-1][:24]) == (1, "error: memory ran out: e")
    outer = OSError("Could not find/load shared object file")
    outer.__cause__ = error
    deploy.answers["run_model"] = outer
    monkeypatch.setattr(resource, "getrlimit", lambda _: (300 * 2**20, resource.RLIM_INFINITY))
    said = mcudeploy_command(RUN_LINE).stderr
    assert "this process may take 300 MiB (`ulimit -v`)" in said and "defect" not in said


def test_a_file_beyond_a_limit_is_named_with_the_way_out(
    mcudeploy_command: Invoke, deploy: Deploy, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(OSError, match="File too large") as caught, work_folder("mcudeploy-") as folder:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    deploy.answers["run_model"] = caught.value
    monkeypatch.setattr(resource, "getrlimit", lambda _: (512, resource.RLIM_INFINITY))
    way = "A file of this process may have 512 bytes (`ulimit -f`): raise that limit"
    result = mcudeploy_command(RUN_LINE)
    assert result.stderr.splitlines()[-1] == f"error: {folder}: File too large. {way}"
    assert cache_fault(caught.value, folder) == f"cannot write {folder}: File too large. {way}."


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_every_stream_takes_every_character(encoding: str, folder: Path, deploy: Deploy) -> None:
    latency = {"value": 1, "milliseconds": 1.0, "milliseconds_by": LOWER_BOUND}
    fit = {"board": "m\u1f00", "core": "", "fits": True, "way": "split", "options": "", "latency": latency}
    sizes = dict.fromkeys(("ram_bytes", "board_ram_bytes", "flash_bytes", "board_flash_bytes"), 9)
    deploy.answers["fit_model"] = {"boards": [fit | sizes | {"flash_free_bytes": 10**6}]}
    result = CliRunner(charset=encoding).invoke(cli, ["fit", str(folder / "m.onnx")])
    assert result.exit_code == 0, result.output
    assert ">= 1.0 ms" in result.stdout and r"m\u1f00" in result.stdout
    for name in leaves(cli):
        assert CliRunner(charset=encoding).invoke(cli, [*name.split(), "--help"]).exit_code == 0


def test_what_fails_as_a_signal_unwinds_is_not_an_error_of_its_own(
    mcudeploy_command: Invoke, deploy: Deploy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interrupts._STATE, "exit_code", interrupts.HUNG_UP)
    deploy.answers["run_model"] = OSError(errno.EIO, "Input/output error")  # the terminal is gone
    result = mcudeploy_command(RUN_LINE)
    assert (result.exit_code, result.stderr) == (129, "error: ended with its terminal\n")
