"""Rules that rewrite ONNX's windows, mel filters and Fourier transforms of constant sizes."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from mcudeploy.extensions.audio.fourier import radices
from mcudeploy.frontend.decompose.maker import Maker
from mcudeploy.frontend.decompose.product_rules import Term, ordered, product
from mcudeploy.frontend.onnx.nodes import MAX_TENSOR_ELEMENTS, Unsupported
from mcudeploy.frontend.onnx.protos import evaluator

_LARGEST_MATRIX = 2**22
"""Limit of the elements of a constant: 16 MiB of flash."""


@dataclass(frozen=True, slots=True)
class _Transform:
    """A Fourier transform along an axis, from `shape` to `out_shape`, whose last size is 1 for real numbers.

    `one_sided`: one half of the spectrum, as the transform of real numbers needs.
    """

    shape: tuple[int, ...]
    out_shape: tuple[int, ...]
    axis: int
    length: int
    inverse: bool = False
    one_sided: bool = False

    @property
    def is_fast(self) -> bool:
        """Whether `RealFft` computes the transform: one side of a real spectrum, of a supported length."""
        if self.inverse or not self.one_sided or self.shape[-1] != 1 or self.shape[self.axis] > self.length:
            return False
        try:
            radices(self.length)
        except ValueError:
            return False
        return True


def dft(make: Maker) -> None:
    """Replace a DFT by the product with a constant matrix. A fast transform stays for the lowering."""
    shape, spectrum = make.sizes(make.inputs[0]), make.sizes(make.outputs[0])
    axis = make.integer("axis", 1)
    if make.opset >= 20:
        axis = int(make.constant_of(make.input(2), "the axis").reshape(())) if make.input(2) else -2
    axis %= len(shape)
    one_sided, inverse = bool(make.integer("onesided")), bool(make.integer("inverse"))
    length = spectrum[axis] if inverse or not one_sided else shape[axis]
    if make.input(1):
        length = int(make.constant_of(make.input(1), "the length").reshape(()))
    transform = _Transform(shape, spectrum, axis, length, inverse, one_sided)
    if not transform.is_fast:
        _by_matrix(make, make.inputs[0], transform, make.outputs[0])


def stft(make: Maker) -> None:
    """Replace an STFT by a Gather of frames, the product with the window, and a transform of each frame."""
    x, shape = make.inputs[0], make.sizes(make.inputs[0])
    step = int(make.constant_of(make.inputs[1], "frame_step").reshape(()))
    window = make.constant_of(make.input(2), "the window") if make.input(2) else None
    if make.input(3):
        size = int(make.constant_of(make.input(3), "frame_length").reshape(()))
    elif window is not None:
        size = window.size
    else:
        raise Unsupported("it needs a window or a frame_length")
    batch, samples, parts = shape if len(shape) == 3 else (*shape, 1)
    if step < 1 or not 1 <= size <= samples or (window is not None and window.size != size):
        raise Unsupported(f"frames of {size} by steps of {step} do not fit {list(shape)} samples")
    frames = 1 + (samples - size) // step
    one_sided = bool(make.integer("onesided", 1))
    places = step * np.arange(frames)[:, np.newaxis] + np.arange(size)
    framed = make.add("Gather", make.reshaped(x, (batch, samples, parts)), make.int64(places), axis=1)
    if window is not None:
        framed = make.add("Mul", framed, make.constant(window.reshape(1, 1, size, 1)))
    bins = size // 2 + 1 if one_sided else size
    spectrum = (batch, frames, bins, 2)
    transform = _Transform((batch, frames, size, parts), spectrum, 2, size, one_sided=one_sided)
    if not transform.is_fast:
        _by_matrix(make, framed, transform, make.outputs[0])
        return
    axis = make.int64(2)
    if make.opset >= 20:
        make.add("DFT", framed, "", axis, out=make.outputs[0], onesided=1)
    else:
        make.add("DFT", framed, out=make.outputs[0], onesided=1, axis=2)


def constant_table(make: Maker) -> None:
    """Replace a window or mel filters of constant sizes by a constant."""
    constants = {name: make.constant_of(name, "its sizes") for name in make.inputs if name}
    sizes = [int(value.reshape(())) for value in constants.values()][:2]
    if any(size < 0 for size in sizes) or prod(sizes) > MAX_TENSOR_ELEMENTS:
        raise Unsupported(f"its sizes are {', '.join(map(str, sizes))}")
    table = np.asarray(evaluator([make.node], make.opset, constants, make.outputs[:1])(constants)[0])
    if not np.isfinite(table).all():
        raise Unsupported("its values are not finite")
    make.add("Identity", make.constant(table, table.dtype), out=make.outputs[0])


def _by_matrix(make: Maker, x: str, transform: _Transform, out: str) -> None:
    """Add the product of `x` by the matrix of a transform, over the axis J and the parts C of a number."""
    shape, out_shape, axis = transform.shape, transform.out_shape, transform.axis
    size = shape[axis], out_shape[axis]
    if prod(size) * shape[-1] * out_shape[-1] > _LARGEST_MATRIX:
        raise Unsupported(f"its matrix has more than {_LARGEST_MATRIX} elements")
    full = _matrix(size, transform.length, inverse=transform.inverse, one_sided=transform.one_sided)
    matrix = full[:, : shape[-1], :, : out_shape[-1]]
    letters = "".join(chr(ord("a") + place) for place in range(len(shape) - 1))
    operand_letters = letters.replace(letters[axis], "J") + "C"
    result_letters = letters.replace(letters[axis], "K") + "D"
    factor = Term(make.constant(matrix), "JCKD", matrix.shape)
    result = product(make, Term(x, operand_letters, shape), factor, result_letters)
    ordered(make, result, result_letters, dict(zip(result_letters, out_shape, strict=True)), out)


def _matrix(size: tuple[int, int], length: int, *, inverse: bool, one_sided: bool) -> NDArray[np.float32]:
    """The matrix of a transform: [element, its real or imaginary part, frequency, its part]."""
    rows, cols = np.arange(size[0])[:, np.newaxis], np.arange(size[1])
    angle = 2 * np.pi * ((rows * cols) % length) / length * (1 if inverse else -1)
    is_used = rows < (length // 2 + 1 if inverse and one_sided else length)
    weight = is_used / length if inverse else is_used * 1.0
    if inverse and one_sided:  # the other half is the mirror image
        weight = weight * np.where((rows == 0) | (2 * rows == length), 1, 2)
    cos, sin = np.cos(angle) * weight, np.sin(angle) * weight
    return np.stack([np.stack([cos, sin], -1), np.stack([-sin, cos], -1)], 1).astype(np.float32)


RULES = {
    "": {
        "BlackmanWindow": constant_table,
        "DFT": dft,
        "HammingWindow": constant_table,
        "HannWindow": constant_table,
        "MelWeightMatrix": constant_table,
        "STFT": stft,
    }
}
"""Rules by domain and operator."""
