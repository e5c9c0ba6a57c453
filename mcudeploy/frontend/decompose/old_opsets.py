"""Conversion of older operator sets to the first that is lowered.

onnx converts operators to their new form. Rules replace the operators whose meaning has changed.
"""

from __future__ import annotations

import numpy as np
from onnx import ModelProto, NodeProto

from mcudeploy.common.errors import ModelError
from mcudeploy.common.text import printable
from mcudeploy.frontend.decompose.decompose import Rule, expand, require_replaced
from mcudeploy.frontend.decompose.maker import Maker
from mcudeploy.frontend.decompose.norm_rules import normalize_by
from mcudeploy.frontend.onnx.converter import ASIDE, FAULTS, converted, is_converted_wrongly
from mcudeploy.frontend.onnx.nodes import Unsupported
from mcudeploy.frontend.onnx.plain_forms import INITIALIZERS_ALONE
from mcudeploy.frontend.onnx.protos import opset_of

LOWERED_FROM = 13
"""The first opset that is lowered, in which axes and pads are inputs. Older models are converted to it."""


def modern(proto: ModelProto) -> ModelProto:
    """Convert a checked model to an opset that is lowered. Raises ModelError if that fails."""
    opset = opset_of(proto)
    if opset >= LOWERED_FROM:
        return proto
    try:
        result = converted(proto, LOWERED_FROM, lambda node: is_converted_wrongly(node, opset))
    except FAULTS as fault:
        reason = printable(" ".join(str(fault).split())[-200:])
        raise ModelError(
            f"the model uses opset {opset}, which cannot be converted to {LOWERED_FROM}: {reason}. "
            f"Export it with opset {LOWERED_FROM} or newer"
        ) from fault
    result, refusals = expand(result, LOWERED_FROM, {}, _rule)
    require_replaced(result, refusals)
    result.ir_version = max(result.ir_version, INITIALIZERS_ALONE)
    return result


def _rule(node: NodeProto) -> Rule | None:
    return _RULES.get(node.op_type) if node.domain == ASIDE else None


def _resize(make: Maker) -> None:
    """Replace an old Resize, with the rounding of ONNX Runtime: the nearest element is the one before.

    Along axes that shrink, the nearest element is the one after.
    """
    scales = make.inputs[1] if len(make.inputs) > 1 else make.constant(make.attributes["scales"])
    mode, known = make.attributes.get("mode", b"nearest"), make.known(scales)
    shrinks = known is not None and bool((known < 1).any())
    if mode != b"nearest" or known is None or not shrinks:
        _resized(make, make.inputs[0], scales, "floor", make.outputs[0])
        return
    grown = make.inputs[0]
    if (known > 1).any():
        grown = _resized(make, grown, make.constant(np.maximum(known, 1)), "floor")
    _resized(make, grown, make.constant(np.minimum(known, 1)), "ceil", make.outputs[0])


def _resized(make: Maker, x: str, scales: str, nearest: str, out: str = "") -> str:
    where = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": nearest}
    return make.add("Resize", x, "", scales, out=out, **make.only("mode"), **where)


def _hardmax(make: Maker) -> None:
    """Choose the largest element over all axes from `axis` on."""
    x, axis = make.inputs[0], make.integer("axis", 1)
    rows = make.add("Hardmax", make.add("Flatten", x, axis=axis), axis=-1)
    make.add("Reshape", rows, make.add("Shape", x), out=make.outputs[0])


def _batch_normalization(make: Maker) -> None:
    """Normalise each element of an image: in old opsets, parameters may have a value for each element."""
    normalize_by(make, *make.inputs[1:5])


def _pad(make: Maker) -> None:
    """Replace a Pad that repeats or mirrors: onnx gives it a value, which only constant pads may have."""
    pads = make.int64(make.attributes["pads"])
    make.add("Pad", make.inputs[0], pads, out=make.outputs[0], **make.only("mode"))


def _dropout(make: Maker) -> None:
    """Replace Dropout by Identity. In old opsets its mask has floats, which is not supported."""
    if make.is_read(make.output(1)):
        raise Unsupported("its mask is read, which only training needs: export the model for inference")
    make.add("Identity", make.inputs[0], out=make.outputs[0])


_RULES: dict[str, Rule] = {
    "BatchNormalization": _batch_normalization,
    "Dropout": _dropout,
    "Hardmax": _hardmax,
    "Pad": _pad,
    "Resize": _resize,
    "Upsample": _resize,
}
