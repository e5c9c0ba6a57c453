"""Random graphs of all supported operators, as exporters and quantisers write them, from a seed."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import onnx
from onnx import helper, numpy_helper

from fuzzing import control, decomposed, integers, layers, recurrent, shapes
from fuzzing.draft import Array, Draft, Layer, grown
from fuzzing.quantise import draw_style, quantised

KINDS = ("float32", "int8", "uint8", "channels", "mixed")

Trait = Literal["batch", "decomposed", "control", "recurrent", "int16", "int32"]
"""Optional features of a graph: a batch of several, other layers, other element types."""

TRAITS: tuple[Trait, ...] = get_args(Trait)

_PLAIN_SHARE, _TRAIT_SHARE = 0.25, 0.35

_LAYERS: tuple[tuple[Layer, float], ...] = (
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

_OTHER_LAYERS: dict[Trait, tuple[tuple[Layer, float], ...]] = {
    "decomposed": decomposed.LAYERS,
    "control": control.LAYERS,
    "recurrent": recurrent.LAYERS,
    "int32": integers.LAYERS,
}

_IMAGE_SIDES = (1, 2, 3, 4, 5, 7, 8, 11, 16, 20)


@dataclass(frozen=True, slots=True)
class Drawn:
    """A model and how it was drawn."""

    seed: int
    kind: str
    traits: tuple[Trait, ...]
    model: onnx.ModelProto


def traits_of(seed: int) -> tuple[Trait, ...]:
    """Traits drawn from a seed: none of some graphs, several of others."""
    random = np.random.default_rng((seed, len(TRAITS)))
    if random.random() < _PLAIN_SHARE:
        return ()
    return tuple(trait for trait in TRAITS if random.random() < _TRAIT_SHARE)


def draw(seed: int, traits: Collection[Trait] = ()) -> Drawn:
    """The graph of a seed, with these traits."""
    random = np.random.default_rng(seed)
    kind = KINDS[int(random.integers(len(KINDS)))]
    opset = int(random.choice([13, 15, 17, 17, 18, 21]))
    if "int16" in traits:
        kind = "mixed" if kind == "float32" else kind
    draft = Draft(random, opset, naming(random))
    batch = draft.pick((2, 2, 3, 4, 5)) if "batch" in traits else 1
    for _ in range(draft.pick((1, 1, 1, 2, 3))):
        shape = _input_shape(draft)
        draft.input((shape[0] if draft.inputs else batch, *shape[1:]))
    if "recurrent" in traits and draft.chance(0.8):
        draft.input((batch, draft.pick((1, 3, 7, 12)), draft.pick((1, 3, 8))))
    if "int32" in traits:
        integers.integer_input(draft)
    others = [layer for trait, found in _OTHER_LAYERS.items() if trait in traits for layer in found]
    grown(draft, (*_LAYERS, *others), int(np.clip(random.lognormal(2.4, 0.6), 5, 40)))
    draft.choose_outputs()
    wide = "int16" in traits
    model = draft.model() if kind == "float32" else quantised(draft, draw_style(draft, kind, wide=wide))
    return Drawn(seed, kind, tuple(traits), exported(model, draft))


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


def naming(random: np.random.Generator) -> Callable[[int], str]:
    """Names as some exporters write them, or as nobody should."""
    forms = ("v{}", "v{}", "/model/layer.{}/Conv_output_0", 'int {}*/"\\%s\n', "größe:{}")
    form = forms[int(random.choice(len(forms), p=(0.4, 0.2, 0.25, 0.1, 0.05)))]
    return form.format


def exported(model: onnx.ModelProto, draft: Draft) -> onnx.ModelProto:
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
