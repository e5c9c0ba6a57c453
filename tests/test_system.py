"""Locks, process groups and pipes on the operating system of this computer, whichever it is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import mcudeploy
from mcudeploy.common.programs import find_program, process_group, start
from mcudeploy.common.system import drives, folders, locks, streams

FAR = 2**56 - 1
_TAKE = f"""
import os, sys
from mcudeploy.common.system.locks import lock_byte, lock_file
file = os.open(sys.argv[1], os.O_RDWR)
print(lock_file(file), lock_file(file, shared=True), lock_byte(file, {FAR}), lock_byte(file, 7))
print(os.read(file, 9).decode())
"""
_CHILD = (
    "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])"
)
_UP = f"{_CHILD}; print('up', flush=True); time.sleep(60)"
_PARENT = f"""
import os, sys
from mcudeploy.common.programs import process_group, start
with process_group() as group:
    start([sys.executable, "-c", {_UP!r}], ".", group=group)
    sys.stdin.read()
    os._exit(3)
"""


def python(text: str, *arguments: str) -> subprocess.Popen[bytes]:
    environment = os.environ | {"PYTHONPATH": str(Path(mcudeploy.__file__).parents[1])}
    return subprocess.Popen(
        [sys.executable, "-c", text, *arguments],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )


def in_another_process(path: Path) -> list[str]:
    with python(_TAKE, str(path)) as process:
        return process.communicate(timeout=60)[0].decode().split()


def test_locks_exclude_other_processes(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.write_text("holder", encoding="utf-8")
    file = os.open(path, os.O_RDWR)
    assert in_another_process(path) == ["True"] * 4 + ["holder"]
    assert locks.lock_byte(file, FAR) and locks.lock_file(file, shared=True)
    assert in_another_process(path) == ["False", "True", "False", "True", "holder"]
    locks.unlock_file(file)
    assert locks.lock_file(file)
    assert in_another_process(path) == ["False", "False", "False", "True", "holder"]  # and may be read
    locks.unlock_byte(file, FAR)
    os.close(file)
    assert in_another_process(path) == ["True"] * 4 + ["holder"]


def test_a_group_ends_with_its_block() -> None:
    """The pipe ends when the last process that has it does."""
    with process_group() as group:
        process = start(
            [sys.executable, "-c", _UP],
            Path.cwd(),
            group=group,
            stdout=subprocess.PIPE,
        )
        assert process.stdout is not None
        assert process.stdout.readline().strip() == b"up"
    assert process.wait(20) != 0
    assert process.stdout.read() == b""
    process.stdout.close()


def test_a_group_ends_with_the_process_that_made_it() -> None:
    with python(_PARENT) as process:
        assert process.stdout is not None and process.stdin is not None
        assert process.stdout.readline().strip() == b"up"
        process.stdin.close()
        assert process.wait(20) == 3
        assert process.stdout.read() == b""


def test_programs_are_found() -> None:
    assert find_program(sys.executable) is not None
    assert find_program("no-such-program") is None
    assert find_program(str(Path(sys.executable).parent)) is None


@pytest.mark.parametrize("size", [1, 300_000])
def test_bytes_through_pipes(size: int) -> None:
    echo = "import os\nwhile data := os.read(0, 4096): os.write(1, data)"
    with python(echo) as process:
        assert process.stdin is not None and process.stdout is not None
        ends = streams.pipe_ends(process.stdout.fileno(), process.stdin.fileno())
        received = b""
        for part in range(0, size, 30_000):
            assert ends.send(bytes(min(30_000, size - part)), 20)
            while len(received) < min(part + 30_000, size):
                received += ends.receive(20) or b""
        process.stdin.close()
        assert received == bytes(size) and ends.receive(20) == b""


def test_drives_and_folders() -> None:
    assert drives.drives("NO-SUCH-LABEL") == []
    assert folders.cache_folder().is_absolute() and folders.config_folder().is_absolute()
