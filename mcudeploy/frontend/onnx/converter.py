"""Conversion of a model to another opset by onnx, except for nodes that onnx would convert wrongly."""

from __future__ import annotations

from collections.abc import Callable

from onnx import ModelProto, NodeProto, shape_inference, version_converter
from onnx.version_converter import ConvertError

from mcudeploy.frontend.onnx.protos import ONNX_DOMAINS, attribute_of, copy_of, import_domain, refill

ASIDE = "mcudeploy.aside"
"""The domain of nodes that are set aside during a conversion: onnx converts no nodes of other domains."""

FAULTS = (
    *(RuntimeError, ValueError, TypeError, LookupError, MemoryError),
    *(ConvertError, shape_inference.InferenceError),
)
"""The errors that the converter raises for models that it cannot convert."""

_CHANGED_IN = {"BatchNormalization": 9, "Dropout": 10, "Hardmax": 13, "Pad": 11, "Resize": 11, "Upsample": 10}
"""Operators that onnx converts wrongly to this opset or a later one, in which they changed or ended."""

_CONVERTED = {"BatchNormalization": ("spatial", 1), "Pad": ("mode", b"constant")}
"""The exceptions: onnx converts these operators rightly if an attribute has this value, its default."""


def converted(proto: ModelProto, opset: int, aside: Callable[[NodeProto], bool]) -> ModelProto:
    """Convert a model to an opset; nodes that `aside` selects only move to the domain ASIDE.

    Raises one of FAULTS if onnx cannot convert the model.
    """
    if not any(map(aside, proto.graph.node)):
        return version_converter.convert_version(proto, opset)
    result = copy_of(proto)
    for node in filter(aside, result.graph.node):
        node.domain = ASIDE
    import_domain(result, ASIDE)
    result = version_converter.convert_version(result, opset)
    refill(result.opset_import, [entry for entry in result.opset_import if entry.domain != ASIDE])
    return result


def is_converted_wrongly(node: NodeProto, opset: int) -> bool:
    """Return whether onnx would convert a node of this opset wrongly."""
    if node.domain not in ONNX_DOMAINS or opset >= _CHANGED_IN.get(node.op_type, 0):
        return False
    name, value = _CONVERTED.get(node.op_type, ("", None))
    return not name or attribute_of(node, name, value) != value
