"""A session of commands on this system, or as another one would run it.

`python -m tests.other_host SYSTEM FOLDER` runs it; `compare FOLDER FOLDER` compares two sessions.
What POSIX alone has is hidden: modules, signals, functions. The answers to which system this is are replaced
after the modules of others are imported: those choose their code then.
"""

from __future__ import annotations

import contextlib
import ctypes
import filecmp
import os
import pathlib
import select
import shutil
import signal
import socket
import subprocess
import sys
import warnings
from importlib import import_module
from pathlib import Path

WINDOWS_LACKS = {
    signal: ("SIGHUP", "SIGALRM", "SIGKILL", "SIGUSR1", "setitimer", "alarm", "ITIMER_REAL", "pthread_kill"),
    os: (
        *("killpg", "getpgid", "setsid", "fork", "geteuid", "getuid", "getgroups", "sync", "pwrite", "pread"),
        *("set_blocking", "uname", "mkfifo", "chown", "openpty", "nice", "wait", "posix_spawn"),
    ),
    socket: ("AF_UNIX", "send_fds"),
    select: ("poll", "epoll"),
}
HIDDEN = ("fcntl", "resource", "grp", "pwd", "termios", "tty", "pty", "syslog", "curses")
OF_OTHERS = (
    *("concurrent.futures.thread", "multiprocessing.pool", "sqlite3", "uuid", "onnx", "onnx.reference"),
    *("onnxruntime", "onnxruntime.quantization", "jinja2", "pydantic", "rich_click", "rich.console"),
    *("rich.table", "rich.progress", "serial", "serial.tools.list_ports", "serial.rfc2217", "PIL.Image"),
    *("elftools.elf.elffile", "numba", "ortools.sat.python.cp_model"),
)
TOOLS = ("gcc", "as", "ld")
"""The only programs of a session: a C compiler of this computer."""
EXAMPLE = Path(__file__).resolve().parents[1] / "examples/vww/model.onnx"
SAME_EVERYWHERE = ("example.json", "plan.json", "api.json", "lib", "project")
"""Files that do not depend on the last bit of a float operation, which differs between C libraries."""
COMMANDS = (
    "plan small.onnx --board stm32f405 --time-limit 0.1 -o plan.json",
    "plan example.onnx --board stm32f405 --no-split -o example.json",
    "build example.onnx --board stm32f405 --plan example.json --library-only --no-verify -o lib",
)
MORE = (
    "--help",
    "init project small.onnx --board stm32f405 --plan plan.json",
    "check example.onnx",
    "fit small.onnx --boards stm32f405",
    "quantize small.onnx --data samples.npy -o int8.onnx --method minmax",
)


class Kernel32:
    """Functions of Windows that succeed and do nothing: here, programs end by themselves."""

    def __init__(self, *_: object, **__: object) -> None:
        self.CreateJobObjectW = self.SetInformationJobObject = self.AssignProcessToJobObject = self._succeed
        self.TerminateJobObject = self.CloseHandle = self.LockFileEx = self.UnlockFileEx = self._succeed
        self.GetVolumeInformationW = self._succeed

    @staticmethod
    def _succeed(*_: object) -> int:
        return 1


def become(system: str) -> None:
    """Change this interpreter as far as the standard library allows; `here` and `native` change nothing."""
    if system == "macos":
        sys.platform = "darwin"
    if system == "windows":
        for name in HIDDEN:
            sys.modules[name] = None  # type: ignore[assignment]
        for module, names in WINDOWS_LACKS.items():
            for name in names:
                if hasattr(module, name):
                    delattr(module, name)
        pathlib.WindowsPath = pathlib.PosixPath  # type: ignore[misc]  # which Path() takes by os.name
        sys.platform, os.name = "win32", "nt"
        ctypes.WinDLL = Kernel32  # type: ignore[attr-defined]
        subprocess.CREATE_NEW_PROCESS_GROUP = subprocess.Popen._handle = 0  # type: ignore[attr-defined]


def write_models(folder: Path) -> None:
    """Write the models and samples of the commands."""
    import numpy as np  # noqa: PLC0415

    from tests.networks.small import IMAGE, classifier  # noqa: PLC0415

    folder.mkdir(parents=True, exist_ok=True)
    classifier(folder / "small.onnx")
    (folder / "example.onnx").write_bytes(EXAMPLE.read_bytes())
    np.save(folder / "samples.npy", np.random.default_rng(0).normal(size=(12, *IMAGE)).astype(np.float32))


def link_tools(folder: Path) -> None:
    """Let PATH have nothing but the tools, by their names on POSIX and on Windows."""
    folder.mkdir()
    for name in TOOLS:
        for link in (name, f"{name}.exe"):
            (folder / link).symlink_to(str(shutil.which(name)))
    os.environ["PATH"] = str(folder)


def run_session(folder: Path, commands: tuple[str, ...]) -> None:
    """Run commands and the Python API: their files and outputs are in `folder` afterwards."""
    import mcudeploy  # noqa: PLC0415
    from mcudeploy.cli.main import cli  # noqa: PLC0415
    from mcudeploy.common import interrupts  # noqa: PLC0415

    os.chdir(folder)
    interrupts.listen()
    for number, line in enumerate(commands):
        with Path(f"output-{number}.txt").open("w", encoding="utf-8", newline="\n") as stream:
            try:
                with contextlib.redirect_stdout(stream):
                    cli.main(line.split())
            except SystemExit as end:
                print(f"{line}: exit code {end.code}", file=stream)
    mcudeploy.plan(Path("small.onnx"), "stm32f405", time_limit=0.1).save(Path("api.json"))


def differences(one: Path, other: Path) -> list[str]:
    """The files below two folders, or the two files, that are not the same bytes."""
    if not (one.is_dir() and other.is_dir()):
        same = one.is_file() and other.is_file() and filecmp.cmp(one, other, shallow=False)
        return [] if same else [str(other)]
    names = {it.name for folder in (one, other) for it in folder.iterdir()}
    return [each for name in sorted(names) for each in differences(one / name, other / name)]


if __name__ == "__main__":
    if sys.argv[1] == "compare":
        one, other = map(Path, sys.argv[2:])
        unequal = [each for name in SAME_EVERYWHERE for each in differences(one / name, other / name)]
        sys.exit(f"other bytes in {', '.join(unequal)}" if unequal else 0)
    warnings.filterwarnings("error", category=EncodingWarning, module="mcudeploy")
    write_models(Path(sys.argv[2]))
    if sys.argv[1] != "native":
        link_tools(Path(sys.argv[2], "tools"))
    for each in OF_OTHERS:
        with contextlib.suppress(ImportError):
            import_module(each)
    become(sys.argv[1])
    run_session(Path(sys.argv[2]), (*COMMANDS, *(() if sys.argv[1] == "macos" else MORE)))
