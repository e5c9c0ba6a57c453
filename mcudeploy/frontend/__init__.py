"""The front end: ONNX and TFLite files in, graphs out. The only importer of onnx."""

from __future__ import annotations

from pathlib import Path

from mcudeploy.common.errors import ModelError
from mcudeploy.frontend.lower.lowering import lower
from mcudeploy.frontend.lower.tidy_trim import prune_channels
from mcudeploy.frontend.onnx.shapes import NO_SHAPES, Shapes
from mcudeploy.frontend.passes.folding import fold
from mcudeploy.frontend.passes.simplify import drop_dead, drop_identities, fold_pads
from mcudeploy.frontend.reader import read
from mcudeploy.ir.graph import Graph

__all__ = ["load"]


def load(
    path: Path,
    float_io: bool = False,
    *,
    keep_constant: bool = False,
    shapes: Shapes = NO_SHAPES,
    stateful: bool = False,
) -> Graph:
    """The graph of an ONNX file (opset 7 and newer, float32, QDQ int8 or QOperator) or a .tflite file
    (float32 or int8), of static shapes; `shapes` are those of inputs that the file leaves
    open, or has otherwise.

    Float borders of a quantised model are stored quantised unless `float_io`; Graph.inputs and
    Graph.outputs say how they relate to the model's own. Channels that always have one value, or that nobody
    reads, are removed unless `keep_constant`. With `stateful` recurrent operators keep their states between
    runs.
    Raises ModelError for files that are malformed, and for nodes that are not supported, listing them all;
    UsageError for shapes that are not the model's.
    """
    model, reasons = fold(drop_dead(read(path, shapes, stateful=stateful)))
    model = drop_dead(fold_pads(drop_dead(drop_identities(model))))
    try:
        graph = lower(model, {**model.refusals, **reasons}, float_io=float_io)
        return graph if keep_constant else prune_channels(graph)
    except MemoryError as fault:
        raise ModelError("the model is too large to be read in the memory of this computer") from fault
