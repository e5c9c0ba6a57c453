"""Small .tflite files, written tensor by tensor, and the results of LiteRT's reference kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
import pytest
import tflite
from flatbuffers import flexbuffers
from numpy.typing import NDArray

from mcudeploy.frontend.load import load
from mcudeploy.frontend.tflite.operator_options import OPTIONS
from mcudeploy.verify.reference import Reference

Array = NDArray[Any]
SAME, VALID = 0, 1
_VERSIONS = {"BROADCAST_TO": 2}
"""The least version of operators in LiteRT, unless it is 1."""
NONE, RELU, RELU_N1_TO_1, RELU6 = 0, 1, 2, 3


@dataclass(frozen=True)
class FlatTensor:
    """A tensor of the file; `scale` is empty if it is not quantised."""

    name: str
    shape: Sequence[int]
    kind: str
    scale: Sequence[float]
    zero_point: Sequence[int]
    axis: int
    data: Array | None
    signature: Sequence[int] = ()
    variable: bool = False


@dataclass
class FlatFile:
    """Collects tensors and operators of one subgraph.

    `once` is the one that CALL_ONCE runs, `bodies` are those of IF and WHILE, with their inputs and outputs.
    """

    tensors: list[FlatTensor] = field(default_factory=list)
    operators: list[tuple[str, Sequence[int], Sequence[int], Mapping[str, Any]]] = field(default_factory=list)
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(1))
    once: FlatFile | None = None
    bodies: list[tuple[FlatFile, Sequence[int], Sequence[int]]] = field(default_factory=list)

    def body(self, file: FlatFile, inputs: Sequence[int], outputs: Sequence[int]) -> int:
        """Add the subgraph of an IF or WHILE; its number in a file without CALL_ONCE."""
        self.bodies.append((file, inputs, outputs))
        return len(self.bodies)

    def add(self, *shape: int, **facts: Any) -> int:
        """A float32 activation; its number."""
        given = {"kind": "FLOAT32", "scale": (), "zero_point": (), "axis": 0, "data": None, **facts}
        name = given.pop("name", f"t{len(self.tensors)}")
        self.tensors.append(FlatTensor(name, shape, **given))
        return len(self.tensors) - 1

    def int8(self, *shape: int, scale: float = 0.05, zero: int = -3, **facts: Any) -> int:
        """An int8 activation."""
        return self.add(*shape, kind="INT8", scale=(scale,), zero_point=(zero,), **facts)

    def int16(self, *shape: int, scale: float = 0.001, **facts: Any) -> int:
        """An int16 activation."""
        return self.add(*shape, kind="INT16", scale=(scale,), zero_point=(0,), **facts)

    def floats(self, *shape: int, spread: float = 1.0) -> int:
        """A constant of normal float32 values."""
        return self.constant(self.random.normal(0, spread, shape), np.float32)

    def constant(self, data: Any, dtype: Any = np.int32, **facts: Any) -> int:
        """A constant."""
        array = np.asarray(data, dtype)
        return self.add(*array.shape, kind=array.dtype.name.upper(), data=array, **facts)

    def weights(self, *shape: int, axis: int | None = 0, scale: float = 0.02) -> int:
        """int8 weights of zero point 0, with a scale for each position along `axis`, or one."""
        array = self.random.integers(-127, 128, shape).astype(np.int8)
        count = 1 if axis is None else shape[axis]
        scales = (scale * self.random.uniform(0.5, 1.5, count)).astype(np.float32)
        return self.constant(array, np.int8, scale=scales, zero_point=[0] * count, axis=axis or 0)

    def bias(self, source: int, weights: int, count: int, dtype: Any = None) -> int:
        """A bias in units of input scale * weight scale: int64 beside int16, otherwise int32."""
        wide = self.tensors[source].kind == "INT16"
        most, usual = (300_000, np.int64) if wide else (2000, np.int32)
        scales = np.float32(self.tensors[source].scale[0]) * np.asarray(
            self.tensors[weights].scale, np.float32
        )
        array = self.random.integers(-most, most, count)
        return self.constant(array, dtype or usual, scale=scales, zero_point=[0] * len(scales))

    def operator(self, op: str, inputs: Sequence[int], outputs: Sequence[int] | int, **options: Any) -> int:
        """An operator; its first output, -1 without any."""
        numbers = [outputs] if isinstance(outputs, int) else outputs
        self.operators.append((op, inputs, numbers, options))
        return numbers[0] if numbers else -1

    def variable(self, name: str) -> int:
        """A handle of a variable."""
        return self.operator("VAR_HANDLE", [], self.add(kind="RESOURCE"), SharedName=name, Container="")

    def call_once(self, **initial: int) -> None:
        """Variables are assigned copies of these constants before the first inference."""
        self.once = FlatFile()
        for name, number in initial.items():
            handle = self.once.variable(name)
            self.once.tensors.append(self.tensors[number])
            self.once.operator("ASSIGN_VARIABLE", [handle, len(self.once.tensors) - 1], [])
        self.operators.insert(0, ("CALL_ONCE", [], [], {"InitSubgraphIndex": 1}))

    def content(self, inputs: Sequence[int], outputs: Sequence[int]) -> bytes:
        """The whole file."""
        return _content(self, inputs, outputs)

    def save(self, folder: Path, inputs: Sequence[int], outputs: Sequence[int]) -> Path:
        """The file, in a folder."""
        path = folder / "model.tflite"
        path.write_bytes(self.content(inputs, outputs))
        return path


def _content(file: FlatFile, inputs: Sequence[int], outputs: Sequence[int]) -> bytes:
    b = flatbuffers.Builder(1024)
    nothing: Sequence[int] = ()
    parts = [(file, inputs, outputs), *([] if file.once is None else [(file.once, nothing, nothing)])]
    parts += file.bodies
    files = [each for each, _, _ in parts]
    buffers, subgraphs = [_buffer(b, None)], []
    codes = list(dict.fromkeys(op for each in files for op, *_ in each.operators))
    made_codes = [_code(b, op) for op in codes]
    for each, *borders in parts:
        first = len(buffers)
        buffers += [_buffer(b, tensor.data) for tensor in each.tensors]
        tensors = [_tensor(b, tensor, number) for number, tensor in enumerate(each.tensors, start=first)]
        operators = [_operator(b, codes.index(op), op, *rest) for op, *rest in each.operators]
        subgraphs.append(_subgraph(b, tensors, operators, borders))
    subgraph_vector = _tables(b, subgraphs)
    code_vector, buffer_vector = _tables(b, made_codes), _tables(b, buffers)
    tflite.ModelStart(b)
    tflite.ModelAddVersion(b, 3)
    tflite.ModelAddOperatorCodes(b, code_vector)
    tflite.ModelAddSubgraphs(b, subgraph_vector)
    tflite.ModelAddBuffers(b, buffer_vector)
    b.Finish(tflite.ModelEnd(b), file_identifier=b"TFL3")
    return bytes(b.Output())


def _subgraph(
    b: Any, tensors: Sequence[int], operators: Sequence[int], borders: Sequence[Sequence[int]]
) -> int:
    tensor_vector, operator_vector = _tables(b, tensors), _tables(b, operators)
    input_vector, output_vector = (_int32(b, each) for each in borders)
    name = b.CreateString("main")
    tflite.SubGraphStart(b)
    tflite.SubGraphAddTensors(b, tensor_vector)
    tflite.SubGraphAddInputs(b, input_vector)
    tflite.SubGraphAddOutputs(b, output_vector)
    tflite.SubGraphAddOperators(b, operator_vector)
    tflite.SubGraphAddName(b, name)
    return int(tflite.SubGraphEnd(b))


def _tables(b: Any, offsets: Sequence[int]) -> int:
    b.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        b.PrependUOffsetTRelative(offset)
    return int(b.EndVector())


def _int32(b: Any, values: Sequence[int]) -> int:
    return int(b.CreateNumpyVector(np.asarray(values, np.int32)))


def _buffer(b: Any, data: Array | None) -> int:
    content = None
    if data is not None:
        b.StartVector(1, data.nbytes, 16)
        b.head -= data.nbytes
        b.Bytes[b.head : b.head + data.nbytes] = data.tobytes()
        content = b.EndVector()
    tflite.BufferStart(b)
    if content is not None:
        tflite.BufferAddData(b, content)
    return int(tflite.BufferEnd(b))


def _tensor(b: Any, tensor: FlatTensor, buffer: int) -> int:
    name, shape = b.CreateString(tensor.name), _int32(b, tensor.shape)
    signature = _int32(b, tensor.signature) if tensor.signature else None
    quantization = None
    if len(tensor.scale):
        scale = b.CreateNumpyVector(np.asarray(tensor.scale, np.float32))
        zero_point = b.CreateNumpyVector(np.asarray(tensor.zero_point, np.int64))
        tflite.QuantizationParametersStart(b)
        tflite.QuantizationParametersAddScale(b, scale)
        tflite.QuantizationParametersAddZeroPoint(b, zero_point)
        tflite.QuantizationParametersAddQuantizedDimension(b, tensor.axis)
        quantization = tflite.QuantizationParametersEnd(b)
    tflite.TensorStart(b)
    tflite.TensorAddShape(b, shape)
    tflite.TensorAddType(b, getattr(tflite.TensorType, tensor.kind))
    tflite.TensorAddBuffer(b, buffer)
    tflite.TensorAddName(b, name)
    if quantization is not None:
        tflite.TensorAddQuantization(b, quantization)
    tflite.TensorAddIsVariable(b, tensor.variable)
    if signature is not None:
        tflite.TensorAddShapeSignature(b, signature)
    return int(tflite.TensorEnd(b))


def _code(b: Any, op: str) -> int:
    number = getattr(tflite.BuiltinOperator, op, tflite.BuiltinOperator.CUSTOM)
    custom = b.CreateString(op) if number == tflite.BuiltinOperator.CUSTOM else None
    tflite.OperatorCodeStart(b)
    tflite.OperatorCodeAddBuiltinCode(b, number)  # and not the older field, as some quantisers write it
    if custom is not None:
        tflite.OperatorCodeAddCustomCode(b, custom)
    tflite.OperatorCodeAddVersion(b, _VERSIONS.get(op, 1))
    return int(tflite.OperatorCodeEnd(b))


_OPTIONS = {op: kind for op, (kind, _) in OPTIONS.items()} | {
    "SHAPE": "ShapeOptions",
    "SPLIT": "SplitOptions",
    "SPLIT_V": "SplitVOptions",
    "STABLEHLO_COMPOSITE": "StableHLOCompositeOptions",
}


def _operator(
    b: Any, code: int, op: str, inputs: Sequence[int], outputs: Sequence[int], options: Mapping[str, Any]
) -> int:
    sources, written = _int32(b, inputs), _int32(b, outputs)
    kind = _OPTIONS.get(op)
    table = None
    options = dict(options)
    between = _int32(b, options.pop("intermediates")) if options.get("intermediates") else None
    options.pop("intermediates", None)
    custom = None
    if op.startswith(("Convolution2D", "Signal", "TFLite_")):
        custom = b.CreateByteVector(_flexbuffer(options))
    elif kind is not None:
        texts = {name: b.CreateString(value) for name, value in options.items() if isinstance(value, str)}
        options |= texts
        options |= {name: b.CreateByteVector(it) for name, it in options.items() if isinstance(it, bytes)}
        getattr(tflite, f"{kind}Start")(b)
        for name, value in options.items():
            getattr(tflite, f"{kind}Add{name}")(b, value)
        table = getattr(tflite, f"{kind}End")(b)
    tflite.OperatorStart(b)
    tflite.OperatorAddOpcodeIndex(b, code)
    tflite.OperatorAddInputs(b, sources)
    tflite.OperatorAddOutputs(b, written)
    if between is not None:
        tflite.OperatorAddIntermediates(b, between)
    if custom is not None:
        tflite.OperatorAddCustomOptions(b, custom)
    if kind is not None and op.startswith("STABLEHLO"):
        tflite.OperatorAddBuiltinOptions2Type(b, getattr(tflite.BuiltinOptions2, kind))
        tflite.OperatorAddBuiltinOptions2(b, table)
    elif kind is not None:
        tflite.OperatorAddBuiltinOptionsType(b, getattr(tflite.BuiltinOptions, kind))
        tflite.OperatorAddBuiltinOptions(b, table)
    return int(tflite.OperatorEnd(b))


def _flexbuffer(options: Mapping[str, Any]) -> bytes:
    """Options of a custom operator; `damaged` bytes as they are."""
    return options["damaged"] if "damaged" in options else bytes(flexbuffers.Dumps(dict(options)))


def litert(path: Path, inputs: Sequence[Array], *, reference: bool = True) -> list[Array]:
    """LiteRT's outputs, by its reference kernels, or the only ones that it has.

    Skips the test without LiteRT.
    """
    runtime = pytest.importorskip("ai_edge_litert.interpreter")
    kinds = runtime.OpResolverType
    kernels = kinds.BUILTIN_REF if reference else kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    try:
        interpreter = runtime.Interpreter(str(path), experimental_op_resolver_type=kernels)
    except ValueError:
        kernels = kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES
        interpreter = runtime.Interpreter(str(path), experimental_op_resolver_type=kernels)
    interpreter.allocate_tensors()
    for detail, value in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


def translated(
    path: Path, names: Sequence[str], outputs: Sequence[str], inputs: Sequence[Array]
) -> list[Array]:
    """ONNX Runtime's outputs for the translation; `names` are the inputs."""
    graph = load(path)
    states = {state.before.name: state.initial.reshape(state.before.shape) for state in graph.states}
    results = Reference(path, outputs, states=list(states)).run(
        {**dict(zip(names, inputs, strict=True)), **states}
    )
    return [results[name] for name in outputs]


def drawn(file: FlatFile, number: int) -> Array:
    """Values for an input."""
    tensor = file.tensors[number]
    if tensor.kind == "FLOAT32":
        return file.random.normal(0, 3, tensor.shape).astype(np.float32)
    limits = np.iinfo(tensor.kind.lower())
    return file.random.integers(limits.min, limits.max + 1, tensor.shape).astype(limits.dtype)
