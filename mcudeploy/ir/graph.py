"""The graph that every stage reads: tensors, operators, inputs and outputs. Its creation verifies it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mcudeploy.ir.opdef import ConstantArray, LoopNest, Operator
from mcudeploy.ir.tensor import UNSIGNED_OFFSET, DType, Quantization, Shape, Tensor

__all__ = [
    "UNSIGNED_OFFSET",
    "DType",
    "Declared",
    "Graph",
    "GraphIO",
    "Hop",
    "KeptRows",
    "Operator",
    "Quantization",
    "RemovedChannels",
    "Shape",
    "State",
    "Tensor",
]


@dataclass(frozen=True, slots=True)
class Declared:
    """The integers that the file has for values that are float32 in the graph; `dtype` is a numpy name."""

    dtype: str
    quantization: Quantization


@dataclass(frozen=True, slots=True, eq=False)
class GraphIO:
    """The relation of a tensor to a tensor of the ONNX model.

    `shape` and `dtype` (a numpy name) are those of the ONNX model. Element i of the flattened ONNX tensor has
    the position `order[i]` in the flattened tensor; -1 if its channel is removed (see `RemovedChannels`).

    A uint8 ONNX tensor is stored as int8 (see `UNSIGNED_OFFSET`), an int64 or uint32 one as int32, a bool one
    as int8 (0 or 1). A float32 one may be stored quantised (see `Tensor.quantization`). `declared`: the
    integers that the file has instead of float32. `off_by_one`: whether the integers may differ by one from
    the reference, which computes them in float32.
    """

    tensor: str
    name: str
    shape: tuple[int, ...]
    dtype: str
    order: NDArray[np.int32]
    declared: Declared | None = None
    off_by_one: bool = False

    def stored(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the values of the flattened ONNX tensor in the order of the tensor's elements."""
        remaining = self.order >= 0
        stored = np.empty(int(remaining.sum()), values.dtype)
        stored[self.order[remaining]] = values[remaining]
        return stored


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """A one-row tensor that keeps its content from one run to the next; the first content is `initial`.

    An operator that reads the state writes the next content into the same memory. The content is then the
    tensor itself, or the operator's output, which takes the memory over. `through`: the outputs of the
    operators that write the state in a run, except the last one. `before` and `after` relate the content at
    the start and at the end of a run to tensors of the ONNX model.
    """

    before: GraphIO
    after: GraphIO
    initial: ConstantArray
    through: tuple[str, ...] = ()

    @property
    def tensor(self) -> str:
        """Name of the tensor at the start of a run."""
        return self.before.tensor

    @property
    def tensors(self) -> frozenset[str]:
        """Names of the tensors at the start and at the end of a run."""
        return frozenset((self.before.tensor, self.after.tensor))

    @property
    def chain(self) -> tuple[str, ...]:
        """The names of the tensors that are the state in turn during a run. All use the same memory."""
        names = (self.before.tensor, *self.through, self.after.tensor)
        return names if self.before.tensor != self.after.tensor else names[:1]

    def is_continued_by(self, operator: Operator) -> bool:
        """Return whether an operator reads the state and writes its next content."""
        chain = self.chain
        return not set(chain).isdisjoint(operator.inputs) and (len(chain) == 1 or operator.output in chain)


KeptRows = Literal["all", "last"]
"""The rows of a tensor that are kept for the next run: `all` that it reads, or only the `last` ones.

It reads the last ones together with new rows. Then every run computes the rows at the start of the window.
"""


@dataclass(frozen=True, slots=True)
class Hop:
    """A moving window of `window_rows`, of which the graph's input is the last `new_rows` rows.

    States have the rows of earlier runs: those of the input, and of other tensors of the window by `keeping`.
    """

    new_rows: int
    window_rows: int
    keeping: tuple[tuple[str, KeptRows], ...] = ()

    @property
    def runs_to_fill(self) -> int:
        """The number of runs after which the application has delivered all rows of the window."""
        return -(-self.window_rows // self.new_rows)


@dataclass(frozen=True, slots=True)
class RemovedChannels:
    """Removed constant or unread channels: their number, multiply-accumulates and bytes of weights."""

    channels: int
    macs: int
    weight_bytes: int


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """Operators in a valid execution order.

    `references`: for each tensor that exists in the ONNX model too, the relation of the two. Every state is
    among `inputs` and among `outputs`. `notes`: assumptions of the front end that the user should confirm.
    `trimmed`: removed channels. With `hop`, the input has the new rows of a window. `float_causes`: by
    operator of a quantised file, why it is computed in float32. Raises ValueError if a tensor is missing, the
    order is invalid, or shapes do not match.
    """

    name: str
    tensors: Mapping[str, Tensor]
    operators: tuple[Operator, ...]
    inputs: tuple[GraphIO, ...]
    outputs: tuple[GraphIO, ...]
    references: Mapping[str, GraphIO] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    trimmed: RemovedChannels | None = None
    states: tuple[State, ...] = ()
    hop: Hop | None = None
    float_causes: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tensors", MappingProxyType(dict(self.tensors)))
        _verify(self)

    def input_tensors(self, operator: Operator) -> tuple[Tensor, ...]:
        """Return the tensors that an operator reads, in operand order."""
        return tuple(self.tensors[name] for name in operator.inputs)

    def loops(self, operator: Operator) -> LoopNest:
        """Return the loop nest of one of this graph's operators."""
        return operator.op.loops(tuple(tensor.shape for tensor in self.input_tensors(operator)))

    def readers(self) -> dict[str, list[int]]:
        """Return, for each tensor, the indices of the operators that read it, ascending."""
        readers: dict[str, list[int]] = {name: [] for name in self.tensors}
        for position, operator in enumerate(self.operators):
            for name in dict.fromkeys(operator.inputs):
                readers[name].append(position)
        return readers

    def resident_inputs(self) -> tuple[GraphIO, ...]:
        """Return the graph inputs that are in memory before the first step; the others are streamed."""
        streamed = {operator.output for operator in self.operators if not operator.inputs}
        return tuple(io for io in self.inputs if io.tensor not in streamed)

    def own_inputs(self) -> tuple[GraphIO, ...]:
        """Return the inputs that the application writes: all except states."""
        return self._own(self.inputs)

    def own_outputs(self) -> tuple[GraphIO, ...]:
        """Return the outputs that the application reads: all except states."""
        return self._own(self.outputs)

    def _own(self, ios: tuple[GraphIO, ...]) -> tuple[GraphIO, ...]:
        state_names = {name for state in self.states for name in state.tensors}
        return tuple(io for io in ios if io.tensor not in state_names)

    def same_rows(self, view: str, root: str) -> bool:
        """Return whether a view has as many rows as the tensor of its memory, so that it may be in blocks."""
        return self.tensors[view].shape[0] == self.tensors[root].shape[0]

    def producers(self) -> dict[str, int]:
        """Return the index of the producer of each tensor that is not a graph input."""
        return {operator.output: position for position, operator in enumerate(self.operators)}


def _verify(graph: Graph) -> None:
    """Raise ValueError unless every tensor has one producer, before its readers, and a fitting shape."""
    for io in graph.inputs:
        if io.tensor not in graph.tensors:
            raise ValueError(f"graph input {io.tensor!r} is not a tensor of the graph")
    written = {io.tensor for io in graph.resident_inputs()}
    inputs, outputs = ({io.tensor for io in ios} for ios in (graph.inputs, graph.outputs))
    for state in graph.states:
        if state.tensor not in inputs or state.after.tensor not in outputs:
            raise ValueError(f"state {state.tensor!r} is not among the inputs and outputs")
        _verify_state(graph, state)
    names: set[str] = set()
    for operator in graph.operators:
        if operator.name in names:
            raise ValueError(f"two operators are called {operator.name!r}")
        names.add(operator.name)
        for name in operator.inputs:
            if name not in written:
                raise ValueError(f"{operator.name} reads {name!r} before it is written")
        if operator.output in written:
            raise ValueError(f"{operator.name} makes {operator.output!r} a second time")
        if operator.output not in graph.tensors:
            raise ValueError(f"{operator.name} makes {operator.output!r}, which is not a tensor of the graph")
        shape, needed = graph.loops(operator).output_shape(), graph.tensors[operator.output].shape
        if shape != needed:
            raise ValueError(f"{operator.name} makes {shape}, {operator.output!r} is {needed}")
        written.add(operator.output)
    for io in (*graph.outputs, *graph.references.values()):
        if io.tensor not in written:
            raise ValueError(f"{io.tensor!r} is an output that nothing writes")
    unmade = set(graph.tensors) - written
    if unmade:
        raise ValueError(f"tensors without a producer: {', '.join(sorted(unmade))}")


def _verify_state(graph: Graph, state: State) -> None:
    """Raise ValueError unless each content of a state is one row that one operator replaces by one row."""
    readers, chain = graph.readers(), state.chain
    for present, following in pairwise(chain) if len(chain) > 1 else ((state.tensor, ""),):
        operators = [graph.operators[at] for at in readers[present]]
        writers = [it for it in operators if following in ("", it.output)]
        rows = [graph.tensors[name].shape[0] for it in writers for name in (present, it.output)]
        if rows != [1, 1]:
            raise ValueError(f"state {present!r} is not one row that one operator reads for another row")
