"""Random graphs of all supported operators, as exporters and quantisers write them, from a seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper, numpy_helper

from fuzzing import layers, shapes
from fuzzing.draft import Array, Draft
from fuzzing.quantise import draw_style, quantised

KINDS = ("float32", "int8", "uint8", "channels", "mixed")

_LAYERS: tuple[tuple[Callable[[Draft], None], float], ...] = (
    (layers.convolution, 6),
    (layers.binary, 3.5),
    (layers.pool, 2),
    (layers.function, 1.5),
    (layers.concat, 2),
    (layers.global_pool, 0.8),
    (layers.normalisation, 0.6),
    (layers.squeeze_excite, 0.5),
    (layers.inverted_residual, 0.6),
    (shapes.dense, 0.8),
    (shapes.view, 1.2),
    (shapes.pad, 0.9),
    (shapes.resize, 0.9),
    (shapes.slice_, 0.8),
    (shapes.split, 0.6),
    (shapes.gather, 0.4),
    (shapes.softmax, 0.5),
    (shapes.matmul, 0.9),
    (shapes.attention, 0.3),
    (shapes.shuffle, 0.3),
)

_IMAGE_SIDES = (1, 2, 3, 4, 5, 7, 8, 11, 16, 20)


@dataclass(frozen=True, slots=True)
class Drawn:
    """A model and how it was drawn."""

    seed: int
    kind: str
    model: onnx.ModelProto


def draw(seed: int) -> Drawn:
    """The graph of a seed."""
    random = np.random.default_rng(seed)
    kind = KINDS[int(random.integers(len(KINDS)))]
    opset = int(random.choice([13, 15, 17, 17, 18, 21]))
    draft = Draft(random, opset, _naming(random))
    for _ in range(draft.pick((1, 1, 1, 2, 3))):
        draft.input(_input_shape(draft))
    functions, weights = zip(*_LAYERS, strict=True)
    shares = np.array(weights) / sum(weights)
    wanted = int(np.clip(random.lognormal(2.4, 0.6), 5, 40))
    for _ in range(20 * wanted):
        if len(draft.nodes) >= wanted:
            break
        functions[int(random.choice(len(functions), p=shares))](draft)
    draft.choose_outputs()
    model = draft.model() if kind == "float32" else quantised(draft, draw_style(draft, kind))
    return Drawn(seed, kind, _exported(model, draft))


def _input_shape(draft: Draft) -> tuple[int, ...]:
    """Often as another input, so that the two meet."""
    if draft.shapes and draft.chance(0.6):
        return draft.shapes[draft.inputs[0]]
    way = draft.pick(("image", "image", "image", "image", "signal", "tokens", "vector", "column"))
    match way:
        case "image":
            channels = draft.pick((1, 2, 3, 3, 4, 5, 8, 13))
            return (1, channels, draft.pick(_IMAGE_SIDES), draft.pick(_IMAGE_SIDES))
        case "signal":
            return (1, draft.pick((1, 2, 3, 8, 13)), draft.pick((1, 5, 16, 40, 64)))
        case "tokens":
            return (1, draft.pick((1, 4, 7, 16)), draft.pick((3, 8, 10)))
        case "vector":
            return (1, draft.pick((1, 2, 7, 16, 40, 100)))
        case _:
            return (1, draft.pick((1, 4, 10)), draft.pick((1, 20, 49)), 1)


def _naming(random: np.random.Generator) -> Callable[[int], str]:
    """Names as some exporters give them, or as nobody should."""
    forms = ("v{}", "v{}", "/model/layer.{}/Conv_output_0", 'int {}*/"\\%s\n', "größe:{}")
    form = forms[int(random.choice(len(forms), p=(0.4, 0.2, 0.25, 0.1, 0.05)))]
    return form.format


def _exported(model: onnx.ModelProto, draft: Draft) -> onnx.ModelProto:
    """Some constants as Constant nodes, or as inputs with a default, as exporters write them."""
    graph = model.graph
    if draft.chance(0.1):
        kept: list[onnx.TensorProto] = []
        for tensor in graph.initializer:
            if draft.chance(0.5):
                graph.node.insert(0, helper.make_node("Constant", [], [tensor.name], value=_unnamed(tensor)))
            else:
                kept.append(tensor)
        del graph.initializer[:]
        graph.initializer.extend(kept)
    if draft.chance(0.05):
        for tensor in graph.initializer:
            graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    return model


def _unnamed(tensor: onnx.TensorProto) -> onnx.TensorProto:
    array: Array = numpy_helper.to_array(tensor)
    return numpy_helper.from_array(array)
