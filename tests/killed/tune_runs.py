"""`tune` as a process that is ended from outside, and what is left in the cache afterwards."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcudeploy.common.resources import cache_dir

ROOT = Path(__file__).resolve().parents[2]
CHILD = Path(__file__).with_name("tune_child.py")
PATIENCE_S = 300.0


@dataclass(frozen=True, slots=True)
class Ended:
    """How a `tune` ended: its exit status (negative: the signal), its report or error, and what it said."""

    status: int
    report: dict[str, Any]
    errors: str
    seconds: float

    @property
    def message(self) -> str:
        """Of the error that ended it; empty if none did."""
        return str(self.report.get("error", {}).get("message", ""))


class Tune:
    """`tune` of a model with a private database. The times that devices report are counted in `log`, too.

    Built firmware is shared with the cache of this process.
    """

    def __init__(self, model: Path, cache: Path, board: str) -> None:
        self.model, self.cache = model, cache
        cache.mkdir()
        self.share_firmware()
        self.log = cache.with_name(f"{cache.name}.log")
        target = [board] if board == "host" else [board, "--emulate"]
        self.options = ["tune", str(model), "--board", *target, "--time-limit", "2", "--json", "--quiet"]

    def share_firmware(self) -> None:
        """Have the cache use the firmware that is built already."""
        shared = cache_dir() / "firmware"
        shared.mkdir(parents=True, exist_ok=True)
        (self.cache / "firmware").symlink_to(shared.resolve())

    def start(self, before: Callable[[], None] | None = None) -> subprocess.Popen[bytes]:
        """The process; `before` is called in it."""
        known = os.environ.get("PYTHONPATH")
        return subprocess.Popen(
            [sys.executable, str(CHILD), str(self.log), *self.options],
            env={
                **os.environ,
                "MCUDEPLOY_CACHE_DIR": str(self.cache),
                "PYTHONPATH": os.pathsep.join([str(ROOT), *([known] if known else [])]),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=before,  # noqa: PLW1509 (this process has one thread)
        )

    def finish(self, process: subprocess.Popen[bytes], kill_after_s: float | None = None) -> Ended:
        """Wait for the end, or send SIGKILL after some seconds."""
        start = time.monotonic()
        try:
            out, err = process.communicate(timeout=PATIENCE_S if kill_after_s is None else kill_after_s)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
        report = json.loads(out) if out.startswith(b"{") and out.endswith(b"}\n") else {}
        return Ended(process.returncode, report, err.decode(errors="replace"), time.monotonic() - start)

    def run(self, kill_after_s: float | None = None, before: Callable[[], None] | None = None) -> Ended:
        """Both."""
        return self.finish(self.start(before), kill_after_s)

    def kill_after(self, tiles: int, pause_s: float) -> Ended:
        """Start a run that is killed some seconds after a number of reported times, or ends before."""
        process, wanted = self.start(), self.reported + tiles
        while process.poll() is None and self.reported < wanted:
            time.sleep(0.0005)
        return self.finish(process, kill_after_s=pause_s)

    @property
    def database(self) -> Path:
        """The file with the measurements."""
        return self.cache / "measurements.sqlite"

    @property
    def reported(self) -> int:
        """Tile times that devices have reported, as counted outside of the database."""
        return self.log.stat().st_size if self.log.exists() else 0

    def stored(self) -> int:
        """Tile times in the database, which is whole."""
        if not self.database.exists():
            return 0
        with sqlite3.connect(self.database) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            tables = connection.execute("SELECT count(*) FROM sqlite_master WHERE name='tiles'").fetchone()
            return int(connection.execute("SELECT count(*) FROM tiles").fetchone()[0]) if tables[0] else 0

    def forget(self) -> None:
        """Remove the measurements; the firmware stays."""
        for path in self.cache.glob("measurements.sqlite*"):
            path.unlink(missing_ok=True)  # the last connection that closes removes the log as well

    def emulators(self, process: subprocess.Popen[bytes]) -> list[int]:
        """Process ids of the emulators that a `tune` has started."""
        numbers = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                status = (folder / "stat").read_text()
            except OSError:
                continue
            name, parent = (
                status[status.index("(") + 1 : status.rindex(")")],
                status.rpartition(")")[2].split()[1],
            )
            if name.startswith("qemu-system") and int(parent) == process.pid:
                numbers += [int(folder.name)] * (b"-kernel" in (folder / "cmdline").read_bytes())
        return numbers

    def kill_emulator(self, process: subprocess.Popen[bytes], after_s: float) -> bool:
        """End an emulator some time after it began; False if the `tune` was over before."""
        while process.poll() is None:
            running = self.emulators(process)
            if running:
                time.sleep(after_s)
                try:
                    os.kill(running[0], signal.SIGKILL)
                except ProcessLookupError:
                    continue
                return True
            time.sleep(0.01)
        return False


@dataclass
class Kills:
    """Runs that were killed, those of them that had timed some tiles and not all, and runs that had ended by
    themselves. Of the runs killed: times that were stored, and those on their way to the database.
    """

    killed: int = 0
    amid: int = 0
    finished: int = 0
    stored: int = 0
    on_their_way: int = 0


def kills(tune: Tune, whole: Ended, points: int, source: random.Random) -> Kills:
    """Kills `tune` at random points, the next run goes on from what is there. Once all times are stored, or a
    run has ended by itself, the measurements restart. `whole`: of a run that nobody ended.

    A third of the points are anywhere in the run. Most of a run is before and after the measuring, so the
    others are moments after one of its tiles. Raises AssertionError if a time that a device had reported
    is not stored, but for one that was on its way there, or where one is reported that was known.
    """
    tune.forget()
    tally, every, seconds = Kills(), int(whole.report["search"]["measured"]), whole.seconds
    while tally.killed < points and tally.finished < 10 * points:
        reported, stored = tune.reported, tune.stored()
        if source.random() < 1 / 3:
            ended = tune.run(kill_after_s=source.uniform(0, seconds))
        else:
            ended = tune.kill_after(source.randrange(1, every - stored + 1), source.uniform(0, 0.02))
        new = tune.reported - reported
        assert new - 1 <= tune.stored() - stored <= new, f"{new} reported, {tune.stored() - stored} stored"
        assert "Traceback" not in ended.errors, ended.errors
        if ended.status == -signal.SIGKILL:
            tally.killed += 1
            tally.amid += new > 0 and tune.stored() < every
            tally.stored += tune.stored() - stored
            tally.on_their_way += new - (tune.stored() - stored)
        else:
            assert ended.status == 0, ended.errors
            tally.finished += 1
            seconds = min(seconds, ended.seconds)  # the whole run may have shared its cores
        if ended.status == 0 or tune.stored() >= every:
            tune.forget()
    return tally


def two_at_once(tune: Tune) -> list[Ended]:
    """Two processes with one database."""
    processes = [tune.start(), tune.start()]
    return [tune.finish(process) for process in processes]
