"""A model file that ends at one of its tensors."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.shape_inference
from onnx.utils import Extractor

from mcudeploy.common.errors import ModelError, UsageError
from mcudeploy.frontend.parsing import is_tflite


def write_features_model(path: Path, tensor: str, destination: Path) -> None:
    """Write the part of an ONNX model that computes a tensor, which becomes its output.

    Raises UsageError for a .tflite file and for a tensor that the model does not have.
    """
    if is_tflite(path):
        raise UsageError(f"{path.name}: a head needs an ONNX file")
    model = onnx.load(path)
    produced = [name for node in model.graph.node for name in node.output]
    if tensor not in produced:
        last = ", ".join(produced[-8:])
        raise UsageError(
            f"--features {tensor}: {path.name} has no such operator or tensor; its last tensors are {last}"
        )
    initializers = {it.name for it in model.graph.initializer}
    inputs = [it.name for it in model.graph.input if it.name not in initializers]
    try:
        part = Extractor(onnx.shape_inference.infer_shapes(model)).extract_model(inputs, [tensor])
    except (ValueError, KeyError) as error:
        raise ModelError(f"{path.name} cannot end at {tensor}: {error}") from error
    onnx.save(part, destination)
