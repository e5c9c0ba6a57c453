"""The parameters that Python packs match the kernel's C header, field by field."""

from __future__ import annotations

import importlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, is_dataclass, replace
from functools import cache
from pkgutil import walk_packages

import numpy as np
from cost_cases import cases

import mcudeploy
from mcudeploy.codegen.kernelfiles import (
    OF_THE_TAPE,
    UNIT_SUFFIX,
    FirmwareSource,
    kernel_sources,
    source_index,
)
from mcudeploy.ir.graph import DType, Graph, Operator, Quantization, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.opdef import ArrayPointer, CallTable, KernelCall, ParamValue, Symbol
from mcudeploy.ir.parameter_table import guiding_arrays
from mcudeploy.ops.move.columns import BY_PIXELS, BY_WINDOWS, part_of
from mcudeploy.ops.move.feed import StreamedInput

_FIRST, _STEP = 8, 5
"""Cases of a family that are taken: the first ones, and one of each step after them."""
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


@cache
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
    struct_match = re.search(rf"typedef\s+struct\s*\{{([^}}]*)\}}\s*{struct}\s*;", text)
    lines = (part.strip() for part in struct_match[1].split(";")) if struct_match else ()
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


@dataclass(frozen=True, slots=True, eq=False)
class SampleCall:
    """A call of a kernel, and the tensor that it writes."""

    call: KernelCall
    output: Tensor


@cache
def sample_calls() -> tuple[SampleCall, ...]:
    """At least one call of every kernel: of cases that costs are fitted to, and of inputs that are fed."""
    return tuple(_sample_calls())


def _sample_calls() -> Iterator[SampleCall]:
    fed = Tensor("x", (6, 6, 4), DType.INT8, Quantization(0.1, 3))
    feed = StreamedInput(0, fed.shape)
    yield SampleCall(feed.kernel(Operator("x", feed, (), "x"), (), fed), fed)
    for graph in _some_cases():
        (operator,) = graph.operators
        output = graph.tensors[operator.output]
        call = operator.op.kernel(operator, graph.input_tensors(operator), output)
        for each in (call, *call.others):
            yield SampleCall(each, output)
            for stage in each.every_call() if each.stages else ():
                yield SampleCall(stage, output)


def _some_cases() -> Iterator[Graph]:
    """Of each family and element types the first cases, and every fifth: variants depend on shapes."""
    counts: Counter[tuple[object, ...]] = Counter()
    for dtype in (DType.INT8, DType.FLOAT32):
        for graph in cases(dtype):
            (operator,) = graph.operators
            types = (graph.tensors[name].dtype for name in (*operator.inputs, operator.output))
            family = (type(operator.op), getattr(operator.op, "function", ""), *types)
            counts[family] += 1
            if counts[family] <= _FIRST or counts[family] % _STEP == 0:
                yield graph


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


def test_params_are_the_fields_of_the_header() -> None:
    for call in (it.call for it in sample_calls()):
        fields = header_fields(call.kernel)
        assert list(call.params) == [field.name for field in fields], call.kernel
        for field in fields:
            value = call.params[field.name]
            assert _fits(value, field), (
                f"{call.kernel}: {field.name} is {field.type}{' *' * field.is_pointer}, packed is {value!r}"
            )
        pointers = [field.is_pointer for field in fields]
        assert pointers == sorted(pointers, reverse=True), f"{call.kernel}: pointers come first"


def test_some_columns_of_a_row_are_a_call_with_the_same_parameters() -> None:
    wide = [it for it in sample_calls() if it.output.shape[1] >= 4]
    shared = {it.call.kernel: it for it in wide if it.call.kernel in BY_WINDOWS | BY_PIXELS}
    assert len(shared) > 20
    for kernel, it in shared.items():
        part, _ = part_of(it.call, it.output, Interval(2, 4))
        assert list(part.params) == list(it.call.params), kernel
        assert part.params["dims.output_cols"] == 2, kernel


def test_kernels_that_are_guided_by_constants() -> None:
    """An operator of any other kernel is replaceable: its arrays only change results, whatever is in them."""
    guided = set()
    for kernel in {it.call.kernel for it in sample_calls()}:
        pointers = [it for it in header_fields(kernel) if it.is_pointer and it.type in ELEMENT_TYPES]
        arrays = {it.name: np.zeros(1, ELEMENT_TYPES[it.type]) for it in pointers}
        guided |= {kernel} if guiding_arrays(KernelCall(kernel, arrays)) else set()
    moves = ["gather", "scatter_rows", "take", "transpose", "write_rows"]
    moves += ["concat", "concat_channels", "concat_rows"]
    linear = ["resize_linear_f32", "resize_linear_s16", "resize_linear_s8", "resize_linear_s8_mve"]
    resizes = ["resize_nearest", *linear, "resample_f32", "resize_f32_gradient", "roi_align_f32"]
    divisors = ["softmax_s16", "softmax_s8", "softmax_s8_rows", "softmax_s8_tflite"]
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
    """Calls of kernels of a unit beside the core are in tests/ethos_u."""
    kernels = {source.name[:-2] for source in kernel_sources()} - OF_THE_TAPE
    kernels = {name for name in kernels if not name.endswith(UNIT_SUFFIX)}
    headers = {name for name in kernels if f"{name}.h" in source_index() and header_fields(name)}
    assert headers == {it.call.kernel for it in sample_calls()}


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
