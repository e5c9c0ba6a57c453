"""Guards: bytes after every arena that no step may change, and the end of the stack, checked after a run."""

from __future__ import annotations

from dataclasses import replace

from mcudeploy.codegen.program import Program
from mcudeploy.common.errors import DeployError
from mcudeploy.device.replies import StackReport
from mcudeploy.device.target import Device

GUARD = bytes.fromhex("a5c35a3c 0ff0e11e 7e81bd42 d14b66f9")
_PAINTED_BYTES = 65536
"""Bytes checked at the end of a stack, at most: MCUD_PAINT_BYTES."""


def guarded(program: Program) -> Program:
    """Return the program with room for a guard after each arena."""
    arenas = [replace(arena, size_bytes=arena.size_bytes + len(GUARD)) for arena in program.arenas]
    return replace(program, arenas=arenas)


def arm(device: Device, program: Program) -> None:
    """Write the guards. `program`: without room for them."""
    for number, arena in enumerate(program.arenas):
        device.write(number, arena.size_bytes, GUARD)


def require_intact(device: Device, program: Program, stack: StackReport) -> None:
    """Raise DeployError that names every overwritten guard, and its first changed byte."""
    overwritten = []
    for number, arena in enumerate(program.arenas):
        data = device.read(number, arena.size_bytes, len(GUARD))
        if data != GUARD:
            first = next(at for at, (one, other) in enumerate(zip(data, GUARD, strict=True)) if one != other)
            overwritten.append(f"the guard after the arena in {arena.memory}, from its byte {first} on")
    if stack.used_bytes >= min(stack.size_bytes, _PAINTED_BYTES):
        overwritten.append(f"the end of the stack, {stack.used_bytes:,} B below its top")
    if overwritten:
        changed = " and ".join(overwritten)
        raise DeployError(f"the run has overwritten {changed}: this is a defect of mcudeploy")
