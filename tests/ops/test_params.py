"""The parameters that Python packs match the kernel's C header, field by field."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, is_dataclass, replace
from pathlib import Path
from pkgutil import walk_packages

import numpy as np
import pytest

import mcudeploy
from mcudeploy.codegen.kernelfiles import OF_THE_TAPE, FirmwareSource, kernel_sources, source_index
from mcudeploy.extensions.learned.trees import LEAF, TreeSums
from mcudeploy.ir.graph import DType, Graph, Operator, Quantization, Shape, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import (
    ArrayPointer,
    CallTable,
    ConstantArray,
    KernelCall,
    OperatorDef,
    ParamValue,
    Symbol,
)
from mcudeploy.ir.parameter_table import guiding_arrays
from mcudeploy.ops.conv.affine import Affine
from mcudeploy.ops.conv.channel_rows import Conv2dToRows
from mcudeploy.ops.conv.conv import Conv2d, Conv2dByRows
from mcudeploy.ops.image.grid_sample import GridSample
from mcudeploy.ops.image.resample import Resample, Taps
from mcudeploy.ops.image.resize import Resize, resize_samples
from mcudeploy.ops.image.roi_align import RoiAlign
from mcudeploy.ops.image.suppression import NonMaxSuppression
from mcudeploy.ops.matrix.matmul import MatMul
from mcudeploy.ops.matrix.recurrent import GATES, SCALED, CellFunction, CellFunctions, Recurrent
from mcudeploy.ops.matrix.svdf import Svdf
from mcudeploy.ops.move.cast import Cast
from mcudeploy.ops.move.columns import BY_PIXELS, BY_WINDOWS, part_of
from mcudeploy.ops.move.concat import Concat
from mcudeploy.ops.move.concat_channels import ConcatChannels
from mcudeploy.ops.move.depth_to_space import DepthToSpace
from mcudeploy.ops.move.feed import StreamedInput
from mcudeploy.ops.move.gather import GatherRows
from mcudeploy.ops.move.move import Pad, Slice
from mcudeploy.ops.move.quantize import Dequantize, Quantize
from mcudeploy.ops.move.queue import Queue
from mcudeploy.ops.move.scatter import ScatterRows
from mcudeploy.ops.move.take import Gather, Take
from mcudeploy.ops.move.top_k import TopK
from mcudeploy.ops.move.transfer import Clean, Copy, Invalidate
from mcudeploy.ops.move.transpose import Transpose
from mcudeploy.ops.pool.pool import AveragePool, AveragePoolByRows, MaxPool
from mcudeploy.ops.pool.pool_indices import MaxPoolIndices
from mcudeploy.ops.reduce.norm import LayerNorm
from mcudeploy.ops.reduce.reduce import Reduce
from mcudeploy.ops.reduce.softmax import Softmax
from mcudeploy.ops.scalar.elementwise import Binary, Lut
from mcudeploy.ops.scalar.functions import BINARY, UNARY
from mcudeploy.ops.scalar.integer import IntegerBinary
from mcudeploy.ops.scalar.unary import Unary

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
from fused_cases import fused_cases
from int16_cases import int16_cases
from signal_cases import signal_cases
from training_cases import (
    grouped_gradient_cases,
    pool_gradient_cases,
    resize_gradient_cases,
    training_cases,
    unary_gradient_cases,
)

IMAGE: Shape = (6, 6, 4)
GROUPS = "mcud_params.h"
"""The header with the structs within params structs."""
ELEMENT_TYPES = {
    "int8_t": "int8",
    "int16_t": "int16",
    "int32_t": "int32",
    "float": "float32",
    "uint16_t": "uint16",
    "uint32_t": "uint32",
}


@dataclass(frozen=True, slots=True)
class Field:
    """One line of a params struct."""

    name: str
    type: str
    is_pointer: bool


def header_fields(kernel: str) -> tuple[Field, ...]:
    """The fields of mcud_<kernel>_params; fields of an inner struct are struct.field.

    None if the header has no such struct. A header may also name a struct that kernels share: typedef
    mcud_<family>_params mcud_<kernel>_params, of a family's header or of another kernel.
    """
    index = source_index()
    name, text = kernel, _without_comments(index[f"{kernel}.h"])
    while shared := re.search(rf"typedef\s+mcud_(\w+)_params\s+mcud_{name}_params\s*;", text):
        name = shared[1]
        text = _without_comments(index.get(f"mcud_{name}.h") or index[f"{name}.h"])
    return tuple(_fields(text, f"mcud_{name}_params", kernel))


def _fields(text: str, struct: str, kernel: str) -> Iterator[Field]:
    found = re.search(rf"typedef\s+struct\s*\{{([^}}]*)\}}\s*{struct}\s*;", text)
    lines = (part.strip() for part in found[1].split(";")) if found else ()
    for line in filter(None, lines):
        within = re.fullmatch(r"(mcud_\w+) (\w+)", line)
        if within:
            inner = tuple(_fields(_without_comments(source_index()[GROUPS]), within[1], kernel))
            assert inner, f"{kernel}.h: {GROUPS} has no {within[1]}"
            yield from (replace(it, name=f"{within[2]}.{it.name}") for it in inner)
            continue
        match = re.fullmatch(r"(const\s+)?(\w+)\s*(\*?)\s*(\w+)", line)
        assert match is not None, f"{kernel}.h: cannot read {line!r}"
        is_function = match[2].startswith("mcud_") and match[2] != "mcud_stage_call"
        assert bool(match[1]) == (bool(match[3]) and not is_function), (
            f"{kernel}.h: pointers to data, and only they, are to const: {line!r}"
        )
        yield Field(match[4], match[2], bool(match[3]))


def _without_comments(header: FirmwareSource) -> str:
    return re.sub(r"/\*.*?\*/", "", header.text, flags=re.DOTALL)


def _tensor(name: str, shape: Shape, dtype: DType, zero_point: int = 3) -> Tensor:
    quantization = Quantization(0.1, zero_point) if dtype is DType.INT8 else None
    return Tensor(name, shape, dtype, quantization)


def _call(
    op: OperatorDef,
    shapes: tuple[Shape, ...],
    dtype: DType,
    constants: Mapping[str, ConstantArray] | None = None,
    out_dtype: DType | None = None,
    out_zero_point: int = 3,
) -> KernelCall:
    inputs = tuple(_tensor(f"x{position}", shape, dtype) for position, shape in enumerate(shapes))
    output = _tensor("y", op.loops(shapes).output_shape(), out_dtype or dtype, out_zero_point)
    operator = Operator("op", op, tuple(tensor.name for tensor in inputs), "y", constants or {})
    return op.kernel(operator, inputs, output)


def _convolutions(dtype: DType, stored: DType) -> Iterator[KernelCall]:
    """Convolutions of activations of one type by weights of another."""
    shapes: dict[str, tuple[Conv2d | Conv2dByRows, int]] = {
        "general": (Conv2d(5, (3, 3), pads=(1, 1, 1, 1)), 4),
        "deep": (Conv2d(5, (3, 3), pads=(1, 1, 1, 1)), 40),
        "shallow": (Conv2d(5, (3, 3), pads=(1, 1, 1, 1)), 2),
        "pointwise": (Conv2d(5), 4),
        "whole": (Conv2d(5, (6, 6)), 4),
        "whole by rows": (Conv2dByRows(5, (6, 6)), 4),
        "depthwise": (Conv2d(4, (3, 3), groups=4), 1),
        "depthwise, wide": (Conv2d(4, (3, 3), groups=4, pads=(1, 2, 1, 2)), 1),
        "depthwise, large": (Conv2d(4, (5, 5), groups=4, pads=(2, 2, 2, 2)), 1),
        "depthwise, more channels": (Conv2d(8, (3, 3), groups=4), 1),
    }
    if dtype is DType.INT8:
        shapes |= {
            f"{name}, twice": (replace(conv, rounding="tflite"), depth)
            for name, (conv, depth) in shapes.items()
            if isinstance(conv, Conv2d)
        }
    for conv, group_inputs in shapes.values():
        channels = group_inputs * (conv.groups if isinstance(conv, Conv2d) else 1)
        count = conv.out_channels
        weights = np.ones((count, *conv.kernel_shape, group_inputs), stored.value)
        bias = np.zeros(count, np.int32 if dtype is DType.INT8 else np.float32)
        constants = {"weights": weights, "bias": bias}
        if stored is not DType.FLOAT32:
            constants["weight_scale"] = np.full(count, 0.01, np.float32)
        yield _call(conv, ((*IMAGE[:2], channels),), dtype, constants)
    constants = {name: array[:4] for name, array in constants.items()}
    constants = {name: array.repeat(2, axis=0)[:8] for name, array in constants.items()}
    yield _call(
        Conv2dToRows(2, 4), ((1, 1, 9),), dtype, {**constants, "weights": np.ones((8, 1, 1, 9), stored.value)}
    )


def _of_type(dtype: DType) -> Iterator[KernelCall]:
    """Sample calls of everything that exists for this element type."""
    constant = {"constant": np.ones((1, 1, 4), dtype.value)}
    for function in ("add", "sub", "mul", "div"):
        yield _call(Binary(function), (IMAGE, IMAGE), dtype)
        for operand in (0, 1):
            q = Quantization(0.2, 1) if dtype is DType.INT8 else None
            yield _call(Binary(function, operand, (1, 1, 4), q), (IMAGE,), dtype, constant)
    for axis in range(3):
        yield _call(Softmax(axis), (IMAGE,), dtype)
        yield _call(Concat(axis), (IMAGE, IMAGE), dtype)
        yield _call(Concat(axis), (IMAGE, IMAGE), dtype, out_zero_point=4)
    if dtype is DType.INT8:
        yield _call(ConcatChannels(((0, 2), (1, 3))), (IMAGE, IMAGE), dtype, out_zero_point=4)
        yield _call(ConcatChannels(((1, 2), (3,))), (IMAGE, IMAGE), dtype)
    yield _call(Reduce((2,)), (IMAGE,), dtype)
    if dtype is DType.FLOAT32:
        yield from (_call(Reduce((2,), how), (IMAGE,), dtype) for how in ("sum", "prod", "max", "min"))
        taps = Taps((0, 2), ((1.0,), (0.5, 0.25)))
        yield _call(Resample(taps, taps), (IMAGE,), dtype)
        yield _call(GridSample(2, "zeros", False), (IMAGE, (3, 5, 2)), dtype)
        for how in BINARY:
            yield _call(Binary(how), (IMAGE, IMAGE), dtype)
    yield _call(Slice((0, 0, 0), (1, 2, 1), (6, 3, 4)), (IMAGE,), dtype)
    yield _call(Take((5, 0), (1, 1), (0, 1, 2, 3)), (IMAGE,), dtype)
    yield _call(Take((5, 0), (1, 1), (3, 1)), (IMAGE,), dtype)
    yield _call(Gather((7, 0), (1, 1, 2)), (IMAGE,), dtype)
    yield _call(DepthToSpace((2, 1), (11, 6), (1, 0), 2), (IMAGE,), dtype)
    yield _call(Pad((1, 0, 0), (0, 1, 0), 0.5), (IMAGE,), dtype)
    yield _call(Transpose(IMAGE, (2, 0, 1), (4, 6, 6)), (IMAGE,), dtype)
    for mode in ("nearest", "linear"):
        samples = resize_samples(6, 12, 2.0, mode=mode)
        yield _call(Resize(mode, samples, samples), (IMAGE,), dtype)
        yield _call(Resize(mode, samples, samples), (IMAGE,), dtype, out_zero_point=4)
    for transpose in (False, True):
        yield _call(MatMul(True, transpose), (IMAGE, (6, 5, 4) if transpose else (6, 4, 5)), dtype)
        yield _call(MatMul(False, transpose), (IMAGE, (3, 6, 4) if transpose else (4, 6, 3)), dtype)
    window = ((2, 2), (2, 2), (1, 1), (0, 0, 0, 0), (3, 3))
    yield _call(MaxPool(*window), (IMAGE,), dtype)
    yield _call(AveragePool(*window, False), (IMAGE,), dtype)
    yield _call(AveragePoolByRows(), (IMAGE,), dtype)
    yield from _convolutions(dtype, dtype)
    yield from _convolutions(dtype, DType.INT8 if dtype is DType.FLOAT32 else DType.INT16)


def _call_of(graph: Graph) -> KernelCall:
    (operator,) = graph.operators
    return operator.op.kernel(operator, graph.input_tensors(operator), graph.tensors["y"])


def sample_calls() -> list[KernelCall]:
    """At least one call of every kernel."""
    calls = [*_of_type(DType.INT8), *_of_type(DType.FLOAT32)]
    calls.append(
        _call(Affine(), (IMAGE,), DType.INT8, dict.fromkeys(("factor", "offset"), np.ones(4, np.float32)))
    )
    calls.append(_call(Lut(), (IMAGE,), DType.INT8, {"table": np.zeros(256, np.int8)}))
    calls += [_call(Unary(function, 0.1, 0.5), (IMAGE,), DType.FLOAT32) for function in UNARY]
    vectors = dict.fromkeys(("scale", "bias"), np.ones(4, np.float32))
    calls += [_call(LayerNorm(1e-5), (IMAGE,), dtype, vectors) for dtype in (DType.FLOAT32, DType.INT8)]
    for cell, gates in GATES.items():
        shapes = {
            "weights": (5 * gates, 4),
            "recurrent": (5 * gates, 5),
            "bias": (5 * gates,),
            "initial": (10,),
        }
        states = {name: np.ones(shape, np.float32) for name, shape in shapes.items()}
        functions = (
            CellFunctions(CellFunction("tanh"), CellFunction("elu"), CellFunction("line"))
            if cell == "rnn"
            else None
        )
        calls.append(_call(Recurrent(cell, 5, functions=functions), ((1, 6, 4),), DType.FLOAT32, states))
        if cell in SCALED:
            scales = {f"{name}_scale": np.ones(5 * gates, np.float32) for name in ("weight", "recurrent")}
            states |= {name: states[name].astype(np.int8) for name in ("weights", "recurrent")}
            calls.append(_call(Recurrent(cell, 5), ((1, 6, 4),), DType.FLOAT32, states | scales))
    for dtype, bias in ((DType.INT8, np.int32), (DType.FLOAT32, np.float32)):
        kept = {"weights": np.ones((6, 4), dtype.value), "bias": np.ones(3, bias)}
        kept["weight_scale"] = np.ones(1, np.float32)
        calls.append(_call(Svdf(3), ((1, 1, 6), (1, 6, 4)), dtype, kept))
    for twice in (Binary("add", rounding="tflite"), Binary("mul", rounding="tflite")):
        calls.append(_call(twice, (IMAGE, IMAGE), DType.INT8))
    calls.append(_call(Reduce((0, 1), rounding="tflite"), (IMAGE,), DType.INT8))
    calls.append(_call(Queue(), ((1, 2, 6), (1, 5, 6)), DType.INT8))
    calls.append(_call(Cast(), (IMAGE,), DType.INT32, out_dtype=DType.FLOAT32))
    calls.append(_call(Cast(), (IMAGE,), DType.FLOAT32, out_dtype=DType.INT32))
    calls.append(_call(TopK(2, 2, "indices"), (IMAGE,), DType.INT8, out_dtype=DType.INT32))
    calls.append(_call(GatherRows(), ((1, 1, 3), IMAGE), DType.INT32))
    ones = {"constant": np.ones((1, 1, 4), np.int32)}
    calls += [_call(IntegerBinary("add", at, (1, 1, 4)), (IMAGE,), DType.INT32, ones) for at in (0, 1)]
    pool = MaxPool((2, 2), (2, 2), (1, 1), (0, 0, 0, 0), (3, 3))
    calls.append(_call(MaxPoolIndices(pool, (6, 1, 36)), (IMAGE,), DType.INT8, out_dtype=DType.INT32))
    places = {"indices": np.zeros(3, np.int32)}
    calls.append(_call(ScatterRows("none", 5, True), ((3, 1, 4),), DType.INT8, places))
    calls.append(_call(ScatterRows("max"), ((1, 1, 3), (3, 1, 4), (5, 1, 4)), DType.INT32))
    leaf = np.uint32(LEAF)
    tables = {
        "thresholds": np.zeros(1, np.float32),
        "features": np.ones(1, np.uint16),
        "next": np.array([[leaf, leaf]], np.uint32),
        "roots": np.zeros(1, np.uint32),
        "leaf_starts": np.array([0, 1], np.uint32),
        "targets": np.zeros(1, np.uint16),
        "weights": np.ones(1, np.float32),
    }
    calls.append(_call(TreeSums(2, 1.0), ((3, 1, 4),), DType.FLOAT32, tables))
    boxes = NonMaxSuppression(2, 0.1, 0.5)
    calls.append(_call(boxes, ((3, 1, 4), (1, 1, 3)), DType.FLOAT32, out_dtype=DType.INT32))
    calls.append(_call(RoiAlign((2, 2)), (IMAGE, (3, 1, 4)), DType.FLOAT32))
    calls.append(_call(StreamedInput(0, IMAGE), (), DType.INT8))
    calls.append(_call(Quantize(), (IMAGE,), DType.FLOAT32, out_dtype=DType.INT8))
    calls.append(_call(Dequantize(), (IMAGE,), DType.INT8, out_dtype=DType.FLOAT32))
    calls += [_call(op, (IMAGE,), DType.INT8) for op in (Copy(), Clean(), Invalidate())]
    sets = grouped_gradient_cases, pool_gradient_cases, resize_gradient_cases, unary_gradient_cases
    gradients = [graph for cases in sets for graph in cases()]
    graphs = (*signal_cases(), *int16_cases(), *training_cases(), *gradients, next(fused_cases()))
    calls += map(_call_of, graphs)
    every = calls + [other for call in calls for other in call.others]
    stages = {stage.kernel: stage for call in every if call.stages for stage in call.every_call()}
    return every + list(stages.values())


def _fits(value: ParamValue, field: Field) -> bool:
    if isinstance(value, ArrayPointer):
        value = value.array
    if field.type == "mcud_stage_call":
        return field.is_pointer and isinstance(value, CallTable)
    if field.type.startswith("mcud_"):
        return field.is_pointer and isinstance(value, Symbol)
    if field.is_pointer:
        return value is None or (isinstance(value, np.ndarray) and value.dtype == ELEMENT_TYPES[field.type])
    if field.type == "float":
        return isinstance(value, float)
    return field.type == "int32_t" and isinstance(value, int) and -(2**31) <= value < 2**31


@pytest.mark.parametrize("call", sample_calls(), ids=lambda call: call.kernel)
def test_params_are_the_fields_of_the_header(call: KernelCall) -> None:
    fields = header_fields(call.kernel)
    assert list(call.params) == [field.name for field in fields]
    for field in fields:
        value = call.params[field.name]
        assert _fits(value, field), (
            f"{field.name} is {field.type}{' *' * field.is_pointer}, packed is {value!r}"
        )
    pointers = [field.is_pointer for field in fields]
    assert pointers == sorted(pointers, reverse=True), "pointers come first"


@pytest.mark.parametrize(
    "call", [it for it in sample_calls() if it.kernel in BY_WINDOWS | BY_PIXELS], ids=lambda call: call.kernel
)
def test_some_columns_of_a_row_are_a_call_with_the_same_parameters(call: KernelCall) -> None:
    part, _ = part_of(call, _tensor("y", IMAGE, DType.INT8), Interval(2, 4))
    assert list(part.params) == list(call.params)
    assert part.params["dims.output_cols"] == 2


def test_kernels_that_are_guided_by_constants() -> None:
    """An operator of any other kernel is replaceable: its arrays only change results, whatever is in them."""
    guided = set()
    for kernel in {call.kernel for call in sample_calls()}:
        pointers = [it for it in header_fields(kernel) if it.is_pointer and it.type in ELEMENT_TYPES]
        arrays = {it.name: np.zeros(1, ELEMENT_TYPES[it.type]) for it in pointers}
        guided |= {kernel} if guiding_arrays(KernelCall(kernel, arrays)) else set()
    moves = ["concat", "concat_channels", "concat_rows", "gather", "scatter_rows", "take", "transpose"]
    linear = ["resize_linear_f32", "resize_linear_s16", "resize_linear_s8", "resize_linear_s8_mve"]
    resizes = ["resize_nearest", *linear, "resample_f32", "resize_f32_gradient", "roi_align_f32"]
    divisors = ["softmax_s16", "softmax_s8", "softmax_s8_rows"]
    spectra = [f"{inverse}rfft_{each}" for inverse in ("", "i") for each in ("f32", "s16", "s32")]
    assert guided == {
        *moves,
        *resizes,
        *divisors,
        *spectra,
        "filter_bank_root",
        "fused_rows",
        "tree_sums_f32",
    }


def test_every_kernel_has_a_sample_call() -> None:
    kernels = {source.name[:-2] for source in kernel_sources()} - OF_THE_TAPE
    headers = {name for name in kernels if f"{name}.h" in source_index() and header_fields(name)}
    assert headers == {call.kernel for call in sample_calls()}


def test_no_two_families_have_one_kind() -> None:
    names = [
        it.name
        for it in walk_packages(mcudeploy.__path__, "mcudeploy.")
        if ".ops." in it.name or ".extensions." in it.name
    ]
    modules = [importlib.import_module(name) for name in names]
    families = {
        family
        for module in modules
        for family in vars(module).values()
        if isinstance(family, type)
        and is_dataclass(family)
        and isinstance(getattr(family, "kind", None), str)
    }
    kinds = [family.kind for family in families]
    assert len(kinds) == len(set(kinds)) > 60
