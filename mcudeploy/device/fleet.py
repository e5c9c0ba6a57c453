"""Boards of one kind that share work: a board that fails leaves its work to the others."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from threading import Event, Lock
from typing import Generic, TypeVar

from mcudeploy.common.errors import (
    BoardNotFoundError,
    DeployError,
    FlashError,
    PortError,
    ProtocolError,
)
from mcudeploy.common.text import count_text
from mcudeploy.device.target import Device, Target, open_device
from mcudeploy.toolchain import Firmware

_LOG = logging.getLogger(__name__)
_T = TypeVar("_T")

POLL_S = 0.03
"""Seconds between two polls for work, or for the turn of a board."""

LOST = (ProtocolError, PortError, FlashError, BoardNotFoundError)
"""Errors after which a board counts as gone; all others concern the work."""


class WorkingBoards:
    """The boards that still work, by number."""

    def __init__(self, count: int) -> None:
        self._numbers = list(range(count))
        self._lock = Lock()

    def numbers(self) -> list[int]:
        """Return the numbers of working boards; at least one."""
        with self._lock:
            return list(self._numbers)

    def lose(self, number: int, error: DeployError) -> None:
        """Drop a board and warn the user. Raises `error` if it was the last one."""
        with self._lock:
            if self._numbers == [number]:
                raise error
            if number in self._numbers:
                self._numbers.remove(number)
                left = count_text(len(self._numbers), "board")
                _LOG.warning("warning: a board is out, %s left: %s", left, error)


class WorkShares(Generic[_T]):
    """Pieces of work, dealt out to boards.

    Each board takes the pieces of its share in order. Then it takes pieces, the last one first, of boards
    that are away: gone, or in use by another run. So the board of a piece depends on the number of boards,
    not on their speed.
    """

    def __init__(self, pieces: Sequence[_T], boards: Sequence[int]) -> None:
        self._shares = {number: deque(pieces[first :: len(boards)]) for first, number in enumerate(boards)}
        self._away: set[int] = set()
        self._left = len(pieces)
        self._lock = Lock()

    @property
    def is_over(self) -> bool:
        """Whether all work is done."""
        return self._left == 0

    def mark_away(self, number: int) -> None:
        """Mark a board as away until it takes a piece again."""
        with self._lock:
            self._away.add(number)

    def take(self, number: int) -> _T | None:
        """Return the next piece for a board; None if boards that are not away have all that is left."""
        with self._lock:
            self._away.discard(number)
            if self._shares[number]:
                return self._shares[number].popleft()
            richest = max(self._away, key=lambda other: len(self._shares[other]), default=None)
            return self._shares[richest].pop() if richest is not None and self._shares[richest] else None

    def put_back(self, number: int, piece: _T) -> None:
        """Put an unfinished piece at the end of a board's share."""
        with self._lock:
            self._shares[number].append(piece)

    def done(self) -> None:
        """Count a finished piece."""
        with self._lock:
            self._left -= 1


class Fleet:
    """The boards of one command. If all fail, the error of the last one is raised."""

    def __init__(self, targets: Sequence[Target]) -> None:
        self.targets = tuple(targets)
        self.working = WorkingBoards(len(targets))

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def first(self) -> Target:
        """A board that still works."""
        return self.targets[self.working.numbers()[0]]

    def on_one(self, do: Callable[[Target], _T]) -> _T:
        """Return the result of `do` on one board; if the board fails, run it on another."""
        while True:
            number = self.working.numbers()[0]
            try:
                return do(self.targets[number])
            except LOST as error:
                self.working.lose(number, error)

    def each(self, jobs: Sequence[Job[_T]]) -> list[_T]:
        """Return the results of the jobs, one per board at a time; an error of a job ends all of them."""
        running = _RunningJobs(self, jobs)
        numbers = self.working.numbers()
        # After an error the devices are closed before the threads are joined, so that no thread goes on.
        with ThreadPoolExecutor(len(numbers)) as pool:
            try:
                workers = [pool.submit(running.work, number) for number in numbers]
                for worker in as_completed(workers):
                    worker.result()
            except BaseException:
                running.end()
                raise
        return [running.results[index] for index in range(len(jobs))]


@dataclass(frozen=True, slots=True, eq=False)
class Job(Generic[_T]):
    """Firmware, and the work on a device that runs it."""

    firmware: Firmware
    patience_s: float
    use: Callable[[Device, Target], _T]


class _RunningJobs(Generic[_T]):
    """Jobs under way. `results`: by the number of the job."""

    def __init__(self, fleet: Fleet, jobs: Sequence[Job[_T]]) -> None:
        self.results: dict[int, _T] = {}
        self._fleet, self._jobs = fleet, jobs
        self._shares = WorkShares(range(len(jobs)), fleet.working.numbers())
        self._stop, self._lock = Event(), Lock()
        self._devices: set[Device] = set()

    def work(self, number: int) -> None:
        """Run a board's part of the jobs."""
        while not (self._shares.is_over or self._stop.is_set()):
            index = self._shares.take(number)
            if index is None:
                self._stop.wait(POLL_S)  # a busy board may still fail
                continue
            try:
                self._do(index, self._fleet.targets[number])
            except LOST as error:
                self._shares.put_back(number, index)
                self._shares.mark_away(number)
                if not self._stop.is_set():
                    self._fleet.working.lose(number, error)
                return

    def _do(self, index: int, target: Target) -> None:
        job = self._jobs[index]
        with open_device(target, job.firmware, job.patience_s) as device:
            try:
                with self._lock:
                    self._devices.add(device)
                if not self._stop.is_set():
                    self.results[index] = job.use(device, target)
                    self._shares.done()
            finally:
                with self._lock:
                    self._devices.discard(device)

    def end(self) -> None:
        """Start no more jobs, and let those under way fail."""
        self._stop.set()
        with self._lock:
            for device in self._devices:
                device.session.close()
