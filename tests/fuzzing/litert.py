"""Programs of .tflite files beside LiteRT: every operator on LiteRT's own inputs, and the outputs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from against_litert import LiteRt

from mcudeploy.ir.graph import DType, Graph, Operator
from mcudeploy.ops.host_io import to_device
from mcudeploy.verify.compare import Machine, Storage, check_operators
from mcudeploy.verify.difference import FLOAT_SHARE_OF_RANGE
from mcudeploy.verify.litert import as_computed, as_in_file
from mcudeploy.verify.samples import Sample

EXACT = (
    frozenset(
        (
            "AVERAGE_POOL_2D",
            "CONCATENATION",
            "DEPTH_TO_SPACE",
            "GATHER",
            "MAXIMUM",
            "MAX_POOL_2D",
            "MINIMUM",
            "NEG",
        )
    )
    | frozenset(
        ("PAD", "REDUCE_MAX", "REDUCE_MIN", "RESHAPE", "RESIZE_NEAREST_NEIGHBOR", "SLICE", "SPACE_TO_DEPTH")
    )
    | frozenset(("SPLIT", "STRIDED_SLICE", "TRANSPOSE"))
)
"""Operators that have LiteRT's bits; others round once, and LiteRT twice."""
_ANY_SHARE = frozenset({"MEAN", "RESIZE_BILINEAR"})
"""Operators whose results are often ties, rounded as in ONNX Runtime."""
_DIFFERENT_SHARE, _FEW = 0.25, 2
"""Tolerated share of results that are 1 LSB off. Any share is tolerated of a table, since one value may be
frequent, and of MEAN, which LiteRT rounds to quarters first.
"""
_OF_OWN_INPUTS = 4
"""Largest difference in LSB of an operator whose inputs are the program's, which may be 1 LSB off."""


def compared(
    machine: Machine, storage: Storage, path: Path, sample: Sample, producers: Mapping[str, str]
) -> list[str]:
    """Faults of the result; `producers`: the operators of the file, by the name of their result."""
    graph = storage.plan.graph
    values = LiteRt(path).run({io.name: as_in_file(io, sample.inputs[io.name]) for io in graph.own_inputs()})
    references = {
        name: to_device(io, graph.tensors[io.tensor], as_computed(io, values[io.name]))
        for name, io in graph.references.items()
        if io.name in values
    }
    reasons = []
    fed = {**sample.stored, **references}
    differences = check_operators(machine, storage, fed, references, {})
    for operator in (it for it in graph.operators if it.name in differences):
        output, difference = operator.output, differences[operator.name]
        op = producers.get(graph.references[output].name, "") if output in graph.references else ""
        if graph.tensors[output].dtype is DType.FLOAT32:
            wrong = difference.worst > FLOAT_SHARE_OF_RANGE * difference.range
        elif _is_exact(op, operator, graph) and fed.keys() >= set(operator.inputs):
            wrong = difference.mismatches > 0
        else:
            counted = op not in _ANY_SHARE and operator.op.kind != "Lut"
            many = counted and difference.mismatches > _DIFFERENT_SHARE * difference.elements + _FEW
            most = _slope(operator) if fed.keys() >= set(operator.inputs) else _OF_OWN_INPUTS
            wrong = difference.worst > most or many
        if wrong:
            reasons.append(
                f"{op} ({operator.name}): {difference.mismatches} of {difference.elements} differ "
                f"from LiteRT, one by {difference.worst:g}: {difference.found:g}, not {difference.expected:g}"
            )
    return reasons


def _is_exact(op: str, operator: Operator, graph: Graph) -> bool:
    """Whether a result has LiteRT's bits; a table may contain operators before the one it ends with."""
    if graph.tensors[operator.output].dtype is DType.INT16:
        return True
    return op in EXACT and operator.op.kind != "Lut"


def _slope(operator: Operator) -> int:
    """The effect of 1 LSB: a table may contain several operators, of which the first may be off by that."""
    table = operator.constants.get("table") if operator.op.kind == "Lut" else None
    return 1 if table is None else max(1, int(np.abs(np.diff(table.astype(np.int64).reshape(-1))).max()))
