"""Lowering of the operators of a training step: parameters (states), convolutions, gradients and updates."""

from __future__ import annotations

from math import inf

import numpy as np

from mcudeploy.extensions.training import training_functions as functions
from mcudeploy.extensions.training.training_gradients import (
    average_pool_gradient,
    define_image,
    image_tensor,
    mask_tensor,
    max_pool_gradient,
    max_pool_taps,
    piecewise_gradient,
    resize_gradient,
    sloped_gradient,
    smooth_gradient,
    stated_shape,
    stored_image,
)
from mcudeploy.extensions.training.training_operators import (
    ClipGradient,
    ClipMask,
    Conv2dInputGradient,
    MaskedGradient,
    TrainedConv2d,
    mask_bytes,
    parameter_axes,
)
from mcudeploy.extensions.training.training_optimizer import NextSample, ParameterStep, SquareSum
from mcudeploy.extensions.training.training_quantized import BiasedConv2d
from mcudeploy.extensions.training.training_updates import (
    BiasGradientSum,
    BiasUpdate,
    Conv2dGradientSum,
    Conv2dWeightUpdate,
)
from mcudeploy.frontend.lower.builder import Builder, Lowering
from mcudeploy.frontend.lower.elementwise import unary
from mcudeploy.frontend.lower.follow import finish, follow
from mcudeploy.frontend.lower.inputs import Layout, state_input
from mcudeploy.frontend.lower.state_nodes import replace_state
from mcudeploy.frontend.onnx.constants import Constant
from mcudeploy.frontend.onnx.nodes import Node, Unsupported
from mcudeploy.frontend.onnx.values import OnnxValue, image_index, image_positions, positions
from mcudeploy.ir.graph import DType, Quantization
from mcudeploy.ir.opdef import ConstantArray
from mcudeploy.ops.conv.conv import Conv2d


def parameter(builder: Builder, node: Node) -> None:
    """Parameter: a state, whose axes are stored in the order `perm`."""
    name = node.inputs[0]
    info = builder.model.infos.get(name)
    perm = node.integers("perm")
    if info is None or info.shape is None or perm is None or sorted(perm) != list(range(len(info.shape))):
        raise Unsupported("its shape is not known, or perm does not fit it")
    stored_order = positions(info.shape).transpose(perm).reshape(-1)
    index = np.argsort(stored_order).astype(np.int32).reshape(info.shape)
    state = state_input(builder, name, (1, 1, stored_order.size), None, index)
    if state is None:
        raise Unsupported("no update changes this parameter")
    builder.values[node.output] = OnnxValue(state, index, real=True)


def trained_conv(builder: Builder, node: Node) -> None:
    """TrainedConv: a convolution by parameters."""
    weights, bias = (builder.real(name) for name in node.inputs[1:])
    conv = _conv(node, weights.shape, (_bound(node, "low", -inf), _bound(node, "high", inf)))
    _require_order(conv, weights)
    op, x = TrainedConv2d(conv), image_tensor(builder, node.inputs[0])
    define_image(builder, node, op, (x, weights.tensor, bias.tensor))


def biased_conv(builder: Builder, node: Node) -> None:
    """BiasedConv, with the QuantizeLinear after it."""
    source, weights = builder.int8_form(node.inputs[0]), builder.constants.get(node.inputs[1])
    ending = follow(builder, node.output)
    if source is None or weights is None or ending.quantization is None:
        raise Unsupported("its input, weights and result are not int8")
    constants = _int8_weights(weights, (0, 2, 3, 1))
    if constants is None:
        raise Unsupported("its weights are not int8 with the zero point 0 and a scale for each channel")
    conv = _conv(node, weights.shape, (_bound(node, "low", -inf), _bound(node, "high", inf)))
    op, bias = BiasedConv2d(conv), builder.real(node.inputs[2])
    inputs = (builder.arranged(source.tensor, image_positions(source.index)), bias.tensor)
    shape = builder.output_shape(op, inputs)
    tensor = builder.emit(
        op, inputs, shape, DType.INT8, ending.quantization, constants=constants, nodes=(node,)
    )
    finish(builder, ending, OnnxValue(tensor, image_index(shape, 4), real=True), quantized=True)


def input_gradient(builder: Builder, node: Node) -> None:
    """ConvInputGradient, by parameters or constant weights."""
    shape = stated_shape(builder, node.output)
    gradient, constant = image_tensor(builder, node.inputs[0]), builder.constants.get(node.inputs[1])
    if constant is None:
        weights = builder.real(node.inputs[1])
        op = Conv2dInputGradient(_conv(node, weights.shape), shape)
        _require_order(op.conv, weights)
        define_image(builder, node, op, (gradient, weights.tensor))
    else:
        op = Conv2dInputGradient(_conv(node, constant.shape), shape)
        define_image(builder, node, op, (gradient,), _gradient_weights(op.conv, constant, shape[2]))


def _int8_weights(constant: Constant, axes: tuple[int, ...]) -> dict[str, ConstantArray] | None:
    """Weights [K, ...], transposed by `axes`, and their scales [K].

    None unless they are int8 with the zero point 0 and one scale for each output channel.
    """
    stored = constant.quantized
    if stored is None or np.any(stored.zero_point) or not stored.signed or stored.bits != 8:
        return None
    scale = stored.scale[:, 0, 0, 0]
    if np.any(stored.scale != scale[:, None, None, None]):
        return None
    integers = np.ascontiguousarray(stored.integers.transpose(axes), np.int8)
    return {"weights": integers, "weight_scale": np.ascontiguousarray(scale, np.float32)}


def _gradient_weights(conv: Conv2d, constant: Constant, channels: int) -> dict[str, ConstantArray]:
    """Constant weights of an input gradient. Dense int8 weights of the file stay int8, with their scales."""
    depthwise = conv.groups == channels
    axes = parameter_axes(conv) if depthwise else (0, 2, 3, 1)
    stored = _int8_weights(constant, axes) if conv.groups == 1 else None
    if stored is not None:
        return stored | {"weights": stored["weights"].reshape(-1)}
    reals = constant.reals().transpose(axes).reshape(-1)
    return {"weights": np.ascontiguousarray(reals, np.float32)}


def weight_update(builder: Builder, node: Node) -> None:
    """ConvWeightUpdate or DepthwiseWeightUpdate: the next content of the weights."""
    op = Conv2dWeightUpdate(_updated_conv(builder, node), node.number("weight_decay", 0.0))
    _updated(builder, node, op, _operands(builder, node))


def bias_update(builder: Builder, node: Node) -> None:
    """BiasUpdate: the next content of a bias."""
    _updated(builder, node, BiasUpdate(node.number("weight_decay", 0.0)), _operands(builder, node))


def weight_sum(builder: Builder, node: Node) -> None:
    """ConvGradientSum or DepthwiseGradientSum: the next content of a sum of weight gradients."""
    op = Conv2dGradientSum(_updated_conv(builder, node), node.number("momentum", 0.0))
    _updated(builder, node, op, _operands(builder, node))


def bias_sum(builder: Builder, node: Node) -> None:
    """BiasGradientSum: the next content of a sum of bias gradients."""
    _updated(builder, node, BiasGradientSum(node.number("momentum", 0.0)), _operands(builder, node))


def parameter_step(builder: Builder, node: Node) -> None:
    """ParameterStep or ClippedStep: the next content of a parameter."""
    parameter, total, *others = (builder.real(name) for name in node.inputs)
    if not np.array_equal(parameter.index, total.index):
        raise Unsupported("its gradients are stored in another order than the parameter")
    op = ParameterStep(node.number("weight_decay", 0.0), int(node.number("batch", 1.0)), len(others) > 1)
    _updated(builder, node, op, (parameter.tensor, total.tensor, *(it.tensor for it in others)))


def square_sum(builder: Builder, node: Node) -> None:
    """SquareSum of a parameter or a sum."""
    source = builder.real(node.inputs[0]).tensor
    tensor = builder.emit(SquareSum(), (source,), (1, 1, 1), DType.FLOAT32, nodes=(node,))
    builder.define(node.output, OnnxValue(tensor, positions((1,)), real=True))


def next_sample(builder: Builder, node: Node) -> None:
    """NextSample: the next content of the optimizer."""
    op = NextSample(int(node.number("batch", 1.0)))
    _updated(builder, node, op, (builder.real(node.inputs[0]).tensor,))


def clip_gradient(builder: Builder, node: Node) -> None:
    """ClipGradient, of images."""
    gradient, clipped = image_tensor(builder, node.inputs[0]), stored_image(builder, node.inputs[1])
    op = ClipGradient(_bound(node, "low", -inf), _bound(node, "high", inf))
    define_image(builder, node, op, (gradient, clipped))


def clip_mask(builder: Builder, node: Node) -> None:
    """ClipMask of an image, as bits. The reference has another form, so nothing compares them."""
    source = stored_image(builder, node.inputs[0])
    op = ClipMask(_bound(node, "low", -inf), _bound(node, "high", inf))
    shape = builder.shape_of(source)
    bits = (shape[0], 1, mask_bytes(shape))
    tensor = builder.emit(op, (source,), bits, DType.INT8, Quantization(1.0, 0), nodes=(node,))
    builder.values[node.output] = OnnxValue(tensor, positions(bits), real=False)


def masked_gradient(builder: Builder, node: Node) -> None:
    """MaskedGradient, by the bits of a ClipMask."""
    gradient, mask = image_tensor(builder, node.inputs[0]), mask_tensor(builder, node.inputs[1])
    define_image(builder, node, MaskedGradient(), (gradient, mask))


LOWERINGS: dict[str, dict[str, Lowering]] = {
    functions.TRAINING_DOMAIN: {
        functions.PARAMETER: parameter,
        functions.TRAINED_CONV: trained_conv,
        functions.BIASED_CONV: biased_conv,
        functions.INPUT_GRADIENT: input_gradient,
        functions.WEIGHT_UPDATE: weight_update,
        functions.DEPTHWISE_UPDATE: weight_update,
        functions.BIAS_UPDATE: bias_update,
        functions.GRADIENT_SUM: weight_sum,
        functions.DEPTHWISE_SUM: weight_sum,
        functions.BIAS_SUM: bias_sum,
        functions.PARAMETER_STEP: parameter_step,
        functions.CLIPPED_STEP: parameter_step,
        functions.SQUARE_SUM: square_sum,
        functions.NEXT_SAMPLE: next_sample,
        functions.CLIP_GRADIENT: clip_gradient,
        functions.CLIP_MASK: clip_mask,
        functions.MASKED_GRADIENT: masked_gradient,
        functions.MAX_POOL_TAPS: max_pool_taps,
        functions.MAX_POOL_GRADIENT: max_pool_gradient,
        functions.AVERAGE_POOL_GRADIENT: average_pool_gradient,
        functions.RESIZE_GRADIENT: resize_gradient,
        functions.PIECEWISE_GRADIENT: piecewise_gradient,
        functions.SLOPED_GRADIENT: sloped_gradient,
        functions.SWISH: unary,
        functions.GELU: unary,
        functions.SWISH_GRADIENT: smooth_gradient,
        functions.GELU_GRADIENT: smooth_gradient,
        functions.ERF_GRADIENT: smooth_gradient,
        functions.SOFTPLUS_GRADIENT: smooth_gradient,
    }
}
"""Lowering functions of the operators of a training step."""

LAYOUTS: dict[str, dict[str, Layout]] = {
    functions.TRAINING_DOMAIN: {functions.BIASED_CONV: "image", functions.TRAINED_CONV: "image"}
}


_Update = Conv2dWeightUpdate | Conv2dGradientSum | BiasUpdate | BiasGradientSum | ParameterStep | NextSample


def _updated(builder: Builder, node: Node, op: _Update, inputs: tuple[str, ...]) -> None:
    """Emit the update of a state, the node's first input. Its result takes over the memory of the state."""
    state_value = builder.real(node.inputs[0])
    shape = builder.shape_of(state_value.tensor)
    tensor = builder.emit(op, inputs, shape, DType.FLOAT32, nodes=(node,))
    replace_state(builder, state_value.tensor, tensor, node.output)
    builder.define(node.output, OnnxValue(tensor, state_value.index, real=True))


def _updated_conv(builder: Builder, node: Node) -> Conv2d:
    """The convolution whose weights a node updates, or whose weight gradients it sums."""
    weights = builder.real(node.inputs[0])
    conv = _conv(node, weights.shape)
    _require_order(conv, weights)
    return conv


def _operands(builder: Builder, node: Node) -> tuple[str, ...]:
    """Tensors of an update by a gradient: gradient, input of a convolution if there is one, state, optimizer.
    """
    state, *images, optimizer = node.inputs
    return (
        *(image_tensor(builder, name) for name in reversed(images)),
        builder.real(state).tensor,
        builder.real(optimizer).tensor,
    )


def _conv(node: Node, weights: tuple[int, ...], clip: tuple[float, float] = (-inf, inf)) -> Conv2d:
    """The convolution of a node with weights [K, C/groups, kh, kw]."""
    pads, groups = node.integers("pads") or (0, 0, 0, 0), node.integer("group", 1)
    if len(weights) != 4 or len(pads) != 4:
        raise Unsupported("its weights or pads are not those of an image")
    stride, dilation = (node.integers(name) or (1, 1) for name in ("strides", "dilations"))
    return Conv2d(
        weights[0],
        (weights[2], weights[3]),
        (stride[0], stride[1]),
        (dilation[0], dilation[1]),
        (pads[0], pads[1], pads[2], pads[3]),
        groups,
        *clip,
    )


def _bound(node: Node, name: str, default: float) -> float:
    """A bound of a clip, which may be infinite."""
    value = node.attributes.get(name, default)
    if not isinstance(value, int | float):
        raise Unsupported(f"attribute {name} is not a number")
    return float(value)


def _require_order(conv: Conv2d, weights: OnnxValue) -> None:
    """Raise Unsupported for weights that are not stored in the order in which the kernels read them."""
    read_order = positions((weights.index.size,))
    if not np.array_equal(weights.index.transpose(parameter_axes(conv)).reshape(-1), read_order):
        raise Unsupported(f"its weights are a Parameter whose perm is not {list(parameter_axes(conv))}")
