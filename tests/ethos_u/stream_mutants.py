"""Mutants of streams that have another result by the functional model: the checker has to refuse them."""

from __future__ import annotations

import ctypes
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pair_cases import ALONE, CASES, both, touched_by
from test_copies import concat, part, streams_of
from test_streams import stream_of
from test_unit_calls import convolution, convolution_int16, core_and_unit, maximum, mean
from vela_streams import Array, Regions, model_library

from mcudeploy.extensions.ethos_u.registers import LONG, RegisterCommand, Stream, decode
from mcudeploy.extensions.ethos_u.stream_judge import copy_fault, elementwise_fault, fault_of
from mcudeploy.extensions.ethos_u.unit_calls import FLASH, OUTPUT, SECOND, SOURCE

_PAIRS = [name for name in CASES if name not in ALONE]
"""The cases of two operands: the others are a convolution and a pool on the unit."""
_BYTES = 1 << 16
"""The size of a region."""
_VALUES = ("ZERO_POINT", "ACTIVATION_M", "SCALE", "SCALAR")
"""Parts of names of registers that change what is computed, not which bytes."""
_SCHEDULE = ("_BLK_", "IB_", "AB_", "ACC_FORMAT", "BLOCKDEP")
"""Those that say how the unit works through its own memory: the model is indifferent to them."""
_ROUNDING = 3 << 14
_PARTS_FIRST = 4
_OPERAND = 3 << 8


@dataclass(frozen=True)
class Subject:
    """A stream, what the checker says of words in its place, and the constants that it reads."""

    name: str
    words: list[int]
    fault: Callable[[Sequence[int]], str | None]
    constants: Array


@dataclass(frozen=True)
class Mutant:
    """The words of a changed stream, and how they were changed."""

    words: list[int]
    change: str


def subject(seed: int) -> Subject:
    """A random convolution, maximum, mean, operation of two operands or copy."""
    if seed % 5 == 4:
        name, of_copy = (("concat", concat), ("slice", part))[seed // 5 % 2]
        words, copied = next(streams_of(of_copy(seed)))
        return Subject(f"{name} {seed}", words, lambda it: copy_fault(it, copied), _bytes(None))
    if seed % 5 == 3:
        name = _PAIRS[seed // 5 % len(_PAIRS)]
        case = CASES[name]()
        call = both(case)[1]
        words, touched = touched_by(case, call)
        return Subject(
            name, words, lambda it: elementwise_fault(it, touched), _bytes(call.params["constants"])
        )
    of = (convolution if seed // 5 % 2 else convolution_int16, maximum, mean)[seed % 5]
    words, reads, x, y = stream_of(seed, of)
    call = core_and_unit(*of(seed))[1]
    fault = lambda it: fault_of(it, reads, x.shape, y.shape)  # noqa: E731
    return Subject(f"{of.__name__} {seed}", words, fault, _bytes(call.params["constants"]))


def _bytes(values: object) -> Array:
    if values is None:
        return np.zeros(16, np.uint8)
    assert isinstance(values, np.ndarray)
    data = np.frombuffer(values.tobytes(), np.uint8)
    return np.concatenate([data, np.zeros(-data.size % 16, np.uint8)])


def outcome(model: ctypes.CDLL, words: Sequence[int], constants: Array) -> tuple[int, bytes]:
    """The code of a run on the same noise, and what all memories hold afterwards."""
    rng, regions = np.random.default_rng(1), Regions()
    memories = {
        number: _aligned(rng.integers(0, 256, _BYTES, np.uint8)) for number in (SOURCE, OUTPUT, SECOND)
    }
    memories[FLASH] = _aligned(constants)
    for number, memory in memories.items():
        regions.give(number, memory, writable=number != FLASH)
    data = _aligned(np.array(words, "<u4").view(np.uint8))
    code = model.mcud_npu_run(ctypes.c_void_p(data.ctypes.data), len(words), ctypes.byref(regions))
    return int(code), b"".join(memory.tobytes() for _, memory in sorted(memories.items()))


def _aligned(data: NDArray[np.uint8]) -> Array:
    room = np.zeros(data.size + 16, np.uint8)
    start = -room.ctypes.data % 16
    room[start:][: data.size] = data
    return room[start:][: data.size]


def mutants(words: Sequence[int], seed: int) -> Iterator[Mutant]:
    """Yield random changes without end: a register has another value, is missing or is set again; or the
    operation is another one, comes twice, or follows a transfer that nothing waits for.
    """
    rng, commands = np.random.default_rng(seed), list(decode(words))
    while True:
        at = int(rng.integers(len(commands) - 1))  # not STOP
        command, before, after = commands[at], commands[:at], commands[at + 1 :]
        if command.operates:
            other = ("CONV", "DEPTHWISE", "POOL", "ELEMENTWISE", "DMA_START", "IRQ")[int(rng.integers(6))]
            changed = [
                [*before, RegisterCommand(other, int(rng.integers(3))), *after],
                [*before, command, command, *after],
                [*before, RegisterCommand("DMA_START"), command, *after],
                [*before, *after],
            ][int(rng.integers(4))]
            yield Mutant(_words(changed), f"operations {[it.name for it in changed if it.operates]}")
            continue
        value = _another(command, rng)
        which = int(rng.integers(8))
        if which == 0:
            yield Mutant(_words([*before, *after]), f"no {command.name}")
        elif which == 1:
            again = RegisterCommand(command.name, value)
            yield Mutant(_words([*before, command, again, *after]), f"{command.name} again, {value}")
        else:
            changed = [*before, replace(command, value=value), *after]
            yield Mutant(_words(changed), f"{command.name} {command.value} -> {value}")


def _another(command: RegisterCommand, rng: np.random.Generator) -> int:
    """Another value of a register: a bit, a small step, or any value."""
    bits = 20 if command.name in LONG.values() else 16
    value = (
        command.value ^ 1 << int(rng.integers(bits)),
        command.value + int(rng.choice([-16, -2, -1, 1, 2, 16])),
        int(rng.integers(1 << bits)),
    )[int(rng.integers(3))]
    return max(0, min(value, (1 << (48 if command.name in LONG.values() else 16)) - 1))


def _words(commands: Sequence[RegisterCommand]) -> list[int]:
    stream = Stream()
    for it in commands:
        if it.operates:
            stream.operate(it.name, it.value)
        else:
            stream.set(**{it.name: it.value})
    return stream.words


def _only_values(words: Sequence[int], changed: Sequence[int]) -> bool:
    """Whether two streams differ only in what the same bytes become, or in the unit's own memory."""
    kept = [
        [
            (it.name, _place(it))
            for it in decode(of)
            if not any(part in it.name for part in _VALUES + _SCHEDULE)
        ]
        for of in (words, changed)
    ]
    return kept[0] == kept[1]


def _place(command: RegisterCommand) -> int:
    """The value of a register without the bits of rounding, of the order of weights and of the operand that
    has a factor; nothing of an operation, whose parameter says what it computes.
    """
    spared = {"OFM_PRECISION": _ROUNDING, "KERNEL_STRIDE": _PARTS_FIRST, "IFM_PRECISION": _OPERAND}
    return 0 if command.operates else command.value & ~spared.get(command.name, 0)


def judged(model: ctypes.CDLL, seed: int, count: int) -> tuple[Counter[str], list[str]]:
    """Judge mutants of one stream that touch other bytes: how many there are by register, and those that the
    checker accepts.
    """
    of = subject(seed)
    assert of.fault(of.words) is None
    wanted, found, missed = outcome(model, of.words, of.constants), Counter[str](), []
    assert wanted[0] == 0, of.name
    for mutant in mutants(of.words, seed):
        if found.total() == count:
            return found, missed
        if _only_values(of.words, mutant.words) or outcome(model, mutant.words, of.constants) == wanted:
            continue
        found[mutant.change.split()[0]] += 1
        if of.fault(mutant.words) is None:
            missed.append(f"{of.name}: {mutant.change}")
    raise AssertionError("there are mutants without end")


def accepted(count: int, seed: int) -> list[str]:
    """The mutants that the checker accepts, of `count` that touch other bytes."""
    if not count:
        return []
    with tempfile.TemporaryDirectory() as folder:
        model = model_library(Path(folder), 128, "-DMCUD_NPU_STEPS=20000000")
        shares = [min(10, count - first) for first in range(0, count, 10)]
        return [it for number, share in enumerate(shares) for it in judged(model, seed + number, share)[1]]
