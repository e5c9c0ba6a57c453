"""The operators of a training step, as ONNX functions: a file that uses them contains their definitions."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import AttributeProto, FunctionProto, ModelProto, NodeProto, helper

from mcudeploy.frontend.onnx.states import Kept

TRAINING_DOMAIN = "mcudeploy.training"
OPSET = 17
"""The version of ONNX's operators that the functions use."""

PARAMETER = "Parameter"
"""A parameter before this run, and its initial value -> the parameter. perm: the order of stored axes."""
TRAINED_CONV = "TrainedConv"
"""x, weights, bias -> the convolution, clipped to [low, high]."""
INPUT_GRADIENT = "ConvInputGradient"
"""Gradient of a convolution's output, weights -> gradient of its input."""
WEIGHT_UPDATE = "ConvWeightUpdate"
"""Weights, x, gradient of the output -> decay * weights + step * (gradient of the weights)."""
DEPTHWISE_UPDATE = "DepthwiseWeightUpdate"
"""As WEIGHT_UPDATE, of a depthwise convolution."""
BIAS_UPDATE = "BiasUpdate"
"""A bias, gradient of the output -> decay * bias + step * (sum of the gradient over its pixels)."""
GRADIENT_SUM = "ConvGradientSum"
"""A sum, x, gradient of the output -> decay * sum + gradient of the weights."""
DEPTHWISE_SUM = "DepthwiseGradientSum"
"""As GRADIENT_SUM, of a depthwise convolution."""
BIAS_SUM = "BiasGradientSum"
"""A sum, gradient of the output -> decay * sum + (sum of the gradient over its pixels)."""
PARAMETER_STEP = "ParameterStep"
"""A parameter, direction -> decay * parameter + step * direction."""
CLIP_GRADIENT = "ClipGradient"
"""Gradient, clipped values -> the gradient where low < value < high, else 0."""
CLIP_MASK = "ClipMask"
"""Clipped values -> whether low < value < high."""
MASKED_GRADIENT = "MaskedGradient"
"""Gradient, mask -> the gradient where the mask is true, else 0."""

_CLIPS = (CLIP_GRADIENT, CLIP_MASK, MASKED_GRADIENT)
_SUMS = (GRADIENT_SUM, DEPTHWISE_SUM, BIAS_SUM)
_UPDATES = (WEIGHT_UPDATE, DEPTHWISE_UPDATE, BIAS_UPDATE, *_SUMS, PARAMETER_STEP)
TRAINING_OPERATORS = frozenset((PARAMETER, TRAINED_CONV, INPUT_GRADIENT, *_CLIPS, *_UPDATES))
"""All operators of the domain."""
_WINDOW = ("strides", "dilations", "pads", "group")
_MOVE = ("decay", "step")
_KINDS = {
    "strides": AttributeProto.INTS,
    "dilations": AttributeProto.INTS,
    "pads": AttributeProto.INTS,
    "output_padding": AttributeProto.INTS,
    "kernel_shape": AttributeProto.INTS,
    "perm": AttributeProto.INTS,
    "group": AttributeProto.INT,
    "low": AttributeProto.FLOAT,
    "high": AttributeProto.FLOAT,
    "decay": AttributeProto.FLOAT,
    "step": AttributeProto.FLOAT,
}


def training_functions() -> list[FunctionProto]:
    """The definitions of all operators of the domain."""
    swap = [1, 0, 2, 3]
    moved = [
        *_constants(_MOVE),
        helper.make_node("Mul", ["gradient", "step"], ["change"]),
        helper.make_node("Mul", ["parameter", "decay"], ["decayed"]),
        helper.make_node("Add", ["decayed", "change"], ["y"]),
    ]
    added = [
        *_constants(("decay",)),
        helper.make_node("Mul", ["parameter", "decay"], ["decayed"]),
        helper.make_node("Add", ["decayed", "gradient"], ["y"]),
    ]
    of_taps = [  # the gradient of the output is the kernel, whose dilation is the stride
        *_constants(("kernel_shape",)),
        helper.make_node("Constant", [], ["zeros"], value_ints=[0, 0]),
        helper.make_node("Constant", [], ["spatial"], value_ints=[2, 3]),
        helper.make_node("Slice", ["products", "zeros", "kernel_shape", "spatial"], ["taps"]),
        helper.make_node("Transpose", ["taps"], ["gradient"], perm=swap),
    ]
    crossed = {"strides": "dilations", "dilations": "strides", "pads": "pads"}
    kernels = helper.make_node("Transpose", ["dy"], ["kernels"], perm=swap)
    dense = [
        helper.make_node("Transpose", ["x"], ["images"], perm=swap),
        kernels,
        _referring(helper.make_node("Conv", ["images", "kernels"], ["products"]), crossed),
    ]
    depthwise = [
        kernels,
        _referring(helper.make_node("Conv", ["x", "kernels"], ["products"]), {**crossed, "group": "group"}),
    ]
    bias = [
        helper.make_node("Constant", [], ["pixels"], value_ints=[0, 2, 3]),
        helper.make_node("ReduceSum", ["dy", "pixels"], ["gradient"], keepdims=0),
    ]
    inside = [
        *_constants(("low", "high")),
        helper.make_node("Greater", ["x", "low"], ["above"]),
        helper.make_node("Less", ["x", "high"], ["below"]),
        helper.make_node("And", ["above", "below"], ["inside"]),
    ]
    chosen = [
        helper.make_node("Constant", [], ["zero"], value_float=0.0),
        helper.make_node("Where", ["inside", "dy", "zero"], ["y"]),
    ]
    mask = helper.make_node("Identity", ["inside"], ["y"])
    forward = [
        _referring(helper.make_node("Conv", ["x", "weights", "bias"], ["sums"]), _same_names(_WINDOW)),
        *_constants(("low", "high")),
        helper.make_node("Clip", ["sums", "low", "high"], ["y"]),
    ]
    backward = [*_WINDOW, "output_padding"]
    transposed = _referring(
        helper.make_node("ConvTranspose", ["dy", "weights"], ["y"]), _same_names(backward)
    )
    same = [helper.make_node("Identity", ["before"], ["y"])]
    window_of_sum = [*_WINDOW, "kernel_shape", "decay"]
    window_of_update = [*window_of_sum, "step"]
    operands = ["parameter", "x", "dy"]
    return [
        _function(PARAMETER, ["before", "initial"], same, ["perm"]),
        _function(TRAINED_CONV, ["x", "weights", "bias"], forward, [*_WINDOW, "low", "high"]),
        _function(INPUT_GRADIENT, ["dy", "weights"], [transposed], backward),
        _function(WEIGHT_UPDATE, operands, [*dense, *of_taps, *moved], window_of_update),
        _function(DEPTHWISE_UPDATE, operands, [*depthwise, *of_taps, *moved], window_of_update),
        _function(BIAS_UPDATE, ["parameter", "dy"], [*bias, *moved], list(_MOVE)),
        _function(GRADIENT_SUM, operands, [*dense, *of_taps, *added], window_of_sum),
        _function(DEPTHWISE_SUM, operands, [*depthwise, *of_taps, *added], window_of_sum),
        _function(BIAS_SUM, ["parameter", "dy"], [*bias, *added], ["decay"]),
        _function(PARAMETER_STEP, ["parameter", "gradient"], moved, list(_MOVE)),
        _function(CLIP_GRADIENT, ["dy", "x"], [*inside, *chosen], ["low", "high"]),
        _function(CLIP_MASK, ["x"], [*inside, mask], ["low", "high"]),
        _function(MASKED_GRADIENT, ["dy", "inside"], chosen, []),
    ]


def parameters_of(proto: ModelProto) -> tuple[Kept, ...]:
    """The parameters of a training step, as states; none of another model."""
    nodes = [node for node in proto.graph.node if node.domain == TRAINING_DOMAIN]
    after = {node.input[0]: node.output[0] for node in nodes if node.op_type in _UPDATES}
    return tuple(
        Kept(node.input[0], after[node.output[0]], node.input[1])
        for node in nodes
        if node.op_type == PARAMETER and node.output[0] in after
    )


def hide_training(proto: ModelProto) -> tuple[Kept, ...]:
    """Return the parameters of a training step, and hide from the reader, in place, what makes it one: the
    definitions of its operators, and the outputs that are the parameters after a run.
    """
    parameters = parameters_of(proto)
    if not parameters:
        return ()
    for function in [it for it in proto.functions if it.domain == TRAINING_DOMAIN]:
        proto.functions.remove(function)
    after = {it.after for it in parameters}
    for output in [it for it in proto.graph.output if it.name in after]:
        proto.graph.output.remove(output)
        proto.graph.value_info.append(output)
    return parameters


def _function(
    name: str, inputs: Sequence[str], nodes: Sequence[NodeProto], attributes: Sequence[str]
) -> FunctionProto:
    opsets = [helper.make_opsetid("", OPSET)]
    return helper.make_function(TRAINING_DOMAIN, name, inputs, ["y"], nodes, opsets, attributes)


def _constants(attributes: Sequence[str]) -> list[NodeProto]:
    """Constants of the function's attributes, by their names."""
    return [
        _referring(
            helper.make_node("Constant", [], [name]),
            {"value_float" if _KINDS[name] == AttributeProto.FLOAT else "value_ints": name},
        )
        for name in attributes
    ]


def _same_names(attributes: Sequence[str]) -> dict[str, str]:
    return {name: name for name in attributes}


def _referring(node: NodeProto, attributes: dict[str, str]) -> NodeProto:
    """The node with attributes that are those of the function: by name, the function's."""
    for name, source in attributes.items():
        node.attribute.append(AttributeProto(name=name, ref_attr_name=source, type=_KINDS[source]))
    return node
