"""Reading of a .tflite file: any bytes become Contents or a ModelError.

The package `tflite` reads a file lazily, and raises arbitrary errors if offsets are invalid. So this module
reads the whole file at once, catches all errors in one place, and limits the number of elements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mcudeploy.common.errors import ModelError
from mcudeploy.frontend.onnx.nodes import MAX_TENSOR_ELEMENTS
from mcudeploy.frontend.onnx.shapes import NO_SHAPES, Shapes
from mcudeploy.frontend.tflite.contents import DTYPES, Contents, Option, Scales, TfliteOperator, TfliteTensor
from mcudeploy.frontend.tflite.operator_options import CALLS, OPTIONS, STRUCTS
from mcudeploy.frontend.tflite.sparse_constants import Sparsity, TreeLevel

try:
    import tflite
    from flatbuffers import flexbuffers, number_types  # tflite depends on it
except ImportError:  # an incomplete installation
    tflite = None

_Item = TypeVar("_Item")

IDENTIFIER = b"TFL3"
"""Identifier at byte 4 of every .tflite file."""
_MAX_ENTRIES = 1 << 14
_MAX_DIMENSIONS = 16
_MAX_OPTION_BYTES = 4096
_MAX_NAME_BYTES = 200
_INT4 = "INT4"
_BUILTIN_CODE = 10
"""Place of the field `builtin_code` in the table of an operator code."""
_BODIES = ("ThenSubgraphIndex", "ElseSubgraphIndex", "CondSubgraphIndex", "BodySubgraphIndex")
"""Options of IF and WHILE that have the number of a subgraph."""
_MAX_READS = 4
"""How often the bytes of a file may be read on average: several tables may share them."""


def contents_of(content: bytes, where: str, shapes: Shapes = NO_SHAPES) -> Contents:
    """The main subgraph of a .tflite file. `where` names the file in messages.

    Only the inputs in `shapes` may have open dimensions. Raises ModelError if the package `tflite` is
    missing, and for every fault of the file.
    """
    if tflite is None:
        raise ModelError(
            f"{where} is a .tflite file, and the package that reads such files is missing: "
            "pip install tflite"
        )
    if content[4:8] != IDENTIFIER:
        raise ModelError(f"{where} is not a .tflite file, or it is damaged: it has no 'TFL3' at byte 4")
    try:
        return _TfliteFile(content, where).contents(shapes)
    except ModelError:
        raise
    except Exception as fault:  # struct.error, IndexError, ValueError and more, from deep inside the package
        raise ModelError(
            f"{where} is damaged or truncated: it refers to data that it does not have"
        ) from fault


def _without_repetitions(main: Contents) -> Contents:
    """The subgraph with each output once, and a note on outputs that the file repeats."""
    outputs = tuple(dict.fromkeys(main.outputs))
    repeated = sorted({number for number in outputs if main.outputs.count(number) > 1})
    notes = tuple(
        f"output {main.tensors[number].label} is listed several times in the file, and once in the program"
        for number in repeated
    )
    return replace(main, outputs=outputs, notes=(*main.notes, *notes))


class _TfliteFile:
    """A file that is being read; `_left` is the number of elements that may still be read."""

    def __init__(self, content: bytes, where: str) -> None:
        self._content = content
        self._where = where
        self._left = _MAX_READS * len(content)
        self._model = tflite.Model.GetRootAsModel(content, 0)

    def contents(self, shapes: Shapes) -> Contents:
        if self._model.SubgraphsLength() < 1:
            raise self._fault("it has no subgraph")
        main = _without_repetitions(self._subgraph(0))
        for number in main.inputs:
            if main.tensors[number].name not in shapes:
                self._require_fixed(self._model.Subgraphs(0).Tensors(number), main.tensors[number])
        numbers = {it.integer(CALLS[it.op]) for it in main.operators if it.op in CALLS}
        called = {number: self._inner(number) for number in sorted(numbers)}
        return replace(main, called=called, bodies=self._bodies(main))

    def _bodies(self, main: Contents) -> dict[int, Contents]:
        """The subgraphs that IF and WHILE run, also inside each other, by number."""
        bodies: dict[int, Contents] = {}
        waiting = [main]
        while waiting:
            for operator in waiting.pop().operators:
                numbers = {int(operator.options[name]) for name in _BODIES if name in operator.options}
                for number in sorted(numbers - bodies.keys()):
                    bodies[number] = self._inner(number)
                    waiting.append(bodies[number])
        return bodies

    def _subgraph(self, number: int) -> Contents:
        if not 0 <= number < self._model.SubgraphsLength():
            raise self._fault(f"it calls subgraph {number} of {self._model.SubgraphsLength()}")
        graph = self._model.Subgraphs(number)
        tensors = self._each("tensors", graph.TensorsLength(), lambda at: self._tensor(at, graph.Tensors(at)))
        operators = self._each(
            "operators", graph.OperatorsLength(), lambda at: self._operator(at, graph.Operators(at), tensors)
        )
        inputs, outputs = self._integers(graph, "Inputs"), self._integers(graph, "Outputs")
        for numbers, label, lowest in (
            (inputs, "the inputs", 0),
            (outputs, "the outputs", 0),
            *((it.inputs, f"the inputs of {it.label}", -1) for it in operators),
            *((it.outputs, f"the outputs of {it.label}", 0) for it in operators),
        ):
            invalid = [number for number in numbers if not lowest <= number < len(tensors)]
            if invalid:
                raise self._fault(f"{label} name tensor {invalid[0]}; it has {len(tensors)} tensors")
        if len(set(inputs)) != len(inputs):
            raise self._fault("a tensor is listed twice among its inputs")
        is_open = any(self._is_open(graph.Tensors(at)) for at in range(graph.TensorsLength()))
        name = self._text(graph.Name()) or "main"
        return Contents(name, tensors, operators, inputs, outputs, is_open=is_open)

    def _inner(self, number: int) -> Contents:
        """A subgraph that another one runs."""
        subgraph = self._subgraph(number)
        if len(set(subgraph.outputs)) != len(subgraph.outputs):
            raise self._fault("a tensor is listed twice among the outputs of an inner subgraph")
        return subgraph

    def _is_open(self, table: Any) -> bool:
        return any(size < 0 for size in self._integers(table, "ShapeSignature"))

    def _fault(self, fault: str) -> ModelError:
        return ModelError(f"{self._where} is malformed: {fault}")

    def _spend(self, elements: int) -> None:
        self._left -= elements
        if self._left < 0:
            raise self._fault("its tables overlap: together they are larger than the file")

    def _each(self, label: str, count: int, read: Callable[[int], _Item]) -> tuple[_Item, ...]:
        if count > _MAX_ENTRIES:
            raise self._fault(f"it has {count} {label}; the limit is {_MAX_ENTRIES}")
        return tuple(read(at) for at in range(count))

    def _integers(self, table: Any, name: str) -> tuple[int, ...]:
        return tuple(int(item) for item in self._numbers(table, name))

    def _numbers(self, table: Any, name: str) -> list[Any]:
        """The numbers of a vector, which is empty if the table lacks it."""
        count = getattr(table, f"{name}Length")()
        if not count:
            return []
        self._spend(count)
        numbers: list[Any] = getattr(table, f"{name}AsNumpy")().tolist()
        return numbers

    def _text(self, raw: bytes | None) -> str:
        """A name as text of limited length; bytes that are not UTF-8 are replaced."""
        if not raw:
            return ""
        self._spend(len(raw))
        return bytes(raw[:_MAX_NAME_BYTES]).decode("utf-8", "replace")

    def _tensor(self, index: int, table: Any) -> TfliteTensor:
        name = self._text(table.Name())
        shape = self._integers(table, "Shape")
        kind = _names("TensorType").get(table.Type())
        label = repr(name) if name.isprintable() and name else f"number {index}"
        if kind is None:
            raise self._fault(f"tensor {label} has the unknown element type {table.Type()}")
        if len(shape) > _MAX_DIMENSIONS or any(size < 0 for size in shape):
            raise self._fault(f"tensor {label} has the shape {list(shape[:_MAX_DIMENSIONS])}")
        scales = self._scales(table.Quantization(), label)
        data = self._data(table.Buffer(), label)
        tensor = TfliteTensor(index, name, shape, kind, data, scales, bool(table.IsVariable()))
        if tensor.elements > MAX_TENSOR_ELEMENTS:
            raise self._fault(
                f"tensor {label} has the shape {list(shape)}; the limit is {MAX_TENSOR_ELEMENTS} elements"
            )
        if kind == _INT4 and data is not None and table.Sparsity() is None:
            return self._as_int8(tensor, data)
        needed = tensor.elements * _ITEM_BYTES.get(kind, 0)
        if data is not None and needed and table.Sparsity() is not None:
            return replace(tensor, data=self._dense(table.Sparsity(), tensor, data))
        if data is not None and needed and len(data) != needed:
            raise self._fault(
                f"tensor {label} has {len(data)} bytes of data; {kind} {list(shape)} needs {needed}"
            )
        return tensor

    def _as_int8(self, tensor: TfliteTensor, data: memoryview) -> TfliteTensor:
        """A constant of int4, two in a byte with the lower half first, as one of int8."""
        if len(data) != -(-tensor.elements // 2):
            raise self._fault(f"tensor {tensor.label} has {len(data)} bytes for {tensor.elements} of INT4")
        pairs = np.frombuffer(data, np.int8)
        halves = np.stack([(pairs << 4).astype(np.int8) >> 4, pairs >> 4], axis=-1)
        values = halves.reshape(-1)[: tensor.elements].astype(np.int8)
        return replace(tensor, kind="INT8", data=memoryview(values.tobytes()))

    def _dense(self, table: Any, tensor: TfliteTensor, data: memoryview) -> memoryview:
        """The bytes of a sparse constant in dense form."""
        order, blocked = self._integers(table, "TraversalOrder"), self._integers(table, "BlockMap")
        levels = self._each(
            "levels", table.DimMetadataLength(), lambda at: self._level(table.DimMetadata(at))
        )
        if tensor.dtype is None:
            raise self._fault(f"tensor {tensor.label} is sparse and {tensor.kind}")
        try:
            values = np.frombuffer(data, np.dtype(tensor.dtype).newbyteorder("<"))
            dense = Sparsity(order, blocked, levels).dense(values, tensor.shape)
        except ValueError as fault:
            raise self._fault(f"tensor {tensor.label} is sparse: {fault}") from fault
        return memoryview(dense.tobytes())

    def _level(self, table: Any) -> TreeLevel:
        if table.Format() != tflite.DimensionType.SPARSE_CSR:
            return TreeLevel(table.DenseSize())
        vectors = [
            self._index_vector(getattr(table, f"{name}Type")(), getattr(table, name)())
            for name in ("ArraySegments", "ArrayIndices")
        ]
        return TreeLevel(0, *vectors)

    def _index_vector(self, kind: int, table: Any) -> NDArray[np.int64]:
        """The numbers of a list, whose elements have one of three widths."""
        name = _names("SparseIndexVector").get(kind)
        if table is None or name not in ("Int32Vector", "Uint16Vector", "Uint8Vector"):
            raise self._fault("a sparse tensor has a level without indices")
        vector = getattr(tflite, name)()
        vector.Init(table.Bytes, table.Pos)
        return np.array(self._integers(vector, "Values"), np.int64)

    def _data(self, number: int, label: str) -> memoryview | None:
        """The bytes of a constant, in the tables of the file or after them; None if the buffer is empty."""
        if not 0 <= number < max(self._model.BuffersLength(), 1):
            raise self._fault(f"tensor {label} lies in buffer {number}; it has {self._model.BuffersLength()}")
        if not self._model.BuffersLength():
            return None
        buffer = self._model.Buffers(number)
        if buffer.Offset() > 1:
            first, size = buffer.Offset(), buffer.Size()
            if first + size > len(self._content):
                raise self._fault(f"the data of tensor {label} ends beyond the file")
            content = memoryview(self._content)[first : first + size]
        else:
            content = memoryview(buffer.DataAsNumpy()) if buffer.DataLength() else memoryview(b"")
        self._spend(len(content))
        return content if len(content) else None

    def _require_fixed(self, table: Any, tensor: TfliteTensor) -> None:
        """Raise ModelError for an input with open dimensions after the first, for which the file states 1."""
        signature = self._integers(table, "ShapeSignature")
        if any(size < 0 for size in signature[1:]):
            raise ModelError(
                f"{self._where}: input {tensor.label} has an open dimension, its shape is {list(signature)}: "
                "microcontroller code needs fixed shapes. Give its shape with --shape, or convert the model "
                "again with an input signature of fixed shapes"
            )

    def _scales(self, table: Any, label: str) -> Scales | None:
        if table is None:
            return None
        scale = tuple(float(item) for item in self._numbers(table, "Scale"))
        if not scale:
            return None
        if table.DetailsType() != 0:
            raise self._fault(f"tensor {label} has a custom quantisation")
        zero_point = self._integers(table, "ZeroPoint") or (0,) * len(scale)
        if len(zero_point) == 1:
            zero_point = zero_point * len(scale)
        if len(zero_point) != len(scale):
            raise self._fault(f"tensor {label} has {len(scale)} scales but {len(zero_point)} zero points")
        return Scales(scale, zero_point, int(table.QuantizedDimension()))

    def _operator(self, index: int, table: Any, tensors: Sequence[TfliteTensor]) -> TfliteOperator:
        number = table.OpcodeIndex()
        if not 0 <= number < len(self._codes):
            raise self._fault(f"operator {index} is of kind {number}; it names {len(self._codes)}")
        op, custom = self._codes[number]
        inputs, outputs = self._integers(table, "Inputs"), self._integers(table, "Outputs")
        if op == "STABLEHLO_COMPOSITE":
            return TfliteOperator(index, "CALL", custom, inputs, outputs, self._decomposition(table))
        options = self._custom_options(op, table) if custom else self._options(op, table)
        numbers = self._integers(table, "Intermediates")
        invalid = [it for it in numbers if not 0 <= it < len(tensors)]
        if invalid:
            raise self._fault(f"operator {index} computes tensor {invalid[0]}; there are {len(tensors)}")
        intermediates = tuple(tensors[it].scales for it in numbers)
        return TfliteOperator(index, op, custom, inputs, outputs, options, intermediates)

    def _decomposition(self, table: Any) -> dict[str, Option]:
        """The options of a CALL of the subgraph that a composite operator stands for."""
        union = table.BuiltinOptions2()
        if union is None or table.BuiltinOptions2Type() != tflite.BuiltinOptions2.StableHLOCompositeOptions:
            return {}
        options = tflite.StableHLOCompositeOptions()
        options.Init(union.Bytes, union.Pos)
        return {"Subgraph": int(options.DecompositionSubgraphIndex())}

    @cached_property
    def _codes(self) -> tuple[tuple[str, bool], ...]:
        """The name of every operator code, and whether it is custom."""
        return self._each("kinds of operators", self._model.OperatorCodesLength(), self._code)

    def _code(self, at: int) -> tuple[str, bool]:
        code = self._model.OperatorCodes(at)
        # The accessor of the package `tflite` returns the older field for all codes that fit it.
        at_field = code._tab.Offset(_BUILTIN_CODE)
        newer = code._tab.Get(number_types.Int32Flags, at_field + code._tab.Pos) if at_field else 0
        number = max(newer, code.DeprecatedBuiltinCode())
        if number == tflite.BuiltinOperator.CUSTOM:
            return self._text(code.CustomCode()) or "CUSTOM", True
        return _names("BuiltinOperator").get(number, f"BUILTIN_{number}"), False

    def _options(self, op: str, table: Any) -> dict[str, Option]:
        """The operator's options; empty if its table is missing or of another type."""
        if op not in OPTIONS:
            return {}
        kind, names = OPTIONS[op]
        option_table = table.BuiltinOptions()
        if option_table is None or table.BuiltinOptionsType() != getattr(tflite.BuiltinOptions, kind):
            return {}
        options = getattr(tflite, kind)()
        options.Init(option_table.Bytes, option_table.Pos)
        return {name: self._option(getattr(options, name)()) for name in names}

    def _custom_options(self, op: str, table: Any) -> dict[str, Option]:
        """The options of a custom operator, a flexbuffer or numbers of STRUCTS; empty for other content."""
        count = table.CustomOptionsLength()
        if not count:
            return {}
        self._spend(count)
        try:
            content = bytes(table.CustomOptionsAsNumpy())
            if op in STRUCTS:
                numbers = np.frombuffer(content[: 4 * len(STRUCTS[op])], "<i4").tolist()
                return dict(zip(STRUCTS[op], numbers, strict=True))
            return flexbuffer_numbers(content)
        except Exception:
            return {}

    def _option(self, value: Option | bytes | None) -> Option:
        return value if isinstance(value, int | float | bool | str) else self._text(value)


_ITEM_BYTES = {kind: np.dtype(dtype).itemsize for kind, dtype in DTYPES.items()}


def flexbuffer_numbers(content: bytes) -> dict[str, Option]:
    """The numbers and truth values of a flexbuffer that is a map. Raises any exception for a damaged one."""
    if len(content) > _MAX_OPTION_BYTES:  # overlapping keys can take the square of these bytes
        raise ValueError("the options of an operator are too long")
    items = flexbuffers.GetRoot(content).AsMap
    if len(items) > len(content):
        raise ValueError("it has more entries than bytes")
    options: dict[str, Option] = {}
    for key, value in zip(items.Keys, items.Values, strict=True):
        if value.IsBool:
            options[key.AsKey] = bool(value.AsBool)
        elif value.IsInt and abs(int(value.AsInt)) < 1 << 63:
            options[key.AsKey] = int(value.AsInt)
        elif value.IsFloat:
            options[key.AsKey] = float(value.AsFloat)
    return options


def _names(enumeration: str) -> dict[int, str]:
    """The names of an enumeration of the schema, by number."""
    members = vars(getattr(tflite, enumeration)).items()
    return {number: name for name, number in members if isinstance(number, int)}
