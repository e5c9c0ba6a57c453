"""The layers at which a quantised model loses most, against the float model it was made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from mcudeploy.common.files import work_folder
from mcudeploy.extensions.evaluation.dataset import Array, Dataset
from mcudeploy.extensions.quantization.agreement import Layer, layers
from mcudeploy.extensions.quantization.float_model import read_float
from mcudeploy.extensions.quantization.ort_quantizer import prepare
from mcudeploy.frontend.parsing import is_tflite, parse
from mcudeploy.planner.model.model import Model

__all__ = ["Layer", "layers_by_loss"]

_SAMPLES = 32


def layers_by_loss(float_model: Path, model: Model, data: Dataset) -> Sequence[Layer]:
    """Return the layers of a quantised ONNX model, those first that add most noise.

    Tensors are compared by name, as `mcudeploy quantize` and ONNX Runtime's quantiser keep them. There is
    nothing to compare for .tflite files, and for inputs of other names or types.
    """
    if is_tflite(model.path) or is_tflite(float_model):
        return ()
    source = read_float(float_model, model.choices)
    inputs = [(it.name, it.dtype) for it in model.graph.own_inputs()]
    if inputs != [(it.name, it.dtype) for it in source.inputs]:
        return ()

    def samples() -> Iterator[Mapping[str, Array]]:
        for number in range(min(data.count, _SAMPLES)):
            sample = data.sample(number, model.graph)
            yield {name: sample.inputs[name] for name, _ in inputs}

    with work_folder("mcudeploy-evaluate-") as folder:
        prepared = prepare(source.proto, folder)
        compared = layers(prepared, parse(model.path).proto, model.path, samples())
    return sorted(compared, key=lambda layer: -layer.lost)
