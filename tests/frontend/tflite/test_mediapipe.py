"""MediaPipe's transposed convolution with a bias, against its definition."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flat_files import SAME, VALID, FlatFile, drawn, translated

from mcudeploy.extensions.audio.file_writer import tflite_file
from mcudeploy.frontend.tflite.flatbuffer import contents_of

SIZES = (5, 4)


def defined(image: Any, kernel: Any, bias: Any, stride: int, padding: int) -> Any:
    """Every pixel of the image adds its multiple of the filter; the padding is cut."""
    sizes, (_, *taps, _) = image.shape[1:3], kernel.shape
    cut = [
        max(0, tap - (size - 1) % stride - 1) * (padding == SAME)
        for size, tap in zip(sizes, taps, strict=True)
    ]
    whole = [stride * (size - 1) + tap for size, tap in zip(sizes, taps, strict=True)]
    result = np.zeros((1, *whole, len(bias)), np.float64)
    for row, col in np.ndindex(*sizes):
        top, left = row * stride, col * stride
        part = np.einsum("c,krsc->rsk", image[0, row, col], kernel)
        result[0, top : top + taps[0], left : left + taps[1]] += part
    first, kept = [each // 2 for each in cut], [size - each for size, each in zip(whole, cut, strict=True)]
    return result[:, first[0] : first[0] + kept[0], first[1] : first[1] + kept[1]] + bias


@pytest.mark.parametrize(
    ("taps", "stride", "padding", "half"),
    [(2, 2, SAME, False), (3, 2, SAME, True), (4, 2, SAME, False), (3, 2, VALID, False), (1, 2, SAME, False)],
)
def test_the_transposed_convolution_with_a_bias(
    taps: int, stride: int, padding: int, half: bool, tmp_path: Path
) -> None:
    """`half`: its filter is stored as float16, as converters do it."""
    file = FlatFile()
    x, bias = file.add(1, *SIZES, 3), file.random.normal(0, 1, 2).astype(np.float32)
    kernel = file.random.normal(0, 1, (2, taps, taps, 3)).astype(np.float16 if half else np.float32)
    w = file.constant(kernel, kernel.dtype)
    if half:
        w = file.operator("DEQUANTIZE", [w], file.add(*kernel.shape))
    value = drawn(file, x)
    wanted = defined(value, kernel, bias, stride, padding)
    options = np.array([1 + padding, stride, stride], "<i4").tobytes()
    inputs = [x, w, file.constant(bias, np.float32)]
    y = file.operator("Convolution2DTransposeBias", inputs, file.add(*wanted.shape), damaged=options)
    (computed,) = translated(file.save(tmp_path, [x], [y]), ["t0"], [file.tensors[y].name], [value])
    np.testing.assert_allclose(computed, wanted, atol=1e-5 * np.abs(wanted).max())


def test_its_options_are_written_as_they_are_read() -> None:
    file = FlatFile()
    x, w, b = (
        file.add(1, 2, 2, 3),
        file.constant(np.ones((1, 2, 2, 3)), np.float32),
        file.constant([0], np.float32),
    )
    options = np.array([1, 2, 2], "<i4").tobytes()
    y = file.operator("Convolution2DTransposeBias", [x, w, b], file.add(1, 4, 4, 1), damaged=options)
    contents = contents_of(file.content([x], [y]), "file")
    assert contents.operators[0].options == {"TfLitePadding": 1, "StrideW": 2, "StrideH": 2}
    assert contents_of(tflite_file(contents), "file").operators == contents.operators
