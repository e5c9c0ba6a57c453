"""Parameters of a model: constants of replaceable operators in one table, in the form that kernels read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from mcudeploy.ir.opdef import ConstantArray, KernelCall

PARAMETER_ALIGNMENT = 4
"""The alignment of every parameter, in bytes."""
WORD_BYTES = 4
TABLE_GRAIN_BYTES = 32
"""The table's size is a multiple of this: MCUD_PARAMETERS_GRAIN of mcud_parameters.h."""

_VALUES = frozenset({
    "a", "b", "bias", "biases", "bytes", "candidate_bias", "candidate_scale", "candidate_weights",
    "corrections", "exponents", "factors", "floats", "gains", "initial", "input_scale", "input_weights",
    "multipliers", "offsets", "packed_weights", "padding", "peepholes", "records", "recurrent_scale",
    "recurrent_weights", "scale", "scales", "slopes", "table", "weight_scale", "weights", "zero",
})  # fmt: skip
"""Names of arrays whose values change neither an address nor the number of iterations of a kernel."""


@dataclass(frozen=True, slots=True, eq=False)
class Parameter:
    """An array of a replaceable operator, at `offset` bytes in the table, with its initial `values`.

    `name`: the field of the kernel's record.
    """

    operator: str
    name: str
    offset: int
    values: ConstantArray

    @property
    def end(self) -> int:
        """The offset of the first byte after the array."""
        return self.offset + self.values.nbytes


@dataclass(frozen=True, slots=True, eq=False)
class ParameterTable:
    """All parameters of a model, in the order of offsets. The application replaces all of them together.

    The table is in RAM. With `in_flash`, kernels read the parameters in the application's blob instead. Then
    only the kernels' records, which point into the blob, are in RAM: `record_bytes` on a 32-bit core.
    """

    parameters: tuple[Parameter, ...] = ()
    in_flash: bool = False
    record_bytes: int = 0

    @classmethod
    def of(
        cls, calls: Mapping[str, KernelCall], replaceable: Collection[str], *, in_flash: bool = False
    ) -> ParameterTable:
        """Return the table of the replaceable operators; `calls`: the kernel call of each operator."""
        offset, parameters, record_bytes = 0, [], 0
        for operator, call in calls.items():
            if operator not in replaceable:
                continue
            record_bytes += WORD_BYTES * len(call.params)
            for name, array in _arrays(call):
                parameters.append(Parameter(operator, name, offset, array))
                offset = _aligned(parameters[-1].end, PARAMETER_ALIGNMENT)
        return cls(tuple(parameters), in_flash, record_bytes)

    @property
    def size_bytes(self) -> int:
        """The size of the table; 0 if no operator is replaceable."""
        return _aligned(self.parameters[-1].end, TABLE_GRAIN_BYTES) if self.parameters else 0

    @property
    def ram_bytes(self) -> int:
        """The RAM that parameters need beside the arena."""
        return self.record_bytes if self.in_flash else self.size_bytes

    @property
    def operators(self) -> tuple[str, ...]:
        """Names of the replaceable operators, in order."""
        return tuple(dict.fromkeys(it.operator for it in self.parameters))

    def content(self) -> bytes:
        """Return the initial bytes of the table."""
        content = bytearray(self.size_bytes)
        for it in self.parameters:
            content[it.offset : it.end] = it.values.tobytes()
        return bytes(content)


def table_bytes(call: KernelCall) -> int:
    """Return the bytes that a call's arrays take in a table."""
    return sum(_aligned(array.nbytes, PARAMETER_ALIGNMENT) for _, array in _arrays(call))


def guiding_arrays(call: KernelCall) -> list[str]:
    """Return the names of a call's arrays with indices, counts or divisors.

    With wrong values in these arrays, a kernel may read and write anywhere, or never end.
    """
    return [name for name, array in _arrays(call) if name not in _VALUES or _is_divided_by(name, array)]


def _is_divided_by(name: str, array: ConstantArray) -> bool:
    """Whether an array is the table of a softmax, the only one of 32 bits."""
    return name == "table" and array.itemsize == WORD_BYTES


def _arrays(call: KernelCall) -> Iterator[tuple[str, ConstantArray]]:
    return ((name, value) for name, value in call.params.items() if isinstance(value, np.ndarray))


def _aligned(size: int, grain: int) -> int:
    return -(-size // grain) * grain
