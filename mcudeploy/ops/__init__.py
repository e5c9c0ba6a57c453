"""The operator families. `OPERATORS` is the only list of them."""

from __future__ import annotations

from mcudeploy.ir.opdef import OperatorDef
from mcudeploy.ops.affine import Affine
from mcudeploy.ops.cast import Cast
from mcudeploy.ops.channel_rows import Conv2dToRows
from mcudeploy.ops.concat import Concat
from mcudeploy.ops.concat_channels import ConcatChannels
from mcudeploy.ops.conv import Conv2d, Conv2dByRows
from mcudeploy.ops.conv_int16 import Conv2dInt16
from mcudeploy.ops.depth_to_space import DepthToSpace
from mcudeploy.ops.elementwise import Binary, Lut
from mcudeploy.ops.feed import StreamedInput
from mcudeploy.ops.filter_bank import FilterBankLog, FilterBankRoot, NoiseEstimate, NoiseSubtract, Pcan
from mcudeploy.ops.fourier import RealFft
from mcudeploy.ops.gather import GatherRows
from mcudeploy.ops.grid_sample import GridSample
from mcudeploy.ops.int16 import (
    BinaryInt16,
    MeanInt16,
    QuantizeInt16,
    RescaleInt16,
    SigmoidInt16,
    SoftmaxInt16,
)
from mcudeploy.ops.integer import IntegerBinary
from mcudeploy.ops.lstm_int8 import LstmInt8
from mcudeploy.ops.lstm_int16 import LstmInt16
from mcudeploy.ops.lut_int16 import LutInt16
from mcudeploy.ops.matmul import MatMul
from mcudeploy.ops.matmul_int16 import MatMulInt16
from mcudeploy.ops.move import Pad, Slice
from mcudeploy.ops.norm import LayerNorm
from mcudeploy.ops.pool import AveragePool, AveragePoolByRows, MaxPool, PoolInt16
from mcudeploy.ops.pool_indices import MaxPoolIndices
from mcudeploy.ops.quantize import Dequantize, Quantize
from mcudeploy.ops.queue import Queue
from mcudeploy.ops.recurrent import Recurrent
from mcudeploy.ops.reduce import Reduce
from mcudeploy.ops.resample import Resample
from mcudeploy.ops.resize import Resize
from mcudeploy.ops.resize_int16 import ResizeInt16
from mcudeploy.ops.roi_align import RoiAlign
from mcudeploy.ops.scatter import ScatterRows
from mcudeploy.ops.signal import (
    OverlapAdd,
    RunCount,
    SignalEnergy,
    SignalHeadroom,
    SignalShift,
    SignalStack,
    SignalWindow,
)
from mcudeploy.ops.softmax import Softmax
from mcudeploy.ops.suppression import NonMaxSuppression
from mcudeploy.ops.svdf import Svdf
from mcudeploy.ops.take import Gather, Take
from mcudeploy.ops.top_k import TopK
from mcudeploy.ops.training import (
    ClipGradient,
    ClipMask,
    Conv2dInputGradient,
    MaskedGradient,
    TrainedConv2d,
)
from mcudeploy.ops.training_optimizer import NextSample, ParameterStep, SquareSum
from mcudeploy.ops.training_pools import AveragePoolGradient, MaxPoolGradient, MaxPoolTaps
from mcudeploy.ops.training_quantized import BiasedConv2d
from mcudeploy.ops.training_resize import ResizeGradient
from mcudeploy.ops.training_unary import PiecewiseGradient, SlopedGradient, SmoothGradient
from mcudeploy.ops.training_updates import (
    BiasGradientSum,
    BiasUpdate,
    Conv2dGradientSum,
    Conv2dWeightUpdate,
    Conv2dWeightUpdateByRows,
)
from mcudeploy.ops.transfer import Clean, Copy, Invalidate
from mcudeploy.ops.transpose import Transpose
from mcudeploy.ops.trees import TreeSums
from mcudeploy.ops.unary import Unary
from mcudeploy.ops.view import Reshape

__all__ = ["OPERATORS"]

_FAMILIES: tuple[type[OperatorDef], ...] = (
    Affine,
    AveragePool,
    AveragePoolByRows,
    AveragePoolGradient,
    BiasGradientSum,
    BiasUpdate,
    BiasedConv2d,
    Binary,
    BinaryInt16,
    Cast,
    Clean,
    ClipGradient,
    ClipMask,
    Concat,
    ConcatChannels,
    Conv2d,
    Conv2dByRows,
    Conv2dGradientSum,
    Conv2dInputGradient,
    Conv2dInt16,
    Conv2dToRows,
    Conv2dWeightUpdate,
    Conv2dWeightUpdateByRows,
    Copy,
    DepthToSpace,
    Dequantize,
    StreamedInput,
    FilterBankLog,
    FilterBankRoot,
    Gather,
    GridSample,
    GatherRows,
    IntegerBinary,
    Invalidate,
    LayerNorm,
    LstmInt8,
    LstmInt16,
    Lut,
    LutInt16,
    MaskedGradient,
    MatMul,
    MatMulInt16,
    MaxPool,
    MaxPoolGradient,
    MaxPoolIndices,
    MaxPoolTaps,
    MeanInt16,
    NextSample,
    NoiseEstimate,
    NoiseSubtract,
    NonMaxSuppression,
    OverlapAdd,
    Pad,
    ParameterStep,
    Pcan,
    PiecewiseGradient,
    PoolInt16,
    Quantize,
    QuantizeInt16,
    Queue,
    RealFft,
    Recurrent,
    Reduce,
    Resample,
    RescaleInt16,
    Reshape,
    Resize,
    ResizeGradient,
    ResizeInt16,
    RoiAlign,
    RunCount,
    ScatterRows,
    SigmoidInt16,
    SignalEnergy,
    SignalHeadroom,
    SignalShift,
    SignalStack,
    SignalWindow,
    Slice,
    SlopedGradient,
    SmoothGradient,
    Softmax,
    SoftmaxInt16,
    SquareSum,
    Svdf,
    Take,
    TopK,
    TrainedConv2d,
    Transpose,
    TreeSums,
    Unary,
)

OPERATORS: dict[str, type[OperatorDef]] = {family.kind: family for family in _FAMILIES}
"""Every operator definition by its kind."""
