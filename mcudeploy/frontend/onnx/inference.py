"""Shape inference that agrees with ONNX Runtime.

It differs from ONNX's own in two points: inferred shapes override contradicting ones that the file states,
and no window of a pool with ceil_mode begins beyond its input.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnx import ModelProto, NodeProto, ValueInfoProto, helper, shape_inference

from mcudeploy.frontend.onnx.foreign_nodes import with_foreign_shapes
from mcudeploy.frontend.onnx.nodes import Unsupported
from mcudeploy.frontend.onnx.protos import ONNX_DOMAINS, copy_of, fixed_shape, refill
from mcudeploy.frontend.onnx.rounding import TRANSLATOR
from mcudeploy.frontend.onnx.windows import window_count

_POOLS = frozenset({"AveragePool", "MaxPool"})


def inferred(proto: ModelProto) -> ModelProto:
    """Infer the shapes of all values. Raises the errors of onnx for nodes that do not fit, and ModelError for
    a numpy function of an extension that fails.
    """
    result = _inferred(proto)
    while with_foreign_shapes(result):  # the shapes of later nodes follow from them
        result = _inferred(result)
    return result


def _inferred(proto: ModelProto) -> ModelProto:
    twin = _without_late_windows(proto)
    try:
        result = _strictly(twin)
    except shape_inference.InferenceError:
        if proto.producer_name == TRANSLATOR:  # its nodes were written for the stated shapes
            raise
        agreed = _by_nodes(twin)
        result = _strictly(_bare(twin)) if agreed is None else agreed
    if twin is not proto:
        refill(result.graph.node, proto.graph.node)
    return result


def _by_nodes(proto: ModelProto) -> ModelProto | None:
    """Replace stated shapes that contradict the shapes inferred from the nodes; None if none does."""
    sizes = _sizes(_bare(proto))
    result = copy_of(proto)
    wrong = [
        value
        for value in (*result.graph.value_info, *result.graph.output)
        if value.name in sizes and _contradicts(value, sizes[value.name])
    ]
    if not wrong:
        return None
    for value in wrong:
        value.type.tensor_type.ClearField("shape")
    return _strictly(result)


def _strictly(proto: ModelProto) -> ModelProto:
    return shape_inference.infer_shapes(proto, check_type=True, strict_mode=True)


def _contradicts(value: ValueInfoProto, size: Sequence[int]) -> bool:
    """Whether a stated shape, some of whose sizes may be open, differs from an inferred one."""
    kind = value.type.tensor_type
    if not kind.HasField("shape"):
        return False
    stated = [item.dim_value if item.HasField("dim_value") else None for item in kind.shape.dim]
    return len(stated) != len(size) or any(
        own not in (None, wanted) for own, wanted in zip(stated, size, strict=True)
    )


def _bare(proto: ModelProto) -> ModelProto:
    """Remove the stated shapes of all values except inputs."""
    result = copy_of(proto)
    del result.graph.value_info[:]
    for value in result.graph.output:
        value.type.tensor_type.ClearField("shape")
    return result


def _sizes(proto: ModelProto) -> dict[str, tuple[int, ...]]:
    """The inferable shapes, by value."""
    graph = shape_inference.infer_shapes(proto).graph
    values = (*graph.value_info, *graph.input, *graph.output)
    return {value.name: size for value in values if (size := fixed_shape(value)) is not None}


def _without_late_windows(proto: ModelProto) -> ModelProto:
    """Rewrite pools without ceil_mode, so that ONNX counts their windows correctly; return the model itself
    if none needs it.

    The sizes of a pool may depend on an earlier pool.
    """
    numbers = [at for at, node in enumerate(proto.graph.node) if _rounds_up(node)]
    if not numbers:
        return proto
    bare, changed = _bare(proto), dict[int, NodeProto]()
    sizes = _sizes(bare)
    for at in numbers:
        node = _with_pads(bare.graph.node[at], sizes)
        if node is not None:
            changed[at] = node
            bare.graph.node[at].CopyFrom(node)
            sizes = _sizes(bare)
    if not changed:
        return proto
    twin = copy_of(proto)
    for at, node in changed.items():
        twin.graph.node[at].CopyFrom(node)
    return twin


def _rounds_up(node: NodeProto) -> bool:
    ours = node.op_type in _POOLS and node.domain in ONNX_DOMAINS
    return ours and any(item.name == "ceil_mode" and item.i for item in node.attribute)


def _with_pads(node: NodeProto, sizes: Mapping[str, Sequence[int]]) -> NodeProto | None:
    """Replace a pool's ceil_mode by padding; None if ONNX counts its windows right, or sizes are unknown."""
    attributes = {item.name: helper.get_attribute_value(item) for item in node.attribute}
    kernel, size = attributes.get("kernel_shape", ()), sizes.get(node.input[0], ())[2:]
    ones = [1] * len(kernel)
    steps, dilations = attributes.get("strides", ones), attributes.get("dilations", ones)
    pads = list(attributes.get("pads", [0] * 2 * len(kernel)))
    plain = attributes.get("auto_pad", b"NOTSET") in (b"", b"NOTSET") and len(size) == len(kernel)
    if not plain or not len(pads) == 2 * len(steps) == 2 * len(dilations) == 2 * len(kernel):
        return None
    late = False
    for axis, step in enumerate(steps):
        reach, before = dilations[axis] * (kernel[axis] - 1) + 1, pads[axis]
        end = axis + len(kernel)
        try:
            count = window_count(size[axis], reach, step, (before, pads[end]), ceil_mode=True)
        except (Unsupported, ArithmeticError):
            return None
        free = size[axis] + before + pads[end] - reach
        late |= count <= -(-free // step)
        pads[end] += max(0, (count - 1) * step - free)
    if not late:
        return None
    result = copy_of(node)
    others = [item for item in result.attribute if item.name not in ("ceil_mode", "pads")]
    refill(result.attribute, [*others, helper.make_attribute("pads", pads)])
    return result
