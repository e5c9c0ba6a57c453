"""Unsupported operators are refused by name, and every fault of a file ends in one clear ModelError."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tflite
from flat_cases import CASES, MISSING, Of, add, f32, held, i8, network, weights, window
from flat_files import VALID, FlatFile

from mcudeploy.common.errors import ModelError
from mcudeploy.extensions.audio import file_writer
from mcudeploy.frontend.load import load
from mcudeploy.frontend.tflite import flatbuffer as reading


def refused(file: FlatFile, inputs: Sequence[int], outputs: Sequence[int], folder: Path) -> dict[str, str]:
    """The reasons by node."""
    with pytest.raises(ModelError) as caught:
        load(file.save(folder, inputs, outputs))
    assert caught.value.problems, caught.value
    return {problem.node: problem.reason for problem in caught.value.problems}


def test_all_operators_that_are_not_supported_are_listed_with_the_way_out(tmp_path: Path) -> None:
    f = FlatFile()
    x, s, c, e = (f.int8(1, 8) for _ in range(4))
    f.operator("LSTM", [x], s)
    f.operator("RELU", [s], r := f.int8(1, 8))
    f.operator("UnknownDecoder", [r], c)
    f.operator("FlexErf", [c], e)
    f.operator("UNSORTED_SEGMENT_MAX", [e], k := f.int8(1, 8))
    f.operator("WHILE", [k], d := f.int8(1, 8))
    f.operator("DENSIFY", [d], y := f.int8(1, 8))
    reasons = refused(f, [x], [y], tmp_path)
    assert list(reasons) == [
        "0 LSTM",
        "2 UnknownDecoder",
        "3 FlexErf",
        "4 UNSORTED_SEGMENT_MAX",
        "5 WHILE",
        "6 DENSIFY",
    ]
    assert "keeps a state" in reasons["0 LSTM"] and "DEPTHWISE_CONV_2D" in reasons["0 LSTM"]
    assert "allow_custom_ops" in reasons["2 UnknownDecoder"]
    assert "SELECT_TF_OPS" in reasons["3 FlexErf"]
    assert "docs/tflite.md" in reasons["4 UNSORTED_SEGMENT_MAX"]
    assert "unrolled" in reasons["5 WHILE"]
    assert "only constants" in reasons["6 DENSIFY"]


def test_operators_that_no_output_needs_are_left_out(tmp_path: Path) -> None:
    f = FlatFile()
    x = f.int8(1, 4, 4, 3)
    f.operator("SHAPE", [x], shape := f.add(4, kind="INT32"))
    f.operator("RESHAPE", [x, shape], y := f.int8(1, 48))
    w = f.weights(4, 48)
    f.operator("FULLY_CONNECTED", [y, w, -1], z := f.int8(1, 4, scale=0.2))
    assert load(f.save(tmp_path, [x], [z])).operators


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("FLOAT16", "constants of FLOAT16"),
        ("INT32", "is INT32"),
        ("STRING", "is STRING"),
    ],
)
def test_other_element_types(kind: str, words: str, tmp_path: Path) -> None:
    f = FlatFile()
    x, a, y = f.int8(1, 8), f.add(1, 8, kind=kind, scale=(0.1,), zero_point=(0,)), f.int8(1, 8)
    f.operator("QUANTIZE", [x], a)
    f.operator("QUANTIZE", [a], y)
    assert words in refused(f, [x], [y], tmp_path)["0 QUANTIZE"]


def test_inputs_of_types_that_onnx_does_not_have(tmp_path: Path) -> None:
    f = FlatFile()
    x, y = f.add(1, 8, kind="RESOURCE"), f.int8(1, 8)
    f.operator("ADD", [x, x], y)
    assert "'t0' is RESOURCE" in fault(f.content([x], [y]), tmp_path)


X, IMAGE, MAP = i8(1, 8), i8(1, 5, 5, 4), i8(1, 5, 5, 3)
CONV = [IMAGE, weights(3, 1, 1, 4), MISSING]
WIDE = f32(1, 8, kind="INT16", scale=(0.1,), zero_point=(0,))
KEPT = Of(lambda f, _: f.int8(1, 8, variable=True))


@pytest.mark.parametrize(
    ("op", "inputs", "output", "options", "words"),
    [
        ("CONV_2D", CONV, MAP, window(VALID, 0), "must be at least 1"),
        ("CONV_2D", CONV, MAP, {**window(VALID, 1), "Padding": 7}, "neither SAME nor VALID"),
        (
            "CONV_2D",
            [IMAGE, weights(3, 1, 1, 4, axis=3), MISSING],
            MAP,
            window(VALID, 1),
            "scales along axis 3",
        ),
        ("ADD", [X, X], X, {"FusedActivationFunction": 5}, "fused activation 5"),
        ("ADD", [f32(1, 8, kind="INT8"), X], X, {}, "is INT8 without a scale"),
        ("ADD", [i8(1, 8, zero=300), X], X, {}, "zero point is outside int8"),
        ("ADD", [X, KEPT], X, {}, "keeps its value between inferences"),
        ("ADD", [X], X, {}, "has no input 1"),
        ("STRIDED_SLICE", [X, *[held([0])] * 3], i8(1, 1, 8), {"NewAxisMask": 1}, "a new axis"),
        ("SIN", [WIDE], WIDE, {}, "is INT16; FLOAT32, INT8 and UINT8"),
    ],
)
def test_an_operator_that_does_not_fit_says_why(
    op: str, inputs: list[Of], output: Of, options: dict[str, Any], words: str, tmp_path: Path
) -> None:
    file = FlatFile()
    ios = add(file, op, inputs, output, **options)
    (reason,) = refused(file, *ios, tmp_path).values()
    assert words in reason


def test_recurrent_outputs_do_not_hide_other_reasons(tmp_path: Path) -> None:
    f = FlatFile()
    x, s = f.int8(1, 8), f.int8(1, 8)
    f.operator("LSTM", [x], s)
    f.operator("ADD", [s, s], y := f.int8(1, 8), FusedActivationFunction=4)
    assert list(refused(f, [x], [y], tmp_path)) == ["0 LSTM", "1 ADD"]


# -- files that are wrong ---------------------------------------------------------------------------


def fault(content: bytes, folder: Path, name: str = "model.tflite") -> str:
    path = folder / name
    path.write_bytes(content)
    with pytest.raises(ModelError) as caught:
        load(path)
    assert not caught.value.problems and str(caught.value).isprintable()
    return str(caught.value)


def whole(**facts: Any) -> bytes:
    """A file with one ADD."""
    f = FlatFile()
    x, y = f.int8(1, 8, **facts), f.int8(1, 8)
    f.operator("ADD", [x, x], y)
    return f.content([x], [y])


def test_a_file_is_known_by_its_name_or_its_identifier(tmp_path: Path) -> None:
    assert "no 'TFL3' at byte 4" in fault(b"something else altogether", tmp_path)
    assert "no 'TFL3' at byte 4" in fault(b"x", tmp_path)
    assert "is empty" in fault(b"", tmp_path)
    assert "not an ONNX file" in fault(b"something else altogether", tmp_path, "model.onnx")
    path = tmp_path / "renamed.bin"
    path.write_bytes(whole())
    assert load(path).operators


def test_truncated_files(tmp_path: Path) -> None:
    file = FlatFile()
    content = file.content(*network(file))
    path = tmp_path / "cut.tflite"
    for length in range(8, len(content), 97):
        path.write_bytes(content[:length])
        with pytest.raises(ModelError):
            load(path)
    assert "damaged or truncated" in fault(content[: len(content) // 2], tmp_path)


def test_numbers_of_tensors_outside_the_file(tmp_path: Path) -> None:
    for inputs, outputs in (([0, 9], [1]), ([0], [-1])):
        f = FlatFile()
        x, y = f.int8(1, 8), f.int8(1, 8)
        f.operator("ADD", [x, x], y)
        assert "it has 2 tensors" in fault(f.content(inputs, outputs), tmp_path)
    f.operator("ADD", [7, x], y)
    assert "the inputs of 1 ADD name tensor 7" in fault(f.content([x], [y]), tmp_path)


def test_order_and_producers(tmp_path: Path) -> None:
    f = FlatFile()
    x, a, y = (f.int8(1, 8) for _ in range(3))
    f.operator("ADD", [x, a], y)
    f.operator("ADD", [x, y], a)
    assert "is made only later" in fault(f.content([x], [y]), tmp_path)
    f.operators[1] = ("ADD", [x, x], [y], {})
    assert "nothing makes" in fault(f.content([x], [y]), tmp_path)
    f.operators = [("ADD", [x, x], [y], {})]
    assert "is never made" in fault(f.content([x], [a]), tmp_path)
    f.operators *= 2
    assert "exists already" in fault(f.content([x], [y]), tmp_path)
    assert "twice among its inputs" in fault(f.content([x, x], [y]), tmp_path)


def test_shapes_that_no_memory_holds(tmp_path: Path) -> None:
    f = FlatFile()
    x, y = f.int8(1, 2**31 - 1, 2**31 - 1), f.int8(1, 8)
    f.operator("ADD", [x, x], y)
    assert "the limit is" in fault(f.content([x], [y]), tmp_path)
    f = FlatFile()
    x, y = f.int8(1, -8), f.int8(1, 8)
    f.operator("ADD", [x, x], y)
    assert "has the shape [1, -8]" in fault(f.content([x], [y]), tmp_path)


def test_a_shape_that_the_operator_does_not_give(tmp_path: Path) -> None:
    f = FlatFile()
    x, w, y = f.int8(1, 9, 9, 4), f.weights(3, 3, 3, 4), f.int8(1, 9, 9, 3)
    f.operator("CONV_2D", [x, w, -1], y, **window(VALID, 1))
    assert "malformed" in fault(f.content([x], [y]), tmp_path)


def test_data_that_do_not_fit_their_shape(tmp_path: Path) -> None:
    f = FlatFile()
    x, c, y = f.int8(1, 8), f.int8(8, data=np.zeros(5, np.int8)), f.int8(1, 8)
    f.operator("ADD", [x, c], y)
    assert "has 5 bytes of data; INT8 [8] needs 8" in fault(f.content([x], [y]), tmp_path)


def test_open_dimensions_but_for_the_batch(tmp_path: Path) -> None:
    message = fault(whole(signature=[1, -1]), tmp_path)
    assert "open dimension" in message and "fixed shapes" in message
    path = tmp_path / "batch.tflite"
    path.write_bytes(whole(signature=[-1, 8]))
    assert load(path).inputs[0].shape == (1, 8)


def test_names_are_shown_as_text(tmp_path: Path) -> None:
    f = FlatFile()
    x, y = f.int8(1, 8, name="a\x1b[31m*/ b"), f.int8(1, 8, name="")
    f.operator("ADD", [x, x], y, FusedActivationFunction=4)
    (reason,) = refused(f, [x], [y], tmp_path).values()
    assert reason.isprintable()


def test_tensors_of_one_name_are_told_apart(tmp_path: Path) -> None:
    f = FlatFile()
    x, a, y = (f.int8(1, 8, name="same") for _ in range(3))
    f.operator("ADD", [x, x], a)
    f.operator("ADD", [a, x], y)
    graph = load(f.save(tmp_path, [x], [y]))
    assert [io.name for io in (*graph.inputs, *graph.outputs)] == ["same", "same#2"]


# -- the package that reads them --------------------------------------------------------------------


def test_modules_load_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tflite", None)
    for module in (reading, file_writer):
        spec = importlib.util.spec_from_file_location(module.__name__, module.__file__)
        assert spec is not None and spec.loader is not None
        again = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(again)
        assert again.tflite is None


def test_without_the_package_the_error_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "tflite", None)
    assert "pip install tflite" in fault(whole(), tmp_path)


def test_onnx_files_do_not_load_the_package() -> None:
    code = "import mcudeploy.frontend, sys; sys.exit('tflite' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_option_is_one_of_the_package() -> None:
    for kind, names in reading.OPTIONS.values():
        assert hasattr(tflite.BuiltinOptions, kind)
        assert all(hasattr(getattr(tflite, kind), name) for name in names)


def test_the_elements_of_a_file_count_without_those_of_its_translation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Images are transposed for ONNX, and back."""
    file = FlatFile()
    inputs, outputs = CASES["AVERAGE_POOL_2D-float"].make(file)
    path = file.save(tmp_path, inputs, outputs)
    elements = sum(int(np.prod(file.tensors[number].shape)) for number in (*inputs, *outputs))
    monkeypatch.setattr("mcudeploy.frontend.onnx.convert.MAX_TOTAL_ELEMENTS", elements)
    assert load(path).operators
    monkeypatch.setattr("mcudeploy.frontend.onnx.convert.MAX_TOTAL_ELEMENTS", elements - 1)
    with pytest.raises(ModelError, match=f"the activations have {elements} elements"):
        load(path)
