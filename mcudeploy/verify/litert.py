"""LiteRT's reference kernels as a second judge of the outputs of a .tflite file, if LiteRT is installed.

The first reference is ONNX Runtime on our translation of the file: it cannot see a wrong translation. LiteRT
can. Its functions are approximate, and it rounds some operators differently. Among 415 public files
the largest difference of floats is 0.04 of the range, in a sum over time, and 0.3 in a quantised file with
noise as input. So floats fail beyond 0.1 of their range, quantised outputs beyond half of it and 4 LSB.
Integers without a scale are indices, which one rounding decides.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.common.errors import ModelError
from mcudeploy.common.text import printable
from mcudeploy.frontend.tflite.contents import Contents, TfliteOperator
from mcudeploy.frontend.tflite.flatbuffer import contents_of
from mcudeploy.frontend.tflite.operator_options import BIAS_TYPE
from mcudeploy.ir.graph import Graph, GraphIO
from mcudeploy.ops.host_io import from_device
from mcudeploy.ops.requantize import dequantize
from mcudeploy.planner.model.model import Model
from mcudeploy.verify.difference import FLOAT_FLOOR, OUTPUT_LSB, difference, range_of
from mcudeploy.verify.interpreter import Interpreter, read_runs, write_runs
from mcudeploy.verify.samples import Sample

Array = NDArray[Any]

_FLOAT_SHARE = 0.1
_QUANTIZED_SHARE = 0.5
_CONVERSIONS = ("DEQUANTIZE", "QUANTIZE")
_DETECTION = "TFLite_Detection_PostProcess"
"""The last output is the number of boxes; LiteRT leaves the boxes beyond it undefined."""


@dataclass(frozen=True, slots=True)
class LiteRtVerdict:
    """A comparison of outputs with LiteRT's. `share`: the largest difference, as a share of a range.

    `runs` were compared; if none, `not_run` says why. `reasons`: the outputs that no rounding explains.
    """

    runs: int = 0
    share: float = 0.0
    reasons: tuple[str, ...] = ()
    not_run: str | None = None


def litert_installed() -> bool:
    """Whether LiteRT's Python package is there."""
    return find_spec("ai_edge_litert") is not None


def compare_with_litert(
    model: Model,
    graph: Graph,
    samples: Sequence[Sample],
    outputs: Sequence[Mapping[str, Array]],
) -> LiteRtVerdict:
    """Compare the outputs of a program for a .tflite file, by tensor, with LiteRT's."""
    if model.choices.states or model.choices.constants:
        return LiteRtVerdict(not_run="it runs files without --state and --bind")
    if not litert_installed():
        return LiteRtVerdict(not_run="pip install ai-edge-litert")
    contents = contents_of(model.path.read_bytes(), model.path.name, model.choices.shapes)
    unable = [why for it in contents.operators if (why := _unable(contents, it))]
    if unable:
        return LiteRtVerdict(not_run=unable[0])
    inputs = [[as_in_file(it, sample.inputs[it.name]) for it in graph.own_inputs()] for sample in samples]
    ios = graph.own_outputs()
    try:
        wanted = Interpreter("LiteRT", __name__).run(model.path, inputs, len(ios))
    except ModelError as error:
        return LiteRtVerdict(not_run=str(error))
    share = _QUANTIZED_SHARE if _is_quantized(contents) else _FLOAT_SHARE
    undefined = {number for it in contents.operators if it.op == _DETECTION for number in it.outputs[:-1]}
    shares, reasons = [0.0], []
    for place, io in enumerate(ios):
        if contents.outputs[place] in undefined:
            continue
        expected = [as_computed(io, run[place]) for run in wanted]
        own = [from_device(io, graph.tensors[io.tensor], run[io.tensor]) for run in outputs]
        if any(it.size != own[0].size for it in expected):
            reasons.append(f"output {printable(io.name)!r} has another number of elements in LiteRT")
            continue
        extent = range_of(expected)
        worst = max(difference(*pair).worst for pair in zip(own, expected, strict=True))
        if worst > FLOAT_FLOOR:
            shares.append(worst / extent if extent else 1.0)
        if worst > _allowed(io, share * extent, _step(contents, contents.outputs[place])):
            reasons.append(
                f"output {printable(io.name)!r} differs from LiteRT's reference kernels by {worst:g}; "
                f"its range is {extent:g}"
            )
    return LiteRtVerdict(len(samples), max(shares), tuple(reasons))


def _unable(contents: Contents, operator: TfliteOperator) -> str:
    """Return why LiteRT computes an operator wrongly; "" if it does not."""
    tensors = contents.tensors
    if operator.op == "SVDF" and tensors[operator.inputs[4]].kind == "INT8":
        return "it takes states of SVDF for int16, and these are int8"
    kind = tensors[operator.inputs[0]].kind if operator.inputs else ""
    if operator.op == "BATCH_MATMUL" and kind in ("INT8", "INT16"):
        scales = tensors[operator.inputs[1]].scales
        if scales is not None and not scales.single:
            return "it multiplies by 0 where constants of BATCH_MATMUL have a scale for each channel"
    if BIAS_TYPE in operator.options and not operator.options[BIAS_TYPE]:
        kinds = [tensors[number].kind for number in operator.inputs if number >= 0]
        if "INT16" in kinds and kinds[-1] == "INT32" and len(kinds) > 2:
            return "it reads a bias of int32 as int64 where a file does not state its type, as older ones"
    return ""


def as_in_file(io: GraphIO, values: Array) -> Array:
    """Return an input as the file declares it: see `GraphIO.declared`."""
    if io.declared is None:
        return values
    stated, limits = io.declared.quantization, np.iinfo(io.declared.dtype)
    integers = np.rint(values / np.float32(stated.scale)) + stated.zero_point
    return np.asarray(np.clip(integers, limits.min, limits.max), io.declared.dtype)


def as_computed(io: GraphIO, values: Array) -> Array:
    """Return an output of LiteRT as the program has it."""
    if io.declared is None:
        return values
    return dequantize(values.astype(np.int64), io.declared.quantization)


def _is_quantized(contents: Contents) -> bool:
    """Whether the file has integers that stand for real numbers."""
    return any(tensor.scales is not None for tensor in contents.tensors)


def _step(contents: Contents, number: int) -> float:
    """Return the coarsest step of a tensor and, if it is converted from integers, of these; 0 for floats."""
    producers = (it for it in contents.operators if number in it.outputs and it.op in _CONVERSIONS)
    numbers = [number, *(read for it in producers for read in it.inputs)]
    scales = (contents.tensors[it].scales for it in numbers)
    return max((scale for it in scales if it is not None for scale in it.scale), default=0.0)


def _allowed(io: GraphIO, allowed: float, step: float) -> float:
    """Return the largest difference of an output: `allowed`, or 4 steps if more; inf for indices."""
    if io.dtype in ("int32", "int64", "bool"):
        return inf
    least = max(FLOAT_FLOOR, OUTPUT_LSB * step) if io.dtype.startswith("float") else OUTPUT_LSB
    return max(allowed, least)


def _main(model: str, inputs: str, outputs: str) -> None:
    from ai_edge_litert import (  # type: ignore[import-untyped]  # noqa: PLC0415 - only in this program
        interpreter as runtime,
    )

    wrong_sums = False  # of int8, in LiteRT 2.3.0
    with suppress(ModelError):  # an open shape, which --shape states
        operators = contents_of(Path(model).read_bytes(), model).operators
        wrong_sums = any(operator.op == "SUM" for operator in operators)
    usual, kernels = (
        runtime.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
        runtime.OpResolverType.BUILTIN_REF,
    )
    try:
        interpreter = runtime.Interpreter(
            model, experimental_op_resolver_type=usual if wrong_sums else kernels
        )
    except ValueError:  # some operators have usual kernels alone
        interpreter = runtime.Interpreter(model, experimental_op_resolver_type=usual)
    results: list[list[Array]] = []
    for values in read_runs(inputs):
        places = interpreter.get_input_details()
        if not results:
            for place, value in zip(places, values, strict=True):
                interpreter.resize_tensor_input(place["index"], value.shape)
            interpreter.allocate_tensors()
        for place, value in zip(places, values, strict=True):
            interpreter.set_tensor(place["index"], value)
        interpreter.invoke()
        numbers = dict.fromkeys(it["index"] for it in interpreter.get_output_details())  # some stand twice
        results.append([interpreter.get_tensor(number) for number in numbers])
    write_runs(outputs, results)


if __name__ == "__main__":
    _main(*sys.argv[1:])
