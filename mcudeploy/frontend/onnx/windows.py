"""Windows of convolutions and pools: kernel, strides, dilations, pads and output size from attributes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import ModelProto

from mcudeploy.common.errors import ModelError, Problem
from mcudeploy.common.text import printable
from mcudeploy.frontend.onnx.convert import label_of
from mcudeploy.frontend.onnx.nodes import Infos, Node, Unsupported
from mcudeploy.ops.conv.windows import taps_inside

_MAX_WINDOWS = 1 << 20
_MAX_SIZE = 1 << 14
"""Limit of the sizes of a window, unless its input is larger: tables of rows and taps grow with the sizes."""
_SIZES = ("kernel_shape", "pads", "strides", "dilations", "output_padding", "size")


def require_windows_bounded(proto: ModelProto, infos: Infos) -> None:
    """Raise ModelError that names the nodes whose window is far larger than their input.

    The tables of such a window would take all memory, or hours.
    """
    problems = []
    for number, node in enumerate(proto.graph.node):
        if node.op_type == "Pad":
            continue
        info = infos.get(node.input[0]) if node.input else None
        limit = max((_MAX_SIZE, *((info and info.shape) or ())))
        for item in node.attribute:
            largest = max((abs(value) for value in (item.i, *item.ints)), default=0)
            if item.name in _SIZES and largest > limit:
                reason = f"its {item.name} has {largest:,}; the limit for its input is {limit:,}"
                problems.append(Problem(label_of(node, number), printable(node.op_type), reason))
    if problems:
        raise ModelError.unsupported(tuple(problems))


@dataclass(frozen=True, slots=True)
class KernelWindow:
    """Window of a convolution or pool. Pairs are (rows, cols), pads (top, left, bottom, right).

    A 1-D window has one column.
    """

    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    pads: tuple[int, int, int, int]
    out_size: tuple[int, int]
    least_taps: int
    """The fewest taps inside the input of any window; 0 if a window covers only padding."""


def window_of(node: Node, kernel: tuple[int, ...], size: tuple[int, ...], *, ceil_mode: bool) -> KernelWindow:
    """The window of a node with this kernel over an image of `size` (rows, cols).

    Raises Unsupported for attributes that do not fit.
    """
    rank = len(kernel)
    stated = node.integers("kernel_shape")
    if rank not in (1, 2) or (stated is not None and stated != tuple(kernel)):
        raise Unsupported(f"kernel_shape {list(stated or kernel)} does not fit the input and the weights")
    stride = node.integers("strides") or (1,) * rank
    dilation = node.integers("dilations") or (1,) * rank
    pads = node.integers("pads") or (0,) * (2 * rank)
    if len(stride) != rank or len(dilation) != rank or len(pads) != 2 * rank:
        raise Unsupported(f"strides, dilations or pads do not have {rank} dimensions")
    if min(*kernel, *stride, *dilation) < 1:
        raise Unsupported("kernel, strides and dilations must be at least 1")
    if min(pads) < 0:
        raise Unsupported(f"negative pads {list(pads)} are not supported")
    auto_pad = node.text("auto_pad", "NOTSET")
    if auto_pad not in ("", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
        raise Unsupported(f"auto_pad {auto_pad!r} is not supported")
    reaches = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    axes = []
    for axis, reach in enumerate(reaches):
        padding = (0, 0) if auto_pad == "VALID" else (pads[axis], pads[axis + rank])
        if auto_pad.startswith("SAME"):
            axes.append(same_pads(size[axis], reach, stride[axis], upper=auto_pad == "SAME_UPPER"))
        else:
            axes.append(
                (*padding, window_count(size[axis], reach, stride[axis], padding, ceil_mode=ceil_mode))
            )
    (top, bottom, rows), (left, right, cols) = axes[0], axes[1] if rank == 2 else (0, 0, size[1])
    kernel, stride, dilation = ((pair[0], pair[1] if rank == 2 else 1) for pair in (kernel, stride, dilation))
    if max(rows, cols) > _MAX_WINDOWS:
        raise Unsupported(f"{rows} by {cols} windows: along an axis {_MAX_WINDOWS} are possible")
    taps = [
        taps_inside(np.arange(count) * stride[axis] - before, size[axis], kernel[axis], dilation[axis])
        for axis, (before, count) in enumerate(((top, rows), (left, cols)))
    ]
    starts = np.arange(rows) * stride[0] - top
    if np.all((starts + reaches[0] <= 0) | (starts >= size[0])):
        raise Unsupported("every window lies in the padding: its result does not depend on its input")
    return KernelWindow(
        kernel=kernel,
        stride=stride,
        dilation=dilation,
        pads=(top, left, bottom, right),
        out_size=(rows, cols),
        least_taps=int(taps[0].min() * taps[1].min()),
    )


def same_pads(size: int, reach: int, stride: int, *, upper: bool) -> tuple[int, int, int]:
    """(pad before, pad after, number of outputs) of auto_pad, by which there are ceil(size / stride) outputs.

    If the stride exceeds the window, the total padding is negative. ONNX Runtime halves it too, and so omits
    the first elements; TensorFlow does not. Raises Unsupported if the two differ.
    """
    count = -(-size // stride)
    total = (count - 1) * stride + reach - size
    before = int((total if upper else total + 1) / 2)
    if before < 0:
        raise Unsupported(
            f"auto_pad with a stride of {stride} and a window of {reach}: runtimes begin it at different "
            f"places; give pads instead"
        )
    return before, max(0, total - before), count


def window_count(size: int, reach: int, stride: int, pads: tuple[int, int], *, ceil_mode: bool) -> int:
    """Number of windows; with ceil_mode the last one may extend, but not begin, beyond the input."""
    free = size + sum(pads) - reach
    if free < 0:
        raise Unsupported(f"a window that reaches over {reach} does not fit {size} plus pads {pads}")
    if not ceil_mode:
        return free // stride + 1
    count = -(-free // stride) + 1
    return count - 1 if (count - 1) * stride >= size + pads[0] else count
