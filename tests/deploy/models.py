"""Small ONNX models that a test can make and ONNX Runtime can run."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper

from tests.networks.onnx_files import build


def quantised_convolutions(path: Path, seed: int = 1, depth: int = 3) -> Path:
    """Image int8 [1,depth,12,12] -> conv 3x3, relu -> conv 1x1 -> logits int8 [1,4,12,12], QDQ, at `path`."""
    rng = np.random.default_rng(seed)
    nodes: list[onnx.NodeProto] = []
    constants: dict[str, Any] = {}

    def constant(name: str, value: np.ndarray) -> str:
        constants[name] = value
        return name

    def conv(name: str, source: str, channels: tuple[int, int], kernel: int, in_scale: float) -> str:
        inputs, outputs = channels
        scale = rng.uniform(0.002, 0.01, outputs).astype(np.float32)
        weights = rng.integers(-127, 127, (outputs, inputs, kernel, kernel), np.int8, endpoint=True)
        bias = rng.integers(-2000, 2000, outputs, np.int32)
        zeros = np.zeros(outputs, np.int8)
        pads = [kernel // 2] * 4
        for what, value, its_scale, zero in (
            ("w", weights, scale, zeros),
            ("b", bias, scale * np.float32(in_scale), zeros.astype(np.int32)),
        ):
            inputs_of = [
                constant(f"{name}_{what}", value),
                constant(f"{name}_{what}_scale", its_scale),
                constant(f"{name}_{what}_zero", zero),
            ]
            nodes.append(helper.make_node("DequantizeLinear", inputs_of, [f"{name}_{what}_real"], axis=0))
        nodes.append(
            helper.make_node("Conv", [source, f"{name}_w_real", f"{name}_b_real"], [name], name, pads=pads)
        )
        return name

    def quantised(name: str, source: str, scale: float, zero_point: int, output: str) -> str:
        scale_name = constant(f"{name}_scale", np.float32(scale))
        zero_name = constant(f"{name}_zero", np.int8(zero_point))
        nodes.append(helper.make_node("QuantizeLinear", [source, scale_name, zero_name], [output], name))
        nodes.append(helper.make_node("DequantizeLinear", [output, scale_name, zero_name], [f"{name}_real"]))
        return f"{name}_real"

    nodes.append(
        helper.make_node(
            "DequantizeLinear",
            ["image", constant("in_scale", np.float32(0.02)), constant("in_zero", np.int8(-5))],
            ["image_real"],
        )
    )
    conv("first", "image_real", (depth, 8), 3, 0.02)
    nodes.append(helper.make_node("Relu", ["first"], ["first_relu"], "relu"))
    middle = quantised("q_first", "first_relu", 0.05, -128, "middle")
    conv("second", middle, (8, 4), 1, 0.05)
    quantised("q_second", "second", 0.06, 3, "logits")
    nodes.pop()  # the model ends at the quantised output
    onnx.save(build(nodes, {"image": (np.int8, (1, depth, 12, 12))}, ["logits"], constants), path)
    return path


def fully_connected(path: Path, sizes: tuple[int, ...], *, quantised: bool, seed: int = 1) -> Path:
    """Vector x [1, sizes[0]] -> Gemm, Relu -> ... -> Gemm -> y, int8 as QDQ or float32, at `path`.

    The scales are those of the values that normal inputs give.
    """
    rng = np.random.default_rng(seed)
    nodes: list[onnx.NodeProto] = []
    constants: dict[str, Any] = {}

    def add(op: str, inputs: list[str | np.ndarray], output: str, **attributes: int) -> str:
        names = []
        for value in inputs:
            if isinstance(value, np.ndarray | np.generic):
                constants[f"c{len(constants)}"] = value
            names.append(value if isinstance(value, str) else f"c{len(constants) - 1}")
        nodes.append(helper.make_node(op, names, [output], f"{op}_{output}", **attributes))
        return output

    scale, zero, current = np.float32(0.03), np.int8(0), "x"
    values = rng.normal(size=(64, sizes[0]))
    for layer, (inputs, outputs) in enumerate(pairwise(sizes)):
        last = layer == len(sizes) - 2
        weights = rng.normal(size=(outputs, inputs)) * np.sqrt(2 / inputs)
        bias = rng.normal(size=outputs) / 10
        values = values @ weights.T + bias
        read: list[str | np.ndarray] = [current, weights.astype(np.float32), bias.astype(np.float32)]
        if quantised:
            steps = (np.abs(weights).max(axis=1) / 127).astype(np.float32)
            stored = np.rint(weights / steps[:, None]).astype(np.int8)
            sums = np.rint(bias / (steps * scale)).astype(np.int32)
            zeros = np.zeros(outputs, np.int8)
            read = [
                add("DequantizeLinear", [current, scale, zero], f"real_{layer}"),
                add("DequantizeLinear", [stored, steps, zeros], f"weights_{layer}", axis=0),
                add(
                    "DequantizeLinear", [sums, steps * scale, zeros.astype(np.int32)], f"bias_{layer}", axis=0
                ),
            ]
        current = add("Gemm", read, "y" if last and not quantised else f"fc_{layer}", transB=1)
        if not last:
            current, values = add("Relu", [current], f"relu_{layer}"), np.maximum(values, 0)
        if quantised:
            scale = np.float32(np.abs(values).max() / 120)
            current = add("QuantizeLinear", [current, scale, zero], "y" if last else f"stored_{layer}")
    x = (np.int8 if quantised else np.float32, (1, sizes[0]))
    onnx.save(build(nodes, {"x": x}, ["y"], constants), path)
    return path


def skipping(path: Path, size: int = 16, seed: int = 3) -> Path:
    """Image float32 [1,4,s,s] -> conv (8) -> conv (16), conv (16), conv (8) -> joined with the first -> conv
    (2), at `path`: the first lies idle while those between need the most.
    """
    rng = np.random.default_rng(seed)
    nodes: list[onnx.NodeProto] = []
    constants: dict[str, Any] = {}
    source, channels = "image", 4
    for number, outputs in enumerate((8, 16, 16, 8, 2)):
        kernel = 1 if number == 4 else 3
        if number == 4:
            nodes.append(helper.make_node("Concat", ["conv_0", "conv_3"], ["both"], axis=1))
            source, channels = "both", 16
        weights = rng.normal(0, 0.2, (outputs, channels, kernel, kernel)).astype(np.float32)
        constants[f"w_{number}"] = weights
        inputs, pads = [source, f"w_{number}"], [kernel // 2] * 4
        nodes.append(helper.make_node("Conv", inputs, [f"conv_{number}"], f"conv_{number}", pads=pads))
        source, channels = f"conv_{number}", outputs
    onnx.save(build(nodes, {"image": (np.float32, (1, 4, size, size))}, ["conv_4"], constants), path)
    return path


def bottlenecks(path: Path, count: int = 2, size: int = 16, between: str = "", seed: int = 4) -> Path:
    """Image int8 [1,4,s,s] -> `count` times: expanded to 48 channels, filtered by 3x3, projected to 6, QDQ,
    at `path`. Its sums have ties. `between`: a tensor that is an output as well, such as "q_0".
    """
    rng = np.random.default_rng(seed)
    nodes: list[onnx.NodeProto] = []
    constants: dict[str, Any] = {}

    def constant(value: np.ndarray | np.generic) -> str:
        constants[f"c{len(constants)}"] = value
        return f"c{len(constants) - 1}"

    step, zero = constant(np.float32(0.05)), constant(np.int8(-3))
    nodes.append(helper.make_node("DequantizeLinear", ["image", step, zero], ["real"]))
    current, depth = "real", 4
    for at, (channels, kernel, groups) in enumerate(((48, 1, 1), (48, 3, 48), (6, 1, 1)) * count):
        scale, zeros = np.full(channels, 0.004, np.float32), np.zeros(channels, np.int8)
        weights = rng.integers(-127, 128, (channels, depth // groups, kernel, kernel)).astype(np.int8)
        bias = rng.integers(-500, 500, channels).astype(np.int32)
        for what, value, its_scale, its_zero in (
            ("w", weights, scale, zeros),
            ("b", bias, scale * np.float32(0.05), zeros.astype(np.int32)),
        ):
            inputs = [constant(value), constant(its_scale), constant(its_zero)]
            nodes.append(helper.make_node("DequantizeLinear", inputs, [f"{what}_{at}"], axis=0))
        pads, name = [kernel // 2] * 4, f"conv_{at}"
        inputs = [current, f"w_{at}", f"b_{at}"]
        nodes.append(helper.make_node("Conv", inputs, [name], name, pads=pads, group=groups))
        nodes.append(helper.make_node("QuantizeLinear", [name, step, zero], [f"q_{at}"], f"q_{at}"))
        nodes.append(helper.make_node("DequantizeLinear", [f"q_{at}", step, zero], [f"real_{at}"]))
        current, depth = f"real_{at}", channels
    nodes.pop()
    outputs = [f"q_{3 * count - 1}", *filter(None, (between,))]
    onnx.save(build(nodes, {"image": (np.int8, (1, 4, size, size))}, outputs, constants), path)
    return path
