"""ONNX's backend interface: its own test runner, models, nodes, and what is refused."""

from __future__ import annotations

import importlib
import unittest
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx.backend.test
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from onnx.backend.test.runner import BackendIsNotSupposedToImplementIt

from mcudeploy import onnx_backend as backend
from mcudeploy.common.errors import UsageError

PASSING = ("test_maxpool_2d_uint8", "test_spacetodepth_crd_mode_example", "test_celu_bfloat16")
REFUSED = "test_det_2d"


class Told(backend.HostBackend):
    """Remembers what it was asked to prepare, and what of that it could."""

    asked = 0
    programs: list[backend.HostProgram]

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> backend.HostProgram:
        cls.asked += 1
        cls.programs.append(super().prepare(model, device, **kwargs))
        return cls.programs[-1]


def test_onnx_own_runner_passes_and_skips(monkeypatch: pytest.MonkeyPatch) -> None:
    # all cases take a quarter of a minute to make: the runner gets those of these modules
    monkeypatch.setattr("onnx.backend.test.loader.import_recursive", lambda package: None)
    for name in ("maxpool", "spacetodepth", "celu", "det"):
        importlib.import_module(f"onnx.backend.test.case.node.{name}")
    Told.programs = []
    runner = onnx.backend.test.BackendTest(Told, __name__)
    for name in (*PASSING, REFUSED):
        runner.include(f"^{name}_(cpu|cuda)$")
    result = unittest.TestResult()
    runner.test_suite.run(result)
    assert result.wasSuccessful(), [*result.failures, *result.errors]
    assert (Told.asked, len(Told.programs)) == (len(PASSING) + 1, len(PASSING))


def test_a_node_runs_on_inputs_by_name_and_under_sanitizers() -> None:
    left, right = np.float32([[1, -2], [3, 4]]), np.float32([[10, 20]])
    node = helper.make_node("Sub", ["left", "right"], ["out"])
    (output,) = backend.run_node(node, {"right": right, "left": left}, opset_version=14, sanitize=True)
    assert np.array_equal(output, left - right) and output.dtype == np.float32


def test_quantised_outputs_come_in_the_types_of_the_model() -> None:
    graph = helper.make_graph(
        [helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["y"])],
        "quantise",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])],
        [helper.make_tensor_value_info("y", TensorProto.UINT8, [2, 3])],
        [numpy_helper.from_array(np.float32(0.5), "scale"), numpy_helper.from_array(np.uint8(130), "zero")],
    )
    program = backend.prepare(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]))
    (output,) = program.run([np.float32([[-100, -1, 0], [0.5, 2, 100]])])
    assert output.dtype == np.uint8 and output.tolist() == [[0, 128, 130], [131, 134, 255]]
    with pytest.raises(UsageError, match=r"'x' needs float32 \[2, 3\], found float32 \[3, 2\]"):
        program.run([np.zeros((3, 2), np.float32)])
    with pytest.raises(UsageError, match="inputs x; found 2 values"):
        program.run([np.zeros((2, 3), np.float32)] * 2)
    with pytest.raises(UsageError, match="inputs x; found y"):
        program.run({"y": np.zeros((2, 3), np.float32)})


def test_what_is_not_supported_is_told_with_its_reasons() -> None:
    node = helper.make_node("Det", ["x"], ["y"], name="volume")
    with pytest.raises(BackendIsNotSupposedToImplementIt, match=r"volume \(Det\): "):
        backend.run_node(node, np.zeros((2, 2), np.float32))
    assert backend.supports_device("CPU:0") and not backend.supports_device("CUDA")
    with pytest.raises(BackendIsNotSupposedToImplementIt, match="not on CUDA"):
        backend.prepare(ModelProto(), "CUDA")


def test_arguments_of_wrong_kinds() -> None:
    node, x = helper.make_node("Relu", ["x"], ["y"]), [np.zeros((2, 3), np.float32)]
    wrong: list[tuple[Callable[[], object], str]] = [
        (lambda: backend.prepare(b"model"), "the model must be of type ModelProto .onnx.load.*, found bytes"),
        (lambda: backend.prepare(ModelProto(), 0), "the device must be of type str .*, found int"),
        (lambda: backend.run_node("Relu", x), "the node must be of type NodeProto .*, found str"),
        (lambda: backend.run_node(node, None), "arrays in a sequence or by name, found NoneType"),
        (lambda: backend.run_node(node, "x"), "arrays in a sequence or by name, found str"),
        (lambda: backend.run_node(node, {1: x[0]}), "the inputs x; found 1"),
        (lambda: backend.run_node(node, x, opset_version="21"), "opset_version must be of type int"),
        (lambda: backend.run_node(node, x, outputs_info=[1]), "a type and a shape for each of y: "),
    ]
    for call, message in wrong:
        with pytest.raises(UsageError, match=message):
            call()


def test_what_float16_does_not_hold_is_infinite() -> None:
    """Without a warning, which fails a test."""
    (output,) = backend.run_node(helper.make_node("Mul", ["x", "x"], ["y"]), np.float16([[2, 400]]))
    assert output.dtype == np.float16 and output.tolist() == [[4, np.inf]]
