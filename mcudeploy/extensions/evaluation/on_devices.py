"""Outputs of a program for many samples, which several devices of one kind share."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

from numpy.typing import NDArray

from mcudeploy.device.fleet import Fleet, Job
from mcudeploy.device.target import Device, Target
from mcudeploy.execution.running import DeviceRun
from mcudeploy.extensions.evaluation.dataset import Dataset
from mcudeploy.verify.compare import run_once


class _SampleQueue:
    """Numbers of samples that no device has taken, and results. A device that fails returns its sample."""

    def __init__(self, count: int, advance: Callable[[int, int], None]) -> None:
        self.outputs: dict[int, NDArray[Any]] = {}
        self._count, self._advance = count, advance
        self._open = deque(range(count))
        self._lock = Lock()

    def take(self) -> int | None:
        with self._lock:
            return self._open.popleft() if self._open else None

    def put_back(self, number: int) -> None:
        with self._lock:
            self._open.appendleft(number)

    def done(self, number: int, output: NDArray[Any]) -> None:
        with self._lock:
            self.outputs[number] = output
            self._advance(len(self.outputs), self._count)


def outputs_on(
    fleet: Fleet, device_run: DeviceRun, data: Dataset, tensor: str, advance: Callable[[int, int], None]
) -> Sequence[NDArray[Any]]:
    """Return an output, by the name of its tensor, of every sample, in stored form.

    Each device takes the next sample once it is free. If a device fails, the others run its sample; if all
    fail, the error of the last one is raised.
    """
    plan, count = device_run.deployment.plan, data.count
    storage, queue = device_run.deployment.storage, _SampleQueue(count, advance)

    def use(device: Device, _: Target) -> None:
        while (number := queue.take()) is not None:
            try:
                run_once(device, storage, data.sample(number, plan.graph).stored)
                output = storage.get_tensor(device, tensor)
            except BaseException:
                queue.put_back(number)
                raise
            queue.done(number, output)

    # A sample that a failing device returns after the others have finished needs another round of jobs.
    while len(queue.outputs) < count:
        fleet.each(
            [Job(device_run.firmware, device_run.deployment.patience_s, use)] * len(fleet.working.numbers())
        )
    return [queue.outputs[number] for number in range(count)]
