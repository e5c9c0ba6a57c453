"""The types of a plan, all decisions for one model on one board, and of predicted and observed figures."""

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
    """The order of all steps; `status` is "optimal" if this is proven, else "feasible".

    No order of these steps has a peak below `lower_bound_bytes`, which is 0 if no bound was proven.
    """

    steps: tuple[Step, ...]
    status: str
    lower_bound_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Residence:
    """The place of a block during the steps `life`: a byte offset in the arena of a memory.

    The offset is 0 before the placement. `life` is empty if the block only passes through the memory between
    two steps, or if nothing needs the block.
    """

    life: Interval
    memory: str
    offset: int = 0


Residences = tuple[tuple[Residence, ...], ...]
"""For each block of a tensor, its residences in the order of time."""


@dataclass(frozen=True, slots=True)
class Run:
    """An entry of the tape: a unit (None: the board's first) computes a block of an operator's output."""

    unit: str | None
    operator: int
    block: int


@dataclass(frozen=True, slots=True)
class Transfer:
    """An entry of the tape: an engine copies a block from residence `source` to residence `to`.

    Both are numbers of the block's residences. The transfer begins before the first step of residence `to`.
    Steps may read the new copy from step `end` on, before which the program waits; until then the source
    stays. The CPU copies synchronously: `end` is the first step of `to`. `tensor` owns memory, so that its
    views move too. Loaded constants have the name `constants_name` instead of a tensor's.
    """

    engine: str
    tensor: str
    block: int
    source: int
    to: int
    end: int


@dataclass(frozen=True, slots=True)
class Wait:
    """An entry of the tape: the program waits until `engine` has completed a transfer and all earlier ones.

    `transfer` is its number in the layout.
    """

    engine: str
    transfer: int


Entry = Run | Transfer | Wait


@dataclass(frozen=True, slots=True)
class WorkSlice:
    """An entry of a core's tape: the core's share of entry number `entry` of the program's tape.

    The share of a step is output rows. With `columns`, it is these columns of one row, or these channels of a
    row with one pixel. Transfers and waits for engines have no rows: core 0 executes them.
    """

    entry: int
    rows: Interval = field(default_factory=lambda: Interval(0, 0))
    columns: Interval | None = None


@dataclass(frozen=True, slots=True)
class Sync:
    """An entry of a core's tape: the core waits until core `core` has completed `parts` slices of its tape.

    It stands before the slice of the same entry of the program's tape.
    """

    entry: int
    core: int
    parts: int


Lane = tuple[WorkSlice | Sync, ...]
"""The tape of one core, in the order of the program's tape."""


_CONSTANTS = "constants of "
"""Prefix of an operator's name; names of tensors have no blanks."""


def constants_name(operator: str) -> str:
    """Return the name under which transfers load an operator's constants."""
    return _CONSTANTS + operator


@dataclass(frozen=True, slots=True)
class Pieces:
    """Constants that the only step of an operator loads: it computes with a piece while the next arrives.

    A piece has the constants of `channels` output channels, the last piece those of the rest. `engine` copies
    each of a piece's `arrays` arrays by a transfer. `total_bytes`: the size of all pieces.
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

    `home`: their byte offset in the table of loaded constants. `place`: the residence in which kernels read
    them. It lasts from the begin of the transfer to the operator's last step. Constants in pieces are not in
    the table; the two halves of their place have one piece each.
    """

    size_bytes: int
    home: int
    place: Residence
    pieces: Pieces | None = None

    @property
    def home_place(self) -> Residence:
        """The residence in flash, which the constants never leave."""
        return Residence(Interval(0, self.place.life.hi), FLASH, self.home)


@dataclass(frozen=True, slots=True)
class Layout:
    """The residences of all blocks, and the size of each arena in bytes.

    `blocks`: the residences of each tensor that owns memory. `scratch`: for each operator, the residences of
    the scratch of its steps, by block; none for a block that no step writes. The state of an operator that
    accumulates is there as block 0. `constants`: by operator, those that are loaded; kernels read all others
    in flash.

    `arenas` are in the order of the board's memories, `transfers` in the order in which they begin. If blocks
    of a tensor reside in several memories, a step uses the first memory that contains all blocks it reads.
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
        """Return the layout in which kernels read all constants in flash."""
        moves = tuple(it for it in self.transfers if self.loaded_by(it) is None)
        return replace(self, transfers=moves, constants={})

    def begin(self, transfer: Transfer) -> int:
        """Return the step before which a transfer begins."""
        return self.way(transfer)[1].life.lo

    def in_pieces(self) -> Iterator[tuple[str, LoadedConstants, Pieces]]:
        """Yield the operators that load their constants in pieces, with these constants and pieces."""
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

    `direct`: by accesses of steps to slow memories. `forced`: the part of `direct` for inputs and outputs
    that may not be in a fast memory. `copies`: by copies of the core. `waits`: by waits for transfers.
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
"""Avoidable stalls below this share of the latency count as 0 if there are forced ones."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Predicted figures of a plan.

    `peak_bytes` of live blocks, at step `peak_step`; no placement of this schedule needs less. `traffic`: the
    bytes that steps and transfers read and write in each memory. `ticks`: the latency without stalls, in the
    unit of the tile times of the search; 0 without a search. `stalls`: further waits for slow memories, at
    one tick per clock.
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
        """Ticks of stalls that are not forced.

        If there are forced stalls, a negligible rest counts as 0: otherwise a search would spend RAM on it.
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
    """Fused chains, each as the names of its stages."""

    @property
    def stack_bytes(self) -> int:
        """The stack in bytes that such programs need in addition to that of other programs.

        The kernel of a fused chain calls others: on Cortex-M0 and M4 this takes some 550 bytes.
        """
        return 640 if self.fused else 0


@dataclass(frozen=True, slots=True)
class Split:
    """A cut: operators that run in parts of `rows` rows along an axis.

    `apart`: whether the tensors that they read from the previous cut are whole. `staggered`: whether parts
    end where the windows of their first reader end.
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

    `duplicates`: candidates equal to an earlier one. `measured`: tiles that ran on a device. `cache_hits`:
    tiles whose times were in the database.
    """

    seconds: float = 0.0
    candidates: int = 0
    duplicates: int = 0
    measured: int = 0
    cache_hits: int = 0


MOVES = "moves"
"""The name of all transfers in lists of operator times. No operator has it."""


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """All decisions for a graph on a board.

    `block_rows`: the rows of the blocks of each operator; `leads`: the rows that the first block lacks, if
    any. `functions`: the operators of each compute unit; without functions, the board's first unit runs all.
    `kernels`: the variant of each operator. `lanes`: the core tapes if several cores run the plan; then the
    scratch of a step has one section for each core. `parameters` are in the board's first memory, beside its
    arena; no step writes them.
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
        """Return the division of an operator's iteration rows into steps."""
        return BlockRows(self.block_rows[operator], self.leads.get(operator, 0))

    @property
    def tape(self) -> tuple[Entry, ...]:
        """Return the entries that the program executes, in sequence."""
        unit_of = {name: function.unit for function in self.functions for name in function.operators}
        units = [unit_of.get(operator.name) for operator in self.graph.operators]
        return tuple(
            Run(units[it.operator], it.operator, it.block) if isinstance(it, Step) else it
            for it in sequence(self.schedule.steps, self.layout)
        )

    def name_of(self, entry: Entry) -> str:
        """Return the name under which an entry's time is summed: its operator's, or MOVES."""
        return self.graph.operators[entry.operator].name if isinstance(entry, Run) else MOVES


def sequence(steps: Sequence[Step], layout: Layout) -> Iterator[Step | Transfer | Wait]:
    """Yield the steps, transfers and waits that a program executes, in sequence.

    Before each step come the waits for transfers whose `end` it is, then the transfers into residences that
    begin at this step. After the last step come the waits for all transfers that still run.
    """
    later = deque(enumerate(layout.transfers))
    running: list[tuple[int, Transfer]] = []

    def waits(step_number: int) -> Iterator[Wait]:
        due = {transfer.engine: number for number, transfer in running if transfer.end <= step_number}
        running[:] = [one for one in running if one[0] > due.get(one[1].engine, -1)]
        return (Wait(engine, last) for engine, last in due.items())

    for step_number, step in enumerate(steps):
        yield from waits(step_number)
        while later and layout.begin(later[0][1]) <= step_number:
            number, transfer = later.popleft()
            if transfer.engine != CPU:
                running.append((number, transfer))
            yield transfer
            yield from waits(step_number)
        yield step
    yield from waits(len(steps))


@dataclass(frozen=True, slots=True)
class OperatorTime:
    """Observed time of all steps of one operator, in the board's ticks; all transfers are the entry MOVES."""

    operator: str
    steps: int
    ticks: int


@dataclass(frozen=True, slots=True)
class CoresTime:
    """Times of a run on emulated cores, in `unit`: `busy` is the work of each core, `total` their sum."""

    total: int
    unit: str
    busy: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Measurement:
    """The figures that a device reported for one run of a plan.

    The times of `operators` are those of a run on one core.
    """

    latency: int
    unit: str
    operators: tuple[OperatorTime, ...] = field(default_factory=tuple)
    stack_bytes: int = 0
    cores: CoresTime | None = None
