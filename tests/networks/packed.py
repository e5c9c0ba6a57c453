"""Models whose matrices become weights of 4 bits in blocks, as quantisers of language models write them.

python -m tests.networks.packed decoder.onnx decoder_int4.onnx
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

BLOCK = 32
_LEAST = 1024
"""Elements of the smallest matrix that becomes packed."""


def packed(model: onnx.ModelProto, block: int = BLOCK) -> onnx.ModelProto:
    """Return the model with MatMulNBits for products by constants, and GatherBlockQuantized for tables."""
    result = onnx.ModelProto()
    result.CopyFrom(model)
    graph = result.graph
    constants = {it.name: it for it in graph.initializer}
    for node in graph.node:
        place = {"MatMul": 1, "Gather": 0}.get(node.op_type)
        name = "" if place is None else node.input[place]
        tensor = constants.get(name)
        if tensor is None or len(tensor.dims) != 2 or np.prod(tensor.dims) < _LEAST:
            continue
        if node.op_type == "Gather" and tensor.dims[1] % block:
            continue
        matrix = numpy_helper.to_array(tensor)
        integers, scale = _quantized(matrix.T if node.op_type == "MatMul" else matrix, block)
        key = f"{name}/{node.op_type}"
        if f"{key}/q" not in constants:
            shape = (len(scale), scale.shape[1], block // 2) if node.op_type == "MatMul" else (len(scale), -1)
            arrays = {"q": integers.reshape(shape), "s": scale if node.op_type == "Gather" else scale.ravel()}
            for part, array in arrays.items():
                constants[f"{key}/{part}"] = numpy_helper.from_array(array, f"{key}/{part}")
        _replace(node, key, matrix.shape, block)
    read = {name for node in graph.node for name in node.input}
    kept = [it for it in constants.values() if it.name in read]
    del graph.initializer[:]
    graph.initializer.extend(kept)
    result.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return result


def _quantized(rows: NDArray[Any], block: int) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """[N, depth] -> bytes [N, padded depth / 2], around 8, and scales [N, blocks]."""
    padded = np.pad(rows, ((0, 0), (0, -rows.shape[1] % block))).reshape(len(rows), -1, block)
    scale = np.maximum(np.abs(padded).max(axis=2), 1e-6).astype(np.float32) / 7
    steps = (np.rint(padded / scale[..., np.newaxis]) + 8).astype(np.uint8).reshape(len(rows), -1)
    return steps[:, ::2] | steps[:, 1::2] << 4, scale


def _replace(node: onnx.NodeProto, key: str, shape: tuple[int, ...], block: int) -> None:
    weights, scale = f"{key}/q", f"{key}/s"
    if node.op_type == "MatMul":
        names = [node.input[0], weights, scale]
        sizes = {"K": shape[0], "N": shape[1], "bits": 4, "block_size": block}
        op = "MatMulNBits"
    else:
        names = [weights, node.input[1], scale]
        sizes = {"gather_axis": 0, "quantize_axis": 1, "bits": 4, "block_size": block}
        op = "GatherBlockQuantized"
    made = helper.make_node(op, names, list(node.output), node.name, domain="com.microsoft", **sizes)
    node.CopyFrom(made)


def main() -> None:
    """Write the packed form of a file."""
    source, target = map(Path, sys.argv[1:])
    onnx.save(packed(onnx.load(source)), target)


if __name__ == "__main__":
    main()
