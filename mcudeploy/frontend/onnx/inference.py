"""Shape inference that agrees with ONNX Runtime.

It differs from ONNX's own inference in two points. Inferred shapes replace those of the file that contradict
them. No window of a pool with ceil_mode begins beyond its input.
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
    """Infer the shapes of all values.

    Raises the errors of onnx for nodes that do not fit, and ModelError if a numpy function of an extension
    fails.
    """
    result = _inferred(proto)
    while with_foreign_shapes(result):  # the shapes of later nodes follow from them
        result = _inferred(result)
    return result


def _inferred(proto: ModelProto) -> ModelProto:
    changed = _without_late_windows(proto)
    try:
        result = _strictly(changed)
    except shape_inference.InferenceError:
        if proto.producer_name == TRANSLATOR:  # its nodes were written for the stated shapes
            raise
        corrected = _with_corrected_shapes(changed)
        result = _strictly(_without_shapes(changed)) if corrected is None else corrected
    if changed is not proto:
        refill(result.graph.node, proto.graph.node)
    return result


def _with_corrected_shapes(proto: ModelProto) -> ModelProto | None:
    """Infer again the stated shapes that contradict those inferred from the nodes; None if none does."""
    sizes = _sizes(_without_shapes(proto))
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
        known not in (None, inferred_size) for known, inferred_size in zip(stated, size, strict=True)
    )


def _without_shapes(proto: ModelProto) -> ModelProto:
    """A copy of the model without the stated shapes of values, except those of inputs."""
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
    """The model with padding instead of ceil_mode in pools of which ONNX would count too many windows.

    The model itself if there is no such pool. The sizes of a pool may depend on an earlier pool.
    """
    numbers = [at for at, node in enumerate(proto.graph.node) if _rounds_up(node)]
    if not numbers:
        return proto
    shapeless, changed = _without_shapes(proto), dict[int, NodeProto]()
    sizes = _sizes(shapeless)
    for at in numbers:
        node = _with_pads(shapeless.graph.node[at], sizes)
        if node is not None:
            changed[at] = node
            shapeless.graph.node[at].CopyFrom(node)
            sizes = _sizes(shapeless)
    if not changed:
        return proto
    result = copy_of(proto)
    for at, node in changed.items():
        result.graph.node[at].CopyFrom(node)
    return result


def _rounds_up(node: NodeProto) -> bool:
    is_pool = node.op_type in _POOLS and node.domain in ONNX_DOMAINS
    return is_pool and any(item.name == "ceil_mode" and item.i for item in node.attribute)


def _with_pads(node: NodeProto, sizes: Mapping[str, Sequence[int]]) -> NodeProto | None:
    """The pool with padding instead of ceil_mode; None if ONNX counts its windows right, or cannot.

    ONNX cannot count windows of unknown sizes.
    """
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
