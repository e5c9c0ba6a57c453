"""The types of a plan: all decisions for one model on one board, with predicted and observed figures."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mcudeploy.ir.block_rows import BlockRows
from mcudeploy.ir.engine import CPU, FLASH
from mcudeploy.ir.graph import Graph
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.parameter_table import ParameterTable


@dataclass(frozen=True, slots=True)
class Step:
    """One execution of one operator; it writes block `block` of its output."""

    operator: int
    block: int


@dataclass(frozen=True, slots=True)
class Schedule:
    """The order of all steps and its status: `optimal` if proven, else `feasible`.

    No order of these steps has a peak below `lower_bound_bytes`; 0 if no bound was proven.
    """

    steps: tuple[Step, ...]
    status: str
    lower_bound_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Residence:
    """The byte offset of a block in the arena of a memory during some steps, 0 before it is placed.

    The range is empty if the block only passes through between two steps, or if nothing needs it.
    """

    life: Interval
    memory: str
    offset: int = 0


Residences = tuple[tuple[Residence, ...], ...]
"""The residences of each block, by block, in the order of time."""


@dataclass(frozen=True, slots=True)
class Run:
    """An entry of the tape: a unit (None: the board's first) computes a block of an operator's output."""

    unit: str | None
    operator: int
    block: int


@dataclass(frozen=True, slots=True)
class Transfer:
    """An entry of the tape: an engine copies a block from residence `source` to residence `to`.

    The numbers count the block's residences. The transfer begins before the step at which residence `to`
    begins. `tensor` owns its memory, so its views move with it. The block may be read at the new place from
    step `end` on; the program waits before that step. Until then the source stays intact. The CPU copies
    synchronously: `end` is the first step of `to`. Loaded constants move as blocks of `constants_name`.
    """

    engine: str
    tensor: str
    block: int
    source: int
    to: int
    end: int


@dataclass(frozen=True, slots=True)
class Wait:
    """An entry of the tape: the program waits for a transfer, by its number in the layout.

    It also waits for all transfers that the same engine began before.
    """

    engine: str
    transfer: int


Entry = Run | Transfer | Wait


@dataclass(frozen=True, slots=True)
class WorkSlice:
    """An entry of a core's tape: the core's share of an entry of the program's tape, by number.

    For a step, these are the output rows. With `columns`, only these columns of one row, or these channels if
    it has one pixel. Transfers and waits for engines have no rows: core 0 executes them whole.
    """

    entry: int
    rows: Interval = field(default_factory=lambda: Interval(0, 0))
    columns: Interval | None = None


@dataclass(frozen=True, slots=True)
class Sync:
    """An entry of a core's tape, before a slice of the same entry.

    The core waits until another core has completed `parts` slices of its tape.
    """

    entry: int
    core: int
    parts: int


Lane = tuple[WorkSlice | Sync, ...]
"""The tape of one core, in the order of the program's tape."""


_CONSTANTS = "constants of "
"""Before an operator's name; no tensor has a name with blanks."""


def constants_name(operator: str) -> str:
    """Return the name under which transfers load an operator's constants."""
    return _CONSTANTS + operator


@dataclass(frozen=True, slots=True)
class Pieces:
    """Constants that the operator's only step loads itself: it computes with a piece while the next arrives.

    `engine` copies them. A piece has the constants of `channels` output channels, the last one of the rest:
    a transfer for each of `arrays` arrays. `total_bytes`: of all pieces.
    """

    engine: str
    channels: int
    count: int
    arrays: int
    total_bytes: int

    @property
    def transfers(self) -> int:
        """The number of transfers of all pieces."""
        return self.count * self.arrays


@dataclass(frozen=True, slots=True)
class LoadedConstants:
    """The constants of an operator, which a transfer loads from flash into an arena before they are used.

    `home`: their offset in the table of loaded constants, in bytes. `place`: where kernels read them, from
    the step before which the transfer begins to the operator's last one. Constants in pieces are not in the
    table. Their place has room for two pieces, one in each half.
    """

    size_bytes: int
    home: int
    place: Residence
    pieces: Pieces | None = None

    @property
    def home_place(self) -> Residence:
        """The place in flash, which they never leave."""
        return Residence(Interval(0, self.place.life.hi), FLASH, self.home)


@dataclass(frozen=True, slots=True)
class Layout:
    """The residences of all blocks, and the size of each arena in bytes.

    `blocks` maps each tensor that owns memory to its residences. `scratch` maps each operator to the
    residences of the scratch of its steps, by block, with none for a block that no step writes; or to those
    of its state, as block 0. `transfers` are in the order in which they begin, `arenas` in the order of the
    board's memories. If a block resides in several memories, a step uses the first memory that contains all
    it reads of the tensor. `constants`: those that are loaded, by operator; all others are read in flash.
    """

    blocks: Mapping[str, Residences]
    scratch: Mapping[str, Residences]
    arenas: Mapping[str, int]
    status: str
    transfers: tuple[Transfer, ...] = ()
    constants: Mapping[str, LoadedConstants] = field(default_factory=dict)

    @property
    def arena_bytes(self) -> int:
        return sum(self.arenas.values())

    def without_loads(self) -> Layout:
        """Return the layout in which all constants are read in flash."""
        moves = tuple(it for it in self.transfers if self.loaded_by(it) is None)
        return replace(self, transfers=moves, constants={})

    def begin(self, transfer: Transfer) -> int:
        """Return the step before which a transfer begins."""
        return self.way(transfer)[1].life.lo

    def in_pieces(self) -> Iterator[tuple[str, LoadedConstants, Pieces]]:
        """Yield the operators that load their constants in pieces."""
        for name, loaded in self.constants.items():
            if loaded.pieces is not None:
                yield name, loaded, loaded.pieces

    def loaded_by(self, transfer: Transfer) -> LoadedConstants | None:
        """Return the constants that a transfer loads; None if it moves a block of a tensor."""
        if not transfer.tensor.startswith(_CONSTANTS):
            return None
        return self.constants.get(transfer.tensor.removeprefix(_CONSTANTS))

    def way(self, transfer: Transfer) -> tuple[Residence, Residence]:
        """Return the source and target residences of a transfer."""
        if (constants := self.loaded_by(transfer)) is not None:
            return constants.home_place, constants.place
        residences = self.blocks[transfer.tensor][transfer.block]
        return residences[transfer.source], residences[transfer.to]


def memories_of(residences: Residences) -> tuple[str, ...]:
    """Return the memories in which a tensor's blocks or an operator's scratch reside, in time order."""
    return tuple(dict.fromkeys(each.memory for block in residences for each in block))


@dataclass(frozen=True, slots=True)
class Stalls:
    """Clock cycles for which the core stalls.

    `direct`: accesses of steps; `forced`: of these, inputs and outputs that no fast memory may contain.
    `copies`: copies by the core. `waits`: waits for engines' transfers.
    """

    direct: float = 0.0
    copies: float = 0.0
    waits: float = 0.0
    forced: float = 0.0

    @property
    def cycles(self) -> float:
        """Sum of all stalls."""
        return self.direct + self.copies + self.waits


_NEGLIGIBLE = 0.001
"""Share of the latency below which avoidable stalls count as none beside forced ones."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Predicted figures of a plan: the peak of live bytes, and the step at which it occurs.

    No placement of this schedule needs less than the peak. `traffic` counts the bytes that steps and
    transfers read and write in each memory. `ticks` is the latency in the unit of the tile times that the
    search used; 0 without a search. `stalls` is the additional waiting for slow memories, at one tick per
    clock.
    """

    peak_bytes: int
    peak_step: int
    traffic: Mapping[str, int] = field(default_factory=dict)
    ticks: float = 0.0
    stalls: Stalls = field(default_factory=Stalls)

    @property
    def exposed_ticks(self) -> float:
        """Ticks for which the core waits, in total."""
        return self.stalls.cycles

    @property
    def avoidable_ticks(self) -> float:
        """Ticks of stalls without the forced ones.

        Beside forced ones a negligible rest counts as 0, since a search would spend RAM on it.
        """
        avoidable, forced = self.stalls.cycles - self.stalls.forced, self.stalls.forced
        return 0.0 if forced and avoidable < _NEGLIGIBLE * self.latency_ticks else avoidable

    @property
    def unavoidable_ticks(self) -> float:
        """The latency with forced stalls alone."""
        return self.ticks + self.stalls.forced

    @property
    def latency_ticks(self) -> float:
        """The latency, stalls included."""
        return self.ticks + self.exposed_ticks


@dataclass(frozen=True, slots=True)
class Rewrites:
    """The form of a graph: the rewrites applied to it."""

    streamed: bool = False
    """The application streams inputs while the model runs."""
    accumulating: bool = False
    """Operators that read all rows once accumulate them block by block."""
    fused: tuple[tuple[str, ...], ...] = ()
    """Chains of operators that are one operator, by the names of their stages."""

    @property
    def stack_bytes(self) -> int:
        """The stack in bytes that programs need beside that of other programs.

        The kernel of a fused chain calls others, so the bound rises by some 550 on Cortex-M0 and M4.
        """
        return 640 if self.fused else 0


@dataclass(frozen=True, slots=True)
class Split:
    """Operators that are cut together in parts of `rows` along an axis; tensors inside are shared.

    `apart`: the tensors they read from the previous split are whole. `staggered`: a part ends where the parts
    of its first reader end.
    """

    operators: tuple[str, ...]
    axis: str
    rows: int
    apart: bool = False
    staggered: bool = False


@dataclass(frozen=True, slots=True)
class Function:
    """Operators, by name and in order, that one compute unit runs."""

    unit: str
    operators: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Search:
    """Statistics of a search.

    `duplicates` counts candidates equal to an earlier one, `measured` the tiles that ran on a device,
    `cache_hits` the times that the database already contained.
    """

    seconds: float = 0.0
    candidates: int = 0
    duplicates: int = 0
    measured: int = 0
    cache_hits: int = 0


MOVES = "moves"
"""The name under which operator times list transfers; operators' names end in a number or a tensor's name."""


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A graph, how it is cut (`block_rows` of each operator), ordered and placed for a board.

    `leads`: the rows that an operator's first block lacks, if any. Without functions, the board's first
    compute unit runs everything. `kernels` names the variant of each operator. `lanes` contains the core
    tapes if several cores run the plan. The scratch of a step then has one section for each core.
    `parameters`: in the board's first memory, beside its arena; no step writes them.
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
    leads: Mapping[str, int] = field(default_factory=dict)
    parameters: ParameterTable = field(default_factory=ParameterTable)

    def rows_of(self, operator: str) -> BlockRows:
        """Return how the iteration rows of an operator are divided into steps."""
        return BlockRows(self.block_rows[operator], self.leads.get(operator, 0))

    @property
    def tape(self) -> tuple[Entry, ...]:
        """Return what the program executes, in sequence, with the units that compute."""
        unit_of = {name: function.unit for function in self.functions for name in function.operators}
        units = [unit_of.get(operator.name) for operator in self.graph.operators]
        return tuple(
            Run(units[it.operator], it.operator, it.block) if isinstance(it, Step) else it
            for it in sequence(self.schedule.steps, self.layout)
        )

    def name_of(self, entry: Entry) -> str:
        """Return the name under which an entry's time is summed: its operator, or that of all transfers."""
        return self.graph.operators[entry.operator].name if isinstance(entry, Run) else MOVES


def sequence(steps: Sequence[Step], layout: Layout) -> Iterator[Step | Transfer | Wait]:
    """Yield what a program executes.

    Before each step of the schedule come the waits for transfers that end with it, then the transfers into
    residences that begin with it. After the last step come the waits for all that are under way.
    """
    coming = deque(enumerate(layout.transfers))
    running: list[tuple[int, Transfer]] = []

    def waits(time: int) -> Iterator[Wait]:
        due = {transfer.engine: number for number, transfer in running if transfer.end <= time}
        running[:] = [one for one in running if one[0] > due.get(one[1].engine, -1)]
        return (Wait(engine, last) for engine, last in due.items())

    for time, step in enumerate(steps):
        yield from waits(time)
        while coming and layout.begin(coming[0][1]) <= time:
            number, transfer = coming.popleft()
            if transfer.engine != CPU:
                running.append((number, transfer))
            yield transfer
            yield from waits(time)
        yield step
    yield from waits(len(steps))


@dataclass(frozen=True, slots=True)
class OperatorTime:
    """Observed time of one operator in the board's ticks, over all its steps. All transfers are one entry."""

    operator: str
    steps: int
    ticks: int


@dataclass(frozen=True, slots=True)
class CoresTime:
    """Times of a run on emulated cores, in `unit`: `total` is the sum, `busy` the work of each core."""

    total: int
    unit: str
    busy: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Measurement:
    """The figures that a device reported for one run of a plan. Operator times are those of one core."""

    latency: int
    unit: str
    operators: tuple[OperatorTime, ...] = field(default_factory=tuple)
    stack_bytes: int = 0
    cores: CoresTime | None = None
