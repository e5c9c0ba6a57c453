"""The options that are read, for each operator: the table in the file, and the names of its fields."""

from __future__ import annotations

_FUSED = "FusedActivationFunction"
_STRIDES = ("Padding", "StrideH", "StrideW")
_DILATIONS = ("DilationHFactor", "DilationWFactor")
_POOL = ("Pool2DOptions", (*_STRIDES, "FilterHeight", "FilterWidth", _FUSED))
_REDUCER = ("ReducerOptions", ("KeepDims",))
_RESIZE = ("AlignCorners", "HalfPixelCenters")
BIAS_TYPE = "QuantizedBiasType"
"""The option that states the type of a bias beside int16 activations, 0 in files of older converters."""

OPTIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "ADD": ("AddOptions", (_FUSED, "PotScaleInt16")),
    "ARG_MAX": ("ArgMaxOptions", ("OutputType",)),
    "ARG_MIN": ("ArgMinOptions", ("OutputType",)),
    "AVERAGE_POOL_2D": _POOL,
    "BATCH_MATMUL": ("BatchMatMulOptions", ("AdjX", "AdjY")),
    "CALL": ("CallOptions", ("Subgraph",)),
    "CALL_ONCE": ("CallOnceOptions", ("InitSubgraphIndex",)),
    "CONCATENATION": ("ConcatenationOptions", ("Axis", _FUSED)),
    "CONV_2D": ("Conv2DOptions", (*_STRIDES, *_DILATIONS, _FUSED, BIAS_TYPE)),
    "CONV_3D": ("Conv3DOptions", (*_STRIDES, "StrideD", *_DILATIONS, "DilationDFactor", _FUSED)),
    "CUMSUM": ("CumsumOptions", ("Exclusive", "Reverse")),
    "DEPTH_TO_SPACE": ("DepthToSpaceOptions", ("BlockSize",)),
    "DEPTHWISE_CONV_2D": ("DepthwiseConv2DOptions", (*_STRIDES, *_DILATIONS, "DepthMultiplier", _FUSED)),
    "DIV": ("DivOptions", (_FUSED,)),
    "FULLY_CONNECTED": ("FullyConnectedOptions", ("WeightsFormat", _FUSED, BIAS_TYPE)),
    "GATHER": ("GatherOptions", ("Axis", "BatchDims")),
    "GELU": ("GeluOptions", ("Approximate",)),
    "IF": ("IfOptions", ("ThenSubgraphIndex", "ElseSubgraphIndex")),
    "L2_NORMALIZATION": ("L2NormOptions", (_FUSED,)),
    "LEAKY_RELU": ("LeakyReluOptions", ("Alpha",)),
    "LOCAL_RESPONSE_NORMALIZATION": (
        "LocalResponseNormalizationOptions",
        ("Radius", "Bias", "Alpha", "Beta"),
    ),
    "MAX_POOL_2D": _POOL,
    "MEAN": _REDUCER,
    "MIRROR_PAD": ("MirrorPadOptions", ("Mode",)),
    "MUL": ("MulOptions", (_FUSED,)),
    "ONE_HOT": ("OneHotOptions", ("Axis",)),
    "PACK": ("PackOptions", ("Axis",)),
    "REDUCE_MAX": _REDUCER,
    "REDUCE_MIN": _REDUCER,
    "REDUCE_PROD": _REDUCER,
    "REDUCE_ALL": _REDUCER,
    "REDUCE_ANY": _REDUCER,
    "RESIZE_BILINEAR": ("ResizeBilinearOptions", _RESIZE),
    "RESIZE_NEAREST_NEIGHBOR": ("ResizeNearestNeighborOptions", _RESIZE),
    "REVERSE_SEQUENCE": ("ReverseSequenceOptions", ("SeqDim", "BatchDim")),
    "SOFTMAX": ("SoftmaxOptions", ("Beta",)),
    "SPACE_TO_DEPTH": ("SpaceToDepthOptions", ("BlockSize",)),
    "STRIDED_SLICE": (
        "StridedSliceOptions",
        ("BeginMask", "EndMask", "EllipsisMask", "NewAxisMask", "ShrinkAxisMask", "Offset"),
    ),
    "SUB": ("SubOptions", (_FUSED, "PotScaleInt16")),
    "SUM": _REDUCER,
    "SVDF": ("SVDFOptions", ("Rank", _FUSED)),
    "TRANSPOSE_CONV": ("TransposeConvOptions", (*_STRIDES, _FUSED, BIAS_TYPE)),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (
        "UnidirectionalSequenceLSTMOptions",
        (_FUSED, "CellClip", "ProjClip", "TimeMajor"),
    ),
    "UNPACK": ("UnpackOptions", ("Axis",)),
    "VAR_HANDLE": ("VarHandleOptions", ("Container", "SharedName")),
    "WHILE": ("WhileOptions", ("CondSubgraphIndex", "BodySubgraphIndex")),
}
"""By operator, the table and the fields. Operators that are not listed have no relevant options."""

STRUCTS = {"Convolution2DTransposeBias": ("TfLitePadding", "StrideW", "StrideH")}
"""Custom operators whose options are int32 numbers, in this order, instead of a flexbuffer."""

CALLS = {"CALL": "Subgraph", "CALL_ONCE": "InitSubgraphIndex"}
"""Operators that run another subgraph, in every run or before the first one, and the option with its number.
"""
