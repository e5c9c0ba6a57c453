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
    """Load the model as the reference computes it; `own_floats` keeps its floating-point types."""
    model = with_data(path, choices)
    model = model if own_floats else in_float32(model)
    if not {value.name for value in model.graph.input}.issuperset(states):
        model = inlined(model)
        keep_states(model)
    return for_reference(model, choices.remaining_shapes)


def has_other_floats(path: Path, choices: InputChoices = AS_IN_FILE) -> bool:
    """Whether the file has floating-point types other than float32."""
    return bool(other_floats(with_data(path, choices)))


@dataclass(frozen=True, slots=True)
class Rounded:
    """Float tensors that QuantizeLinear nodes round; several are then concatenated along `axis`."""

    floats: tuple[str, ...]
    axis: int = 0


def quantizer_inputs(
    path: Path, names: Sequence[str], choices: InputChoices = AS_IN_FILE
) -> dict[str, Rounded]:
    """For each of the tensors `names` that a QuantizeLinear writes, the float tensors that are rounded.

    A QuantizeLinear after a Concat of values that were already rounded in the same way changes nothing. Then
    the float tensors are those of the operands of the Concat.
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
    """The float tensors that a QuantizeLinear rounds, or those of the Concat before it."""

    def parameters(quantizer: NodeProto) -> list[object]:
        return [
            numpy_helper.to_array(constants[name]).tolist() if name in constants else name
            for name in quantizer.input[1:]
        ]

    own_input = Rounded((node.input[0],))
    concat = producers.get(node.input[0])
    if concat is None or concat.op_type != "Concat":
        return own_input
    floats = []
    for name in concat.input:
        dequantizer = producers.get(name)
        if dequantizer is None or dequantizer.op_type != "DequantizeLinear":
            return own_input
        earlier = producers.get(dequantizer.input[0])
        if earlier is None or earlier.op_type != "QuantizeLinear" or parameters(earlier) != parameters(node):
            return own_input
        floats.append(earlier.input[0])
    return Rounded(tuple(floats), concat.attribute[0].i)


def expose(
    path: Path,
    names: Sequence[str],
    choices: InputChoices = AS_IN_FILE,
    states: Collection[str] = (),
    *,
    own_floats: bool = False,
) -> ReferencePieces:
    """Return the reference model of the file `path` with exactly the tensors `names` as outputs.

    `choices`: the user's for the inputs; `states`: names of inputs that hold the state between runs.
    """
    model = _loaded(path, states, choices, own_floats=own_floats)
    if choices.remaining_shapes:
        fix_inputs(model.graph, choices.remaining_shapes)
    known = {value.name: value for value in model.graph.output}
    make = onnx.helper.make_empty_tensor_value_info
    refill(model.graph.output, (known.get(name) or make(name) for name in dict.fromkeys(names)))
    return ReferencePieces.of(model)
