"""All decisions about one model on one board, what was predicted of them and observed: types, hardly more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mcudeploy.graph import Graph


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
class Placement:
    """Where the blocks of one tensor lie: byte offsets in the arena of `memory`.

    Block b holds rows [b * block_rows, (b + 1) * block_rows). Scratch has one block per step.
    """

    memory: str
    block_rows: int
    offsets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Move:
    """Before step `before` of the schedule the bytes of a block go to `offset` in their arena, where it lies
    from then on. `tensor` owns its memory: its views go with it.
    """

    before: int
    tensor: str
    block: int
    offset: int


@dataclass(frozen=True, slots=True)
class Layout:
    """Every tensor's and every operator's scratch placement, and the size of each arena in bytes.

    `moves` are in the order in which they are made; placements have the offsets that blocks are born at.
    """

    tensors: Mapping[str, Placement]
    scratch: Mapping[str, Placement]
    arenas: Mapping[str, int]
    status: str
    moves: tuple[Move, ...] = ()

    @property
    def arena_bytes(self) -> int:
        return sum(self.arenas.values())


@dataclass(frozen=True, slots=True)
class Estimate:
    """What the simulator predicts. The peak is of live bytes; `peak_step` is where it occurs.

    `lower_bound_bytes`: no placement of this schedule needs less. `traffic`: bytes that steps and moves
    read and write in each memory. `ticks`: the latency, in the unit of the tiles' times that the search
    used; 0 where there was no search.
    """

    peak_bytes: int
    peak_step: int
    lower_bound_bytes: int
    traffic: Mapping[str, int] = field(default_factory=dict)
    ticks: float = 0.0


@dataclass(frozen=True, slots=True)
class Form:
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


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A graph, how it is cut (`block_rows` of each operator), ordered and placed for a board.

    Without functions its first compute unit runs everything. `kernels` has each operator's
    variant.
    """

    graph: Graph
    board: str
    block_rows: Mapping[str, int]
    schedule: Schedule
    layout: Layout
    estimate: Estimate
    form: Form = field(default_factory=Form)
    splits: tuple[Split, ...] = ()
    functions: tuple[Function, ...] = ()
    kernels: Mapping[str, str] = field(default_factory=dict)

    @property
    def tape(self) -> tuple[Step | Move, ...]:
        """What the program does, one after the other: the steps of the schedule, moves between them."""
        moves, entries = iter(self.layout.moves), list[Step | Move]()
        move = next(moves, None)
        for time, step in enumerate(self.schedule.steps):
            while move is not None and move.before <= time:
                entries.append(move)
                move = next(moves, None)
            entries.append(step)
        return tuple(entries)

    def name_of(self, entry: Step | Move) -> str:
        """What the time of an entry of the tape goes to: its operator, or all moves."""
        return MOVES if isinstance(entry, Move) else self.graph.operators[entry.operator].name


MOVES = "moves"
"""What moves go by among the times of operators, whose names end in a number or in a tensor's name."""


@dataclass(frozen=True, slots=True)
class OperatorTime:
    """Observed time of one operator: the sum over its steps, in the board's ticks. All moves are one."""

    operator: str
    steps: int
    ticks: int


@dataclass(frozen=True, slots=True)
class Measurement:
    """What a device reported of one run of a plan."""

    latency: int
    unit: str
    operators: tuple[OperatorTime, ...] = field(default_factory=tuple)
    stack_bytes: int = 0

    def overhead(self, unsplit: Measurement | None) -> float | None:
        """Percent over the latency of the unsplit plan; None where that was not measured in the same unit."""
        if unsplit is None or unsplit.unit != self.unit or not unsplit.latency:
            return None
        return 100 * (self.latency / unsplit.latency - 1)
