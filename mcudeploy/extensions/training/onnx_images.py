"""Images [1, C, H, W], as which a training step computes tensors, and the verdict about operators without."""

from __future__ import annotations

from mcudeploy.extensions.training.node_list import OnnxShape
from mcudeploy.ir.graph import Shape

ONNX_AXES = (2, 3, 1)
"""The axes of an image [1, C, H, W] that correspond to a tensor's rows, columns and channels."""


class NotTrainable(Exception):  # noqa: N818 -- not an error but a verdict about one operator
    """An operator that no training step supports; the message is the reason shown to the user."""


def image_shape(shape: Shape) -> OnnxShape:
    """(rows, cols, channels) -> [1, channels, rows, cols]."""
    rows, cols, channels = shape
    return 1, channels, rows, cols
