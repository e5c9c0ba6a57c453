"""Mutants of streams for consecutive steps: those with other bytes, or without a wait, have to be refused."""

from __future__ import annotations

import ctypes
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest
from stream_mutants import _aligned, mutants
from test_mixed_plans import convolved
from units_on_host import HOST, prefer_unit
from vela_streams import Array, Regions

from mcudeploy.commands.commands import plan_model
from mcudeploy.execution.deployment import Deployment
from mcudeploy.extensions.ethos_u.joined_judge import joined_fault
from mcudeploy.extensions.ethos_u.registers import decode
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.tape.joined_streams import UnitStream, UnitStreams

sys.path.append(str(Path(__file__).parents[1] / "frontend" / "tflite"))

from flat_cases import NONE
from flat_files import FlatFile

_HEADER = 4
_GUARD = 1 << 12
"""Bytes before and after the arena in its region, so that a mutant may read and write them."""


@dataclass(frozen=True)
class Joined:
    """A plan all of whose steps are the unit's."""

    deployment: Deployment
    options: Options

    @cached_property
    def streams(self) -> UnitStreams:
        """Its streams."""
        streams = self.deployment.view.streams
        assert streams is not None
        return streams

    @property
    def stream(self) -> UnitStream:
        """The longest one."""
        return max(self.streams.streams, key=lambda it: len(it.words))

    def fault(self, words: Sequence[int]) -> str | None:
        """The verdict of the checker on words in the place of the stream."""
        stream = UnitStream(self.stream.entries, tuple(words), self.stream.operations)
        return joined_fault(self.deployment.plan, self.deployment.model.calls, self.streams, stream)

    def outcome(self, model: ctypes.CDLL, words: Sequence[int]) -> tuple[int, bytes]:
        """The code of a run on noise, and what the arena and the bytes after it hold afterwards."""
        regions, rng = Regions(), np.random.default_rng(1)
        (size,) = self.deployment.plan.layout.arenas.values()
        arena: Array = _aligned(rng.integers(0, 256, size + _GUARD, np.uint8))
        constants = _aligned(self.streams.constants.view(np.uint8))
        regions.give(0, constants, writable=False)
        regions.give(self.streams.regions[0], arena)
        data = _aligned(np.array(words, "<u4").view(np.uint8))
        code = model.mcud_npu_run(ctypes.c_void_p(data.ctypes.data), len(words), ctypes.byref(regions))
        return int(code), arena.tobytes()


def joined_of(folder: Path) -> Joined:
    """A cut plan of convolutions, a maximum and a sum."""
    flat, options = FlatFile(), Options(time_limit=0.5, max_overhead=400.0)
    x = flat.int8(1, 16, 12, 3)
    one = convolved(flat, x, (1, 16, 12, 16), (3, 3))
    two = convolved(flat, one, (1, 16, 12, 16), (3, 3))
    total = flat.int8(1, 16, 12, 16, scale=0.2, zero=3)
    flat.operator("ADD", [one, two], total, FusedActivationFunction=NONE)
    path = flat.save(folder, [x], [convolved(flat, total, (1, 16, 12, 4), (1, 1))])
    with pytest.MonkeyPatch.context() as patch:
        prefer_unit(patch)
        return Joined(plan_model(path, HOST, options), options)


def judged(model: ctypes.CDLL, of: Joined, seed: int, count: int) -> tuple[Counter[str], list[str]]:
    """Judge mutants that have another result, or a BLOCKDEP that lets dependent operations overlap: how many
    there are by register, and those that the checker accepts.
    """
    words = of.stream.words[_HEADER:]
    wanted, found, missed = of.outcome(model, words), Counter[str](), list[str]()
    assert wanted[0] == 0
    for mutant in mutants(words, seed):
        if found.total() == count:
            break
        waits = {it.value for it in decode(mutant.words) if it.name == "BLOCKDEP"}
        if not any(waits) and of.outcome(model, mutant.words) == wanted:
            continue
        found[mutant.change.split()[0]] += 1
        if of.fault(payload(of, mutant.words)) is None:
            missed.append(mutant.change)
    return found, missed


def payload(of: Joined, words: Sequence[int]) -> list[int]:
    """Words with the header of their payload."""
    filled = [*words, *[0] * (-len(words) % _HEADER)]
    return [*of.stream.words[: _HEADER - 1], 2 | len(filled) << 16, *filled]
