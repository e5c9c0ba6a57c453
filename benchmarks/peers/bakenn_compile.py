"""Compile a .tflite file with BakeNN; runs in the environment of the tools. Prints one JSON object.

    python bakenn_compile.py MODEL.tflite FOLDER TARGET cmsis|portable

BakeNN 1.0 refuses files for details of their form, and has no Softmax. So the file is written again: batch 1,
options of Reshape by its output's shape, scales of biases as products of the others, version 3 of
convolutions, no last Softmax. Weights and activations stay as they are.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import bakenn
import flatbuffers
import numpy as np
from tflite_micro.tensorflow.lite.micro.python import schema_py_generated as schema

_WITH_BIAS = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")


def main() -> None:
    model, folder, target, kernels = sys.argv[1:]
    content, without_softmax = plain_form(Path(model).read_bytes())
    file = Path(folder) / "network.tflite"  # beside the folder of the C, which must be new
    file.write_bytes(content)
    options = bakenn.CBackendOptions(
        kernel_policy=bakenn.KernelPolicy.STATIC_PRIORITY,
        enable_cmsis_nn=kernels == "cmsis",
        target=bakenn.resolve_target(target),
    )
    try:
        bakenn.compile_tflite(file, Path(folder) / "c", name="model", backend_options=options)
    except bakenn.BakeNNError as error:
        sys.exit(f"error: {error}")
    print(json.dumps({"without_softmax": without_softmax}))


def plain_form(content: bytes) -> tuple[bytes, bool]:
    """Return the file in the form that BakeNN reads, and whether a Softmax was left out."""
    model = schema.ModelT.InitFromPackedBuf(content, 0)
    codes = [max(it.builtinCode, it.deprecatedBuiltinCode) for it in model.operatorCodes]
    numbers = {name: value for name, value in vars(schema.BuiltinOperator).items() if isinstance(value, int)}
    for code, number in zip(model.operatorCodes, codes, strict=True):
        if number in (numbers["CONV_2D"], numbers["DEPTHWISE_CONV_2D"]):
            code.version = 3
    (graph,) = model.subgraphs
    last = graph.operators[-1]
    without_softmax = codes[last.opcodeIndex] == numbers["SOFTMAX"]
    if without_softmax:
        graph.operators = graph.operators[:-1]
        graph.outputs = [last.inputs[0]]
        for signature in model.signatureDefs or []:
            signature.outputs[0].tensorIndex = last.inputs[0]
    for tensor in graph.tensors:
        tensor.shapeSignature = None
        if tensor.quantization is not None and tensor.shape is not None and len(tensor.shape) == 1:
            tensor.quantization.quantizedDimension = 0
    for operator in graph.operators:
        number = codes[operator.opcodeIndex]
        if number == numbers["RESHAPE"] and operator.builtinOptions is None:
            _with_shape(operator, graph)
        if number in map(numbers.get, _WITH_BIAS):
            _with_exact_bias(operator, graph)
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output()), without_softmax


def _with_shape(operator: Any, graph: Any) -> None:
    options = schema.ReshapeOptionsT()
    options.newShape = [int(it) for it in graph.tensors[operator.outputs[0]].shape]
    operator.builtinOptions, operator.builtinOptionsType = options, schema.BuiltinOptions.ReshapeOptions


def _with_exact_bias(operator: Any, graph: Any) -> None:
    if len(operator.inputs) < 3 or operator.inputs[2] < 0:
        return
    values, weights, bias = (graph.tensors[it].quantization for it in operator.inputs)
    if bias is not None and values is not None and weights is not None:
        bias.scale = np.asarray(values.scale[0] * np.asarray(weights.scale, np.float32), np.float32)


if __name__ == "__main__":
    main()
