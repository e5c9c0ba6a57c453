"""The list of operators in docs/operators.md, generated from the tables of the front end.

    python benchmarks/operators.py [--check]

`--check` changes nothing, and fails if the file differs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from generated import write_or_check

from mcudeploy.extension import added_for
from mcudeploy.frontend.decompose import decompose
from mcudeploy.frontend.decompose.decompose import MICROSOFT_RULES, OWN_RULES
from mcudeploy.frontend.lower import lowering
from mcudeploy.frontend.lower.arithmetic import INTEGER_OPERATORS
from mcudeploy.frontend.lower.builder import OperatorLowering
from mcudeploy.frontend.passes.control import CONTROL
from mcudeploy.frontend.passes.versions import OPSETS

ML_RULES = added_for("rules", "ai.onnx.ml")
RULES = {**decompose.RULES, **added_for("rules", "")}
FILE = Path(__file__).resolve().parents[1] / "docs" / "operators.md"

HEAD = f"""# Operators

For users with an ONNX model: which operators run.
Made by `python benchmarks/operators.py`. mcudeploy reads ONNX files of opset {OPSETS.start} and
newer, and older ones after conversion to opset {OPSETS.start}:
float32, QDQ with int8 or uint8 activations, and QOperator files of ONNX Runtime's quantiser. Shapes are
fixed. A batch may have up to 16 images. Each image, and each sequence of a recurrent operator, is computed
separately with the same weights. An input that must be constant is an initializer, a Constant node, or
computed from these.

The column *int8* states how an operator between a DequantizeLinear and a QuantizeLinear is computed.
*kernel*: on integers. *table*: by a look-up table of 256 bytes, which chains of functions share. *moved*:
bytes are moved unchanged. *free*: no computation. *float*: converted to float32, computed, and converted
back.

A node that is not listed, or is used in another way, is refused by name before the search starts:
`mcudeploy check MODEL`. [coverage.md](coverage.md) lists how many of ONNX's own tests pass, by operator.
"""

TYPES = {
    "float32, int8, uint8": "unchanged; uint8 as int8, minus 128",
    "bool": "int8, 0 or 1",
    "int32, int64": "int32; moved, chosen by indices, cast, and computed with by "
    f"{', '.join(INTEGER_OPERATORS)}, and reduced by ReduceMax, ReduceMin, ReduceProd and ReduceSum: what "
    "does not fit 32 bits wraps around; int8 and uint8 without a quantisation are computed with at 8 bits",
    "float16, bfloat16, float64": "stored and computed as float32, inputs and outputs too (`float` in C); "
    "verified against ONNX Runtime in float32, and loosely in the types of the file",
    "int16 activations with zero points of 0 and int8 weights (16x8)": "computed in integers: convolutions, "
    "matrix products, sums, products, means over whole images, maxima, ReLU, moves; other operators in "
    "float32. `quantize --activations int16` makes such files; for `.tflite` see "
    "[16x8](tflite.md#int16-activations)",
    "int16 activations with zero points, uint16 ones; 4 or 2 bits": "float32, rounded and clipped to the "
    "integers of the file: 4 bytes of RAM for each element, no integer kernels",
    "int4, uint4, int2, uint2 weights": "int8, with one scale for a tensor or an output channel",
    "weights quantised in blocks, com.microsoft::MatMulNBits": "float32: 4 bytes of flash for each weight",
    "weights with a zero point": "int8 if weight minus zero point fits (uint8 around 128), else int8 and an "
    "offset for each output channel, by kernels that are slower; float32 under float activations",
    "int8 weights under float activations": "int8 if flash is short, else float32 where that is faster; so "
    "are those of onnxruntime.quantization.quantize_dynamic, whose activations are not rounded",
    "Quant and BipolarQuant of QONNX": "int8, clipped to the integers of the file; activations with scales "
    "of channels, or a zero point that is not an integer of 8 bits, in float32",
    "sparse initializers": "written out",
}
TYPES_BELOW = """
Every command notes the types that cost memory. Scales and zero points are constant. Those that a run computes
(DynamicQuantizeLinear) are refused, except in products as quantize_dynamic writes them: quantise with
fixed ones, `mcudeploy quantize`.
"""

RESTRICTIONS = {
    "Attention": "nonpad_kv_seqlen constant; qk_matmul_output_mode 2 only if nothing is hidden",
    "CausalConvWithState": "weights constant",
    "CenterCropPad": "sizes constant",
    "Compress": "condition constant",
    "ConvInteger": "weights and zero points constant; read by Cast to float32",
    "ConvTranspose": "weights constant, int8 ones stay integers; 3-D: float32",
    "CumProd": "of float32; axis constant",
    "CumSum": "of float32; axis constant",
    "DFT": "length and axis constant; one side of a spectrum of real numbers, of even length, by radices of "
    "2 to 5, others by a matrix of all frequencies",
    **dict.fromkeys(("BlackmanWindow", "HammingWindow", "HannWindow", "MelWeightMatrix"), "sizes constant"),
    "STFT": "step, length and window constant; as DFT",
    "If": "if the condition is computed, both branches run; their results have one type and shape",
    "Loop": "iterations known: constant, from shapes, or by a counter; unrolled",
    "LpPool": "1-D and 2-D",
    "LpNormalization": "p 1 or 2",
    "MatMulInteger": "zero points constant; read by Cast to float32",
    "MaxUnpool": "output_shape equal to that of the kernel",
    "NonMaxSuppression": "limits constant; as many rows as it can have, and an output with the number of "
    "those that it has",
    "OneHot": "depth constant, or the shape of the result known",
    "Scan": "opset 9 and newer; unrolled",
    "ScatterElements": "8-bit integers without reduction",
    "Trilu": "diagonal constant",
}
"""Restrictions of operators that rules replace, or extensions lower."""

LOWERINGS = {
    **lowering.LOWERINGS,
    **{
        op: OperatorLowering(function, only=RESTRICTIONS.get(op, ""))
        for op, function in added_for("lowerings", "").items()
    },
}


def text() -> str:
    """Return the whole file."""
    lines = [HEAD, ""]
    lines += ["## Element types", "", "| in the file | on the device |", "|---|---|"]
    lines += [f"| {types} | {held} |" for types, held in TYPES.items()]
    lines += [TYPES_BELOW, "## Lowered to kernels", "", "| operator | int8 | only |", "|---|---|---|"]
    lines += [
        f"| {op} | {it.on_int8} | {it.only} |"
        for op, it in sorted(LOWERINGS.items(), key=lambda row: row[0].lower())
    ]
    lines += ["", "## Decomposed into the operators above", "", "| operator | only |", "|---|---|", *_made()]
    lines += [
        "",
        "## Of the domain com.microsoft",
        "",
        ", ".join(sorted(MICROSOFT_RULES)) + ": with constant",
    ]
    lines += ["scales, zero points and biases, and channels first. Attention and MultiHeadAttention have"]
    lines += ["separate queries, keys and values, no cache of earlier calls, and masks of [batch] lengths,"]
    lines += ["[batch, keys] or [batch, queries, keys].", ""]
    lines += ["## Of the domain ai.onnx.ml", "", ", ".join(sorted(ML_RULES)) + ": on float32. Trees have"]
    lines += [
        "nodes that compare by order or equality, and weights that are added or averaged; linear classifiers"
    ]
    lines += ["have coefficients for each class. Scores become probabilities by LOGISTIC or SOFTMAX. Texts"]
    lines += ["as labels become the place of the class, and ZipMap a row of probabilities. Support vectors"]
    lines += ["take one row a run, without iterated probabilities: train with `probability=False`.", ""]
    return "\n".join(lines)


def _made() -> Iterator[str]:
    for op in sorted((RULES.keys() | OWN_RULES.keys() | CONTROL) - LOWERINGS.keys(), key=str.lower):
        yield f"| {op} | {RESTRICTIONS.get(op, '')} |"


def main() -> int:
    """Write the file, or compare it."""
    known = {*LOWERINGS, *RULES, *OWN_RULES, *(f"com.microsoft::{op}" for op in MICROSOFT_RULES)}
    known |= {f"ai.onnx.ml::{op}" for op in ML_RULES}
    return write_or_check(__doc__, FILE, text(), f"{len(known)} operators")


if __name__ == "__main__":
    sys.exit(main())
