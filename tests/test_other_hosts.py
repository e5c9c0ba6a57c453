"""Other operating systems: one module knows them, and without what POSIX has, results are the same bytes."""

from __future__ import annotations

import ast
from pathlib import Path

import mcudeploy

ROOT = Path(mcudeploy.__file__).parent
SYSTEM = "common/system.py"
OF_ONE_SYSTEM = {
    *("fcntl", "resource", "grp", "pwd", "termios", "tty", "pty", "select", "syslog", "posix", "nt"),
    *("msvcrt", "winreg", "_winapi", "ctypes", "platform"),
}
NAMES = {
    *("os.name", "sys.platform", "os.uname", "os.fork", "os.kill", "os.killpg", "os.geteuid", "os.getuid"),
    *("os.getgroups", "os.set_blocking", "os.sync", "os.pwrite", "os.pread", "os.setsid", "socket.AF_UNIX"),
    *("signal.SIGKILL", "signal.SIGHUP", "signal.SIGALRM", "signal.setitimer", "signal.alarm"),
}


def specific(path: Path) -> set[str]:
    """The modules and names in a file that not every system has, or that ask which one it is."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        match node:
            case ast.Import():
                found |= {it.name for it in node.names if it.name.partition(".")[0] in OF_ONE_SYSTEM}
            case ast.ImportFrom() if str(node.module).partition(".")[0] in OF_ONE_SYSTEM:
                found.add(str(node.module))
            case ast.Attribute() if ast.unparse(node) in NAMES:
                found.add(ast.unparse(node))
    return found


def test_one_module_knows_operating_systems() -> None:
    asking = {path.relative_to(ROOT).as_posix(): specific(path) for path in ROOT.rglob("*.py")}
    assert {"fcntl", "sys.platform", "os.killpg"} <= asking.pop(SYSTEM)
    assert {name: found for name, found in asking.items() if found} == {}
