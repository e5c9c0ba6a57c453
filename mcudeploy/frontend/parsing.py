"""Parsing of model files: .onnx files are read, .tflite files translated to ONNX models in memory."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import ModelProto

from mcudeploy.common.errors import ModelError, UsageError
from mcudeploy.common.formats import conversion_hint
from mcudeploy.extension import Extension, added, extensions
from mcudeploy.frontend.onnx import dynamic_ranges, qonnx
from mcudeploy.frontend.onnx.bounded_rows import bound_suppressions, suppression_function
from mcudeploy.frontend.onnx.input_choices import AS_IN_FILE, InputChoices
from mcudeploy.frontend.onnx.legacy import repaired
from mcudeploy.frontend.onnx.named_states import apply_choices
from mcudeploy.frontend.onnx.nodes import ParsedFile
from mcudeploy.frontend.onnx.plain_forms import in_plain_forms
from mcudeploy.frontend.onnx.protos import copy_of, opset_of
from mcudeploy.frontend.onnx.rounding import round_exactly
from mcudeploy.frontend.onnx.shapes import Shapes
from mcudeploy.frontend.onnx.tensors import MAX_FILE_BYTES

_TFLITE_IDENTIFIER = b"TFL3"


def parse(path: Path, choices: InputChoices = AS_IN_FILE) -> ParsedFile:
    """Parse a file; `choices`: the user's for the inputs.

    Raises ModelError for a path that is not a file, and for files that are too large, or neither ONNX nor
    TFLite.
    """
    content = _content(path)
    if is_tflite(path):
        _require_identifier(path, content)
        _require_shapes_only(path, choices)
        return _translated(path, content, choices.shapes)
    proto = ModelProto()
    try:
        proto.ParseFromString(content)
    except (DecodeError, RuntimeError, ValueError) as fault:
        why = conversion_hint(path) or f", or it is truncated: {fault}"
        raise ModelError(f"{path} is not an ONNX file{why}") from fault
    if not proto.graph.node and not proto.graph.output:
        why = conversion_hint(path) or ", or it is damaged"
        raise ModelError(f"{path} holds no graph: it is not an ONNX file{why}")
    try:
        proto, notes = _plain(proto)
    except UnicodeDecodeError as fault:
        raise ModelError(f"{path} has a name that is not UTF-8: a damaged file") from fault
    applied = apply_choices(proto, choices)
    notes += applied.notes
    declared = [state for states_of in added("states") for state in states_of(proto)]
    return ParsedFile(proto, states=(*declared, *applied.states), functions=applied.functions, notes=notes)


def _plain(proto: ModelProto) -> tuple[ModelProto, tuple[str, ...]]:
    """The model in the plain forms that the reader and the reference share, and notes on the changes."""
    in_plain_forms(proto)
    notes = tuple(note for reader in added("readers") for note in reader(proto))
    proto = qonnx.in_onnx(repaired(proto))
    return proto, (*notes, dynamic_ranges.NOTE) if dynamic_ranges.in_floats(proto) else notes


def with_data(path: Path, choices: InputChoices = AS_IN_FILE) -> ModelProto:
    """Load the model of a file that was parsed before, with its external data, for the reference.

    Every node is an ONNX operator, or has a function in the model.
    """
    if not is_tflite(path):
        proto, _ = _plain(onnx.load(path))
        proto.functions.extend(apply_choices(proto, choices).functions)
        if bound_suppressions(proto):
            proto.functions.append(suppression_function(opset_of(proto)))
        return proto
    parsed = parse(path, choices)
    parsed.proto.functions.extend(parsed.functions)
    round_exactly(parsed.proto, parsed.roundings)
    return parsed.proto


def is_tflite(path: Path) -> bool:
    """Whether a file is TFLite, by its suffix or by its identifier at byte 4."""
    if path.suffix.lower() == ".tflite":
        return True
    with path.open("rb") as stream:
        return stream.read(8)[4:] == _TFLITE_IDENTIFIER


def _require_identifier(path: Path, content: bytes) -> None:
    """Raise ModelError for a file with the suffix .tflite in another format."""
    if content[4:8] == _TFLITE_IDENTIFIER:
        return
    if way := conversion_hint(path):
        raise ModelError(f"{path} is not a TFLite file{way}")
    proto = ModelProto()
    with suppress(DecodeError, RuntimeError, ValueError):
        proto.ParseFromString(content)
    if proto.graph.node:
        raise ModelError(f"{path} is an ONNX file, not one of TFLite: give it the ending .onnx")


def _content(path: Path) -> bytes:
    try:
        size = path.stat().st_size
        if not path.is_file():
            raise ModelError(f"{path} is not a file")
        if size > MAX_FILE_BYTES:
            raise ModelError(
                f"{path} has {size // 2**20} MiB; the limit is {MAX_FILE_BYTES // 2**20} MiB: "
                "no microcontroller holds such a model"
            )
        content = path.read_bytes()
    except (OSError, ValueError) as fault:
        raise ModelError(f"{path} cannot be read: {getattr(fault, 'strerror', None) or fault}") from fault
    if not content:
        raise ModelError(f"{path} is empty")
    return content


def _require_shapes_only(path: Path, choices: InputChoices) -> None:
    if choices.constants or choices.states or choices.int8_caches:
        option = "--bind" if choices.constants else "--state" if choices.states else "--int8-cache"
        raise UsageError(f"{option} is for ONNX files; {path.name} has its own constants and states")


def _translated(path: Path, content: bytes, shapes: Shapes) -> ParsedFile:
    """The model of a .tflite file; its proto is a copy, so that the caller may change it in place."""
    parsed = _translation(content, str(path), tuple(shapes.items()), extensions())
    return replace(parsed, proto=copy_of(parsed.proto))


@lru_cache(maxsize=1)
def _translation(
    content: bytes, where: str, shapes: tuple[tuple[str, tuple[int, ...]], ...], _: tuple[Extension, ...]
) -> ParsedFile:
    """The translation of a .tflite file. The last one is cached: a command reads its file several times."""
    from mcudeploy.frontend.tflite.translate import translate  # it loads the package tflite  # noqa: PLC0415

    return translate(content, where, dict(shapes))
