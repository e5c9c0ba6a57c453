"""Lists of rows that loops keep: tensors that are concatenations of others along the first axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from mcudeploy.frontend.tflite.constant_folding import sliced
from mcudeploy.frontend.tflite.contents import TfliteOperator, TfliteTensor

_MAX_ROWS = 4096
Shape = tuple[int, ...]


@dataclass(slots=True)
class TensorLists:
    """The tensors of a file, to which others are added. `parts`: the tensors that a concatenation joins."""

    tensors: list[TfliteTensor]
    parts: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def constant(self, values: Sequence[int]) -> int:
        """Add a constant of int32."""
        data = memoryview(np.asarray(values, "<i4").tobytes())
        number = len(self.tensors)
        self.tensors.append(TfliteTensor(number, f"list{number}", (len(values),), "INT32", data, None))
        return number

    def replaced(self, operator: TfliteOperator) -> tuple[list[TfliteOperator], int | None]:
        """The operators that replace an operator, and the number of the tensor that already is its result.

        The operators read the parts of lists, and so fewer rows; the number is None if they compute the
        result. Sets the shape of the result if it follows from constants.
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
            self._set_shape(result, tuple(shape))
        return [operator], None

    def _set_shape(self, number: int, shape: Shape) -> None:
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
        nonempty = tuple(number for number in operator.inputs if self.tensors[number].elements)
        result = operator.outputs[0]
        shapes = [self.tensors[number].shape for number in nonempty]
        axis = operator.integer("Axis")
        if not nonempty or not shapes[0] or any(len(shape) != len(shapes[0]) for shape in shapes):
            return [replace(operator, inputs=nonempty or operator.inputs)], None
        axis %= len(shapes[0])
        shape = list(shapes[0])
        shape[axis] = sum(each[axis] for each in shapes)
        self._set_shape(result, tuple(shape))
        types = {(it.kind, it.scales) for it in (self.tensors[number] for number in (*nonempty, result))}
        if axis or operator.options.get("FusedActivationFunction", 0) or len(types) > 1:
            return [replace(operator, inputs=nonempty)], None
        parts = tuple(part for number in nonempty for part in self.parts.get(number, (number,)))
        return self._joined(operator, parts)

    def _joined(
        self, operator: TfliteOperator, parts: tuple[int, ...]
    ) -> tuple[list[TfliteOperator], int | None]:
        """The concatenation of parts as the result of an operator, as `replaced` returns it."""
        if len(parts) == 1:
            return [], parts[0]
        self.parts[operator.outputs[0]] = parts
        options = {"Axis": 0, "FusedActivationFunction": 0}
        return [replace(operator, op="CONCATENATION", inputs=parts, options=options)], None

    def _filled(self, operator: TfliteOperator) -> tuple[list[TfliteOperator], int | None]:
        """A FILL with several rows: a list whose parts are all the same row."""
        sizes, result = self._values(operator, 0), operator.outputs[0]
        if sizes is None:
            return [operator], None
        self._set_shape(result, tuple(sizes))
        if len(sizes) < 2 or not 1 < sizes[0] <= _MAX_ROWS:
            return [operator], None
        row, row_shape = len(self.tensors), (1, *sizes[1:])
        self.tensors.append(replace(self.tensors[result], index=row, name=f"row{row}", shape=row_shape))
        fill_row = replace(operator, inputs=(self.constant(row_shape), operator.inputs[1]), outputs=(row,))
        self.parts[result] = (row,) * sizes[0]
        return [fill_row, operator], None

    def _sliced(self, operator: TfliteOperator) -> tuple[list[TfliteOperator], int | None]:
        source, result = self.tensors[operator.inputs[0]], operator.outputs[0]
        begins, sizes = self._values(operator, 1), self._values(operator, 2)
        if begins is None or sizes is None or not len(begins) == len(sizes) == len(source.shape):
            return [operator], None
        bounds = zip(source.shape, begins, sizes, strict=True)
        shape = tuple(length - begin if size == -1 else size for length, begin, size in bounds)
        bounds = zip(source.shape, begins, shape, strict=True)
        if any(not 0 <= begin <= begin + size <= length for length, begin, size in bounds):
            return [operator], None
        self._set_shape(result, shape)
        if 0 in shape:
            return [], None
        if shape[1:] != source.shape[1:]:
            return [operator], None
        parts = self._between(source.index, begins[0], begins[0] + shape[0])
        return ([operator], None) if parts is None else self._joined(operator, parts)

    def _between(self, number: int, first: int, end: int) -> tuple[int, ...] | None:
        """The parts that are rows [first, end) of a list; None for other tensors, and for divided parts."""
        inside, row = [], 0
        for part in self.parts.get(number, ()):
            next_row = row + self.tensors[part].shape[0]
            if first < next_row and row < end:
                if row < first or next_row > end:
                    return None
                inside.append(part)
            row = next_row
        return tuple(inside) or None

    def _row(self, operator: TfliteOperator) -> TfliteOperator:
        """The STRIDED_SLICE, which takes a row of a list from the part that contains the row."""
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
        self._set_shape(operator.outputs[0], shape)
        return replace(operator, inputs=(parts[0], self.constant(begins), *operator.inputs[2:]))
