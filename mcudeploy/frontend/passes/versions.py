"""Checks of the versions of ONNX that a file states."""

from __future__ import annotations

import onnx
from onnx import ModelProto

from mcudeploy.common.errors import ModelError
from mcudeploy.common.text import printable
from mcudeploy.frontend.onnx.protos import ONNX_DOMAINS, domain_ways_out, opset_of, refill

OPSETS = range(7, onnx.defs.onnx_opset_version() + 1)
"""Supported opsets, from the first that ONNX Runtime runs to the newest that the onnx package knows."""

_NEWEST_TESTED = 28
"""The newest opset in which ONNX's node tests ran."""


def version_notes(proto: ModelProto) -> tuple[str, ...]:
    """The note to the user about an opset that is newer than all tested ones."""
    opset = opset_of(proto)
    if opset <= _NEWEST_TESTED:
        return ()
    tested = f"opset {opset} is newer than {_NEWEST_TESTED}, the newest that was tested"
    return (f"{tested}: where results differ, export the model with opset {_NEWEST_TESTED}",)


def drop_equal_versions(proto: ModelProto) -> None:
    """Remove duplicate entries that state the same version of the same domain."""
    stated = {(entry.domain, entry.version): entry for entry in proto.opset_import}
    refill(proto.opset_import, stated.values())


def require_versions(proto: ModelProto) -> None:
    """Raise ModelError, with the way out, for an unsupported opset or version of the file format."""
    versions = sorted({entry.version for entry in proto.opset_import if entry.domain in ONNX_DOMAINS})
    domains = sorted({entry.domain for entry in proto.opset_import})
    if not versions:
        ways = [f". {way}" for domain in domains if (way := domain_ways_out().get(domain))]
        raise ModelError(
            f"its operators are of {', '.join(map(printable, domains)) or 'no domain'}; those of ai.onnx and "
            f"com.microsoft are supported{''.join(ways)}"
        )
    if len(versions) > 1:
        stated = " and ".join(map(str, versions))
        raise ModelError(f"the model names the versions {stated} of the ONNX operator set, it needs one")
    first, last = OPSETS.start, OPSETS.stop - 1
    problem = (
        f"the model uses opset {versions[0]}; opsets {first} to {last} are read. Export it with one of them"
    )
    if versions[0] > last:
        raise ModelError(
            f"{problem}, such as opset_version={last} in torch.onnx.export or --opset {last} in tf2onnx"
        )
    if versions[0] < first:
        raise ModelError(f"{problem}: onnx's converter does not convert it")
    if proto.ir_version > onnx.IR_VERSION:
        raise ModelError(
            f"the file has ONNX IR version {proto.ir_version}; up to {onnx.IR_VERSION} is read. "
            f"Export the model with an older exporter. If it uses nothing newer, you can set its ir_version "
            f"to {onnx.IR_VERSION}"
        )
