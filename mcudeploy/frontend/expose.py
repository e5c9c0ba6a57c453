"""Models with inner tensors as outputs, for the reference."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import onnx

from mcudeploy.frontend.decompose.decompose import inlined, with_real_operators
from mcudeploy.frontend.onnx.shapes import NO_SHAPES, Shapes, fix_inputs
from mcudeploy.frontend.onnx.states import keep_states
from mcudeploy.frontend.parsing import with_data
from mcudeploy.frontend.passes.floats import in_float32, other_floats


def _loaded(
    path: Path, states: Collection[str] = (), shapes: Shapes = NO_SHAPES, *, own_floats: bool = False
) -> onnx.ModelProto:
    """Load the model as it is computed; `own_floats` keeps the floating-point types of the file."""
    model = with_data(path, shapes)
    model = model if own_floats else in_float32(model)
    if not {value.name for value in model.graph.input}.issuperset(states):
        model = inlined(model)
        keep_states(model)
    return with_real_operators(model)


def has_other_floats(path: Path, shapes: Shapes = NO_SHAPES) -> bool:
    """Whether the file has floating-point types other than float32, which are computed in float32."""
    return bool(other_floats(with_data(path, shapes)))


def quantizer_inputs(path: Path, names: Sequence[str], shapes: Shapes = NO_SHAPES) -> dict[str, str]:
    """For each of the tensors `names` that a QuantizeLinear writes, the float tensor that it rounds."""
    wanted = set(names)
    return {
        node.output[0]: node.input[0]
        for node in _loaded(path, shapes=shapes).graph.node
        if node.op_type == "QuantizeLinear" and node.output[0] in wanted
    }


def expose(
    path: Path,
    names: Sequence[str],
    shapes: Shapes = NO_SHAPES,
    states: Collection[str] = (),
    *,
    own_floats: bool = False,
) -> bytes:
    """Serialise the model at `path` with exactly the tensors `names` as outputs.

    `shapes` are shapes of its inputs; the inputs `states` hold the state between runs.
    """
    model = _loaded(path, states, shapes, own_floats=own_floats)
    if shapes:
        fix_inputs(model.graph, shapes)
    own = {value.name: value for value in model.graph.output}
    del model.graph.output[:]
    for name in dict.fromkeys(names):
        model.graph.output.append(own.get(name) or onnx.helper.make_empty_tensor_value_info(name))
    return bytes(model.SerializeToString())
