"""Changes of a model so that ONNX Runtime computes it correctly, as the reference."""

from __future__ import annotations

from onnx import ModelProto, NodeProto

from mcudeploy.frontend.decompose import norm_rules
from mcudeploy.frontend.decompose.decompose import Rule, expand, inlined, rule_for
from mcudeploy.frontend.decompose.maker import Maker
from mcudeploy.frontend.decompose.old_opsets import LOWERED_FROM, modern
from mcudeploy.frontend.onnx.convert import info_of
from mcudeploy.frontend.onnx.inference import inferred
from mcudeploy.frontend.onnx.nodes import Info
from mcudeploy.frontend.onnx.protos import ONNX_DOMAINS, attribute_of, graphs_of, opset_of
from mcudeploy.frontend.onnx.shapes import NO_SHAPES, Shapes, fix_inputs
from mcudeploy.frontend.onnx.windows import same_pads

_WEIGHTS_INPUT = {"Conv": 1, "ConvInteger": 1, "QLinearConv": 3}
"""Position of the weights among a convolution's inputs."""


def for_reference(proto: ModelProto, shapes: Shapes = NO_SHAPES) -> ModelProto:
    """Replace operators that ONNX Runtime computes wrongly, or not at all. `shapes`: the user's, by input.

    - Integer operators become float operators between quantisations: some integer kernels saturate
      intermediate results, or round activations.
    - Recurrent operators get the steps as first axis, the only layout that ONNX Runtime implements.
    - MeanVarianceNormalization omits the epsilon there: 0 / 0 for a constant image.
    - The images of other normalisations are shifted, see `shifted_image`.
    - ONNX Runtime refuses LRN of an even size, dilations beside auto_pad, and two nodes of one name.
    """
    if opset_of(proto) < LOWERED_FROM and any(map(_writes_newer, proto.graph.node)):
        proto = modern(inferred(inlined(proto)))
    infos: dict[str, Info] = {}
    if any(_is_even_lrn(node) or _is_dilated(node) for node in proto.graph.node):
        fix_inputs(proto.graph, shapes)
        known = inferred(proto).graph
        infos = {value.name: info_of(value) for value in (*known.value_info, *known.input, *known.output)}
    padded, _ = expand(
        proto, opset_of(proto), infos, lambda node: _explicit_pads if _is_dilated(node) else None
    )
    expanded, _ = expand(padded, opset_of(padded), infos, _rule)
    _without_equal_names(expanded)
    return expanded


def _writes_newer(node: NodeProto) -> bool:
    """Whether the rule for a node writes what older opsets may lack, such as an axis of DequantizeLinear."""
    return _rule(node) not in (None, norm_rules.shifted_image)


def _rule(node: NodeProto) -> Rule | None:
    if node.domain in ONNX_DOMAINS and node.op_type in ("GroupNormalization", "InstanceNormalization"):
        return norm_rules.shifted_image
    integers = node.op_type.startswith("Q") and node.op_type != "QuantizeLinear"
    by_batch = any(item.name == "layout" and item.i for item in node.attribute)
    others = node.op_type in ("MatMulNBits", "MeanVarianceNormalization") or _is_even_lrn(node)
    return rule_for(node) if integers or by_batch or others else None


def _is_even_lrn(node: NodeProto) -> bool:
    """Whether a node is an LRN over an even number of channels."""
    is_lrn = node.op_type == "LRN" and node.domain in ONNX_DOMAINS
    return is_lrn and int(attribute_of(node, "size", 1)) % 2 == 0


def _is_dilated(node: NodeProto) -> bool:
    """Whether a node is a dilated convolution whose pads depend on its input's size (auto_pad)."""
    is_conv = node.op_type in _WEIGHTS_INPUT and node.domain in ONNX_DOMAINS
    pads_by_size = is_conv and attribute_of(node, "auto_pad", b"").startswith(b"SAME")
    return pads_by_size and any(step > 1 for step in attribute_of(node, "dilations", ()))


def _explicit_pads(make: Maker) -> None:
    """State the pads of a convolution."""
    sizes, weights = make.sizes(make.inputs[0]), make.sizes(make.inputs[_WEIGHTS_INPUT[make.op]])
    dilations = make.attributes["dilations"]
    strides = make.attributes.get("strides", [1] * len(dilations))
    upper = make.attributes["auto_pad"] == b"SAME_UPPER"
    axes = [
        same_pads(size, (kernel - 1) * dilation + 1, stride, upper=upper)
        for size, kernel, dilation, stride in zip(sizes[2:], weights[2:], dilations, strides, strict=True)
    ]
    pads = [before for before, _, _ in axes] + [after for _, after, _ in axes]
    others = {name: value for name, value in make.attributes.items() if name != "auto_pad"}
    make.add(make.op, *make.inputs, out=make.outputs[0], **{**others, "pads": pads})


def _without_equal_names(proto: ModelProto) -> None:
    """Remove repeated names of nodes, which nothing reads."""
    for graph in graphs_of(proto.graph):
        seen = set[str]()
        for node in graph.node:
            if node.name in seen:
                node.ClearField("name")
            seen.add(node.name)
