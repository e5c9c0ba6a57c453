"""All decisions about one model on one board, what was predicted of them and observed: types, hardly more."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from mcudeploy.ir.engine import CPU
from mcudeploy.ir.graph import Graph
from mcudeploy.ir.interval import Interval


@dataclass(frozen=True, slots=True)
class Step:
    """One execution of one operator: it makes block `block` of its output."""

    operator: int
    block: int


@dataclass(frozen=True, slots=True)
class Schedule:
    """The order of all steps, and how it was found (`optimal` where proven, else `feasible`).

    No order of these steps has a peak below `lower_bound_bytes`; 0 where none was proven.
    """

    steps: tuple[Step, ...]
    status: str
    lower_bound_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Residence:
    """The steps for which a block lies at a byte offset in the arena of a memory.

    An empty life: it is only passed through between two steps, or nothing needs the block.
    """

    life: Interval
    memory: str
    offset: int


Residences = tuple[tuple[Residence, ...], ...]
"""By block its residences, in the order of time."""


@dataclass(frozen=True, slots=True)
class Run:
    """An entry of the tape: a unit (None: the board's first) makes a block of an operator's output."""

    unit: str | None
    operator: int
    block: int


@dataclass(frozen=True, slots=True)
class Transfer:
    """An entry of the tape: an engine copies a block from its residence number `source` into its residence
    number `to`, before the step that this begins with. `tensor` owns its memory: its views go with it.

    The block may be read there from step `end` on, before which the program waits; until then the source
    stays as it is. The CPU copies at once: `end` is the step that `to` begins with.
    """

    engine: str
    tensor: str
    block: int
    source: int
    to: int
    end: int


@dataclass(frozen=True, slots=True)
class Wait:
    """An entry of the tape: the program waits until an engine has made a transfer, by its number among those
    of the layout, and all that the engine began before.
    """

    engine: str
    transfer: int


Entry = Run | Transfer | Wait


@dataclass(frozen=True, slots=True)
class WorkSlice:
    """An entry of a core's tape: its share of an entry of the program's tape, by number. Of a step these rows
    of the output; where there are `columns`, these columns of one row, or channels of its only pixel.
    Transfers and waits for engines have no rows: core 0 does them whole.
    """

    entry: int
    rows: Interval = field(default_factory=lambda: Interval(0, 0))
    columns: Interval | None = None


@dataclass(frozen=True, slots=True)
class Sync:
    """An entry of a core's tape, in front of a part of the same entry: it waits until another core has done
    so many parts of its tape.
    """

    entry: int
    core: int
    parts: int


Lane = tuple[WorkSlice | Sync, ...]
"""The tape of one core, in the order of the program's."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where everything lies at any time, and the size of each arena in bytes.

    `blocks`: the residences of each tensor that owns memory. `scratch`: by operator those of the scratch of
    each of its steps, by block, none for a block that no step makes; or of its state, as block 0.
    `transfers` are in the order in which they begin. `arenas`: in the order of the board's memories. Of a
    block with residences in several memories a step uses the first of these in which all that it reads of
    the tensor is.
    """

    blocks: Mapping[str, Residences]
    scratch: Mapping[str, Residences]
    arenas: Mapping[str, int]
    status: str
    transfers: tuple[Transfer, ...] = ()

    @property
    def arena_bytes(self) -> int:
        return sum(self.arenas.values())

    def begin(self, transfer: Transfer) -> int:
        """The step before which a transfer begins."""
        return self.blocks[transfer.tensor][transfer.block][transfer.to].life.lo

    def way(self, transfer: Transfer) -> tuple[Residence, Residence]:
        """The residences that a transfer joins."""
        residences = self.blocks[transfer.tensor][transfer.block]
        return residences[transfer.source], residences[transfer.to]


def memories_of(residences: Residences) -> tuple[str, ...]:
    """The memories that blocks of a tensor, or scratch of an operator, reside in, in the order of time."""
    return tuple(dict.fromkeys(each.memory for block in residences for each in block))


@dataclass(frozen=True, slots=True)
class Stalls:
    """Clocks that the core waits: for bytes that it reads and writes in steps (`direct`), and in moves
    (`copies`); and for transfers of engines (`waits`).
    """

    direct: float = 0.0
    copies: float = 0.0
    waits: float = 0.0

    @property
    def cycles(self) -> float:
        """All of them."""
        return self.direct + self.copies + self.waits


@dataclass(frozen=True, slots=True)
class Estimate:
    """What is predicted of a plan. The peak is of live bytes; `peak_step` is where it occurs.

    `lower_bound_bytes`: no placement of this schedule needs less. `traffic`: bytes that steps and transfers
    read and write in each memory. `ticks`: the latency, in the unit of the tiles' times that the search
    used; 0 where there was no search. `stalls`: how long the core waits for slow memories beside, a tick
    taken as a clock.
    """

    peak_bytes: int
    peak_step: int
    lower_bound_bytes: int
    traffic: Mapping[str, int] = field(default_factory=dict)
    ticks: float = 0.0
    stalls: Stalls = field(default_factory=Stalls)

    @property
    def exposed_ticks(self) -> float:
        """How long the core waits, all told."""
        return self.stalls.cycles


@dataclass(frozen=True, slots=True)
class Rewrites:
    """Which rewrites a graph has gone through: inputs fed by the application while the model runs; operators
    that read all rows once in the form that takes them in parts.
    """

    streamed: bool = False
    accumulating: bool = False


@dataclass(frozen=True, slots=True)
class Split:
    """Operators that are taken together in parts of `rows` along an axis; tensors inside are shared.

    `apart`: what they read from the split in front of them is whole.
    """

    operators: tuple[str, ...]
    axis: str
    rows: int
    apart: bool = False


@dataclass(frozen=True, slots=True)
class Function:
    """Operators, by name and in order, that one compute unit runs."""

    unit: str
    operators: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Search:
    """How a plan was found. `duplicates` were generated but the same as one before; `measured` tiles ran on
    a device for it, `cache_hits` were known from the database.
    """

    seconds: float = 0.0
    candidates: int = 0
    duplicates: int = 0
    measured: int = 0
    cache_hits: int = 0


MOVES = "moves"
"""What transfers go by among the times of operators, whose names end in a number or in a tensor's name."""


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A graph, how it is cut (`block_rows` of each operator), ordered and placed for a board.

    Without functions its first compute unit runs everything. `kernels` has the variant of each
    operator. `lanes`: the tapes of several cores that run it together; none where one core does. The scratch
    of a step then has a place for each core, one behind the other.
    """

    graph: Graph
    board: str
    block_rows: Mapping[str, int]
    schedule: Schedule
    layout: Layout
    estimate: Estimate
    form: Rewrites = field(default_factory=Rewrites)
    splits: tuple[Split, ...] = ()
    functions: tuple[Function, ...] = ()
    kernels: Mapping[str, str] = field(default_factory=dict)
    lanes: tuple[Lane, ...] = ()

    @property
    def tape(self) -> tuple[Entry, ...]:
        """What the program does, one after the other: the steps of the schedule, and before each of them the
        waits for transfers that end with it, then the transfers into residences that begin with it.
        """
        unit_of = {name: function.unit for function in self.functions for name in function.operators}
        entries: list[Entry] = []
        coming = deque(enumerate(self.layout.transfers))
        running: list[tuple[int, Transfer]] = []

        def wait(time: int) -> None:
            due = {transfer.engine: number for number, transfer in running if transfer.end <= time}
            entries.extend(Wait(engine, last) for engine, last in due.items())
            running[:] = [one for one in running if one[0] > due.get(one[1].engine, -1)]

        for time, step in enumerate(self.schedule.steps):
            wait(time)
            while coming and self.layout.begin(coming[0][1]) <= time:
                running += [coming[0]] * (coming[0][1].engine != CPU)
                entries.append(coming.popleft()[1])
                wait(time)
            name = self.graph.operators[step.operator].name
            entries.append(Run(unit_of.get(name), step.operator, step.block))
        return tuple(entries)

    def name_of(self, entry: Entry) -> str:
        """What the time of an entry of the tape goes to: its operator, or all transfers."""
        return self.graph.operators[entry.operator].name if isinstance(entry, Run) else MOVES


@dataclass(frozen=True, slots=True)
class OperatorTime:
    """Observed time of one operator: the sum over its steps, in the board's ticks. All transfers are one."""

    operator: str
    steps: int
    ticks: int


PATH_UNIT = "critical-path instructions"
"""The unit of a latency where an emulator runs several cores: those along the longest chain of parts."""

MODEL_UNIT = "cycles (model)"
"""The unit of a latency that a cycle model made of counted instructions."""


@dataclass(frozen=True, slots=True)
class CoresTime:
    """Of a run on emulated cores: `total`, the clock's time, which is their sum, in `unit`; `busy`, what each
    core executed in its parts.
    """

    total: int
    unit: str
    busy: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Measurement:
    """What a device reported of one run of a plan. Times of operators are those of one core."""

    latency: int
    unit: str
    operators: tuple[OperatorTime, ...] = field(default_factory=tuple)
    stack_bytes: int = 0
    cores: CoresTime | None = None

    def overhead(self, unsplit: Measurement | None) -> float | None:
        """Percent over the latency of the unsplit plan; None where that was not measured in the same unit."""
        if unsplit is None or unsplit.unit != self.unit or not unsplit.latency:
            return None
        return 100 * (self.latency / unsplit.latency - 1)
