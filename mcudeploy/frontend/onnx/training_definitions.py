"""The definitions of the operators of a training step, as ONNX functions: a file that uses them has them."""

from __future__ import annotations

from collections.abc import Sequence
from math import pi

from onnx import AttributeProto, FunctionProto, NodeProto, helper

from mcudeploy.frontend.onnx import training_functions as names

_PIECES = ("low", "high", "lower_0", "lower_1", "middle_0", "middle_1", "middle_2", "upper")
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
    of_batch = ["weight_decay", "batch"]
    return [
        _function(names.PARAMETER, ["before", "initial"], same, ["perm"]),
        _function(names.TRAINED_CONV, ["x", "weights", "bias"], forward, [*_WINDOW, "low", "high"]),
        _function(names.BIASED_CONV, ["x", "weights", "bias"], forward, [*_WINDOW, "low", "high"]),
        _function(names.INPUT_GRADIENT, ["dy", "weights"], [transposed], backward),
        _function(names.WEIGHT_UPDATE, operands, [halves, *dense, *of_taps, *moved], window_of_update),
        _function(names.DEPTHWISE_UPDATE, operands, [halves, *depthwise, *of_taps, *moved], window_of_update),
        _function(names.BIAS_UPDATE, of_bias, [halves, *bias, *moved], ["weight_decay"]),
        _function(names.GRADIENT_SUM, operands, [*dense, *of_taps, *added], window_of_sum),
        _function(names.DEPTHWISE_SUM, operands, [*depthwise, *of_taps, *added], window_of_sum),
        _function(names.BIAS_SUM, of_bias, [*bias, *added], ["momentum"]),
        _function(names.PARAMETER_STEP, of_sum, [*after_batch, mean, *moved], of_batch),
        _function(
            names.CLIPPED_STEP,
            [*of_sum, "scale"],
            [*after_batch, *clipped, *moved],
            ["weight_decay", "batch"],
        ),
        _function(names.SQUARE_SUM, ["x"], square_sum, []),
        _function(names.NEXT_SAMPLE, ["optimizer"], next_sample, ["batch"]),
        _function(names.CLIP_GRADIENT, ["dy", "x"], [*inside, *chosen], ["low", "high"]),
        _function(names.CLIP_MASK, ["x"], [*inside, mask], ["low", "high"]),
        _function(names.MASKED_GRADIENT, ["dy", "inside"], chosen, []),
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
        _function(names.RESIZE_GRADIENT, ["dy", "rows", "cols"], products, []),
        _function(names.MAX_POOL_TAPS, ["x"], [_referring(largest, _same_names(window))], window),
        _function(names.MAX_POOL_GRADIENT, ["dy", "taps"], to_taps, ["sizes"]),
        _function(names.AVERAGE_POOL_GRADIENT, ["dy"], to_windows, ["factor", "sizes", *backward]),
    ]


def _unary_functions() -> list[FunctionProto]:
    """The definitions of the gradients of functions of one value, and of functions that names.OPSET lacks."""
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
        _function(names.PIECEWISE_GRADIENT, ["dy", "v"], [*pieces, product], _PIECES),
        _function(names.SLOPED_GRADIENT, ["dy", "inside", "slopes"], sloped, []),
        _function(names.SWISH, ["x"], [*gate, node("Mul", ["x", "gate"], ["y"])], ["alpha"]),
        _function(names.GELU, ["x"], [*share, node("Mul", ["x", "share"], ["y"])], []),
        _function(names.SWISH_GRADIENT, ["dy", "x"], [*swish, product], ["alpha"]),
        _function(names.GELU_GRADIENT, ["dy", "x"], [*gelu, product], []),
        _function(names.ERF_GRADIENT, ["dy", "x"], [*error, product], []),
        _function(names.SOFTPLUS_GRADIENT, ["dy", "x"], [*softplus, product], []),
    ]


def _function(
    name: str, inputs: Sequence[str], nodes: Sequence[NodeProto], attributes: Sequence[str]
) -> FunctionProto:
    opsets = [helper.make_opsetid("", names.OPSET)]
    return helper.make_function(names.TRAINING_DOMAIN, name, inputs, ["y"], nodes, opsets, attributes)


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
