"""Operator definitions: the loop nest, the kernel, and the inputs that may be overwritten.

Every tensor is three-dimensional and channels-last: (rows, cols, channels); batch is 1. The affine indices of
the loop nest alone determine the output shape, the rows that a tile reads, the connected axes, halos, and
multiply-accumulates.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import isnan, prod
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from mcudeploy.ir.interval import Interval
from mcudeploy.ir.isa import Isa
from mcudeploy.ir.tensor import DType, Quantization, Shape, Tensor


class AxisKind(StrEnum):
    """The kind of an axis: spatial axes index the output; reduced (temporal) axes are summed, or searched."""

    SPATIAL = "spatial"
    REDUCED = "reduced"


@dataclass(frozen=True, slots=True)
class Axis:
    """One loop of an operator."""

    name: str
    size: int
    kind: AxisKind = AxisKind.SPATIAL


Tile = Mapping[str, Interval]
"""The part of each axis to compute, by name; an absent axis is computed whole."""


@dataclass(frozen=True, slots=True)
class Index:
    """An affine index: the sum of step * axis, plus an offset."""

    steps: tuple[tuple[str, int], ...] = ()
    offset: int = 0

    @classmethod
    def of(cls, offset: int = 0, **steps: int) -> Index:
        """Build an index: `Index.of(oh=2, r=1, offset=-1)` is 2*oh + r - 1. Zero steps are dropped."""
        return cls(tuple((axis, step) for axis, step in steps.items() if step != 0), offset)

    def reach(self, axes: Mapping[str, Axis], tile: Tile) -> Interval:
        """Return the positions accessed when every axis runs through its part of `tile`."""
        lo = hi = self.offset
        for name, step in self.steps:
            span = tile.get(name, Interval(0, axes[name].size))
            if len(span) == 0:
                return Interval(0, 0)
            first, last = step * span.lo, step * (span.hi - 1)
            lo, hi = lo + min(first, last), hi + max(first, last)
        return Interval(lo, hi + 1)


@dataclass(frozen=True, slots=True)
class TableIndex:
    """A non-affine index, as of Resize: for value i of `axis`, the positions [lo[i], hi[i])."""

    axis: str
    lo: tuple[int, ...]
    hi: tuple[int, ...]

    def reach(self, axes: Mapping[str, Axis], tile: Tile) -> Interval:
        """Return the hull of the table's entries over the part of the axis in `tile`."""
        span = tile.get(self.axis, Interval(0, axes[self.axis].size))
        if len(span) == 0:
            return Interval(0, 0)
        return Interval(min(self.lo[span.lo : span.hi]), max(self.hi[span.lo : span.hi]))


AnyIndex = Index | TableIndex
Access = tuple[AnyIndex, AnyIndex, AnyIndex]
"""The index of each dimension of a tensor: rows, cols, channels."""


@dataclass(frozen=True, slots=True)
class LoopNest:
    """The loops of an operator with its reads and its write.

    `reads` has one access per activation input; positions outside a tensor are padding. `multiplies`: whether
    every iteration is one multiply-accumulate. `inner`: the loop nests of operators that this one contains.
    """

    axes: tuple[Axis, ...]
    reads: tuple[Access, ...]
    write: Access
    multiplies: bool = False
    inner: tuple[LoopNest, ...] = ()

    def axis(self, name: str) -> Axis:
        """Return the axis of this name."""
        return self._by_name()[name]

    def _by_name(self) -> dict[str, Axis]:
        return {axis.name: axis for axis in self.axes}

    def output_shape(self) -> Shape:
        """Return the shape of the output."""
        axes = self._by_name()
        rows, cols, channels = (index.reach(axes, {}).hi for index in self.write)
        return rows, cols, channels

    def rows_read(self, operand: int, rows: Interval, input_rows: int) -> Interval:
        """Return the rows that output rows `rows` need of input `operand`, which has `input_rows` rows."""
        axes = self._by_name()
        write = self.write[0]
        if not isinstance(write, Index) or len(write.steps) > 1:
            raise ValueError("the row index of an output must be one axis")
        tile = {name: rows for name, _ in write.steps}
        return self.reads[operand][0].reach(axes, tile).clip(0, input_rows)

    def rows_taken(self, operand: int, rows: Interval, input_rows: int) -> Interval:
        """Return the rows of input `operand` that one step of an accumulating operator reads.

        `rows` counts along the axis that the steps run along: the reduced axis that indexes the rows of the
        first input. Raises ValueError if there is no such axis.
        """
        axes = self._by_name()
        index = self.reads[0][0]
        if not isinstance(index, Index) or [axes[name].kind for name, _ in index.steps] != [AxisKind.REDUCED]:
            raise ValueError("an operator that accumulates takes its input's rows along one reduced axis")
        tile = {name: rows for name, _ in index.steps}
        return self.reads[operand][0].reach(axes, tile).clip(0, input_rows)

    def macs(self) -> int:
        """Return the multiply-accumulates of the whole operator; 0 if it only moves or compares."""
        own = prod(axis.size for axis in self.axes) if self.multiplies else 0
        return own + sum(nest.macs() for nest in self.inner)


ConstantArray = (
    NDArray[np.int8]
    | NDArray[np.int16]
    | NDArray[np.int32]
    | NDArray[np.float32]
    | NDArray[np.uint16]
    | NDArray[np.uint32]
)


@dataclass(frozen=True, slots=True)
class Symbol:
    """A name in the generated program that stands for a pointer to a function."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class ArrayPointer:
    """A pointer to the element `first` of an array in flash.

    `owner`: the name of an array that several operators share; "" for an array of one parameter.
    """

    array: ConstantArray
    first: int
    owner: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class CallTable:
    """An array in flash of kernel calls (`mcud_stage_call`), each with its function and its parameters."""

    calls: tuple[KernelCall, ...]


UNIT_ALIGNMENT = 16
"""The alignment, in bytes, of arrays that a unit beside the core reads."""
TWICE = "_twice"
"""The suffix of a twin: a kernel of the same source as another one, which rounds results twice."""
S4W = "_s4w"
"""The suffix of a twin that reads weights of four bits."""

ParamValue = int | float | ConstantArray | ArrayPointer | Symbol | CallTable | None
"""The value of a kernel parameter.

A scalar is an int32_t or a float. Others are pointers: to an array in flash or to a place in it, to a
function, to calls of other kernels; None is a null pointer.
"""
Params = dict[str, ParamValue]
"""Parameters of a kernel, by name."""


Counts = dict[str, float]
"""The number of passes of each loop of a kernel, by loop name."""
CountsOf = Callable[[Interval], Counts]
"""A function from iteration rows to the counts of one call that computes these rows."""


@dataclass(frozen=True, slots=True, eq=False)
class StageCall:
    """The calls that an outer kernel makes of another one, each like `call` of the iteration rows `rows`.

    `operator`, `tensors`: the operator that `call` computes, with its input and output. `times`: the number
    of such calls, for iteration rows of the outer kernel.
    """

    operator: Operator
    tensors: Mapping[str, Tensor]
    call: KernelCall
    rows: Interval
    times: Callable[[Interval], float]


@dataclass(frozen=True, slots=True, eq=False)
class KernelCall:
    """The kernel call that the code generator prints for one operator.

    The C function is `mcud_<kernel>` in firmware/kernels/*/<kernel>.c. Its parameters are the fields of
    `mcud_<kernel>_params` in firmware/kernels/*/<kernel>.h, in the order of `params`: pointers first, then
    32-bit scalars. "window.pad_top" is a field of a nested struct.

    A step of any number of rows needs `scratch_bytes`. Operators that accumulate need `state_bytes` from the
    first step to the last instead. The kernel finds either at op->scratch. `mode` distinguishes calls of one
    kernel that differ in scratch or costs. `others` compute the same bits by another kernel or mode. Only
    cores with the instructions `isa` use the call. `stages`: the calls of other kernels that this one makes.
    Without known times, a core uses the first call among its `variants`. Raises ValueError if a parameter is
    NaN.
    """

    kernel: str
    params: Mapping[str, ParamValue] = field(default_factory=dict)
    scratch_bytes: int = 0
    state_bytes: int = 0
    mode: str = ""
    isa: Isa = Isa.ANY
    counts: CountsOf | None = None
    others: tuple[KernelCall, ...] = ()
    stages: tuple[StageCall, ...] = ()

    def __post_init__(self) -> None:
        for name, value in self.params.items():
            if isinstance(value, float) and isnan(value):
                raise ValueError(f"its parameter {name} is {value}: C has no literal for that")

    @property
    def variant(self) -> str:
        """Return the name that distinguishes this call from `others`: the kernel, and the mode if any."""
        return f"{self.kernel}:{self.mode}" if self.mode else self.kernel

    @property
    def once(self) -> str:
        """Return the name of the kernel of which this one is a twin that rounds twice; else its own name."""
        return self.kernel.removesuffix(TWICE)

    @property
    def cost_name(self) -> str:
        """Return the name in the cost tables.

        All modes of a kernel that calls others share one name. A twin that rounds twice has the name of the
        kernel that rounds once, and counts its results as the loop `twice`.
        """
        return self.kernel if self.stages else replace(self, kernel=self.once).variant

    def every_call(self) -> Iterator[KernelCall]:
        """Yield this call and the calls that it makes."""
        yield self
        for value in self.params.values():
            if isinstance(value, CallTable):
                for call in value.calls:
                    yield from call.every_call()

    def arrays(self) -> Iterator[ConstantArray]:
        """Yield the arrays in flash that this call and those that it makes read, each once."""
        arrays: dict[int, ConstantArray] = {}
        for call in self.every_call():
            for value in call.params.values():
                array = value.array if isinstance(value, ArrayPointer) else value
                if isinstance(array, np.ndarray):
                    arrays[id(array)] = array
        yield from arrays.values()

    @property
    def constant_bytes(self) -> int:
        """The number of bytes of all `arrays`."""
        return sum(array.nbytes for array in self.arrays())

    def variants(self, isa: Isa) -> tuple[KernelCall, ...]:
        """Return this call and `others`, as far as a core with these instructions can use them.

        Calls for exactly this core come first, and replace portable ones of the same variant.
        """
        every = (self, *self.others)
        for_core = tuple(call for call in every if call.isa is isa.core is not Isa.ANY)
        names = {call.variant for call in for_core}
        return for_core + tuple(call for call in every if call.isa is Isa.ANY and call.variant not in names)


RoundingErrors = float | NDArray[np.float64]
"""The largest effect of rounded constants on results, in LSB: of all results, or by channel."""


@dataclass(frozen=True, slots=True)
class RowsPart:
    """Some rows of an operator's output, and the rows `reads` of its first input from which they follow.

    `source`: the shape of this input; `above`, `below`: the rows of padding before and after `reads`.
    """

    rows: Interval
    reads: Interval
    above: int
    below: int
    source: Shape


class OperatorDef(Protocol):
    """An operator family: a frozen dataclass of attributes with these methods."""

    kind: ClassVar[str]
    is_view: ClassVar[bool]
    """Whether the output is the input's memory under another shape, without a kernel and without steps."""
    accumulates: ClassVar[bool]
    """Whether each step reads a block of input rows, and the output is complete only after the last step."""
    compared: ClassVar[tuple[str, ...]]
    """The names of constants that are only compared, and so may be infinite."""
    accepts: ClassVar[frozenset[DType]]
    """The integer types beside int8 that inputs and output may have."""
    takes_rows: ClassVar[bool]
    """Whether `on_rows` restricts the operator to some rows of its output."""
    links_vectors: ClassVar[bool]
    """Whether all vectors that the operator reads and writes can become rows of channels together."""
    copies: ClassVar[bool]
    """Whether the operator copies its input to the memory of another unit."""
    moves: ClassVar[bool]
    """Whether the values of an int32 output are those of its inputs, at other places."""

    @property
    def continues(self) -> int | None:
        """The input, a state, whose next content the output is, in the same memory; None for others."""
        ...

    @property
    def stem(self) -> str:
        """The first part of names of the operator and its result; "" if these begin with its kind."""
        ...

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        """Return the loop nest for inputs of these shapes. Raises ValueError if they do not match."""
        ...

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        """Return the C kernel, with its constants packed in the kernel's layout."""
        ...

    def label(self, inputs: tuple[Shape, ...]) -> str:
        """Return the operator's description for comments, for inputs of these shapes."""
        ...

    def why_whole(self, inputs: tuple[Shape, ...], rows: int) -> str | None:
        """Return why the operator cannot be restricted to some of its `rows`; None if it can.

        `inputs`: the shapes of its inputs.
        """
        ...

    def on_rows(self, part: RowsPart) -> OperatorDef:
        """Return the operator that computes these rows of the output from these rows of the first input."""
        ...

    def is_dense(self, operator: Operator, inputs: tuple[Tensor, ...]) -> bool:
        """Return whether this is a fully connected layer that can read or write its vector as rows."""
        ...

    def in_rows(self, operator: Operator, written: Shape | None, read: Shape | None) -> Operator:
        """Return the operator whose output and first input are vectors stored as rows of these shapes.

        None stands for a vector that is not stored as rows.
        """
        ...

    def rounding_error(
        self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor
    ) -> RoundingErrors:
        """Return the largest effect of rounded constants on results."""
        ...

    def indexed_rows(self, operator: Operator, inputs: tuple[Tensor, ...]) -> int | None:
        """Return the number of rows of which the first input has indices; None if it has none."""
        ...

    def divisor(self, operator: Operator) -> int:
        """Return the least constant divisor of which results are remainders; 0 if they are not remainders."""
        ...

    def overwrites(self, inputs: tuple[Tensor, ...], output: Tensor) -> tuple[int, ...]:
        """Return the inputs whose memory the output may take over, row by row; the best one first."""
        ...

    def quantization(self, output: Tensor) -> Quantization | None:
        """Return the scale and zero point of the output's integers; None if it does not quantise."""
        ...

    def by_rows(self, inputs: tuple[Shape, ...]) -> OperatorDef | None:
        """Return the accumulating operator with the same results, which reads its inputs in blocks of rows.

        None if there is none, or if it saves nothing.
        """
        ...

    def last_state(self, steps: int) -> tuple[int, OperatorDef] | None:
        """Return the step whose result is the last state, and the operator that computes this state alone.

        None if the operator computes no states, or only the last one.
        """
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Operator:
    """A node of the graph: a definition with attributes, the names of inputs, and the name of the output.

    `inputs` are activations only. Weights and similar arrays are `constants`, in the layout that the
    definition documents. `onnx_nodes`: labels of the ONNX nodes that the operator implements.
    """

    name: str
    op: OperatorDef
    inputs: tuple[str, ...]
    output: str
    constants: Mapping[str, ConstantArray] = field(default_factory=dict)
    onnx_nodes: tuple[str, ...] = ()

    @property
    def is_sequential(self) -> bool:
        """Whether the steps must run in ascending order: they continue a sum, or receive streamed rows."""
        return self.op.accumulates or not self.inputs


class PlainOperator:
    """The base of operator families, with the answers of most of them to the questions of OperatorDef.

    By default, the output does not take over an input's memory: most kernels read an element after they have
    written its place, or write elements of another size or type.
    """

    __slots__ = ()
    kind: ClassVar[str]
    is_view: ClassVar[bool] = False
    accumulates: ClassVar[bool] = False
    compared: ClassVar[tuple[str, ...]] = ()
    overwritten: ClassVar[tuple[int, ...]] = ()
    """The result of `overwrites`, unless it depends on shapes and types."""
    accepts: ClassVar[frozenset[DType]] = frozenset()
    takes_rows: ClassVar[bool] = False
    links_vectors: ClassVar[bool] = False
    copies: ClassVar[bool] = False
    moves: ClassVar[bool] = False
    named: ClassVar[str] = ""
    """The `stem`, unless it depends on attributes."""

    @property
    def continues(self) -> int | None:
        """Return None."""
        return None

    @property
    def stem(self) -> str:
        """Return `named`."""
        return self.named

    def label(self, inputs: tuple[Shape, ...]) -> str:
        """Return the words of the family's name."""
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", self.kind).lower()

    def why_whole(self, inputs: tuple[Shape, ...], rows: int) -> str | None:
        """Return None: the rows of a plain operator can be computed separately."""
        return None

    def on_rows(self, part: RowsPart) -> OperatorDef:
        """Return the definition, which does not state rows."""
        return self  # type: ignore[return-value]  # a family, which has loops and kernel

    def is_dense(self, operator: Operator, inputs: tuple[Tensor, ...]) -> bool:
        """Return False."""
        return False

    def in_rows(self, operator: Operator, written: Shape | None, read: Shape | None) -> Operator:
        """Return the operator, whose definition does not state the shape."""
        return operator

    def rounding_error(
        self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor
    ) -> RoundingErrors:
        """Return 0: constants are not rounded."""
        return 0.0

    def indexed_rows(self, operator: Operator, inputs: tuple[Tensor, ...]) -> int | None:
        """Return None."""
        return None

    def divisor(self, operator: Operator) -> int:
        """Return 0: results are not remainders."""
        return 0

    def overwrites(self, inputs: tuple[Tensor, ...], output: Tensor) -> tuple[int, ...]:
        """Return `overwritten`."""
        return self.overwritten

    def quantization(self, output: Tensor) -> Quantization | None:
        """Return None: the operator does not quantise."""
        return None

    def by_rows(self, inputs: tuple[Shape, ...]) -> OperatorDef | None:
        """Return None: there is no accumulating operator."""
        return None

    def last_state(self, steps: int) -> tuple[int, OperatorDef] | None:
        """Return None: the operator computes no states."""
        return None
