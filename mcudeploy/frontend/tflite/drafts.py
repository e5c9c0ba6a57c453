"""Contents of a .tflite file under construction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mcudeploy.frontend.tflite.contents import Contents, Option, Scales, TfliteOperator, TfliteTensor

SAME_OPTIONS: Mapping[str, Option] = {"FusedActivationFunction": 0}
"""Options of an operator without a fused activation."""


@dataclass(slots=True)
class FileDraft:
    """Tensors and operators that are added one by one; tensors are known by their number."""

    tensors: list[TfliteTensor] = field(default_factory=list)
    operators: list[TfliteOperator] = field(default_factory=list)

    def tensor(self, kind: str, shape: Sequence[int], name: str = "", scales: Scales | None = None) -> int:
        """Add a tensor that an operator makes, or an input."""
        number = len(self.tensors)
        self.tensors.append(TfliteTensor(number, name or f"t{number}", tuple(shape), kind, None, scales))
        return number

    def constant(self, values: ArrayLike, dtype: Any = np.int32) -> int:
        """Add a constant."""
        array = np.ascontiguousarray(values, np.dtype(dtype).newbyteorder("<"))
        shape, number = np.shape(values), len(self.tensors)
        kind = np.dtype(dtype).name.upper()
        data = memoryview(array.tobytes())
        self.tensors.append(TfliteTensor(number, f"constant{number}", tuple(shape), kind, data, None))
        return number

    def operator(self, op: str, inputs: Sequence[int], output: int | Sequence[int], **options: Option) -> int:
        """Add an operator, custom if its name is that of a signal operator; return its first output."""
        outputs = (output,) if isinstance(output, int) else tuple(output)
        custom = op.startswith("Signal")
        self.operators.append(
            TfliteOperator(len(self.operators), op, custom, tuple(inputs), outputs, options)
        )
        return outputs[0] if outputs else -1

    def add(self, op: str, inputs: Sequence[int], shape: Sequence[int], kind: str, **options: Option) -> int:
        """Add an operator and its only output."""
        return self.operator(op, inputs, self.tensor(kind, shape), **options)

    def contents(self, inputs: Sequence[int], outputs: Sequence[int], name: str = "main") -> Contents:
        """The file."""
        return Contents(name, tuple(self.tensors), tuple(self.operators), tuple(inputs), tuple(outputs))
