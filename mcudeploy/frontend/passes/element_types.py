"""Element types that no kernel has: the model in those that are computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from onnx import ModelProto

from mcudeploy.frontend.passes.floats import OTHERS, floats_note, in_float32, other_floats
from mcudeploy.frontend.passes.grids import grids_note, in_bytes, on_grids


@dataclass(frozen=True, slots=True, eq=False)
class Typed:
    """A model in float32, int8, uint8 and what is as it was. `types`: of values that have another type in the
    file, by name, that type.
    """

    proto: ModelProto
    types: Mapping[str, str]
    notes: tuple[str, ...]


def typed(proto: ModelProto) -> Typed:
    """The model in types that are computed, itself where it has no others.

    Inputs and outputs of float16 and float64 keep these towards the host; bfloat16 has no form in files of
    samples, and is float32 there. Raises ModelError for tensors that are malformed.
    """
    graph, kinds = proto.graph, other_floats(proto)
    borders = {value.name: value.type.tensor_type.elem_type for value in (*graph.input, *graph.output)}
    types = {
        name: OTHERS[kind] for name, kind in borders.items() if OTHERS.get(kind, "bfloat16") != "bfloat16"
    }
    notes = [floats_note(kinds)] if kinds else []
    gridded = on_grids(in_float32(proto))
    if gridded.types:
        notes.append(grids_note(gridded.types.values()))
    return Typed(in_bytes(gridded.proto), types | dict(gridded.types), tuple(notes))
