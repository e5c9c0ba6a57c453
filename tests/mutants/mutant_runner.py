"""Mutants in forked workers with limits of memory and time; the death of a worker is a finding.

A worker gets the numbers of its mutants in turn. Each has a limit of processor time (a timer of the kernel
ends the process), of address space beyond the worker's initial one, and of wall-clock time, by which the
parent ends a worker that sleeps.
"""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import random
import resource
import signal
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

from mcudeploy.common.errors import DeployError

CPU_S = 10.0
CLOCK_S = 120.0
BYTES = 2**30
_PAGE = resource.getpagesize()


@dataclass
class Tally:
    """Results of the mutants; `findings` are numbers of mutants by fault."""

    taken: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    findings: dict[str, list[int]] = field(default_factory=dict)

    def add(self, number: int, outcome: str) -> None:
        """Count the messages of a worker."""
        what, _, text = outcome.partition(" ")
        if what == "taken":
            self.taken += 1
        elif what == "refused":
            self.refused[text] += 1
        else:
            self.findings.setdefault(text, []).append(number)


def run(
    make: Callable[[Path], Callable[[random.Random], object]],
    kind: str,
    seed: int,
    numbers: Iterable[int],
    told: Callable[[int, str], None] = lambda *_: None,
) -> Tally:
    """Tries the mutants of these numbers, each from a random source of its kind, the seed and its number."""
    tally, waiting = Tally(), list(numbers)
    with tempfile.TemporaryDirectory(dir=_memory_disk()) as folder:
        subject = make(Path(folder))  # once: the workers are copies of this process
        while waiting:
            done = _worker(subject, kind, seed, waiting, tally, told)
            del waiting[:done]
    return tally


def _memory_disk() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def _worker(
    subject: Callable[[random.Random], object],
    kind: str,
    seed: int,
    numbers: list[int],
    tally: Tally,
    told: Callable[[int, str], None],
) -> int:
    """One worker's life; returns the number of mutants it tried, including the one that killed it."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(subject, kind, seed, numbers, there))
    process.start()
    there.close()
    for done, number in enumerate(numbers):
        try:
            outcome = here.recv() if here.poll(CLOCK_S) else f"found nothing for {CLOCK_S:.0f} s"
        except EOFError:
            process.join()
            outcome = f"found {_death(process.exitcode)}"
        tally.add(number, outcome)
        told(number, outcome)
        if process.exitcode is not None or outcome.startswith("found nothing"):
            process.kill()
            process.join()
            return done + 1
    process.join()
    return len(numbers)


def _death(code: int | None) -> str:
    if code == -signal.SIGPROF:
        return f"more than {CPU_S:.0f} s of processor time"
    return f"death by {signal.Signals(-code).name}" if code is not None and code < 0 else f"exit {code}"


def _work(
    subject: Callable[[random.Random], object], kind: str, seed: int, numbers: list[int], said: Connection
) -> None:
    warnings.simplefilter("ignore")
    faulthandler.disable()  # the parent reports the cause of a worker's death
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * _PAGE + BYTES,) * 2)
    for number in numbers:
        signal.setitimer(signal.ITIMER_PROF, CPU_S)
        said.send(outcome(subject, random.Random(f"{kind} {seed} {number}")))
    said.close()
    os._exit(0)


def outcome(subject: Callable[[random.Random], object], source: random.Random) -> str:
    """`taken`, `refused` with the error's class, or `found` with the fault and its place."""
    try:
        subject(source)
    except DeployError as error:
        problems = getattr(error, "problems", ())
        text = " ".join((str(error), *map(str, problems)))
        if "Unable to allocate" in text or "bad_alloc" in text or isinstance(error.__cause__, MemoryError):
            return f"found more than {BYTES >> 20} MiB: {text[:200]}"
        return f"refused {type(error).__name__}"
    except BaseException as error:
        frames = [
            each for each in traceback.extract_tb(error.__traceback__) if "/mcudeploy/" in each.filename
        ]
        where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "the test"
        return f"found {type(error).__name__} in {where}: {' '.join(str(error).split())[:160]}"
    return "taken"
