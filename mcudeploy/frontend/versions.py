"""The versions of ONNX that are read."""

from __future__ import annotations

import onnx
from onnx import ModelProto

from mcudeploy.common.errors import ModelError

OPSETS = range(13, 22)


def require_versions(proto: ModelProto) -> None:
    """Raises ModelError, with the way out, for an operator set or a file format that is not read."""
    versions = [entry.version for entry in proto.opset_import if entry.domain in ("", "ai.onnx")]
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
