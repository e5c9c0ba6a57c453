"""The names of the operators of a training step in ONNX files, and the parameters in such files."""

from __future__ import annotations

from onnx import ModelProto

from mcudeploy.frontend.onnx.states import KeptState

TRAINING_DOMAIN = "mcudeploy.training"
OPSET = 17
"""The version of ONNX's operators in the definitions of the training operators."""

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
"""As PARAMETER_STEP; the fourth input is a factor of the mean gradient."""
SQUARE_SUM = "SquareSum"
"""x -> [the sum of the squares of its elements]."""
NEXT_SAMPLE = "NextSample"
"""The optimizer, [rate, number of earlier samples in the batch] -> the optimizer of the next sample."""
CLIP_GRADIENT = "ClipGradient"
"""Gradient, clipped values -> the gradient where low < value < high, else 0."""
CLIP_MASK = "ClipMask"
"""Clipped values -> whether low < value < high."""
MASKED_GRADIENT = "MaskedGradient"
"""Gradient, mask -> the gradient where the mask is true, else 0."""

MAX_POOL_TAPS = "MaxPoolTaps"
"""x -> the index in x of the first largest value of each window."""
MAX_POOL_GRADIENT = "MaxPoolGradient"
"""Gradient of a maximum over windows, MAX_POOL_TAPS -> gradient of its input, whose shape is `sizes`."""
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
"""x -> the function. Later versions of ONNX have them as operators; only Swish has the parameter alpha."""
SWISH_GRADIENT = "SwishGradient"
"""Gradient, x -> the gradient times the slope of Swish at x."""
GELU_GRADIENT, ERF_GRADIENT, SOFTPLUS_GRADIENT = "GeluGradient", "ErfGradient", "SoftplusGradient"
"""Gradient, x -> the gradient times the slope of the function at x."""

_CONVOLUTIONS = (TRAINED_CONV, BIASED_CONV)
_CLIPS = (CLIP_GRADIENT, CLIP_MASK, MASKED_GRADIENT)
_POOLS = (MAX_POOL_TAPS, MAX_POOL_GRADIENT, AVERAGE_POOL_GRADIENT, RESIZE_GRADIENT)
_UNARIES = (
    PIECEWISE_GRADIENT, SLOPED_GRADIENT, SWISH, GELU, SWISH_GRADIENT, GELU_GRADIENT, ERF_GRADIENT,
    SOFTPLUS_GRADIENT,
)  # fmt: skip
_SUMS = (GRADIENT_SUM, DEPTHWISE_SUM, BIAS_SUM)
_STEPS = (PARAMETER_STEP, CLIPPED_STEP, NEXT_SAMPLE)
_UPDATES = (WEIGHT_UPDATE, DEPTHWISE_UPDATE, BIAS_UPDATE, *_SUMS, *_STEPS)
TRAINING_OPERATORS = frozenset(
    (PARAMETER, *_CONVOLUTIONS, INPUT_GRADIENT, SQUARE_SUM, *_CLIPS, *_POOLS, *_UNARIES, *_UPDATES)
)
"""All operators of the domain."""


def parameters_of(proto: ModelProto) -> tuple[KeptState, ...]:
    """The parameters of a training step, as states; none of another model."""
    nodes = [node for node in proto.graph.node if node.domain == TRAINING_DOMAIN]
    after = {node.input[0]: node.output[0] for node in nodes if node.op_type in _UPDATES}
    return tuple(
        KeptState(node.input[0], after[node.output[0]], node.input[1])
        for node in nodes
        if node.op_type == PARAMETER and node.output[0] in after
    )


def hide_training(proto: ModelProto) -> tuple[KeptState, ...]:
    """Return the parameters of a training step, and make its model readable, in place.

    Removes the definitions of its operators, and the outputs that are parameters after a run.
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
