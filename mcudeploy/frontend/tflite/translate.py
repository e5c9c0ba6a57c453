"""Translation of a .tflite file to an ONNX model in QDQ format: one function per operator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnx import shape_inference

from mcudeploy.extension import added_for
from mcudeploy.frontend.onnx.nodes import ParsedFile, Unsupported
from mcudeploy.frontend.onnx.shapes import NO_SHAPES, Shapes
from mcudeploy.frontend.onnx.states import state_functions
from mcudeploy.frontend.tflite import (
    composed,
    convolutions,
    detection,
    elementwise,
    filling,
    indexing,
    recurrent,
    upsampling,
)
from mcudeploy.frontend.tflite import (
    moves as moving,
)
from mcudeploy.frontend.tflite.contents import Contents, TfliteOperator, names_of
from mcudeploy.frontend.tflite.flatbuffer import contents_of
from mcudeploy.frontend.tflite.reshaping import with_shapes
from mcudeploy.frontend.tflite.rewriting import (
    int16_notes,
    io_notes,
    with_constants,
    with_dilations,
    with_real_io,
    with_scaled_zeros,
)
from mcudeploy.frontend.tflite.scales import is_int16
from mcudeploy.frontend.tflite.subgraphs import without_calls, without_control_flow
from mcudeploy.frontend.tflite.variable_states import Translation, nothing
from mcudeploy.frontend.tflite.variables import Variables, variables_of
from mcudeploy.frontend.tflite.writer import OPSET, Writer

if TYPE_CHECKING:
    from onnx import ModelProto

TRANSLATIONS: dict[str, Translation] = {
    **dict.fromkeys(elementwise.COMPARISONS, elementwise.comparison),
    **dict.fromkeys(elementwise.LOGIC, elementwise.logic),
    **dict.fromkeys(elementwise.NAMED, elementwise.named),
    "ADD": elementwise.binary,
    "ADD_N": composed.add_n,
    "ARG_MAX": composed.arg_extremum,
    "ARG_MIN": composed.arg_extremum,
    "AVERAGE_POOL_2D": convolutions.average_pool,
    "BATCH_MATMUL": convolutions.batch_matmul,
    "BATCH_TO_SPACE_ND": moving.batch_to_space,
    "BROADCAST_TO": moving.broadcast,
    "CAST": elementwise.cast,
    "CONCATENATION": moving.concatenation,
    "CONV_2D": convolutions.conv,
    "CONV_3D": convolutions.conv_3d,
    "CUMSUM": composed.cumulative_sum,
    "DEPTHWISE_CONV_2D": convolutions.depthwise,
    "DEPTH_TO_SPACE": filling.blocks,
    "DEQUANTIZE": elementwise.convert,
    "DIV": elementwise.binary,
    "EMBEDDING_LOOKUP": indexing.embedding_lookup,
    "EXPAND_DIMS": moving.reshape,
    "FILL": composed.fill,
    "FLOOR_DIV": composed.floor_division,
    "FLOOR_MOD": composed.floor_division,
    "FULLY_CONNECTED": convolutions.fully_connected,
    "GATHER": indexing.gather,
    "GATHER_ND": indexing.gather_nd,
    "GELU": composed.gelu,
    "L2_NORMALIZATION": composed.l2_normalization,
    "MAXIMUM": elementwise.extremum,
    "MAX_POOL_2D": convolutions.max_pool,
    "MEAN": filling.reduction,
    "MINIMUM": elementwise.extremum,
    "MIRROR_PAD": moving.mirror_pad,
    "MUL": elementwise.binary,
    "LOCAL_RESPONSE_NORMALIZATION": composed.local_response,
    "NEG": elementwise.negative,
    "ONE_HOT": indexing.one_hot,
    "PACK": moving.pack,
    "PAD": filling.pad,
    "PADV2": filling.pad_with_value,
    "POW": elementwise.binary,
    "PRELU": elementwise.prelu,
    "QUANTIZE": elementwise.convert,
    "REDUCE_ALL": composed.any_or_all,
    "REDUCE_ANY": composed.any_or_all,
    "REDUCE_MAX": filling.reduction,
    "REDUCE_MIN": filling.reduction,
    "REDUCE_PROD": filling.reduction,
    "RELU": elementwise.clip,
    "RELU6": elementwise.clip,
    "RELU_0_TO_1": elementwise.clip,
    "RELU_N1_TO_1": elementwise.clip,
    "RFFT2D": composed.rfft2d,
    "RESHAPE": moving.reshape,
    "RESIZE_BILINEAR": filling.resize_bilinear,
    "RESIZE_NEAREST_NEIGHBOR": filling.resize_nearest,
    "REVERSE_SEQUENCE": indexing.reverse_sequence,
    "REVERSE_V2": moving.reverse,
    "RSQRT": elementwise.reciprocal_root,
    "SCATTER_ND": indexing.scatter_nd,
    "SELECT": elementwise.select,
    "SELECT_V2": elementwise.select,
    "SLICE": moving.slice_,
    "SOFTMAX": elementwise.softmax,
    "SPACE_TO_BATCH_ND": moving.space_to_batch,
    "SPACE_TO_DEPTH": filling.blocks,
    "SPLIT": moving.split,
    "SPLIT_V": moving.split_v,
    "SQUARE": elementwise.square,
    "SQUARED_DIFFERENCE": elementwise.square,
    "SQUEEZE": moving.reshape,
    "STRIDED_SLICE": moving.strided_slice,
    "SUB": elementwise.binary,
    "SUM": filling.reduction,
    "SVDF": recurrent.svdf,
    "TILE": moving.tile,
    "TOPK_V2": indexing.top_k,
    "TRANSPOSE": moving.transpose,
    "TRANSPOSE_CONV": upsampling.transpose_conv,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": recurrent.sequence_lstm,
    "UNPACK": moving.unpack,
}
"""Translation of each built-in operator. The lowering of the ONNX nodes decides which forms are supported."""

CUSTOM: dict[str, Translation] = {
    "Convolution2DTransposeBias": upsampling.transpose_conv_with_bias,
    "TFLite_Detection_PostProcess": detection.detection,
}
"""Translation of each custom operator."""

_RECURRENT = (
    "it keeps a state from step to step, which is not supported in .tflite files. Convolutions over time are "
    "(DEPTHWISE_CONV_2D on a window of frames), SVDF, UNIDIRECTIONAL_SEQUENCE_LSTM, and LSTM, GRU and RNN of "
    "ONNX files"
)
_VARIABLE = "no VAR_HANDLE names its variable, or operators of variables do not fit together"
_CONTROL = (
    "the number of its rounds, or the shapes of its results, are known in a run only, or it keeps a state: "
    "convert the model with the loop unrolled, or with the branch that is meant"
)

REASONS: dict[str, str] = {
    **dict.fromkeys(
        (
            "BIDIRECTIONAL_SEQUENCE_LSTM",
            "BIDIRECTIONAL_SEQUENCE_RNN",
            "LSTM",
            "RNN",
            "UNIDIRECTIONAL_SEQUENCE_RNN",
        ),
        _RECURRENT,
    ),
    **dict.fromkeys(("ASSIGN_VARIABLE", "READ_VARIABLE", "VAR_HANDLE"), _VARIABLE),
    "CALL": "a called subgraph calls another one, or inputs and outputs are not those of the subgraph",
    **dict.fromkeys(("IF", "WHILE"), _CONTROL),
    "DENSIFY": "only constants can be sparse",
}
"""Reasons why some operators are not translated, and the way out."""

_UNKNOWN = "this operator is not supported; docs/tflite.md lists those that are"
_CUSTOM = "a custom operator; convert the model with built-in operators only, without allow_custom_ops"
_TENSORFLOW = "an operator of TensorFlow; convert the model with TFLITE_BUILTINS only, without SELECT_TF_OPS"
_FAULTS = (ArithmeticError, LookupError, MemoryError, TypeError, ValueError)
"""Exceptions of numpy and onnx for options and shapes that do not fit."""


def translate(content: bytes, where: str, shapes: Shapes = NO_SHAPES) -> ParsedFile:
    """Translate a .tflite file, which messages call `where`; `shapes`: the user's, by input.

    Tensors keep their names in the file; nodes are named by number and operator. Raises ModelError for a file
    that cannot be read.
    """
    contents = without_control_flow(contents_of(content, where, shapes))
    translation = _translated(contents if shapes else with_constants(contents), shapes)
    if shapes or not contents.is_open or (not translation.refusals and _is_consistent(translation.proto)):
        return translation
    names = names_of(contents)
    in_file = {names[number]: contents.tensors[number].shape for number in contents.inputs}
    inferred = _translated(contents, in_file)  # infers all shapes again
    return inferred if len(inferred.refusals) <= len(translation.refusals) else translation


def _is_consistent(proto: ModelProto) -> bool:
    """Whether the shapes in the file follow from those of the inputs."""
    try:
        shape_inference.infer_shapes(proto, check_type=True, strict_mode=True)
    except (shape_inference.InferenceError, RuntimeError, ValueError):
        return False
    return True


def _translated(contents: Contents, shapes: Shapes) -> ParsedFile:
    """The model of contents; if there are `shapes` of inputs, all other shapes are inferred from them."""
    contents = with_scaled_zeros(with_dilations(contents))
    contents, declared = with_real_io(without_calls(contents))
    file, contents = contents.tensors, with_shapes(contents, shapes)
    writer = Writer(contents)
    refusals: dict[str, str] = {}
    variables = _variables(contents)
    for operator in variables.operators:
        writer.begin(operator)
        of_variable = variables.translations.get(operator.index)
        try:
            if of_variable is nothing or writer.fold(operator):
                continue
            if shapes:
                writer.state_shape(operator, file)
            translation = of_variable or _translation(writer, operator)
            if translation is None:
                raise Unsupported(_reason(operator))
            translation(writer, operator)
            if shapes:
                writer.infer_shapes(operator)
        except Unsupported as reason:
            refusals[operator.label] = str(reason)
        except _FAULTS as fault:
            refusals[operator.label] = f"its options and tensors do not fit: {fault}"
        if operator.label in refusals:
            writer.undo()
            writer.refuse(operator)
    stateful = (recurrent.lstm_function(), *recurrent.svdf_functions(), *state_functions(OPSET))
    proto = writer.model()
    live = {node.name for node in proto.graph.node}
    refusals = {label: why for label, why in refusals.items() if label in live}
    return ParsedFile(
        proto,
        refusals,
        tuple(writer.states),
        (*(stateful if writer.states else ()), *writer.functions),
        (*io_notes(contents, declared), *int16_notes(contents), *writer.notes),
        {writer.name(contents.tensors[number]): each for number, each in declared.items()},
        {label: each for label, each in writer.roundings.items() if label in live},
    )


def _translation(writer: Writer, operator: TfliteOperator) -> Translation | None:
    """The translation of an operator, None if there is none; int16 activations have their own arithmetic."""
    if operator.custom:
        return CUSTOM.get(operator.op) or added_for("translations", "CUSTOM").get(operator.op)
    numbers = [number for number in (*operator.inputs, *operator.outputs) if number >= 0]
    if any(number >= 0 and writer.numbered(number).kind == composed.COMPLEX for number in operator.inputs):
        return composed.ON_COMPLEX.get(operator.op)
    of_int16: Translation | None = None
    if any(is_int16(writer.numbered(number)) for number in numbers):
        of_int16 = added_for("translations", "INT16").get(operator.op)
    return of_int16 or TRANSLATIONS.get(operator.op)


def _variables(contents: Contents) -> Variables:
    """The variables of the file; none, and so no translations, if their operators do not fit together."""
    try:
        return variables_of(contents)
    except (Unsupported, *_FAULTS):
        return Variables(contents.operators, {})


def _reason(operator: TfliteOperator) -> str:
    if operator.custom:
        return _TENSORFLOW if operator.op.startswith("Flex") else _CUSTOM
    return REASONS.get(operator.op, _UNKNOWN)
