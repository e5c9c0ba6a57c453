"""The checker of joined streams: it tracks the registers, and compares each operation with its step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mcudeploy.checker.owners import PlanFaultError
from mcudeploy.extensions.ethos_u.registers import RegisterCommand, Stream, decode
from mcudeploy.extensions.ethos_u.stream_judge import fault_of_rows, rows_touched
from mcudeploy.extensions.ethos_u.unit_calls import FLASH, GLOBAL_SCALE, OUTPUT, SECOND, SOURCE
from mcudeploy.extensions.ethos_u.unit_steps import UnitRows, UnitStep, inputs_of, unit_steps, words_of
from mcudeploy.extensions.ethos_u.unit_streams import joined
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import KernelCall
from mcudeploy.ir.plan import Plan
from mcudeploy.planner.tape.joined_streams import UnitStream, UnitStreams

_READ = {
    "CONV": ("IFM_", "OFM_", "KERNEL_", "WEIGHT_", "SCALE_"),
    "DEPTHWISE": ("IFM_", "OFM_", "KERNEL_", "WEIGHT_", "SCALE_"),
    "POOL": ("IFM_", "OFM_", "KERNEL_"),
    "ELEMENTWISE": ("IFM_", "IFM2_", "OFM_", "OPA_", "OPB_"),
}
"""Beginnings of the names of registers that an operation reads, besides _ALWAYS."""
_ALWAYS = ("ACTIVATION", "ACC_", "AB_", "BLOCKDEP", "PARALLEL")
_PADS, _WAIT = "IFM_PAD_", "BLOCKDEP"
_PAYLOAD = [0x31504F43, 5, 5]
_HEADER_WORDS = 4
Bytes = tuple[tuple[str, Interval], ...]
"""Bytes of arenas, by memory."""


@dataclass(frozen=True, slots=True)
class _Operation:
    """An operation, and the registers that earlier commands have set."""

    command: RegisterCommand
    registers: Mapping[str, int]


@dataclass(slots=True)
class _InUse:
    """The bytes of operations that may still run when the next operation begins."""

    read: Bytes = ()
    written: Bytes = ()

    def fault(self, read: Bytes, written: Bytes) -> str | None:
        """Return a text if an operation that reads and writes these bytes would begin too early."""
        pairs = (("reads", read, self.written), ("writes", written, (*self.written, *self.read)))
        for verb, touched, in_use in pairs:
            if any(name == other and row.overlaps(used) for name, row in touched for other, used in in_use):
                return f"it {verb} bytes of an operation that BLOCKDEP does not wait for"
        return None


def check_joined(plan: Plan, calls: Mapping[str, KernelCall]) -> None:
    """Check the streams for consecutive steps of a plan. Raises PlanFaultError for a stream that does
    something else than its steps.
    """
    streams = joined(plan, calls)
    if streams is not None:
        for stream in streams.streams:
            reason = joined_fault(plan, calls, streams, stream)
            if reason is not None:
                raise PlanFaultError(reason)


def joined_fault(
    plan: Plan, calls: Mapping[str, KernelCall], streams: UnitStreams, stream: UnitStream
) -> str | None:
    """Return what is wrong with a stream of consecutive steps, None if it does what its steps do."""
    where = f"the stream of entries {stream.entries.lo} to {stream.entries.hi - 1}"
    steps = [it for it in unit_steps(plan, calls) if it.entry in stream.entries]
    parts = [(step, part) for step in steps for part in step.parts]
    if [it.entry for it in steps] != list(range(stream.entries.lo, stream.entries.hi)):
        return f"{where}: an entry is not a step of the unit"
    if (streams.regions, streams.memories) != _regions(plan, streams):
        return f"{where}: its regions are not arenas"
    try:
        operations = list(_operations(stream.words))
    except ValueError as error:
        return f"{where}: {error}"
    if len(operations) != len(parts):
        return f"{where}: it has {len(operations)} operations, its steps {len(parts)}"
    in_use = _InUse()
    for operation, (step, part) in zip(operations, parts, strict=True):
        if not isinstance(part, UnitRows):
            return f"{where}: the core computes row {part} of {step.operator.name}"
        reason = _fault(plan, streams, operation, step, part)
        reason = reason or _hazard(plan, operation, step, part, in_use)
        if reason is not None:
            return f"{where}: {step.operator.name}, rows {part.rows.lo} to {part.rows.hi - 1}: {reason}"
    return None


def _regions(plan: Plan, streams: UnitStreams) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return the valid regions and memories of streams: each memory has an arena and a separate region."""
    regions = tuple(it for it in streams.regions if it != FLASH)
    memories = tuple(it for it in streams.memories if it in plan.layout.arenas)
    return (regions, memories) if len(set(regions)) == len(memories) else ((), ())


def _operations(words: Sequence[int]) -> Iterator[_Operation]:
    """Yield the operations of a stream with the registers at their start.

    Raises ValueError for a payload that Arm's driver does not accept, or a command that streams do not have.
    """
    size = len(words) - _HEADER_WORDS
    if (
        [*words[:_HEADER_WORDS]] != [*_PAYLOAD, 2 | size << 16]
        or size % _HEADER_WORDS
        or not 0 < size < 1 << 16
    ):
        raise ValueError("its payload states a wrong header or length")
    registers: dict[str, int] = {}
    commands = list(decode(words[_HEADER_WORDS:]))
    for command in commands[:-1]:
        if not command.operates:
            registers[command.name] = command.value
        elif command.name in _READ:
            yield _Operation(command, dict(registers))
        else:
            raise ValueError(f"it has the command {command.name}")


def _fault(
    plan: Plan, streams: UnitStreams, operation: _Operation, step: UnitStep, part: UnitRows
) -> str | None:
    """Return how an operation differs from the step's own stream for these rows, None if it does not."""
    step_commands = list(decode(words_of(step.call, part, step.sources, step.output)))
    wanted = {it.name: it.value for it in step_commands if not it.operates}
    if next(it for it in step_commands if it.operates) != operation.command:
        return f"it runs {operation.command.name} {operation.command.value}"
    registers = _step_registers(streams, operation, step, part)
    if isinstance(registers, str):
        return registers
    for name, value in registers.items():
        if value and name not in wanted and _reads(operation, name):
            return f"{name} is still {value}, set for an earlier operation"
    wrong = [it for it, value in wanted.items() if it != _WAIT and registers.get(it) != value]
    if wrong:
        return f"{wrong[0]} is {registers.get(wrong[0])}, its step needs {wanted[wrong[0]]}"
    stream = Stream()
    try:
        stream.set(**{it: registers.get(it, 0) for it in wanted})
    except ValueError as error:
        return str(error)
    stream.operate(operation.command.name, operation.command.value)
    stream.stop()
    return fault_of_rows(plan, step, part, stream.words)


def _step_registers(
    streams: UnitStreams, operation: _Operation, step: UnitStep, part: UnitRows
) -> dict[str, int] | str:
    """Return the registers as the step's own stream sets them, with a region for each tensor.

    Return what is wrong as a text if the constants or a tensor are elsewhere.
    """
    registers, begin = dict(operation.registers), 0
    constants = step.call.params.get("constants")
    if isinstance(constants, np.ndarray):
        step_bytes = constants.tobytes()
        begin = 4 * streams.places.get(step_bytes, 0)
        if streams.constants.tobytes()[begin : begin + len(step_bytes)] != step_bytes:
            return "its constants are not among those of all streams"
    inputs = inputs_of(step.call, part)
    tensors = {"IFM": (SOURCE, step.memories[inputs[0]]), "OFM": (OUTPUT, step.memories[-1])}
    if operation.command.name == "ELEMENTWISE":
        tensors["IFM2"] = SECOND, step.memories[inputs[-1]]
    memories = dict(zip(streams.regions, streams.memories, strict=True))
    for name, (region, memory) in tensors.items():
        at = registers.get(f"{name}_REGION")
        if at == FLASH and name == "IFM2":
            registers["IFM2_BASE0"] = registers.get("IFM2_BASE0", 0) - begin
        elif at is not None and memories.get(at) == memory:
            registers[f"{name}_REGION"] = region
        elif name != "IFM2" or at:
            return f"{name} is in region {at}, the plan has it in {memory}"
    for name in ("WEIGHT_BASE", "SCALE_BASE"):
        if _reads(operation, name):
            registers[name] = registers.get(name, 0) - begin
    return registers


def _reads(operation: _Operation, name: str) -> bool:
    """Return whether an operation reads a register."""
    kind = operation.command.name
    if name == "OFM_SCALE" and kind in ("CONV", "DEPTHWISE"):
        return bool(operation.registers.get("OFM_PRECISION", 0) & GLOBAL_SCALE)
    if kind == "ELEMENTWISE" and name.startswith(_PADS):
        return False
    return name.startswith((*_READ[kind], *_ALWAYS))


def _hazard(plan: Plan, operation: _Operation, step: UnitStep, part: UnitRows, used: _InUse) -> str | None:
    """Return what an operation touches too early, or outside of an arena; add its bytes to `used`.

    With BLOCKDEP 0 the unit begins once all earlier operations have ended.
    """
    reads, writes = rows_touched(plan, step, part)
    numbers = inputs_of(step.call, part)[: len(reads)]
    read: Bytes = tuple((step.memories[at], row) for at in numbers for row in reads[at])
    written = tuple((step.memories[-1], row) for row in writes)
    for memory, row in (*read, *written):
        if not 0 <= row.lo <= row.hi <= plan.layout.arenas[memory]:
            return f"bytes {row.lo} to {row.hi - 1} are outside of the arena in {memory}"
    if operation.registers.get(_WAIT) != 0:
        reason = used.fault(read, written)
        if reason is not None:
            return reason
        read, written = (*used.read, *read), (*used.written, *written)
    used.read, used.written = read, written
    return None
