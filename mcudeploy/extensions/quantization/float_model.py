"""The float model to quantise, and its nodes that stay float."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import onnx
from onnx import ModelProto

from mcudeploy.common.errors import ModelError, UsageError
from mcudeploy.common.text import agree, count_text, printable
from mcudeploy.frontend.load import load
from mcudeploy.frontend.onnx.convert import info_of
from mcudeploy.frontend.onnx.input_choices import InputChoices
from mcudeploy.frontend.onnx.nodes import Info
from mcudeploy.frontend.reader import read_proto
from mcudeploy.ir.graph import DType

_INTEGER_OPS = ("QLinear", "QuantizeLinear", "DequantizeLinear", "DynamicQuantize", "QGemm")
_FOR_TOKENS = ". MatMulNBitsQuantizer of ONNX Runtime gives 4 bits to a model of tokens: docs/language.md"
_INTEGER_ENDS = ("Integer", "IntegerToFloat")
_CONVERSIONS = frozenset(("QuantizeLinear", "DequantizeLinear"))


@dataclass(frozen=True, slots=True, eq=False)
class FloatModel:
    """A float model with static shapes. `notes` state the assumptions of the reader of the file."""

    proto: ModelProto
    inputs: tuple[Info, ...]
    outputs: tuple[Info, ...]
    notes: tuple[str, ...]


def read_float(path: Path, choices: InputChoices) -> FloatModel:
    """Read the model, with the user's `choices` for its inputs.

    Raises ModelError for a file that is malformed or already quantised.
    """
    proto, notes = read_proto(path, choices)
    constants = {tensor.name for tensor in proto.graph.initializer}
    model = FloatModel(
        proto,
        tuple(info_of(value) for value in proto.graph.input if value.name not in constants),
        tuple(info_of(value) for value in proto.graph.output),
        notes,
    )
    _require_float(model, path)
    return model


def _require_float(model: FloatModel, path: Path) -> None:
    integer_counts = Counter(node.op_type for node in model.proto.graph.node if _is_integer(node.op_type))
    if integer_counts:
        named = ", ".join(f"{number:,} {printable(op)}" for op, number in integer_counts.most_common(3))
        raise ModelError(
            f"{path.name} is quantised already: it has {named}. Run it as it is (mcudeploy run), or give the "
            "float model that it was made of"
        )
    if not model.inputs:
        raise ModelError(f"{path.name} has no inputs: there is nothing to calibrate")
    for info in (*model.inputs, *model.outputs):
        if info.dtype != "float32":
            tokens = _FOR_TOKENS if info.dtype in ("int32", "int64") else ""
            raise ModelError(
                f"{printable(info.name)!r} of the model is {info.dtype}: inputs and outputs of a model to "
                "quantise are float32. Export it in float32, or end the model before it: "
                f"onnx.utils.extract_model('model.onnx', 'shorter.onnx', INPUTS, OUTPUTS){tokens}"
            )


def _is_integer(op: str) -> bool:
    return op.startswith(_INTEGER_OPS) or op.endswith(_INTEGER_ENDS)


def excluded(prepared: Path, patterns: Iterable[str]) -> list[str]:
    """The names of nodes of the prepared model that stay float. A pattern is an operator, or a name (glob).

    Raises UsageError for a pattern that matches no node.
    """
    nodes = [(node.name, node.op_type) for node in onnx.load(prepared).graph.node]
    chosen: list[str] = []
    for pattern in patterns:
        matches = [name for name, op in nodes if pattern in (name, op) or fnmatchcase(name, pattern)]
        if not matches:
            near = difflib.get_close_matches(pattern, [name for pair in nodes for name in pair], n=1)
            hint = f"; did you mean {printable(near[0])!r}?" if near else ""
            raise UsageError(
                f"--keep-float {printable(pattern)}: no node of the prepared model has this name or operator"
                f"{hint} (batch norms and the like are fused into the nodes before them)"
            )
        chosen += matches
    return list(dict.fromkeys(chosen))


@dataclass(frozen=True, slots=True)
class FloatNode:
    """An operator of the int8 model that computes in float: its ONNX nodes, and their operators joined."""

    nodes: tuple[str, ...]
    op: str


def float_nodes(path: Path) -> list[FloatNode]:
    """The operators of an int8 model that boards compute in float. Raises ModelError listing all unsupported
    nodes.
    """
    graph = load(path)
    op_types = {node.name: node.op_type for node in onnx.load(path).graph.node}
    in_float = []
    for operator in graph.operators:
        tensors = [graph.tensors[name] for name in (*operator.inputs, operator.output)]
        names = tuple(name for name in operator.onnx_nodes if op_types.get(name) not in _CONVERSIONS)
        if names and any(tensor.dtype is DType.FLOAT32 for tensor in tensors):
            in_float.append(FloatNode(names, "+".join(op_types.get(name, "?") for name in names)))
    return list(dict.fromkeys(in_float))


def float_nodes_note(nodes: Sequence[FloatNode]) -> str:
    """A note on operators that stay float; "" if there are none."""
    if not nodes:
        return ""
    number = len(nodes)
    return (
        f"{count_text(number, 'operator')} {agree(number, 'runs', 'run')} in float on the board: four times "
        "the RAM of int8, and slow without an FPU"
    )
