"""The operators of a training step, as ONNX functions: a file that uses them contains their definitions."""

from __future__ import annotations

from collections.abc import Sequence
from math import pi

from onnx import AttributeProto, FunctionProto, ModelProto, NodeProto, helper

from mcudeploy.frontend.onnx.states import Kept

TRAINING_DOMAIN = "mcudeploy.training"
OPSET = 17
"""The version of ONNX's operators that the functions use."""

PARAMETER = "Parameter"
"""A parameter before this run, and its initial value -> the parameter. perm: the order of stored axes."""
TRAINED_CONV = "TrainedConv"
"""x, weights, bias -> the convolution, clipped to [low, high]."""
BIASED_CONV = "BiasedConv"
"""x, constant weights, bias -> the convolution, clipped to [low, high]: x and the result are int8."""
INPUT_GRADIENT = "ConvInputGradient"
"""Gradient of a convolution's output, weights -> gradient of its input."""
WEIGHT_UPDATE = "ConvWeightUpdate"
"""Weights, x, gradient of the output, optimizer -> weights - rate * (gradient + weight_decay * weights)."""
DEPTHWISE_UPDATE = "DepthwiseWeightUpdate"
"""As WEIGHT_UPDATE, of a depthwise convolution."""
BIAS_UPDATE = "BiasUpdate"
"""A bias, gradient of the output, optimizer -> bias - rate * (its gradient + weight_decay * bias)."""
GRADIENT_SUM = "ConvGradientSum"
"""A sum, x, gradient of the output, optimizer -> sum + gradient of the weights; at the first sample of a
batch momentum * sum + gradient.
"""
DEPTHWISE_SUM = "DepthwiseGradientSum"
"""As GRADIENT_SUM, of a depthwise convolution."""
BIAS_SUM = "BiasGradientSum"
"""A sum, gradient of the output, optimizer -> sum + gradient of the bias, as GRADIENT_SUM."""
PARAMETER_STEP = "ParameterStep"
"""A parameter, sum of its gradients, optimizer -> at the last sample of a batch
parameter - rate * (sum / batch + weight_decay * parameter), else the parameter.
"""
CLIPPED_STEP = "ClippedStep"
"""As PARAMETER_STEP, with a factor of the sum as the fourth input."""
SQUARE_SUM = "SquareSum"
"""x -> [the sum of the squares of its elements]."""
NEXT_SAMPLE = "NextSample"
"""The optimizer, [rate, earlier samples in the batch] -> that of the next sample."""
CLIP_GRADIENT = "ClipGradient"
"""Gradient, clipped values -> the gradient where low < value < high, else 0."""
CLIP_MASK = "ClipMask"
"""Clipped values -> whether low < value < high."""
MASKED_GRADIENT = "MaskedGradient"
"""Gradient, mask -> the gradient where the mask is true, else 0."""

MAX_POOL_TAPS = "MaxPoolTaps"
"""x -> the index in x of the first largest value of each window."""
MAX_POOL_GRADIENT = "MaxPoolGradient"
"""Gradient of a maximum over windows, MAX_POOL_TAPS -> gradient of its input, of these sizes."""
AVERAGE_POOL_GRADIENT = "AveragePoolGradient"
"""Gradient of a mean over windows -> gradient of its input: the sum over the windows, times factor."""

RESIZE_GRADIENT = "ResizeGradient"
"""Gradient of a resized image, shares [rows, resized rows] and [resized columns, columns] -> gradient of the
image, the product of the three.
"""
PIECEWISE_GRADIENT = "PiecewiseGradient"
"""Gradient, v -> the gradient times lower_0 + lower_1 * v where v <= low, else times upper where v >= high,
else times middle_0 + middle_1 * v + middle_2 * v^2.
"""
SLOPED_GRADIENT = "SlopedGradient"
"""Gradient, mask, slopes -> the gradient where the mask is true, else the gradient times the slope."""
SWISH, GELU = "Swish", "Gelu"
"""The operators of later versions of ONNX; alpha is that of Swish."""
SWISH_GRADIENT = "SwishGradient"
"""Gradient, x -> the gradient times the slope of Swish at x."""
GELU_GRADIENT, ERF_GRADIENT, SOFTPLUS_GRADIENT = "GeluGradient", "ErfGradient", "SoftplusGradient"
"""The same of Gelu, Erf, and Softplus."""

_CONVOLUTIONS = (TRAINED_CONV, BIASED_CONV)
_CLIPS = (CLIP_GRADIENT, CLIP_MASK, MASKED_GRADIENT)
_POOLS = (MAX_POOL_TAPS, MAX_POOL_GRADIENT, AVERAGE_POOL_GRADIENT, RESIZE_GRADIENT)
_PIECES = ("low", "high", "lower_0", "lower_1", "middle_0", "middle_1", "middle_2", "upper")
_UNARIES = (
    PIECEWISE_GRADIENT,
    SLOPED_GRADIENT,
    SWISH,
    GELU,
    SWISH_GRADIENT,
    GELU_GRADIENT,
    ERF_GRADIENT,
    SOFTPLUS_GRADIENT,
)
_SUMS = (GRADIENT_SUM, DEPTHWISE_SUM, BIAS_SUM)
_STEPS = (PARAMETER_STEP, CLIPPED_STEP, NEXT_SAMPLE)
_UPDATES = (WEIGHT_UPDATE, DEPTHWISE_UPDATE, BIAS_UPDATE, *_SUMS, *_STEPS)
TRAINING_OPERATORS = frozenset(
    (PARAMETER, *_CONVOLUTIONS, INPUT_GRADIENT, SQUARE_SUM, *_CLIPS, *_POOLS, *_UNARIES, *_UPDATES)
)
"""All operators of the domain."""
_WINDOW = ("strides", "dilations", "pads", "group")
_KINDS = {
    "strides": AttributeProto.INTS,
    "dilations": AttributeProto.INTS,
    "pads": AttributeProto.INTS,
    "output_padding": AttributeProto.INTS,
    "kernel_shape": AttributeProto.INTS,
    "perm": AttributeProto.INTS,
    "sizes": AttributeProto.INTS,
    "group": AttributeProto.INT,
    **dict.fromkeys(_PIECES, AttributeProto.FLOAT),
    "alpha": AttributeProto.FLOAT,
    "weight_decay": AttributeProto.FLOAT,
    "momentum": AttributeProto.FLOAT,
    "batch": AttributeProto.FLOAT,
    "factor": AttributeProto.FLOAT,
}


def training_functions() -> list[FunctionProto]:
    """The definitions of all operators of the domain."""
    swap = [1, 0, 2, 3]
    halves = helper.make_node("Split", ["optimizer"], ["rate", "samples"])
    zero, one = (
        helper.make_node("Constant", [], [name], value_float=number)
        for name, number in (("zero", 0.0), ("one", 1.0))
    )
    counted = [
        zero,
        one,
        *_constants(("batch",)),
        helper.make_node("Add", ["samples", "one"], ["following"]),
        helper.make_node("Less", ["following", "batch"], ["inside"]),
    ]
    moved = [
        *_constants(("weight_decay",)),
        helper.make_node("Mul", ["parameter", "weight_decay"], ["decay"]),
        helper.make_node("Add", ["gradient", "decay"], ["direction"]),
        helper.make_node("Mul", ["direction", "rate"], ["change"]),
        helper.make_node("Sub", ["parameter", "change"], ["y"]),
    ]
    after_batch = [
        helper.make_node("Split", ["optimizer"], ["wanted", "samples"]),
        *counted,
        helper.make_node("Where", ["inside", "zero", "wanted"], ["rate"]),
    ]
    clipped = [
        helper.make_node("Div", ["sum", "batch"], ["mean"]),
        helper.make_node("Mul", ["mean", "scale"], ["gradient"]),
    ]
    square_sum = [
        helper.make_node("Mul", ["x", "x"], ["squares"]),
        helper.make_node("ReduceSum", ["squares"], ["total"], keepdims=0),
        helper.make_node("Constant", [], ["one"], value_ints=[1]),
        helper.make_node("Reshape", ["total", "one"], ["y"]),
    ]
    next_sample = [
        halves,
        *counted,
        helper.make_node("Where", ["inside", "following", "zero"], ["next"]),
        helper.make_node("Concat", ["rate", "next"], ["y"], axis=0),
    ]
    added = [
        halves,
        zero,
        one,
        helper.make_node("Greater", ["samples", "zero"], ["earlier"]),
        *_constants(("momentum",)),
        helper.make_node("Where", ["earlier", "one", "momentum"], ["factor"]),
        helper.make_node("Mul", ["parameter", "factor"], ["decayed"]),
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
    window_of_sum = [*_WINDOW, "kernel_shape", "momentum"]
    window_of_update = [*_WINDOW, "kernel_shape", "weight_decay"]
    operands, of_bias = ["parameter", "x", "dy", "optimizer"], ["parameter", "dy", "optimizer"]
    mean, of_sum = helper.make_node("Div", ["sum", "batch"], ["gradient"]), ["parameter", "sum", "optimizer"]
    return [
        _function(PARAMETER, ["before", "initial"], same, ["perm"]),
        _function(TRAINED_CONV, ["x", "weights", "bias"], forward, [*_WINDOW, "low", "high"]),
        _function(BIASED_CONV, ["x", "weights", "bias"], forward, [*_WINDOW, "low", "high"]),
        _function(INPUT_GRADIENT, ["dy", "weights"], [transposed], backward),
        _function(WEIGHT_UPDATE, operands, [halves, *dense, *of_taps, *moved], window_of_update),
        _function(DEPTHWISE_UPDATE, operands, [halves, *depthwise, *of_taps, *moved], window_of_update),
        _function(BIAS_UPDATE, of_bias, [halves, *bias, *moved], ["weight_decay"]),
        _function(GRADIENT_SUM, operands, [*dense, *of_taps, *added], window_of_sum),
        _function(DEPTHWISE_SUM, operands, [*depthwise, *of_taps, *added], window_of_sum),
        _function(BIAS_SUM, of_bias, [*bias, *added], ["momentum"]),
        _function(PARAMETER_STEP, of_sum, [*after_batch, mean, *moved], ["weight_decay", "batch"]),
        _function(
            CLIPPED_STEP, [*of_sum, "scale"], [*after_batch, *clipped, *moved], ["weight_decay", "batch"]
        ),
        _function(SQUARE_SUM, ["x"], square_sum, []),
        _function(NEXT_SAMPLE, ["optimizer"], next_sample, ["batch"]),
        _function(CLIP_GRADIENT, ["dy", "x"], [*inside, *chosen], ["low", "high"]),
        _function(CLIP_MASK, ["x"], [*inside, mask], ["low", "high"]),
        _function(MASKED_GRADIENT, ["dy", "inside"], chosen, []),
        *_pool_functions(),
        *_unary_functions(),
    ]


def _pool_functions() -> list[FunctionProto]:
    """The definitions of the gradients of pools and resizes."""
    window = ["kernel_shape", "strides", "dilations", "pads"]
    largest = helper.make_node("MaxPool", ["x"], ["largest", "y"])
    everything = helper.make_node("Constant", [], ["everything"], value_ints=[-1])
    zero = helper.make_node("Constant", [], ["zero"], value_float=0.0)
    to_taps = [
        zero,
        *_constants(("sizes",)),
        helper.make_node("Expand", ["zero", "sizes"], ["zeros"]),
        everything,
        *(
            helper.make_node("Reshape", [name, "everything"], [f"flat_{name}"])
            for name in ("zeros", "taps", "dy")
        ),
        helper.make_node(
            "ScatterElements", ["flat_zeros", "flat_taps", "flat_dy"], ["sums"], axis=0, reduction="add"
        ),
        helper.make_node("Reshape", ["sums", "sizes"], ["y"]),
    ]
    backward = ["strides", "dilations", "pads", "group", "output_padding"]
    transposed = helper.make_node("ConvTranspose", ["dy", "weights"], ["y"])
    to_windows = [
        *_constants(("factor", "sizes")),
        helper.make_node("Expand", ["factor", "sizes"], ["weights"]),
        _referring(transposed, _same_names(backward)),
    ]
    products = [
        helper.make_node("MatMul", ["rows", "dy"], ["by_rows"]),
        helper.make_node("MatMul", ["by_rows", "cols"], ["y"]),
    ]
    return [
        _function(RESIZE_GRADIENT, ["dy", "rows", "cols"], products, []),
        _function(MAX_POOL_TAPS, ["x"], [_referring(largest, _same_names(window))], window),
        _function(MAX_POOL_GRADIENT, ["dy", "taps"], to_taps, ["sizes"]),
        _function(AVERAGE_POOL_GRADIENT, ["dy"], to_windows, ["factor", "sizes", *backward]),
    ]


def _unary_functions() -> list[FunctionProto]:
    """The definitions of the gradients of functions of one value, and of functions that OPSET lacks."""
    node = helper.make_node
    pieces = [
        *_constants(_PIECES),
        node("Mul", ["v", "lower_1"], ["rise"]),
        node("Add", ["lower_0", "rise"], ["lower"]),
        node("Mul", ["v", "middle_2"], ["bend"]),
        node("Add", ["middle_1", "bend"], ["steepness"]),
        node("Mul", ["v", "steepness"], ["curve"]),
        node("Add", ["middle_0", "curve"], ["middle"]),
        node("GreaterOrEqual", ["v", "high"], ["above"]),
        node("Where", ["above", "upper", "middle"], ["other"]),
        node("LessOrEqual", ["v", "low"], ["below"]),
        node("Where", ["below", "lower", "other"], ["slope"]),
    ]
    numbers = {
        "one": 1.0,
        "half": 0.5,
        "root": 0.5**0.5,
        "density": (2 * pi) ** -0.5,
        "steepest": 2 / pi**0.5,
    }
    one, half, root, density, steepest = (
        node("Constant", [], [name], value_float=number) for name, number in numbers.items()
    )
    gate = [
        *_constants(("alpha",)),
        node("Mul", ["x", "alpha"], ["scaled"]),
        node("Sigmoid", ["scaled"], ["gate"]),
    ]
    swish = [
        one,
        *gate,
        node("Sub", ["one", "gate"], ["rest"]),
        node("Mul", ["scaled", "rest"], ["rise"]),
        node("Add", ["one", "rise"], ["factor"]),
        node("Mul", ["gate", "factor"], ["slope"]),
    ]
    share = [
        one,
        half,
        root,
        node("Mul", ["x", "root"], ["scaled"]),
        node("Erf", ["scaled"], ["error"]),
        node("Add", ["one", "error"], ["twice"]),
        node("Mul", ["half", "twice"], ["share"]),
    ]
    bell = [node("Mul", ["x", "x"], ["square"]), node("Neg", ["square"], ["falling"])]
    gelu = [
        *share,
        *bell,
        density,
        node("Mul", ["half", "falling"], ["exponent"]),
        node("Exp", ["exponent"], ["bell"]),
        node("Mul", ["density", "bell"], ["normal"]),
        node("Mul", ["x", "normal"], ["change"]),
        node("Add", ["share", "change"], ["slope"]),
    ]
    error = [
        *bell,
        steepest,
        node("Exp", ["falling"], ["bell"]),
        node("Mul", ["steepest", "bell"], ["slope"]),
    ]
    softplus = [node("Sigmoid", ["x"], ["slope"])]
    product = node("Mul", ["dy", "slope"], ["y"])
    sloped = [node("Mul", ["dy", "slopes"], ["scaled"]), node("Where", ["inside", "dy", "scaled"], ["y"])]
    return [
        _function(PIECEWISE_GRADIENT, ["dy", "v"], [*pieces, product], _PIECES),
        _function(SLOPED_GRADIENT, ["dy", "inside", "slopes"], sloped, []),
        _function(SWISH, ["x"], [*gate, node("Mul", ["x", "gate"], ["y"])], ["alpha"]),
        _function(GELU, ["x"], [*share, node("Mul", ["x", "share"], ["y"])], []),
        _function(SWISH_GRADIENT, ["dy", "x"], [*swish, product], ["alpha"]),
        _function(GELU_GRADIENT, ["dy", "x"], [*gelu, product], []),
        _function(ERF_GRADIENT, ["dy", "x"], [*error, product], []),
        _function(SOFTPLUS_GRADIENT, ["dy", "x"], [*softplus, product], []),
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
