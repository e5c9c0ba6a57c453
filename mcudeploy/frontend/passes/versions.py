"""Supported versions of ONNX."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, helper, numpy_helper, version_converter
from onnx.version_converter import ConvertError

from mcudeploy.common.errors import ModelError
from mcudeploy.common.text import printable
from mcudeploy.frontend.onnx.plain_forms import INITIALIZERS_ALONE
from mcudeploy.frontend.onnx.protos import (
    DOMAIN_WAYS_OUT,
    ONNX_DOMAINS,
    attribute_of,
    copy_of,
    opset_of,
    refill,
)

OPSETS = range(7, onnx.defs.onnx_opset_version() + 1)
"""Supported opsets, from the first that ONNX Runtime runs to the newest that the onnx package knows."""

_NEWEST_TESTED = 28
"""The newest opset in which ONNX's node tests ran."""

_LOWERED_FROM = 13
"""Older operator sets are converted to this one, the first with axes and pads as inputs."""

_ASIDE = "mcudeploy.upsample"


def modern(proto: ModelProto) -> ModelProto:
    """Convert a checked model to an operator set that is lowered. Raises ModelError if that fails."""
    opset = opset_of(proto)
    if opset >= _LOWERED_FROM:
        return proto
    try:
        converted = version_converter.convert_version(_set_aside(proto), _LOWERED_FROM)
        _resized(converted)
        _drop_masks(converted)
        converted.ir_version = max(converted.ir_version, INITIALIZERS_ALONE)
        return converted
    except (RuntimeError, ValueError, TypeError, IndexError, MemoryError, ConvertError) as fault:
        reason = printable(" ".join(str(fault).split())[:200])
        raise ModelError(
            f"the model uses opset {opset}, which cannot be converted to {_LOWERED_FROM}: {reason}. "
            f"Export it with opset {_LOWERED_FROM} or newer"
        ) from fault


def _set_aside(proto: ModelProto) -> ModelProto:
    """Move each Upsample to a domain that conversion ignores: it would change the values."""
    if not any(_upsamples(node) for node in proto.graph.node):
        return proto
    made = copy_of(proto)
    made.opset_import.add(domain=_ASIDE, version=1)
    for number, node in enumerate(made.graph.node):
        if not _upsamples(node):
            continue
        node.domain = _ASIDE
        for item in node.attribute:
            if item.name == "scales":  # before opset 9
                name = f"{node.output[0]}/scales {number}"
                made.graph.initializer.append(
                    numpy_helper.from_array(np.array(item.floats, np.float32), name)
                )
                node.input.append(name)
    return made


def _upsamples(node: NodeProto) -> bool:
    return node.op_type == "Upsample" and node.domain in (*ONNX_DOMAINS, _ASIDE)


def _resized(proto: ModelProto) -> None:
    """Replace each Upsample that was set aside by a Resize, as ONNX Runtime computes it."""
    for node in proto.graph.node:
        if node.domain != _ASIDE:
            continue
        x, scales = node.input
        made = helper.make_node(
            "Resize",
            [x, "", scales],
            node.output,
            node.name,
            mode=attribute_of(node, "mode", "nearest"),
            coordinate_transformation_mode="asymmetric",
            nearest_mode="floor",
        )
        node.CopyFrom(made)
    refill(proto.opset_import, [entry for entry in proto.opset_import if entry.domain != _ASIDE])


def _drop_masks(proto: ModelProto) -> None:
    """Remove the masks of Dropout that nothing reads: the file has floats, and newer versions bool."""
    graph = proto.graph
    read = {name for node in graph.node for name in node.input} | {value.name for value in graph.output}
    dropped = set[str]()
    for node in graph.node:
        if node.op_type == "Dropout" and node.domain in ONNX_DOMAINS and read.isdisjoint(node.output[1:]):
            dropped.update(node.output[1:])
            del node.output[1:]
    refill(graph.value_info, [value for value in graph.value_info if value.name not in dropped])


def version_notes(proto: ModelProto) -> tuple[str, ...]:
    """The note to the user about an operator set newer than any tested one."""
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
    """Raise ModelError, with the way out, for an unsupported operator set or file format."""
    versions = sorted({entry.version for entry in proto.opset_import if entry.domain in ONNX_DOMAINS})
    domains = sorted({entry.domain for entry in proto.opset_import})
    if not versions:
        ways = [f". {way}" for domain in domains if (way := DOMAIN_WAYS_OUT.get(domain))]
        raise ModelError(
            f"its operators are of {', '.join(map(printable, domains)) or 'no domain'}; those of ai.onnx and "
            f"com.microsoft are supported{''.join(ways)}"
        )
    if len(versions) > 1:
        stated = " and ".join(map(str, versions))
        raise ModelError(f"the model names the versions {stated} of the ONNX operator set, it needs one")
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
            f"Export the model with an older exporter. If it uses nothing newer, you can set its ir_version "
            f"to {onnx.IR_VERSION}"
        )
