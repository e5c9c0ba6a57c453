"""Outputs of a program for many samples, which several devices of one kind share."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from threading import Lock

from mcudeploy.device.fleet import Fleet, Job
from mcudeploy.device.target import Device, Target
from mcudeploy.execution.running import Ran
from mcudeploy.verify.compare import Storage, run_once
from mcudeploy.verify.samples import Sample
from mcudeploy.verify.verdict import Outputs


class _SampleQueue:
    """Numbers of samples that no device has taken, and results. A device that fails returns its sample."""

    def __init__(self, count: int, advance: Callable[[int, int], None]) -> None:
        self.outputs: dict[int, Outputs] = {}
        self._count, self._advance = count, advance
        self._open = deque(range(count))
        self._lock = Lock()

    def take(self) -> int | None:
        with self._lock:
            return self._open.popleft() if self._open else None

    def put_back(self, number: int) -> None:
        with self._lock:
            self._open.appendleft(number)

    def done(self, number: int, outputs: Outputs) -> None:
        with self._lock:
            self.outputs[number] = outputs
            self._advance(len(self.outputs), self._count)


def outputs_on(
    fleet: Fleet, ran: Ran, sample: Callable[[int], Sample], count: int, advance: Callable[[int, int], None]
) -> Sequence[Outputs]:
    """Return the stored outputs of every sample, by tensor name.

    Each device takes the next sample once it is free, and the others run those of a device that fails. The
    last one's error is raised.
    """
    storage, queue = Storage.of(ran.made.plan), _SampleQueue(count, advance)
    names = [border.tensor for border in ran.made.plan.graph.own_outputs()]

    def use(device: Device, _: Target) -> None:
        while (number := queue.take()) is not None:
            try:
                run_once(device, storage, sample(number).stored)
                outputs = {name: storage.get_tensor(device, name) for name in names}
            except BaseException:
                queue.put_back(number)
                raise
            queue.done(number, outputs)

    # a board that fails after the others are done leaves its sample to a job that begins then
    while len(queue.outputs) < count:
        fleet.each([Job(ran.firmware, ran.made.patience_s, use)] * len(fleet.alive.numbers()))
    return [queue.outputs[number] for number in range(count)]
