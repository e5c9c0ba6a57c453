"""The versions of ONNX that are read."""

from __future__ import annotations

import onnx
from onnx import ModelProto, version_converter
from onnx.version_converter import ConvertError

from mcudeploy.common.errors import ModelError
from mcudeploy.frontend.names import printable

OPSETS = range(7, onnx.defs.onnx_opset_version() + 1)
"""From the first that ONNX Runtime runs to the newest that the onnx package knows."""

_INITIALIZERS_ALONE = 4
"""The file format from which an initializer need not be an input, too."""

_LOWERED_FROM = 13
"""Older operator sets are converted to this one, the first with axes and pads as inputs."""


def modern(proto: ModelProto) -> ModelProto:
    """A checked model in an operator set that is lowered. Raises ModelError where it cannot be converted."""
    versions = [entry.version for entry in proto.opset_import if entry.domain in ("", "ai.onnx")]
    if versions[0] >= _LOWERED_FROM:
        return proto
    if any(node.op_type == "Upsample" for node in proto.graph.node):
        raise ModelError(
            f"the model uses opset {versions[0]} with Upsample, which conversion would change: export it "
            f"with opset {_LOWERED_FROM} or newer, where it is a Resize"
        )
    try:
        converted = version_converter.convert_version(proto, _LOWERED_FROM)
        converted.ir_version = max(converted.ir_version, _INITIALIZERS_ALONE)
        return converted
    except (RuntimeError, ValueError, TypeError, IndexError, MemoryError, ConvertError) as fault:
        reason = printable(" ".join(str(fault).split())[:200])
        raise ModelError(
            f"the model uses opset {versions[0]}, which cannot be converted to {_LOWERED_FROM}: {reason}. "
            f"Export it with opset {_LOWERED_FROM} or newer"
        ) from fault


def require_versions(proto: ModelProto) -> None:
    """Raises ModelError, with the way out, for an operator set or a file format that is not read."""
    versions = [entry.version for entry in proto.opset_import if entry.domain in ("", "ai.onnx")]
    if not versions and proto.opset_import:
        domains = ", ".join(sorted(printable(entry.domain) for entry in proto.opset_import))
        raise ModelError(f"its operators are of {domains}; those of ai.onnx and com.microsoft are supported")
    if len(versions) != 1:
        raise ModelError(f"the model names {len(versions)} versions of the ONNX operator set, it needs one")
    first, last = OPSETS.start, OPSETS.stop - 1
    found = (
        f"the model uses opset {versions[0]}; opsets {first} to {last} are read. Export it with one of them"
    )
    if versions[0] > last:
        raise ModelError(
            f"{found}, such as opset_version={last} in torch.onnx.export or --opset {last} in tf2onnx"
        )
    if versions[0] < first:
        raise ModelError(f"{found}, or convert it: onnx.version_converter.convert_version(model, {first})")
    if proto.ir_version > onnx.IR_VERSION:
        raise ModelError(
            f"the file has ONNX IR version {proto.ir_version}; up to {onnx.IR_VERSION} is read. "
            f"Export the model with an older exporter, or, where it uses nothing newer, set its ir_version "
            f"to {onnx.IR_VERSION}"
        )
