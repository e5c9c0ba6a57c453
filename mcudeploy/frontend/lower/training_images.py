"""Images among the values of a training step: their tensors, channels last, and their sizes."""

from __future__ import annotations

from collections.abc import Mapping

from mcudeploy.frontend.lower.builder import Builder
from mcudeploy.frontend.onnx.nodes import Node, Unsupported
from mcudeploy.frontend.onnx.training_functions import CLIP_MASK
from mcudeploy.frontend.onnx.values import OnnxValue, image_index, image_positions
from mcudeploy.ir.graph import DType, Shape
from mcudeploy.ir.opdef import ConstantArray, OperatorDef


def image_tensor(builder: Builder, name: str) -> str:
    """The tensor of an image, channels last.

    An int8 image becomes float32 for this reader alone, so that nothing keeps a float32 copy of it.
    """
    value = builder.converted(name)
    return builder.arranged(value.tensor, image_positions(value.index))


def stored_image(builder: Builder, name: str) -> str:
    """The tensor of an image, channels last, as int8 if it is stored so."""
    pure = builder.pure(name) if builder.value(name).table is not None else None
    if pure is None:
        return image_tensor(builder, name)
    return builder.arranged(pure.tensor, image_positions(pure.index))


def mask_tensor(builder: Builder, name: str) -> str:
    """The tensor of a mask, which ClipMask makes."""
    producer = builder.producers.get(name)
    if producer is None or producer.op != CLIP_MASK:
        raise Unsupported("its mask is not made by ClipMask")
    return builder.values[name].tensor


def stated_shape(builder: Builder, name: str) -> Shape:
    """The rows, columns and channels that the file states for a value [1, C, H, W]."""
    info = builder.model.infos.get(name)
    if info is None or info.shape is None or len(info.shape) != 4:
        raise Unsupported("the size of its result is not known")
    _, channels, rows, cols = info.shape
    return rows, cols, channels


def define_image(
    builder: Builder,
    node: Node,
    op: OperatorDef,
    inputs: tuple[str, ...],
    constants: Mapping[str, ConstantArray] | None = None,
) -> None:
    """Emit an operator whose float32 result is an image, the node's output."""
    shape = builder.output_shape(op, inputs)
    tensor = builder.emit(op, inputs, shape, DType.FLOAT32, constants=constants, nodes=(node,))
    builder.define(node.output, OnnxValue(tensor, image_index(shape, 4), real=True))
