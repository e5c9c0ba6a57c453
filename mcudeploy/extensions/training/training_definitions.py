"""The definitions of the operators of a training step, as ONNX functions. A file with these operators
includes them.
"""

from __future__ import annotations

from math import pi

from onnx import FunctionProto

from mcudeploy.extensions.training import training_functions as names
from mcudeploy.frontend.onnx.protos import function_of

# The parts of function bodies. A part computes values by name, which later parts of a body read.
_SPLIT = "rate, samples = Split (optimizer)"
_ZERO = "zero = Constant <value_float = 0.0> ()"
_ONE = "one = Constant <value_float = 1.0> ()"
_DECAY = """
  weight_decay = Constant <value_float: float = @weight_decay> ()
  decay = Mul (parameter, weight_decay)
  direction = Add (gradient, decay)
  change = Mul (direction, rate)
  y = Sub (parameter, change)
"""
_COUNTED = f"""
  {_ZERO}
  {_ONE}
  batch = Constant <value_float: float = @batch> ()
  following = Add (samples, one)
  inside = Less (following, batch)
"""
_AFTER_BATCH = f"""
  wanted, samples = Split (optimizer)
  {_COUNTED}
  rate = Where (inside, zero, wanted)
"""
_SUMMED = f"""
  {_SPLIT}
  {_ZERO}
  {_ONE}
  earlier = Greater (samples, zero)
  momentum = Constant <value_float: float = @momentum> ()
  factor = Where (earlier, one, momentum)
  decayed = Mul (parameter, factor)
  y = Add (decayed, gradient)
"""
# The gradient of weights is a convolution of the input whose kernel is the gradient of the output, dilated by
# the stride.
_CROSSED = "strides: ints = @dilations, dilations: ints = @strides, pads: ints = @pads"
_DENSE = f"""
  images = Transpose <perm = [1, 0, 2, 3]> (x)
  kernels = Transpose <perm = [1, 0, 2, 3]> (dy)
  products = Conv <{_CROSSED}> (images, kernels)
"""
_DEPTHWISE = f"""
  kernels = Transpose <perm = [1, 0, 2, 3]> (dy)
  products = Conv <{_CROSSED}, group: int = @group> (x, kernels)
"""
_OF_TAPS = """
  kernel_shape = Constant <value_ints: ints = @kernel_shape> ()
  zeros = Constant <value_ints = [0, 0]> ()
  spatial = Constant <value_ints = [2, 3]> ()
  taps = Slice (products, zeros, kernel_shape, spatial)
  gradient = Transpose <perm = [1, 0, 2, 3]> (taps)
"""
_OF_BIAS = """
  pixels = Constant <value_ints = [0, 2, 3]> ()
  gradient = ReduceSum <keepdims = 0> (dy, pixels)
"""
_BOUNDS = """
  low = Constant <value_float: float = @low> ()
  high = Constant <value_float: float = @high> ()
"""
_INSIDE = f"""
  {_BOUNDS}
  above = Greater (x, low)
  below = Less (x, high)
  inside = And (above, below)
"""
_CHOSEN = f"""
  {_ZERO}
  y = Where (inside, dy, zero)
"""
_WINDOW = "strides, dilations, pads, group"
_OWN_WINDOW = (
    "strides: ints = @strides, dilations: ints = @dilations, pads: ints = @pads, group: int = @group"
)
_FORWARD = f"""
  sums = Conv <{_OWN_WINDOW}> (x, weights, bias)
  {_BOUNDS}
  y = Clip (sums, low, high)
"""
_TRANSPOSED = f"y = ConvTranspose <{_OWN_WINDOW}, output_padding: ints = @output_padding> (dy, weights)"


def training_functions() -> list[FunctionProto]:
    """The definitions of all operators of the domain."""
    operands, of_bias, of_sum = "parameter, x, dy, optimizer", "parameter, dy, optimizer", "parameter, sum"
    of_update, of_total = f"{_WINDOW}, kernel_shape, weight_decay", f"{_WINDOW}, kernel_shape, momentum"
    mean = "gradient = Div (sum, batch)"
    clipped = """
      mean = Div (sum, batch)
      gradient = Mul (mean, scale)
    """
    squares = """
      squares = Mul (x, x)
      total = ReduceSum <keepdims = 0> (squares)
      one = Constant <value_ints = [1]> ()
      y = Reshape (total, one)
    """
    following = f"""
      {_SPLIT}
      {_COUNTED}
      next = Where (inside, following, zero)
      y = Concat <axis = 0> (rate, next)
    """
    return [
        _function(names.PARAMETER, "before, initial", "perm", "y = Identity (before)"),
        _function(names.TRAINED_CONV, "x, weights, bias", f"{_WINDOW}, low, high", _FORWARD),
        _function(names.BIASED_CONV, "x, weights, bias", f"{_WINDOW}, low, high", _FORWARD),
        _function(names.INPUT_GRADIENT, "dy, weights", f"{_WINDOW}, output_padding", _TRANSPOSED),
        _function(names.WEIGHT_UPDATE, operands, of_update, _SPLIT, _DENSE, _OF_TAPS, _DECAY),
        _function(names.DEPTHWISE_UPDATE, operands, of_update, _SPLIT, _DEPTHWISE, _OF_TAPS, _DECAY),
        _function(names.BIAS_UPDATE, of_bias, "weight_decay", _SPLIT, _OF_BIAS, _DECAY),
        _function(names.GRADIENT_SUM, operands, of_total, _DENSE, _OF_TAPS, _SUMMED),
        _function(names.DEPTHWISE_SUM, operands, of_total, _DEPTHWISE, _OF_TAPS, _SUMMED),
        _function(names.BIAS_SUM, of_bias, "momentum", _OF_BIAS, _SUMMED),
        _function(
            names.PARAMETER_STEP, f"{of_sum}, optimizer", "weight_decay, batch", _AFTER_BATCH, mean, _DECAY
        ),
        _function(
            names.CLIPPED_STEP,
            f"{of_sum}, optimizer, scale",
            "weight_decay, batch",
            _AFTER_BATCH,
            clipped,
            _DECAY,
        ),
        _function(names.SQUARE_SUM, "x", "", squares),
        _function(names.NEXT_SAMPLE, "optimizer", "batch", following),
        _function(names.CLIP_GRADIENT, "dy, x", "low, high", _INSIDE, _CHOSEN),
        _function(names.CLIP_MASK, "x", "low, high", _INSIDE, "y = Identity (inside)"),
        _function(names.MASKED_GRADIENT, "dy, inside", "", _CHOSEN),
        *_pool_functions(),
        *_unary_functions(),
    ]


def _pool_functions() -> list[FunctionProto]:
    """The definitions of the gradients of pools and resizes."""
    products = """
      by_rows = MatMul (rows, dy)
      y = MatMul (by_rows, cols)
    """
    window = ", ".join(f"{name}: ints = @{name}" for name in ("kernel_shape", "strides", "dilations", "pads"))
    to_taps = f"""
      {_ZERO}
      sizes = Constant <value_ints: ints = @sizes> ()
      zeros = Expand (zero, sizes)
      everything = Constant <value_ints = [-1]> ()
      flat_zeros = Reshape (zeros, everything)
      flat_taps = Reshape (taps, everything)
      flat_dy = Reshape (dy, everything)
      sums = ScatterElements <axis = 0, reduction = "add"> (flat_zeros, flat_taps, flat_dy)
      y = Reshape (sums, sizes)
    """
    to_windows = f"""
      factor = Constant <value_float: float = @factor> ()
      sizes = Constant <value_ints: ints = @sizes> ()
      weights = Expand (factor, sizes)
      {_TRANSPOSED}
    """
    return [
        _function(names.RESIZE_GRADIENT, "dy, rows, cols", "", products),
        _function(
            names.MAX_POOL_TAPS,
            "x",
            "kernel_shape, strides, dilations, pads",
            f"largest, y = MaxPool <{window}> (x)",
        ),
        _function(names.MAX_POOL_GRADIENT, "dy, taps", "sizes", to_taps),
        _function(names.AVERAGE_POOL_GRADIENT, "dy", f"factor, sizes, {_WINDOW}, output_padding", to_windows),
    ]


_PIECE_NUMBERS = ("low", "high", "lower_0", "lower_1", "middle_0", "middle_1", "middle_2", "upper")
_PIECES = "\n".join(f"{name} = Constant <value_float: float = @{name}> ()" for name in _PIECE_NUMBERS)
_PIECEWISE_SLOPE = """
  rise = Mul (v, lower_1)
  lower = Add (lower_0, rise)
  bend = Mul (v, middle_2)
  steepness = Add (middle_1, bend)
  curve = Mul (v, steepness)
  middle = Add (middle_0, curve)
  above = GreaterOrEqual (v, high)
  other = Where (above, upper, middle)
  below = LessOrEqual (v, low)
  slope = Where (below, lower, other)
"""
_GATE = """
  alpha = Constant <value_float: float = @alpha> ()
  scaled = Mul (x, alpha)
  gate = Sigmoid (scaled)
"""
_SWISH_SLOPE = f"""
  {_ONE}
  {_GATE}
  rest = Sub (one, gate)
  rise = Mul (scaled, rest)
  factor = Add (one, rise)
  slope = Mul (gate, factor)
"""
_NORMAL_SHARE = f"""
  {_ONE}
  half = Constant <value_float = 0.5> ()
  root = Constant <value_float = {0.5**0.5}> ()
  scaled = Mul (x, root)
  error = Erf (scaled)
  twice = Add (one, error)
  share = Mul (half, twice)
"""
_MINUS_SQUARE = """
  square = Mul (x, x)
  falling = Neg (square)
"""
_GELU_SLOPE = f"""
  {_NORMAL_SHARE}
  {_MINUS_SQUARE}
  density = Constant <value_float = {(2 * pi) ** -0.5}> ()
  exponent = Mul (half, falling)
  bell = Exp (exponent)
  normal = Mul (density, bell)
  change = Mul (x, normal)
  slope = Add (share, change)
"""
_ERF_SLOPE = f"""
  {_MINUS_SQUARE}
  steepest = Constant <value_float = {2 / pi**0.5}> ()
  bell = Exp (falling)
  slope = Mul (steepest, bell)
"""
_SLOPED = """
  scaled = Mul (dy, slopes)
  y = Where (inside, dy, scaled)
"""
_PRODUCT = "y = Mul (dy, slope)"


def _unary_functions() -> list[FunctionProto]:
    """The definitions of the gradients of functions of one value, and of functions that names.OPSET lacks."""
    return [
        _function(
            names.PIECEWISE_GRADIENT, "dy, v", ", ".join(_PIECE_NUMBERS), _PIECES, _PIECEWISE_SLOPE, _PRODUCT
        ),
        _function(names.SLOPED_GRADIENT, "dy, inside, slopes", "", _SLOPED),
        _function(names.SWISH, "x", "alpha", _GATE, "y = Mul (x, gate)"),
        _function(names.GELU, "x", "", _NORMAL_SHARE, "y = Mul (x, share)"),
        _function(names.SWISH_GRADIENT, "dy, x", "alpha", _SWISH_SLOPE, _PRODUCT),
        _function(names.GELU_GRADIENT, "dy, x", "", _GELU_SLOPE, _PRODUCT),
        _function(names.ERF_GRADIENT, "dy, x", "", _ERF_SLOPE, _PRODUCT),
        _function(names.SOFTPLUS_GRADIENT, "dy, x", "", "slope = Sigmoid (x)", _PRODUCT),
    ]


def _function(name: str, inputs: str, attributes: str, *parts: str) -> FunctionProto:
    listed = f"<{attributes}>" if attributes else ""
    text = f"{name} {listed} ({inputs}) => (y) {{ {' '.join(parts)} }}"
    return function_of(text, names.TRAINING_DOMAIN, names.OPSET)
