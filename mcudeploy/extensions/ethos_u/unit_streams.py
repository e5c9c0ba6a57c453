"""One command stream for consecutive steps of the unit: commands set only the registers that change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mcudeploy.extensions.ethos_u.registers import Stream, decode
from mcudeploy.extensions.ethos_u.unit_calls import FLASH, SECOND, SOURCE
from mcudeploy.extensions.ethos_u.unit_steps import UnitRows, UnitStep, inputs_of, unit_steps, words_of
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import KernelCall
from mcudeploy.ir.plan import Plan
from mcudeploy.planner.tape.joined_streams import UnitStream, UnitStreams, joined_constants
from mcudeploy.tiling.dataflow import Dataflow

ARENA_REGIONS = (1, 3, 4, 5, 6)
"""Regions of arenas. Arm's driver may put region 2 into a fast memory, and takes the last one for itself."""
_MOST_WORDS = 0xFFFF - 256
"""After a stream of more words, the next step begins another: Arm's driver has 16 bits for their number."""
_HEADER = (0x31504F43, 5, 5)
"""The word "COP1" and two actions that do nothing, before the action that runs a stream."""
_ACTION = 2
_ALIGNED_WORDS = 4
UNREAD = {
    "CONV": ("IFM2_", "OPA_", "OPB_", "OFM_SCALE"),
    "DEPTHWISE": ("IFM2_", "OPA_", "OPB_", "OFM_SCALE"),
    "POOL": ("IFM2_", "OPA_", "OPB_", "WEIGHT_", "SCALE_"),
    "ELEMENTWISE": ("KERNEL_", "WEIGHT_", "SCALE_", "IFM_PAD_"),
}
"""Beginnings of the names of registers that an operation does not read, unless its own commands set them."""

Registers = dict[str, int]


@dataclass(slots=True)
class _Joining:
    """A stream under construction, for the entries `first` to `end` - 1 of the tape, and the registers that
    its commands have set.
    """

    first: int
    end: int
    stream: Stream = field(default_factory=Stream)
    registers: Registers = field(default_factory=dict)
    operations: int = 0

    def run(self, wanted: Registers, operation: int) -> None:
        """Append an operation that needs the registers `wanted`, after commands for those that differ.

        Other registers that the operation reads become 0.
        """
        name = next(decode([operation, *_stop_words()])).name
        stale = {
            it: 0
            for it, value in self.registers.items()
            if value and it not in wanted and not it.startswith(UNREAD[name])
        }
        changed = {it: value for it, value in {**stale, **wanted}.items() if self.registers.get(it) != value}
        self.stream.set(**changed)
        self.registers |= changed
        self.stream.words.append(operation)
        self.operations += 1

    @property
    def done(self) -> UnitStream:
        """The stream with its end and header, filled up to a multiple of 16 bytes."""
        self.stream.stop()
        words = self.stream.words
        filled = [*words, *[0] * (-len(words) % _ALIGNED_WORDS)]
        header = [*_HEADER, _ACTION | len(filled) << 16]
        return UnitStream(Interval(self.first, self.end), (*header, *filled), self.operations)


def _stop_words() -> list[int]:
    stream = Stream()
    stream.stop()
    return stream.words


def joined(plan: Plan, calls: Mapping[str, KernelCall]) -> UnitStreams | None:
    """Return the streams of consecutive steps of the unit; None if it computes no step.

    A step with rows of the core is not joined with others. Nor is a step that touches a state, which has
    another place in each instance of a model.
    """
    memories = tuple(plan.layout.arenas)[: len(ARENA_REGIONS)]
    states, roots = {it.tensor for it in plan.graph.states}, Dataflow.of(plan.graph).roots

    def joins(step: UnitStep) -> bool:
        touched = {roots[name] for name in (*step.operator.inputs, step.operator.output)}
        return bool(step.parts) and not (
            step.needs_core or touched & states or not set(step.memories) <= set(memories)
        )

    steps = [it for it in unit_steps(plan, calls) if joins(it)]
    if not steps:
        return None
    arrays = [it.params["constants"] for it in _unit_calls(calls) if "constants" in it.params]
    constants, places = joined_constants([it for it in arrays if isinstance(it, np.ndarray)])
    regions = dict(zip(memories, ARENA_REGIONS, strict=False))
    joinings: list[_Joining] = []
    for step in steps:
        latest = joinings[-1] if joinings else None
        if latest is None or latest.end != step.entry or len(latest.stream.words) > _MOST_WORDS:
            latest = _Joining(step.entry, step.entry)
            joinings.append(latest)
        latest.end = step.entry + 1
        for part in step.parts:
            assert isinstance(part, UnitRows)
            latest.run(*placed(step, part, places, regions))
    streams = tuple(it.done for it in joinings)
    return UnitStreams(streams, constants, places, memories, tuple(regions.values()))


def _unit_calls(calls: Mapping[str, KernelCall]) -> Iterator[KernelCall]:
    return (it for call in calls.values() for it in call.every_call() if it.isa.unit)


def placed(
    step: UnitStep, part: UnitRows, places: Mapping[bytes, int], regions: Mapping[str, int]
) -> tuple[Registers, int]:
    """Return the registers of a part of a step for a joined stream, and its operation.

    The regions of joined streams are arenas, not tensors, and region 0 contains the constants of all
    operators, each at its offset in `places`.
    """
    commands = list(decode(words_of(step.call, part, step.sources, step.output)))
    registers = {it.name: it.value for it in commands if not it.operates}
    params: dict[str, Any] = dict(step.call.params)
    constants = params.get("constants")
    begin = 0 if constants is None else 4 * places[constants.tobytes()]
    inputs = inputs_of(step.call, part)
    memories = {SOURCE: step.memories[inputs[0]], SECOND: step.memories[inputs[-1]]}
    for name in ("IFM", "IFM2", "OFM"):
        region = registers.get(f"{name}_REGION")
        if region is None:
            continue
        if region == FLASH:
            registers[f"{name}_BASE0"] += begin
        else:
            memory = step.memories[-1] if name == "OFM" else memories[region]
            registers[f"{name}_REGION"] = regions[memory]
    for name in ("WEIGHT_BASE", "SCALE_BASE"):
        if name in registers:
            registers[name] += begin
    return registers, params["operation"]
