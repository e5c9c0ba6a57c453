"""Writer of .tflite files, for the operators and options that the front end of mcudeploy reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mcudeploy.common.errors import ModelError
from mcudeploy.common.text import printable
from mcudeploy.frontend.tflite.contents import Contents, Option, Scales, TfliteOperator, TfliteTensor
from mcudeploy.frontend.tflite.flatbuffer import IDENTIFIER
from mcudeploy.frontend.tflite.operator_options import OPTIONS, STRUCTS

try:
    import flatbuffers
    import tflite
    from flatbuffers import flexbuffers
except ImportError:  # an incomplete installation
    tflite = None

_SCHEMA_VERSION, _ALIGNMENT = 3, 16


def tflite_file(contents: Contents) -> bytes:
    """The bytes of a file with these contents; called subgraphs must have the numbers from 1 on.

    Raises ModelError without the package `tflite`.
    """
    if tflite is None:
        raise ModelError("the package that writes .tflite files is missing: pip install tflite")
    return _File().content(contents)


class _File:
    """A file under construction. Its methods write an object and return its offset in the FlatBuffer `b`."""

    def __init__(self) -> None:
        self._builder: Any = flatbuffers.Builder(1024)
        self._buffers: list[int] = []
        self._codes: dict[tuple[str, bool], int] = {}

    def content(self, contents: Contents) -> bytes:
        b = self._builder
        self._buffers.append(self._buffer(None))
        subgraphs = self._tables([self._subgraph(it) for it in (contents, *contents.called.values())])
        codes = self._tables([self._code(op, custom) for op, custom in self._codes])
        buffers = self._tables(self._buffers)
        tflite.ModelStart(b)
        tflite.ModelAddVersion(b, _SCHEMA_VERSION)
        tflite.ModelAddOperatorCodes(b, codes)
        tflite.ModelAddSubgraphs(b, subgraphs)
        tflite.ModelAddBuffers(b, buffers)
        b.Finish(tflite.ModelEnd(b), file_identifier=IDENTIFIER)
        return bytes(b.Output())

    def _subgraph(self, contents: Contents) -> int:
        b = self._builder
        tensor_offsets = [self._tensor(it) for it in contents.tensors]
        intermediates: list[range] = []
        for operator in contents.operators:
            first = len(tensor_offsets)
            tensor_offsets += [
                self._tensor(TfliteTensor(0, "", (0,), "INT8", None, it)) for it in operator.intermediates
            ]
            intermediates.append(range(first, len(tensor_offsets)))
        tensors = self._tables(tensor_offsets)
        operators = self._tables(
            [self._operator(*pair) for pair in zip(contents.operators, intermediates, strict=True)]
        )
        inputs, outputs = self._integers(contents.inputs), self._integers(contents.outputs)
        name = b.CreateString(contents.name)
        tflite.SubGraphStart(b)
        tflite.SubGraphAddTensors(b, tensors)
        tflite.SubGraphAddInputs(b, inputs)
        tflite.SubGraphAddOutputs(b, outputs)
        tflite.SubGraphAddOperators(b, operators)
        tflite.SubGraphAddName(b, name)
        return int(tflite.SubGraphEnd(b))

    def _tables(self, offsets: Sequence[int]) -> int:
        self._builder.StartVector(4, len(offsets), 4)
        for offset in reversed(offsets):
            self._builder.PrependUOffsetTRelative(offset)
        return int(self._builder.EndVector())

    def _integers(self, values: Sequence[int]) -> int:
        return int(self._builder.CreateNumpyVector(np.asarray(values, np.int32)))

    def _buffer(self, data: bytes | None) -> int:
        b, content = self._builder, None
        if data is not None:
            b.StartVector(1, len(data), _ALIGNMENT)
            b.head -= len(data)
            b.Bytes[b.head : b.head + len(data)] = data
            content = b.EndVector()
        tflite.BufferStart(b)
        if content is not None:
            tflite.BufferAddData(b, content)
        return int(tflite.BufferEnd(b))

    def _tensor(self, tensor: TfliteTensor) -> int:
        b, buffer = self._builder, 0
        if tensor.data is not None:
            buffer = len(self._buffers)
            self._buffers.append(self._buffer(bytes(tensor.data)))
        name, shape = b.CreateString(tensor.name), self._integers(tensor.shape)
        quantization = None if tensor.scales is None else self._quantization(tensor.scales)
        tflite.TensorStart(b)
        tflite.TensorAddShape(b, shape)
        tflite.TensorAddType(b, getattr(tflite.TensorType, tensor.kind))
        tflite.TensorAddBuffer(b, buffer)
        tflite.TensorAddName(b, name)
        if quantization is not None:
            tflite.TensorAddQuantization(b, quantization)
        tflite.TensorAddIsVariable(b, tensor.variable)
        return int(tflite.TensorEnd(b))

    def _quantization(self, scales: Scales) -> int:
        b = self._builder
        scale = b.CreateNumpyVector(np.asarray(scales.scale, np.float32))
        zero_point = b.CreateNumpyVector(np.asarray(scales.zero_point, np.int64))
        tflite.QuantizationParametersStart(b)
        tflite.QuantizationParametersAddScale(b, scale)
        tflite.QuantizationParametersAddZeroPoint(b, zero_point)
        tflite.QuantizationParametersAddQuantizedDimension(b, scales.axis)
        return int(tflite.QuantizationParametersEnd(b))

    def _code(self, op: str, custom: bool) -> int:
        b = self._builder
        number = tflite.BuiltinOperator.CUSTOM if custom else getattr(tflite.BuiltinOperator, op, None)
        if number is None:
            raise ModelError(f"operator {printable(op)} is not known, so its file cannot be joined")
        name = b.CreateString(op) if custom else None
        tflite.OperatorCodeStart(b)
        tflite.OperatorCodeAddBuiltinCode(b, number)
        tflite.OperatorCodeAddDeprecatedBuiltinCode(b, min(number, 127))
        if name is not None:
            tflite.OperatorCodeAddCustomCode(b, name)
        tflite.OperatorCodeAddVersion(b, 1)
        return int(tflite.OperatorCodeEnd(b))

    def _operator(self, operator: TfliteOperator, intermediate_tensors: Sequence[int]) -> int:
        b = self._builder
        code = self._codes.setdefault((operator.op, operator.custom), len(self._codes))
        inputs, outputs = self._integers(operator.inputs), self._integers(operator.outputs)
        intermediates = self._integers(intermediate_tensors) if intermediate_tensors else None
        custom = table = None
        if operator.custom:
            custom = b.CreateByteVector(_custom_options(operator))
        elif operator.op in OPTIONS and operator.options:
            table = self._options(OPTIONS[operator.op][0], operator.options)
        tflite.OperatorStart(b)
        tflite.OperatorAddOpcodeIndex(b, code)
        tflite.OperatorAddInputs(b, inputs)
        tflite.OperatorAddOutputs(b, outputs)
        if intermediates is not None:
            tflite.OperatorAddIntermediates(b, intermediates)
        if custom is not None:
            tflite.OperatorAddCustomOptions(b, custom)
        if table is not None:
            kind = getattr(tflite.BuiltinOptions, OPTIONS[operator.op][0])
            tflite.OperatorAddBuiltinOptionsType(b, kind)
            tflite.OperatorAddBuiltinOptions(b, table)
        return int(tflite.OperatorEnd(b))

    def _options(self, kind: str, options: Mapping[str, Option]) -> int:
        b = self._builder
        values = {name: b.CreateString(it) if isinstance(it, str) else it for name, it in options.items()}
        getattr(tflite, f"{kind}Start")(b)
        for name, value in values.items():
            getattr(tflite, f"{kind}Add{name}")(b, value)
        return int(getattr(tflite, f"{kind}End")(b))


def _custom_options(operator: TfliteOperator) -> bytes:
    if operator.op in STRUCTS:
        return np.array([operator.integer(name) for name in STRUCTS[operator.op]], "<i4").tobytes()
    return bytes(flexbuffers.Dumps(dict(operator.options)))
