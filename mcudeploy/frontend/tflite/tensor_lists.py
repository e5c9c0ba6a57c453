"""Lists of rows, as loops keep them: a tensor known as a concatenation of others along its first axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from mcudeploy.frontend.tflite.constant_folding import sliced
from mcudeploy.frontend.tflite.contents import TfliteOperator, TfliteTensor

_MOST_ROWS = 4096
Shape = tuple[int, ...]


@dataclass(slots=True)
class TensorLists:
    """The tensors of a file, and those added to them. `parts`: for a concatenation, the tensors it joins."""

    tensors: list[TfliteTensor]
    parts: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def constant(self, values: Sequence[int]) -> int:
        """Add a constant of int32."""
        data = memoryview(np.asarray(values, "<i4").tobytes())
        number = len(self.tensors)
        self.tensors.append(TfliteTensor(number, f"list{number}", (len(values),), "INT32", data, None))
        return number

    def replaced(self, operator: TfliteOperator) -> tuple[list[TfliteOperator], int | None]:
        """The operators that compute the same from fewer rows, or the tensor that already is the result.

        Sets the shape of the result if it follows from constants.
        """
        if len(operator.outputs) != 1 or not operator.inputs:
            return [operator], None
        if operator.op == "CONCATENATION":
            return self._concatenation(operator)
        if operator.op == "FILL":
            return self._filled(operator)
        if operator.op == "SLICE":
            return self._sliced(operator)
        if operator.op == "STRIDED_SLICE":
            return [self._row(operator)], None
        source, result = self.tensors[operator.inputs[0]], operator.outputs[0]
        if operator.op == "CAST" and source.kind == self.tensors[result].kind:
            return [], source.index
        if (
            operator.op == "RESHAPE"
            and self._values(operator, 1) == list(source.shape)
            and len(source.shape) > 1
        ):
            return [], source.index
        if operator.op == "EXPAND_DIMS" and (axes := self._values(operator, 1)) is not None:
            shape = list(source.shape)
            shape.insert(axes[0] % (len(shape) + 1), 1)
            self._shape(result, tuple(shape))
        return [operator], None

    def _shape(self, number: int, shape: Shape) -> None:
        self.tensors[number] = replace(self.tensors[number], shape=shape)

    def _values(self, operator: TfliteOperator, position: int) -> list[int] | None:
        """The integers of a constant input; None if it is computed or left out."""
        if position >= len(operator.inputs) or operator.inputs[position] < 0:
            return None
        tensor = self.tensors[operator.inputs[position]]
        if tensor.data is None or tensor.kind not in ("INT32", "INT64"):
            return None
        return [int(value) for value in tensor.array().reshape(-1)]

    def _concatenation(self, operator: TfliteOperator) -> tuple[list[TfliteOperator], int | None]:
        filled = tuple(number for number in operator.inputs if self.tensors[number].elements)
        result = operator.outputs[0]
        shapes = [self.tensors[number].shape for number in filled]
        axis = operator.integer("Axis")
        if not filled or not shapes[0] or any(len(shape) != len(shapes[0]) for shape in shapes):
            return [replace(operator, inputs=filled or operator.inputs)], None
        axis %= len(shapes[0])
        shape = list(shapes[0])
        shape[axis] = sum(each[axis] for each in shapes)
        self._shape(result, tuple(shape))
        meanings = {self._meaning(number) for number in (*filled, result)}
        if axis or operator.options.get("FusedActivationFunction", 0) or len(meanings) > 1:
            return [replace(operator, inputs=filled)], None
        parts = tuple(part for number in filled for part in self.parts.get(number, (number,)))
        return self._joined(operator, parts)

    def _meaning(self, number: int) -> tuple[object, ...]:
        """The type and scales of a tensor."""
        tensor = self.tensors[number]
        return tensor.kind, tensor.scales

    def _joined(
        self, operator: TfliteOperator, parts: tuple[int, ...]
    ) -> tuple[list[TfliteOperator], int | None]:
        if len(parts) == 1:
            return [], parts[0]
        self.parts[operator.outputs[0]] = parts
        options = {"Axis": 0, "FusedActivationFunction": 0}
        return [replace(operator, op="CONCATENATION", inputs=parts, options=options)], None

    def _filled(self, operator: TfliteOperator) -> tuple[list[TfliteOperator], int | None]:
        """A list of equal rows, each of which is the same tensor."""
        sizes, result = self._values(operator, 0), operator.outputs[0]
        if sizes is None:
            return [operator], None
        self._shape(result, tuple(sizes))
        if len(sizes) < 2 or not 1 < sizes[0] <= _MOST_ROWS:
            return [operator], None
        row = len(self.tensors)
        self.tensors.append(replace(self.tensors[result], index=row, name=f"row{row}", shape=(1, *sizes[1:])))
        one = replace(operator, inputs=(self.constant([1, *sizes[1:]]), operator.inputs[1]), outputs=(row,))
        self.parts[result] = (row,) * sizes[0]
        return [one, operator], None

    def _sliced(self, operator: TfliteOperator) -> tuple[list[TfliteOperator], int | None]:
        source, result = self.tensors[operator.inputs[0]], operator.outputs[0]
        begins, sizes = self._values(operator, 1), self._values(operator, 2)
        if begins is None or sizes is None or not len(begins) == len(sizes) == len(source.shape):
            return [operator], None
        whole = zip(source.shape, begins, sizes, strict=True)
        shape = tuple(have - begin if size == -1 else size for have, begin, size in whole)
        bounds = zip(source.shape, begins, shape, strict=True)
        if any(not 0 <= begin <= begin + size <= have for have, begin, size in bounds):
            return [operator], None
        self._shape(result, shape)
        if 0 in shape:
            return [], None
        if shape[1:] != source.shape[1:]:
            return [operator], None
        parts = self._between(source.index, begins[0], begins[0] + shape[0])
        return ([operator], None) if parts is None else self._joined(operator, parts)

    def _between(self, number: int, first: int, end: int) -> tuple[int, ...] | None:
        """The parts that are rows [first, end) of a list; None if it is not a list, or if a limit divides a
        part.
        """
        chosen, at = [], 0
        for part in self.parts.get(number, ()):
            rows = self.tensors[part].shape[0]
            if first < at + rows and at < end:
                if at < first or at + rows > end:
                    return None
                chosen.append(part)
            at += rows
        return tuple(chosen) or None

    def _row(self, operator: TfliteOperator) -> TfliteOperator:
        """The operator; one that takes a row of a list takes it from the part that contains the row."""
        source = self.tensors[operator.inputs[0]]
        limits = [self._values(operator, position) for position in (1, 2, 3)]
        rows = source.shape[0] if source.shape else 0
        plain = operator.integer("ShrinkAxisMask") & ~operator.integer("BeginMask") & 1
        if source.index not in self.parts or None in limits or not plain or operator.flag("NewAxisMask"):
            return operator
        begins, *others = [list(each or ()) for each in limits]
        row = begins[0] % rows
        parts = self._between(source.index, row, row + 1)
        if parts is None:
            return operator
        begins[0] = 0
        bounds = [np.asarray(each, np.int64) for each in (begins, *others)]
        shape = sliced(operator, np.broadcast_to(np.int64(0), self.tensors[parts[0]].shape), bounds).shape
        if prod(shape) == 0:
            return operator
        self._shape(operator.outputs[0], shape)
        return replace(operator, inputs=(parts[0], self.constant(begins), *operator.inputs[2:]))
