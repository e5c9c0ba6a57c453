"""The schedule of a program, whose unit may run a command stream for consecutive steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from mcudeploy.codegen.comments import ScheduleRun, schedule_runs
from mcudeploy.codegen.header import entries_of
from mcudeploy.codegen.texts import OperatorText
from mcudeploy.common.text import count_text
from mcudeploy.ir.opdef import KernelCall
from mcudeploy.ir.plan import Entry
from mcudeploy.planner.tape.joined_streams import UnitStream, UnitStreams
from mcudeploy.planner.tape.plan_view import PlanView
from mcudeploy.planner.tape.tape import NamedRange, Tape

ScheduleKind = Literal["steps", "streams", "both"]
"""The steps of a program: "steps" are the entries of the tape; "streams" run command streams in place of the
entries of the unit; "both" are all of the former, then all of the latter, so that a measurer can run either.
"""


@dataclass(frozen=True, eq=False)
class ProgramSchedule:
    """The records and codes of a program; `kind` is "steps" if it has no streams.

    Joined steps run streams, and the entries of the tape that no stream computes.
    """

    view: PlanView
    streams: UnitStreams | None
    kind: ScheduleKind

    @classmethod
    def of(cls, view: PlanView, kind: ScheduleKind) -> ProgramSchedule:
        """Return the schedule of a plan's program."""
        streams = None if kind == "steps" else view.streams
        return cls(view, streams, kind if streams else "steps")

    @cached_property
    def tape(self) -> Tape:
        """The tape, whose codes have room for the number of a stream."""
        return Tape(self.view.plan, len(self.streams.streams)) if self.streams else self.view.tape

    @cached_property
    def calls(self) -> Mapping[str, KernelCall]:
        """The kernel calls, whose constants are those of the streams."""
        return self.streams.pointing(self.view.calls) if self.streams else self.view.calls

    @cached_property
    def items(self) -> Sequence[Entry | UnitStream]:
        """The entry of the tape, or the stream, that each joined step runs; without streams, the tape."""
        entries = self.view.entries
        if not self.streams:
            return entries
        return [entries[it] if isinstance(it, int) else it for it in self._items]

    @cached_property
    def _items(self) -> list[int | UnitStream]:
        """The stream, or the number of the tape's entry, that each joined step runs."""
        return self.streams.items(len(self.view.entries)) if self.streams else []

    @cached_property
    def records(self) -> list[int]:
        """The records of the tape that the program has: all, or those of operators with a step beside the
        streams.
        """
        every = range(len(self.tape.records))
        if self.kind != "streams":
            return [*every]
        run = {self.tape.record_of(it)[0] for it in self._items if isinstance(it, int)}
        operators = {self.tape.records[at].operator for at in run if at < len(self.tape.records)}
        return [at for at in every if self.tape.records[at].operator in operators]

    @property
    def stored(self) -> list[tuple[NamedRange, int]]:
        """The tensors and scratch that these records name."""
        named = {pair for at in self.records for pair in self.tape.records[at].touched}
        return [it for it in self.tape.stored_as if self.kind != "streams" or it in named]

    @property
    def stream_record(self) -> int:
        """The number of the record of the streams, after those of operators, moves and waits."""
        return len(self.records) + len(self.tape.moves) + len(self.tape.waits)

    @cached_property
    def _codes(self) -> list[tuple[int, int]]:
        """The record and the block of each joined step."""
        numbers = {at: new for new, at in enumerate(self.records)}
        left_out = len(self.tape.records) - len(self.records)

        def code(item: int | UnitStream) -> tuple[int, int]:
            if isinstance(item, UnitStream):
                assert self.streams is not None
                return self.stream_record, self.streams.streams.index(item)
            record, block = self.tape.record_of(item)
            return numbers.get(record, record - left_out), block

        return [code(it) for it in self._items]

    @property
    def largest_code(self) -> int:
        """The largest code of a step: its record's number, and the number of its block in the lowest bits."""
        joined = (record << self.tape.block_bits | block for record, block in self._codes)
        return max([int(self.tape.codes.max(initial=0)), *joined])

    @property
    def first_step(self) -> int:
        """The number of the first joined step, after the tape's entries; 0 for a program of streams only."""
        return 0 if self.kind == "streams" else len(self.view.entries)

    @property
    def steps(self) -> int:
        """The number of steps of the program."""
        return self.first_step + len(self._items)

    @property
    def places(self) -> Sequence[int]:
        """The step of the program that contains each step of the plan's schedule."""
        entries = entries_of(self.view)
        if self.kind != "streams" or self.streams is None:
            return entries
        steps = self.streams.steps_of(len(self.view.entries))
        return [steps[entry] for entry in entries]

    def runs(self, records: Sequence[OperatorText]) -> list[ScheduleRun]:
        """Return the codes of the program by runs, each with a comment."""
        return [*(schedule_runs(self.tape, records) if self.first_step else ()), *self._joined_runs()]

    def _joined_runs(self) -> Iterator[ScheduleRun]:
        name_of = self.view.plan.name_of
        for place, (item, code) in enumerate(zip(self._items, self._codes, strict=True), self.first_step):
            if isinstance(item, UnitStream):
                text = f"stream of {count_text(len(item.entries), 'step')}"
            else:
                text = name_of(self.view.entries[item])
            record, block = code
            yield ScheduleRun([f"step {place}: {text}"], [f"{record}u << {self.tape.block_bits} | {block}u"])
