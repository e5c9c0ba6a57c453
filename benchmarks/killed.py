"""Ends `tune` from outside, in every way; measurements survive, and the next run continues.

    python benchmarks/killed.py --points 200 --seed 1 [--board host] [--pairs 5] [--no-disks]

SIGKILL at random points; two runs with one database; a full disk and a read-only one (both need root: small
file systems are mounted); emulators that are killed. Ends in an AssertionError if something was
lost, or an error was unclear.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent / "tests"
sys.path[:0] = [str(TESTS / name) for name in ("killed", "deploy")]

from models import quantised_convolutions  # noqa: E402
from tune_runs import Ended, Tune, kills, two_at_once  # noqa: E402

EMULATED = "stm32f405"


@contextmanager
def mounted(folder: Path, size: str) -> Iterator[None]:
    """Mount a file system in memory at a folder."""
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


def full_disk(tune: Tune) -> str:
    """Test a database on a disk without room, and on the same disk with room again."""
    with mounted(tune.cache, "1m"):
        tune.share_firmware()
        filler = tune.cache / "filler"
        with filler.open("wb") as file:
            file.write(bytes(2**20 - 40 * 2**10))
        full = clear(tune.run(), 3)
        filler.unlink()
        assert tune.run().status == 0
    return full


def read_only(tune: Tune) -> str:
    """Test a cache that cannot be written."""
    with mounted(tune.cache, "1m"):
        tune.share_firmware()
        assert tune.run().status == 0
        subprocess.run(["mount", "-o", "remount,ro", tune.cache], check=True)
        return clear(tune.run(), 3)


def clear(ended: Ended, status: int) -> str:
    """Return the message of an error with this exit status and without a traceback."""
    assert ended.status == status and ended.message and "Traceback" not in ended.errors, ended
    return f"exit {ended.status}: {ended.message}"


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--points", type=int, default=20)
    parser.add_argument("--emulators", type=int, default=5)
    parser.add_argument("--pairs", type=int, default=5, help="of runs with one database")
    parser.add_argument("--no-disks", action="store_true", help="mount no file systems")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--board", default="host")
    arguments = parser.parse_args()
    source = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = quantised_convolutions(folder / "small.onnx")
        tune = Tune(model, folder / "cache", arguments.board)
        whole = tune.run()
        assert whole.status == 0, whole
        pairs = [[ended.status for ended in two_at_once(tune)] for _ in range(arguments.pairs)]
        assert pairs == [[0, 0]] * arguments.pairs, pairs
        print(f"two at once, {arguments.pairs} times: exit 0 of all, {tune.stored()} tile times", flush=True)
        if not arguments.no_disks:
            print(f"full disk: {full_disk(Tune(model, folder / 'full', arguments.board))}", flush=True)
            print(f"read-only: {read_only(Tune(model, folder / 'fixed', arguments.board))}", flush=True)
        emulated = Tune(model, folder / "emulated", EMULATED)
        assert not arguments.emulators or emulated.run().status == 0
        for _ in range(arguments.emulators):
            emulated.forget()
            process = emulated.start()
            killed = emulated.kill_emulator(process, source.uniform(0, 1.0))
            ended = emulated.finish(process)
            assert not killed or ended.status == 0 or clear(ended, 10)
            print(f"emulator killed: exit {ended.status} {ended.message}".rstrip(), flush=True)
        assert not arguments.emulators or emulated.run().status == 0
        start = time.monotonic()
        tally = kills(tune, whole, arguments.points, source)
        print(
            f"{tally.killed} killed, {tally.amid} of them between two tiles, {tally.finished} ended before; "
            f"{tally.stored} times stored by those that were killed, {tally.on_their_way} on their way; "
            f"{time.monotonic() - start:.0f} s"
        )


if __name__ == "__main__":
    main()
