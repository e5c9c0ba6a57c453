"""From a model file to a Graph."""

from __future__ import annotations

from pathlib import Path

from mcudeploy.common.errors import ModelError
from mcudeploy.extension import added
from mcudeploy.frontend.lower import lowering
from mcudeploy.frontend.lower.tidy_depthwise import join_depthwise
from mcudeploy.frontend.lower.tidy_rounding import rounded
from mcudeploy.frontend.lower.tidy_trim import prune_channels
from mcudeploy.frontend.onnx.input_choices import AS_IN_FILE, InputChoices
from mcudeploy.frontend.onnx.shapes import assumptions_named
from mcudeploy.frontend.parsing import is_tflite
from mcudeploy.frontend.passes.activations import join_activations
from mcudeploy.frontend.passes.folding import fold
from mcudeploy.frontend.passes.simplify import drop_dead, drop_identities, fold_pads
from mcudeploy.frontend.reader import read
from mcudeploy.ir.graph import Graph
from mcudeploy.ops.requantize import Rounding


def load(
    path: Path,
    float_io: bool = False,
    *,
    keep_constant: bool = False,
    choices: InputChoices = AS_IN_FILE,
    stateful: bool = False,
    rounding: Rounding | None = None,
) -> Graph:
    """Return the graph of an ONNX or .tflite file of static shapes; raise if it is malformed or unsupported.

    ONNX files have opset 7 or newer and are float32, QDQ int8 or QOperator; .tflite files are float32 or
    int8. `choices`: the user's for the inputs.

    The float inputs and outputs of a quantised model are stored quantised unless `float_io`; Graph.inputs and
    Graph.outputs relate them to those of the file. Constant and unread channels are removed unless
    `keep_constant`. With `stateful`, recurrent operators keep their states between runs. `rounding` is that
    of int8 results, by default "tflite" for a .tflite file if all its operators support this, else "once".

    Raises ModelError for malformed files, and for unsupported nodes, all of which it lists. Raises UsageError
    for choices that do not fit the model.
    """
    model = read(path, choices, stateful=stateful)
    try:
        with assumptions_named(model.notes):
            model, reasons = fold(drop_dead(model))
            model = drop_dead(join_activations(drop_dead(fold_pads(drop_dead(drop_identities(model))))))
            for replaced in added("passes"):
                model = drop_dead(replaced(model))
            graph = join_depthwise(lowering.lower(model, {**model.refusals, **reasons}, float_io=float_io))
            graph = graph if keep_constant else prune_channels(graph)
            return rounded(graph, rounding, by_default="tflite" if is_tflite(path) else "once")
    except MemoryError as fault:
        raise ModelError("the model is too large to be read in the memory of this computer") from fault
