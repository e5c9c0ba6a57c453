"""Element types without kernels: the model converted to the supported ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from onnx import ModelProto

from mcudeploy.frontend.passes.floats import OTHERS, floats_note, in_float32, other_floats
from mcudeploy.frontend.passes.grids import grids_note, in_bytes, on_grids
from mcudeploy.frontend.passes.qdq_int16 import has_int16, in_integers


@dataclass(frozen=True, slots=True, eq=False)
class Typed:
    """A model in supported element types. `types`: by name, the type in the file of values whose type
    changed; `near`: values of int16 that operators on integers make, where the file rounds floats.
    """

    proto: ModelProto
    types: Mapping[str, str]
    notes: tuple[str, ...]
    near: frozenset[str] = frozenset()


def typed(proto: ModelProto) -> Typed:
    """Convert the model to supported element types; return the model itself if it has no others.

    Inputs and outputs of float16 and float64 keep these types towards the host; bfloat16 cannot be stored in
    sample files, and is float32 there. Raises ModelError for malformed tensors.
    """
    graph, kinds = proto.graph, other_floats(proto)
    borders = {value.name: value.type.tensor_type.elem_type for value in (*graph.input, *graph.output)}
    types = {
        name: OTHERS[kind] for name, kind in borders.items() if OTHERS.get(kind, "bfloat16") != "bfloat16"
    }
    notes = [floats_note(kinds)] if kinds else []
    plain = in_float32(proto)
    gridded = on_grids(plain)
    if gridded.types and has_int16(plain):
        integers = in_integers(plain, gridded)
        near = frozenset(name for node in integers.proto.graph.node for name in node.output)
        return Typed(in_bytes(integers.proto), types, (*notes, *integers.notes), near)
    if gridded.types:
        notes.append(grids_note(gridded.types.values()))
    return Typed(in_bytes(gridded.proto), types | dict(gridded.types), tuple(notes))
