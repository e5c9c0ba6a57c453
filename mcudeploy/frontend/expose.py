"""Models with inner tensors as outputs, for the reference."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx
from onnx import NodeProto, TensorProto, numpy_helper

from mcudeploy.frontend.decompose.decompose import inlined
from mcudeploy.frontend.decompose.reference_rules import for_reference
from mcudeploy.frontend.onnx.input_choices import AS_IN_FILE, InputChoices
from mcudeploy.frontend.onnx.protos import refill
from mcudeploy.frontend.onnx.shapes import fix_inputs
from mcudeploy.frontend.onnx.states import keep_states
from mcudeploy.frontend.parsing import with_data
from mcudeploy.frontend.passes.element_types import in_float32, other_floats
from mcudeploy.frontend.pieces import ReferencePieces


def _loaded(
    path: Path, states: Collection[str] = (), choices: InputChoices = AS_IN_FILE, *, own_floats: bool = False
) -> onnx.ModelProto:
    """Load the model as it is computed; `own_floats` keeps the floating-point types of the file."""
    model = with_data(path, choices)
    model = model if own_floats else in_float32(model)
    if not {value.name for value in model.graph.input}.issuperset(states):
        model = inlined(model)
        keep_states(model)
    return for_reference(model, choices.remaining_shapes)


def has_other_floats(path: Path, choices: InputChoices = AS_IN_FILE) -> bool:
    """Whether the file has floating-point types other than float32, which are computed in float32."""
    return bool(other_floats(with_data(path, choices)))


@dataclass(frozen=True, slots=True)
class Rounded:
    """Float tensors that are rounded, then concatenated along `axis` if there are several."""

    floats: tuple[str, ...]
    axis: int = 0


def quantizer_inputs(
    path: Path, names: Sequence[str], choices: InputChoices = AS_IN_FILE
) -> dict[str, Rounded]:
    """For each of the tensors `names` that a QuantizeLinear writes, the float tensors that are rounded.

    If it only repeats the rounding of the operands of a Concat, the float tensors of the operands.
    """
    wanted = set(names)
    graph = _loaded(path, choices=choices).graph
    producers = {node.output[0]: node for node in graph.node if node.output}
    constants = {it.name: it for it in graph.initializer}
    return {
        name: _rounded(producers, constants, node)
        for name, node in producers.items()
        if node.op_type == "QuantizeLinear" and name in wanted
    }


def _rounded(
    producers: Mapping[str, NodeProto], constants: Mapping[str, TensorProto], node: NodeProto
) -> Rounded:
    def meaning(quantizer: NodeProto) -> list[object]:
        return [
            numpy_helper.to_array(constants[name]).tolist() if name in constants else name
            for name in quantizer.input[1:]
        ]

    whole = Rounded((node.input[0],))
    concat = producers.get(node.input[0])
    if concat is None or concat.op_type != "Concat":
        return whole
    floats = []
    for name in concat.input:
        restored = producers.get(name)
        if restored is None or restored.op_type != "DequantizeLinear":
            return whole
        rounder = producers.get(restored.input[0])
        if rounder is None or rounder.op_type != "QuantizeLinear" or meaning(rounder) != meaning(node):
            return whole
        floats.append(rounder.input[0])
    return Rounded(tuple(floats), concat.attribute[0].i)


def expose(
    path: Path,
    names: Sequence[str],
    choices: InputChoices = AS_IN_FILE,
    states: Collection[str] = (),
    *,
    own_floats: bool = False,
) -> ReferencePieces:
    """Return the model at `path` with exactly the tensors `names` as outputs, as it is computed.

    `choices`: those of the user for the inputs; the inputs `states` hold the state between runs.
    """
    model = _loaded(path, states, choices, own_floats=own_floats)
    if choices.remaining_shapes:
        fix_inputs(model.graph, choices.remaining_shapes)
    own = {value.name: value for value in model.graph.output}
    make = onnx.helper.make_empty_tensor_value_info
    refill(model.graph.output, (own.get(name) or make(name) for name in dict.fromkeys(names)))
    return ReferencePieces.of(model)
