"""Other operating systems: one package knows them, and without what POSIX has, results are the same bytes."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import mcudeploy
from mcudeploy import common
from mcudeploy.boards.catalogue import load_board
from mcudeploy.common import system
from mcudeploy.common.errors import BuildError
from mcudeploy.execution.cycles import plugin
from mcudeploy.toolchain import firmware_build
from mcudeploy.toolchain.native_sections import native_sections
from tests.other_host import differences

ROOT = Path(mcudeploy.__file__).parent
SYSTEM = "common/system/"
ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="stands for other systems on Linux only")
MODULES = re.compile(
    r"^\s*(?:import|from) (?:fcntl|resource|grp|pwd|termios|tty|pty|select|syslog|posix|nt|msvcrt|winreg"
    r"|_winapi|ctypes|platform)\b",
    re.M,
)
NAMES = re.compile(
    r"\b(?:os\.(?:name|uname|fork|kill|killpg|gete?uid|getgroups|set_blocking|sync|pwrite|pread|setsid|mkfifo)"
    r"|sys\.platform|socket\.AF_UNIX|signal\.(?:SIGKILL|SIGHUP|SIGALRM|setitimer|alarm))\b"
)
TEXT_FILE = re.compile(r"write_text\(|\bopen\(.*\"[wax]t?\"")


def specific(path: Path) -> list[str]:
    """The imports and names in a file that not every system has, or that ask which one it is."""
    text = path.read_text("utf-8")
    return [*MODULES.findall(text), *NAMES.findall(text)]


def test_one_package_knows_operating_systems() -> None:
    asking = {path.relative_to(ROOT).as_posix(): specific(path) for path in ROOT.rglob("*.py")}
    knowing = {name for name, found in asking.items() if found}
    assert {f"{SYSTEM}{name}.py" for name in ("__init__", "processes", "kernel32")} <= knowing
    calls_c = "extensions/text/host_text.py"  # by ctypes, for types that are the same everywhere
    assert {name for name in knowing if not name.startswith(SYSTEM)} == {calls_c}


def _writes_text(call: ast.Call) -> bool:
    mode = next((it.value for it in call.args if isinstance(it, ast.Constant)), "r")
    is_open = isinstance(call.func, ast.Attribute | ast.Name) and ast.unparse(call.func).endswith("open")
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    return name == "write_text" or (is_open and re.fullmatch("[wax]t?", str(mode)) is not None)


def test_written_text_has_the_same_line_ends_everywhere() -> None:
    texts = [path.read_text("utf-8") for path in ROOT.rglob("*.py")]
    lacking = [
        ast.unparse(node)
        for text in texts
        if TEXT_FILE.search(text)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        and _writes_text(node)
        and "newline" not in {it.arg for it in node.keywords}
        and not re.match(r"open\(os.devnull|archive\.open", ast.unparse(node))
    ]
    assert lacking == []


@ON_LINUX
def test_sessions_write_the_same_bytes_everywhere(tmp_path: Path) -> None:
    """Check, fit, plan, quantize, build, init with a verified host program, and the Python API."""
    flags = ("-X", "warn_default_encoding", "-W", "ignore::EncodingWarning")  # ours are errors there
    systems = ("here", "windows", "macos")
    running = [
        subprocess.Popen(
            [sys.executable, *flags, "-m", "tests.other_host", system, str(tmp_path / system)],
            cwd=ROOT.parent,
            env=os.environ | {"MCUDEPLOY_CACHE_DIR": str(tmp_path / f"cache-{system}")},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for system in systems
    ]
    for process in running:
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
    here, windows, macos = (tmp_path / it for it in systems)
    ended = {it.name: it.read_text("utf-8").splitlines()[-1] for it in here.glob("output-*.txt")}
    assert len(ended) == 8 and all(it.endswith("exit code 0") for it in ended.values()), ended
    assert {"lib", "project", "int8.onnx", "api.json"} <= {it.name for it in windows.iterdir()}
    hints = ("sudo apt-get install", "winget install", "brew install")
    for folder, hint in zip((here, windows, macos), hints, strict=True):  # of a compiler that is absent
        assert hint in (folder / "output-2.txt").read_text("utf-8")
        (folder / "output-2.txt").unlink()
    assert differences(here, windows) == []
    for path in macos.iterdir():
        assert differences(here / path.name, path) == []


def as_on(platform: str, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """The modules that know systems, by name, as they are on another one."""
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(common, "system", system)
    for name in [it for it in sys.modules if it.startswith(system.__name__)]:
        monkeypatch.delitem(sys.modules, name)
    return lambda name: import_module(f"{system.__name__}.{name}")


@ON_LINUX
def test_programs_of_windows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    windows = as_on("win32", monkeypatch)
    tools, ports, streams = map(windows, ("host_tools", "serial_ports", "streams"))
    assert tools.program_names("openocd") == ("openocd.exe", "openocd.com")
    assert tools.program_names("qemu.exe")[0] == "qemu.exe"
    assert "/a/firmware.elf" in tools.program_names("/a/firmware.elf")
    assert "/a/tool.bat" not in tools.program_names("/a/tool.bat")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    assert windows("folders").cache_folder() == tmp_path
    assert tools.install_command("dfu-util") == "install dfu-util by hand and add its folder to PATH"
    assert windows("signals").file_limit() is None and ports.in_group_of_ports() and ports.may_open("COM3")
    assert ports.port_identity("com3") == ports.port_identity("\\\\.\\COM3") == "COM3"
    denied = OSError("could not open port 'COM3': PermissionError(13, 'Access is denied.', None, 5)")
    absent = OSError("could not open port 'COM9': FileNotFoundError(2, 'The system cannot find', None, 2)")
    assert [ports.why_port_not_open(it) for it in (denied, absent, OSError("x"))] == ["busy", "absent", ""]
    with pytest.raises(OSError, match="no sockets in files"):
        streams.local_socket()


@ON_LINUX
def test_a_line_of_windows_is_a_port(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with as_on("win32", monkeypatch)("streams").line_to_serve(tmp_path) as line:
        number = line.url.removeprefix("socket://127.0.0.1:")
        assert (line.options, line.descriptors) == (f"host=127.0.0.1,port={number}", ())
        assert int(number) > 0


@ON_LINUX
def test_drives(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    macos = as_on("darwin", monkeypatch)("drives")
    (tmp_path / "RPI-RP2").mkdir()
    assert macos._DRIVE_FOLDERS == ("/Volumes",)
    monkeypatch.setattr(macos, "_DRIVE_FOLDERS", (str(tmp_path),))
    assert macos.drives("RPI-RP2") == [tmp_path / "RPI-RP2"] and macos.drives("FEATHER") == []
    assert macos.copy_command(Path("a.uf2"), tmp_path)[:2] == ["cp", "-X"] and macos.unmounted("x") == ""
    windows = as_on("win32", monkeypatch)("drives")
    labels = {Path("C:\\"): "Windows", Path("E:\\"): "RPI-RP2"}
    monkeypatch.setattr(windows, "_letters", lambda: list(labels))
    monkeypatch.setattr(windows, "_label", labels.__getitem__)
    assert windows.drives("RPI-RP2") == [Path("E:\\")]
    assert windows.copy_command(Path("a.uf2"), Path("E:\\"))[-2:] == ["a.uf2", "E:\\"]


@ON_LINUX
def test_pipes_that_threads_wait_for(monkeypatch: pytest.MonkeyPatch) -> None:
    streams = as_on("win32", monkeypatch)("streams")
    echo = "import sys, os\nwhile data := os.read(0, 99): os.write(1, data)\nos.close(1); os.read(0, 1)"
    with subprocess.Popen(
        [sys.executable, "-c", echo], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        ends = streams.pipe_ends(process.stdout.fileno(), process.stdin.fileno())
        assert ends.receive(0.01) is None
        assert ends.send(b"x" * 200_000, 20)
        received = b""
        while len(received) < 200_000:
            received += ends.receive(20) or b""
        assert received == b"x" * 200_000
        process.stdin.close()
        assert [ends.receive(20), ends.receive(20)] == [b"", b""]
        with pytest.raises(OSError, match="Bad file"):
            ends.send(b"x", 20)


@ON_LINUX
def test_a_program_that_reads_nothing_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    streams = as_on("win32", monkeypatch)("streams")
    (output, _), (unread, writer) = os.pipe(), os.pipe()
    ends = streams.pipe_ends(output, writer)
    assert not ends.send(b"x" * 2**20, 0.2)
    os.close(unread)


def test_nothing_is_counted_where_plugins_cannot_be_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin, "PLUGIN_FLAGS", None)
    with pytest.raises(BuildError, match="--objective instructions"):
        plugin.build_plugin(1)


CONSTANTS = """
const signed char weights[1000] = {1, 2};
const int table[10] = {5};
int zeros[20], data[3] = {1, 2, 3};
"""


@ON_LINUX
@pytest.mark.parametrize("target", ["arm64-apple-macos11", "x86_64-w64-windows-gnu"])
def test_sizes_of_other_object_files(target: str, tmp_path: Path) -> None:
    source, object_file = tmp_path / "a.c", tmp_path / "a.o"
    source.write_text(CONSTANTS, encoding="utf-8")
    command = ["clang", f"--target={target}", "-ffreestanding", "-O1", "-g", "-fdata-sections"]
    subprocess.run([*command, "-c", str(source), "-o", str(object_file)], check=True)
    with object_file.open("rb") as file:
        sections = native_sections(file)
    assert sections is not None
    constants = sum(size for name, _, size in sections if name.startswith(".rodata"))
    assert constants == 1040
    assert {(kind, size) for name, kind, size in sections if not name.startswith((".rodata", ".text"))} == {
        ("SHT_NOBITS", 80),
        ("SHT_PROGBITS", 12),
    }


@ON_LINUX
@pytest.mark.parametrize(
    ("name", "machine"), [("cl", ""), ("clang", "x86_64-pc-windows-msvc")], ids=["cl", "clang"]
)
def test_compilers_of_msvc_are_refused(
    name: str, machine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = tmp_path / name
    compiler.write_text(f"#!/bin/sh\necho {machine}\n", encoding="utf-8")
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    firmware_build._machine.cache_clear()
    with pytest.raises(BuildError, match=f"{name} is the compiler of MSVC.*MinGW-w64"):
        firmware_build.compiler_facts(load_board("host"))
