"""Compile a network with BakeNN; runs in the environment of the tools.

    python bakenn_compile.py FOLDER TARGET cmsis|portable

FOLDER has network.json, the values and operations of bakenn_graph.py, and network.npz, their constants. The
C goes into FOLDER/c.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import bakenn
import numpy as np
from bakenn import ir


def main() -> None:
    place, target, kernels = sys.argv[1:]
    folder = Path(place)
    options = bakenn.CBackendOptions(
        kernel_policy=bakenn.KernelPolicy.STATIC_PRIORITY,
        enable_cmsis_nn=kernels == "cmsis",
        target=bakenn.resolve_target(target),
    )
    try:
        bakenn.compile(graph_in(folder), folder / "c", model_name="model", backend_options=options)
    except (bakenn.BakeNNError, ValueError) as error:
        sys.exit(f"error: {error}")


def graph_in(folder: Path) -> ir.QuantizedGraph:
    """Return the graph that a folder describes."""
    described = json.loads((folder / "network.json").read_text("utf-8"))
    values = {name: _type(value) for name, value in described["values"].items()}
    steps = tuple(
        getattr(ir, kind)(**{name: _immutable(it) for name, it in fields.items()})
        for kind, fields in described["steps"]
    )
    constants = dict(np.load(folder / "network.npz"))
    borders = tuple(described["inputs"]), tuple(described["outputs"])
    return ir.QuantizedGraph(described["name"], values, constants, steps, *borders)


def _type(value: dict[str, Any]) -> ir.TensorType:
    if "axis" in value:
        scales, zeros = tuple(value["scales"]), tuple(value["zero_points"])
        quantization: Any = ir.PerAxisQParams(scales, zeros, value["axis"])
    else:
        quantization = ir.PerTensorQParams(value["scale"], value["zero_point"])
    return ir.TensorType(
        tuple(value["shape"]), ir.DType(value["dtype"]), ir.Layout(value["layout"]), quantization
    )


def _immutable(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


if __name__ == "__main__":
    main()
