"""Padding before windows in quantised files: folded if that keeps its meaning, in the right type."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from evaluate import assert_same, kinds

from mcudeploy.common.errors import ModelError
from mcudeploy.frontend.lower.lowering import lower
from mcudeploy.frontend.passes.folding import fold
from mcudeploy.frontend.reader import read
from tests.networks.onnx_files import Array, QuantizedModel, build, node, save

IMAGE = (2 * np.random.default_rng(11).standard_normal((1, 4, 6, 5))).astype(np.float32)
PADS = np.array([0, 0, 1, 2, 0, 0, 1, 0])
ZERO_POINTS = [(np.int8, 5), (np.uint8, 101)]


def assert_same_operators(
    model: QuantizedModel, output: str, operators: dict[str, int], folder: Path, image: Array = IMAGE
) -> None:
    path = save(build(model.nodes, {"x": image}, [output], model.constants), folder)
    assert kinds(assert_same(path, {"x": image})) == operators


def convolved(model: QuantizedModel, source: str, dtype: Any, zero: int) -> str:
    conv = model.add("Conv", f"{source} {model.weights('w', (3, 4, 3, 3))}", "c")
    return model.quantize(conv, 0.2, zero, dtype)


@pytest.mark.parametrize(("dtype", "zero"), ZERO_POINTS)
def test_pad_between_quantizers(dtype: Any, zero: int, tmp_path: Path) -> None:
    m = QuantizedModel()
    m.constants["p"] = PADS
    x = m.quantize("x", 0.03, zero, dtype)
    q = m.quantize(m.add("Pad", f"{x} p", "q"), 0.03, zero, dtype)
    assert_same_operators(m, convolved(m, q, dtype, zero), {"Conv2d": 1}, tmp_path)


@pytest.mark.parametrize(("dtype", "zero"), ZERO_POINTS)
def test_pad_by_nothing(dtype: Any, zero: int, tmp_path: Path) -> None:
    m = QuantizedModel()
    m.constants["p"] = np.zeros(8, np.int64)
    q = m.quantize(m.add("Pad", "x p", "q"), 0.03, zero, dtype)
    assert_same_operators(m, convolved(m, q, dtype, zero), {"Conv2d": 1}, tmp_path)


@pytest.mark.parametrize(("dtype", "zero"), ZERO_POINTS)
@pytest.mark.parametrize("filled_with_zero_point", [False, True])
def test_pad_of_integers(dtype: Any, zero: int, filled_with_zero_point: bool, tmp_path: Path) -> None:
    m = QuantizedModel()
    filling = zero if filled_with_zero_point else 0
    m.constants |= {"s": np.float32(0.03), "z": np.array(zero, dtype)}
    m.constants |= {"p": PADS, "v": np.array(filling, dtype)}
    m.nodes += [node("QuantizeLinear", "x s z", "i"), node("Pad", "i p v", "j")]
    q = m.dequantize("j", 0.03, zero, dtype)
    operators = {"Conv2d": 1} if filled_with_zero_point else {"Pad": 1, "Conv2d": 1}
    assert_same_operators(m, convolved(m, q, dtype, zero), operators, tmp_path)


@pytest.mark.parametrize(("dtype", "zero"), ZERO_POINTS)
def test_pad_in_front_of_another_zero_point(dtype: Any, zero: int, tmp_path: Path) -> None:
    m = QuantizedModel()
    m.constants |= {"p": PADS, "s": np.float32(0.03), "z": np.array(zero + 9, dtype)}
    m.nodes += [node("Pad", "x p", "q"), node("QuantizeLinear", "q s z", "i")]
    q = m.dequantize("i", 0.03, zero, dtype)
    operators = {"Pad": 1, "Quantize": 1, "Reshape": 1, "Conv2d": 1}
    assert_same_operators(m, convolved(m, q, dtype, zero), operators, tmp_path)


def test_pad_in_front_of_an_average_pool(tmp_path: Path) -> None:
    m = QuantizedModel()
    m.constants["p"] = PADS
    x = m.quantize("x", 0.03, 101, np.uint8)
    q = m.quantize(m.add("Pad", f"{x} p", "q"), 0.03, 101, np.uint8)
    y = m.quantize(m.add("AveragePool", q, "a", kernel_shape=[2, 3]), 0.03, 101, np.uint8)
    assert_same_operators(m, y, {"AveragePool": 1}, tmp_path)


def test_a_missing_type_is_an_error(tmp_path: Path) -> None:
    """Wherever the type of an integer value is needed and nothing states it, it is not guessed."""
    m = QuantizedModel()
    y = convolved(m, m.quantize("x", 0.03, 101, np.uint8), np.uint8, 101)
    model, reasons = fold(read(save(build(m.nodes, {"x": IMAGE}, [y], m.constants), tmp_path)))
    untyped = replace(model, infos={})
    with pytest.raises(ModelError, match="the element type of 'x_0_q' is not known"):
        lower(untyped, reasons, float_io=False)
