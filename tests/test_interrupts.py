"""Ctrl-C where an exception cannot be raised, before there is anything to end, and a second time."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from mcudeploy.cli import output

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))
from interrupts import Tally, commands, interrupted

_LISTENING = """
import os, signal, sys, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
from mcudeploy.common import interrupts
interrupts.listen()
{begin}
def interrupt(after, times=1, number=signal.SIGINT):
    def act():
        for _ in range(times):
            os.kill(os.getpid(), number)
            time.sleep(0.1)
    threading.Timer(after, act).start()
"""

_COMPILED = """
import numba, numpy
@numba.njit
def slow(values, count):
    for at in range(count):
        values[at % 10] += numpy.sin(values[(at + 1) % 10])
    return values.sum(), values.copy()
slow(numpy.ones(10), 1)
try:
    interrupt(0.05)
    slow(numpy.ones(10), 20_000_000)
    time.sleep(5)
except KeyboardInterrupt:
    print("in order")
"""

_IMPORTING = """
import importlib, pathlib, tempfile
folder = pathlib.Path(tempfile.mkdtemp())
(folder / "slow_module.py").write_text("import time; time.sleep(0.5); done = True")
sys.path.insert(0, str(folder))
try:
    interrupt(0.1)
    import slow_module
    time.sleep(5)
except KeyboardInterrupt:
    print("in order", slow_module.done)
"""

_ENDING = """
import importlib, pathlib, tempfile
folder = pathlib.Path(tempfile.mkdtemp())
(folder / "last_module.py").write_text("import sys, time; time.sleep(0.3); sys.exit()")
sys.path.insert(0, str(folder))
class Slow:
    def __del__(self, sleep=time.sleep):
        sleep(0.2)
kept = Slow()
interrupt(0.1)
import last_module
"""

_TWICE = """
interrupt(0.1, times=2)
try:
    time.sleep(5)
except KeyboardInterrupt:
    time.sleep(30)
"""

_CLOSING = """
interrupts.close()
interrupt(0.1)
time.sleep(0.5)
print("told")
"""


def run(body: str, *, begun: bool = True, first: str = "") -> subprocess.CompletedProcess[str]:
    text = first + _LISTENING.format(begin="interrupts.begin()" if begun else "") + body
    return subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.parametrize(
    ("body", "message"), [(_COMPILED, "in order\n"), (_IMPORTING, "in order True\n"), (_CLOSING, "told\n")]
)
def test_it_is_delivered_where_it_can_be_taken(body: str, message: str) -> None:
    done = run(body)
    assert (done.returncode, done.stdout, done.stderr) == (0, message, "")


_LACKING = "import signal\nfor name in ('SIGALRM', 'SIGHUP'): delattr(signal, name)\n"


@pytest.mark.parametrize(("body", "message"), [(_COMPILED, "in order\n"), (_IMPORTING, "in order True\n")])
def test_without_an_alarm_signal_a_thread_looks_again(body: str, message: str) -> None:
    """As on Windows. On POSIX such a thread does not end a sleep of the main one, hence the short sleeps."""
    patient = body.replace("time.sleep(5)", "[time.sleep(0.02) for _ in range(250)]")
    done = run(patient, first=_LACKING)
    assert (done.returncode, done.stdout, done.stderr) == (0, message, "")
    assert (
        run(re.sub(r"interrupt\(([\d.]+)\)", r"interrupt(\1, times=2)", body), first=_LACKING).returncode
        == 130
    )


def test_before_anything_began_it_ends_at_once() -> None:
    done = run("interrupt(0.1)\ntime.sleep(30)", begun=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "error: interrupted\n")


def test_the_object_of_one_that_ends_at_once_has_its_format() -> None:
    done = run("sys.argv.append('--json')\ninterrupt(0.1)\ntime.sleep(30)", first="import sys\n", begun=False)
    error = {"exit_code": 130, "message": "interrupted", "problems": []}
    assert json.loads(done.stdout) == {"format": output._FORMAT, "error": error}


def test_one_that_was_never_taken_does_not_kill_the_process_as_it_ends() -> None:
    """Python gives signals back their default before it takes modules down."""
    done = run(_ENDING)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_second_ends_at_once() -> None:
    assert run(_TWICE).returncode == 130


def test_termination_waits_for_a_place_too() -> None:
    body = _IMPORTING.replace("interrupt(", "interrupt(number=signal.SIGTERM, after=")
    done = run(body.replace("KeyboardInterrupt", "interrupts.Terminated"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "in order True\n", "")


@pytest.mark.usefixtures("default_signals")
@pytest.mark.parametrize("name", ["place", "schedule"])
def test_commands_end_in_order_at_any_moment(name: str, tmp_path: Path) -> None:
    tally = Tally()
    for delay_s in (0.3, 1.0, 2.5):  # benchmarks/interrupts.py has many more
        interrupted(commands(tmp_path)[name], tmp_path, delay_s, twice=False, tally=tally)
    assert not tally.wrong and tally.counts.total() == 3
    assert signal.getsignal(signal.SIGINT) is not signal.SIG_IGN


@pytest.mark.usefixtures("default_signals")
def test_a_terminal_that_closes_ends_what_runs_in_it(tmp_path: Path) -> None:
    master, slave = os.openpty()
    command = commands(tmp_path, 60.0)["schedule"]
    process = subprocess.Popen(
        [sys.executable, "-m", "mcudeploy", *command],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])},
        cwd=tmp_path,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 (this process has one thread)
    )
    os.close(slave)
    assert b"schedul" in os.read(master, 1000) or process.poll() is None
    os.close(master)
    assert process.wait(60) == 129
