"""Contents of a .tflite file as plain values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mcudeploy.common.text import printable
from mcudeploy.frontend.onnx.nodes import Unsupported

DTYPES = {
    "FLOAT32": "float32",
    "FLOAT16": "float16",
    "FLOAT64": "float64",
    "INT8": "int8",
    "INT16": "int16",
    "INT32": "int32",
    "INT64": "int64",
    "UINT8": "uint8",
    "UINT32": "uint32",
    "UINT64": "uint64",
    "BOOL": "bool",
}
"""The numpy type of each element type that ONNX has too, by its name in the file."""

Option = int | float | bool | str


@dataclass(frozen=True, slots=True)
class Scales:
    """real = scale * (integer - zero_point), with one pair, or one pair for each position along `axis`."""

    scale: tuple[float, ...]
    zero_point: tuple[int, ...]
    axis: int

    @property
    def single(self) -> bool:
        """Whether the whole tensor has one scale."""
        return len(self.scale) == 1

    def repeated(self, times: int) -> Scales:
        """The scales of `times` copies of the tensor, concatenated along axis 0; `axis` must be 0."""
        return self if self.single else Scales(self.scale * times, self.zero_point * times, self.axis)


@dataclass(frozen=True, slots=True, eq=False)
class TfliteTensor:
    """A tensor in the file's layout. `data` has the little-endian bytes of a constant, None for others."""

    index: int
    name: str
    shape: tuple[int, ...]
    kind: str
    """The file's name of the element type, such as "INT8"."""
    data: memoryview | None = field(repr=False)
    scales: Scales | None
    variable: bool = False
    """Whether the tensor keeps its value from one inference to the next."""

    @property
    def label(self) -> str:
        """The tensor's name in messages."""
        return repr(printable(self.name)) if self.name else f"number {self.index}"

    @property
    def dtype(self) -> str | None:
        """The numpy type; None if ONNX lacks it."""
        return DTYPES.get(self.kind)

    @property
    def elements(self) -> int:
        """Number of elements of the shape."""
        return prod(self.shape)

    def array(self) -> NDArray[np.generic]:
        """The constant as an array of the tensor's shape. Raises Unsupported if there is none."""
        if self.data is None or self.dtype is None:
            raise Unsupported(f"tensor {self.label} must be a constant of a plain type")
        return np.frombuffer(self.data, np.dtype(self.dtype).newbyteorder("<")).reshape(self.shape)


@dataclass(frozen=True, slots=True)
class TfliteOperator:
    """An operator. Inputs and outputs are numbers of tensors, -1 if an input is omitted."""

    index: int
    op: str
    """The name of the built-in or custom operator."""
    custom: bool
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Mapping[str, Option]
    intermediates: tuple[Scales | None, ...] = ()
    """Scales of intermediate values."""

    @property
    def label(self) -> str:
        """The name in messages, and of the main ONNX node: the place in the file and the operator."""
        return f"{self.index} {printable(self.op)}"

    def integer(self, name: str) -> int:
        """An option that is an integer. Raises Unsupported if the file has none."""
        return int(self._option(name))

    def number(self, name: str) -> float:
        """An option that is a float. Raises Unsupported if the file has none."""
        return float(self._option(name))

    def text(self, name: str) -> str:
        """An option that is a text, "" if the file has none."""
        return str(self.options.get(name, ""))

    def flag(self, name: str) -> bool:
        """An option that is a truth value, False if the file has none."""
        return bool(self.options.get(name, False))

    def _option(self, name: str) -> Option:
        if name not in self.options:
            raise Unsupported(
                f"its options are missing, damaged, or those of another operator: {name} is needed"
            )
        return self.options[name]


@dataclass(frozen=True, slots=True)
class Contents:
    """A subgraph: tensors by number, operators in the order in which they run.

    `called`: by number, the subgraphs that CALL and CALL_ONCE run; `bodies`: those that IF and WHILE run.
    `continued`: by number of an operator, the operator whose states it continues: both are the same operator
    of a subgraph, in two calls. `is_open`: whether a tensor has an open dimension, whose size in the file may
    be wrong. `notes`: messages for the user.
    """

    name: str
    tensors: tuple[TfliteTensor, ...]
    operators: tuple[TfliteOperator, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    called: Mapping[int, Contents] = field(default_factory=dict)
    continued: Mapping[int, int] = field(default_factory=dict)
    bodies: Mapping[int, Contents] = field(default_factory=dict)
    is_open: bool = False
    notes: tuple[str, ...] = ()


def readers_of(contents: Contents) -> dict[int, list[TfliteOperator]]:
    """The operators that read each tensor, by its number, in the order of the file."""
    readers: dict[int, list[TfliteOperator]] = {}
    for operator in contents.operators:
        for number in operator.inputs:
            readers.setdefault(number, []).append(operator)
    return readers


def names_of(contents: Contents) -> list[str]:
    """The ONNX name of every tensor: its name in the file, with its number if another tensor has that name.

    Inputs and outputs have priority.
    """
    names = [""] * len(contents.tensors)
    used_names: set[str] = set()
    for number in (*contents.inputs, *contents.outputs, *range(len(names))):
        if names[number]:
            continue
        name = contents.tensors[number].name or f"tensor_{number}"
        while name in used_names:
            name = f"{name}#{number}"
        names[number] = name
        used_names.add(name)
    return names


SAME_OPTIONS: Mapping[str, Option] = {"FusedActivationFunction": 0}
"""Options of an operator without a fused activation."""


@dataclass(slots=True)
class FileDraft:
    """Contents under construction: tensors and operators are added one by one; tensors have numbers."""

    tensors: list[TfliteTensor] = field(default_factory=list)
    operators: list[TfliteOperator] = field(default_factory=list)

    def tensor(self, kind: str, shape: Sequence[int], name: str = "", scales: Scales | None = None) -> int:
        """Add a tensor that an operator computes, or an input; return its number."""
        number = len(self.tensors)
        self.tensors.append(TfliteTensor(number, name or f"t{number}", tuple(shape), kind, None, scales))
        return number

    def constant(self, values: ArrayLike, dtype: Any = np.int32) -> int:
        """Add a constant; return its number."""
        array = np.ascontiguousarray(values, np.dtype(dtype).newbyteorder("<"))
        shape, number = np.shape(values), len(self.tensors)
        kind = np.dtype(dtype).name.upper()
        data = memoryview(array.tobytes())
        self.tensors.append(TfliteTensor(number, f"constant{number}", tuple(shape), kind, data, None))
        return number

    def operator(self, op: str, inputs: Sequence[int], output: int | Sequence[int], **options: Option) -> int:
        """Add an operator, custom if its name has small letters; return its first output."""
        outputs = (output,) if isinstance(output, int) else tuple(output)
        custom = not op.isupper()
        self.operators.append(
            TfliteOperator(len(self.operators), op, custom, tuple(inputs), outputs, options)
        )
        return outputs[0] if outputs else -1

    def add(self, op: str, inputs: Sequence[int], shape: Sequence[int], kind: str, **options: Option) -> int:
        """Add an operator and its only output; return the number of the output."""
        return self.operator(op, inputs, self.tensor(kind, shape), **options)

    def contents(self, inputs: Sequence[int], outputs: Sequence[int], name: str = "main") -> Contents:
        """The finished contents."""
        return Contents(name, tuple(self.tensors), tuple(self.operators), tuple(inputs), tuple(outputs))
