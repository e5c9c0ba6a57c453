"""Text of a program's tables and records, for the templates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mcudeploy.codegen.ctext import c_elements
from mcudeploy.ir.block_rows import BlockRows
from mcudeploy.planner.tape.tape import ONE_PIECE


@dataclass(frozen=True, slots=True)
class ConstantText:
    """An array in flash."""

    name: str
    type: str
    count: int
    lines: list[str]
    alignment: int = 0
    """Bytes that a unit needs its address to be a multiple of; 0: as its type."""

    @property
    def holds_infinity(self) -> bool:
        """Whether it holds infinities, whose macro is one of math.h."""
        return any("INFINITY" in line for line in self.lines)


@dataclass(frozen=True, slots=True)
class ParameterText:
    """A member of the struct of parameters: its name, offset and initial values.

    After it come `gap_bytes` without meaning, up to the next member or the end.
    """

    name: str
    type: str
    count: int
    offset: int
    gap_bytes: int
    lines: list[str]


@dataclass(frozen=True, slots=True)
class TableText:
    """The struct of parameters, and the hash of the model as C."""

    members: list[ParameterText]
    operators: str
    size_bytes: int
    hash: str
    assignments: list[str]
    """The statements that point the records of kernels at `values`, with parameters in flash; else none."""

    @property
    def holds_infinity(self) -> bool:
        """Whether it holds infinities, whose macro is one of math.h."""
        return any("INFINITY" in line for member in self.members for line in member.lines)


@dataclass(frozen=True, slots=True)
class HeadMember:
    """An array in a head's table: the C type and bytes of an item, and the number of items.

    `most`: the largest value that an item of a loaded blob may have; None without a limit.
    """

    name: str
    type: str
    item_bytes: int
    count: int
    most: int | None = None

    @property
    def size_bytes(self) -> int:
        """The bytes of the array."""
        return self.item_bytes * self.count


@dataclass(frozen=True, slots=True)
class FeatureStatistics:
    """The mean and the standard deviation of each feature of a head over training data."""

    means: tuple[float, ...]
    deviations: tuple[float, ...]

    @property
    def members(self) -> list[HeadMember]:
        """The arrays in the head's table for the statistics of features that the device sees."""
        count = len(self.means)
        return [
            HeadMember("means", "float", 4, count),
            HeadMember("squares", "float", 4, count),
            HeadMember("count", "uint32_t", 4, 1),
        ]

    @property
    def arrays(self) -> dict[str, list[str]]:
        """The elements of the arrays in flash, by the names of their fields."""
        fields = {"training_means": self.means, "training_deviations": self.deviations}
        return {name: c_elements(np.array(it, np.float32)) for name, it in fields.items()}


@dataclass(frozen=True, slots=True)
class HeadText:
    """A classifier on the output: its table in RAM, the numbers of its record, and the hash of its model.

    `statistics`: those of training, if the head moves features to them. `scratch_count`: words that it needs
    between runs; `scratch_base`: the C expression of the arena that has room for them, empty if none has.
    """

    kind: str
    classes: int
    features: int
    members: list[HeadMember]
    numbers: dict[str, int]
    size_bytes: int
    gap_bytes: int
    scratch_count: int
    scratch_base: str
    hash: str
    statistics: FeatureStatistics | None = None


@dataclass(frozen=True, slots=True)
class TensorText:
    """A tensor's record: its C name and its place in the table of offsets."""

    symbol: str
    memory: str
    first_offset: int
    row_bytes: int
    block_rows: int
    lead: int
    shift: int = 0
    """Bytes added to its offsets: to the scratch of a further core, or to some columns of each row."""
    state: str = ""
    """The tensor with a state that its memory holds; "" for none."""

    @property
    def is_whole(self) -> bool:
        """Whether one offset serves all rows."""
        return self.block_rows == ONE_PIECE


@dataclass(frozen=True, slots=True)
class ArenaText:
    """The array in one memory. `alignment`: of its address; `attributes`: of its declaration, each after a
    blank; `section`: empty for the board's first memory, where the compiler puts the array.
    """

    memory: str
    size_bytes: int
    attributes: str
    section: str
    alignment: int


@dataclass(frozen=True, slots=True)
class StageText:
    """A call that another kernel makes. `params`: as in `OperatorText`."""

    kernel: str
    params: list[str]
    params_symbol: str


@dataclass(frozen=True, slots=True)
class OperatorText:
    """An operator's record. `unit`: the number of the compute unit that runs it, 0 for the first.

    `params`: the lines that define `params_symbol`; none if another record defines it. `tensors`: records of
    tensors that this one defines. `about`: the parts of steps that it is for; "" for whole steps. `summary`:
    the comment of its entry in the table of operators.
    """

    name: str
    number: int
    summary: str
    kernel: str
    params: list[str]
    params_symbol: str
    tensors: list[TensorText]
    about: str
    inputs: list[str]
    inputs_symbol: str
    output: str
    scratch: str
    rows: int
    block_rows: BlockRows
    unit: int
    stages: tuple[StageText, ...] = ()
    """The calls that its kernel makes."""
    repointed: bool = False
    """Whether the application changes what the arrays of `params` point at."""

    def symbol(self, kind: str) -> str:
        """Return the C name of something that belongs to this record."""
        return symbol(kind, self.number, self.name)


def symbol(kind: str, number: int, name: str) -> str:
    """Return the C name of record `number`: only the part before the `_` is unique."""
    return f"{kind}{number or ''}_{name}"


@dataclass(frozen=True, slots=True)
class MovesText:
    """The record of an engine's transfers between two memories, or within one: the old and the new places,
    and the bytes of each. `engine`: its number among the board's links; -1 for the core.
    """

    name: str
    what: str
    summary: str
    kernel: str
    engine: int
    old: TensorText
    new: TensorText
    count: int
    bytes_lines: list[str]


@dataclass(frozen=True, slots=True)
class WaitsText:
    """The record of the waits for an engine: how many transfers may be unfinished after each wait."""

    name: str
    summary: str
    kernel: str
    engine: int
    count: int
    pending_lines: list[str]


@dataclass(frozen=True, slots=True)
class StreamsText:
    """The record of joined command streams.

    `word_lines`: the words of all; `begin_lines`: the word at which each begins. `regions`: the number and
    the bytes of the region of each of `arenas`. `constants`: the array of region 0.
    """

    summary: str
    constants: str
    constant_bytes: int
    count: int
    word_lines: list[str]
    begin_lines: list[str]
    arenas: list[TensorText]
    regions: list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class LaneText:
    """The tape of a core: its entries, and how many they are."""

    core: int
    count: int
    lines: list[str]


@dataclass(frozen=True, slots=True)
class InstancesText:
    """Instances of a program: their number, and the bytes of an instance's states by memory.

    `records`: by the C name of a tensor's record, the bytes, in C, from its place in the first instance to
    that in the selected one. `ios`: the same by the C name of an input, output or state.
    """

    count: int
    sizes: Mapping[str, int]
    records: Mapping[str, str]
    ios: Mapping[str, str]

    @property
    def size_bytes(self) -> int:
        """The bytes of states of an instance in all memories."""
        return sum(self.sizes.values())


@dataclass(frozen=True, slots=True)
class TrainingText:
    """C names of target, loss, prediction and optimizer; `layers`: the nodes of each other state, by its C
    name.
    """

    target: str
    loss: str
    prediction: str
    optimizer: str
    has_classes: bool
    layers: Mapping[str, str]
