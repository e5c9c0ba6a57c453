"""The files that mutants are derived from: models with every supported operator, and plans of three kinds."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import onnx
from flat_cases import CASES, network
from flat_files import FlatFile
from flat_recurrent import svdf
from flat_variables import difference, mixed_kernels, queue, running_sum
from models import fully_connected, quantised_convolutions
from moves import with_moves
from onnx import helper, numpy_helper
from residing import repeating

from mcudeploy.boards.board import Board
from mcudeploy.boards.catalogue import load_board
from mcudeploy.ir.plan import Plan
from mcudeploy.planner.files.planfile import plan_text
from mcudeploy.planner.model.model import Model, load_model
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.planner import find_plans
from mcudeploy.tiling.blocks import TiledGraph
from tests.networks.onnx_files import QuantizedModel, build, node
from tests.networks.small import residual_network
from tests.one_memory import laid_out


def models(folder: Path) -> list[Path]:
    """Small models as files: int8 and float32, with every operator that is supported."""
    paths = [
        quantised_convolutions(folder / "convolutions.onnx"),
        fully_connected(folder / "dense.onnx", (16, 24, 8), quantised=True),
        residual_network(folder / "residual.onnx"),
    ]
    for name, model in (
        ("quantized", _quantized()),
        ("real", _real()),
        ("shapes", _shapes()),
        ("control", _control()),
    ):
        paths.append(folder / f"{name}.onnx")
        paths[-1].write_bytes(model.SerializeToString())
    return paths


def tflite_files() -> list[bytes]:
    """A .tflite file for every supported operator, and an equal number of networks."""
    contents = []
    kept = partial(svdf, state="INT8")
    variables = [queue, mixed_kernels, running_sum, difference] * 3
    for make in [case.make for case in CASES.values()] + [network] * len(CASES) + [kept] * 10 + variables:
        file = FlatFile()
        contents.append(file.content(*make(file)))
    return contents


def plans(folder: Path) -> list[tuple[Model, Board, str]]:
    """Models with a plan of each: cut, with blocks that move, or are rematerialised, and on two units."""
    host, two_cores = load_board("host"), load_board("mps2-an521")
    convolutions = load_model(quantised_convolutions(folder / "cut.onnx"))
    residual = load_model(residual_network(folder / "units.onnx"))
    cut = find_plans(convolutions, host, Options(time_limit=0.5)).choices[0]
    parted = find_plans(residual, two_cores, Options(split=False, assign=("cpu1=Conv2d",))).choices[0]
    return [
        (convolutions, host, plan_text(cut, convolutions.sha256)),
        (convolutions, host, plan_text(with_moves(cut, 1), convolutions.sha256)),
        (convolutions, host, plan_text(with_moves(_repeated(cut, convolutions), 2), convolutions.sha256)),
        (residual, two_cores, plan_text(parted, residual.sha256)),
    ]


def _repeated(plan: Plan, model: Model) -> Plan:
    """The plan with two blocks rematerialised at their place."""
    tiled = TiledGraph.of(plan)
    first = plan.graph.operators[0].output
    schedule = repeating(tiled, plan.schedule, (first, 0), (first, 1))
    layout, estimate = laid_out(tiled, schedule, model.with_kernels(plan.kernels).work, load_board("host"))
    return replace(plan, schedule=schedule, layout=layout, estimate=estimate)


def _control() -> onnx.ModelProto:
    """Branches, nested loops, a scan, and a function around one of them."""
    model = build([node("Relu", "x", "r")], {"x": np.ones((1, 4), np.float32)}, ["r"], {"n": np.array(3)})

    def graph(
        nodes: list[onnx.NodeProto], inputs: str, outputs: str, constant: float | None = None
    ) -> onnx.GraphProto:
        kinds = {"i": onnx.TensorProto.INT64, "g": onnx.TensorProto.BOOL}
        ends = [
            [
                helper.make_tensor_value_info(name, kinds.get(name[0], onnx.TensorProto.FLOAT), None)
                for name in names.split()
            ]
            for names in (inputs, outputs)
        ]
        held = [] if constant is None else [numpy_helper.from_array(np.float32(constant), "k")]
        return helper.make_graph(nodes, "inside", ends[0], ends[1], held)

    branches = {
        "then_branch": graph([node("Mul", "a k", "t")], "", "t", 2),
        "else_branch": graph([node("Add", "a k", "t")], "", "t", 1),
    }
    inner = graph([node("Tanh", "b", "c"), node("Identity", "g2", "g3")], "i2 g2 b", "g3 c")
    steps = [
        node("Less", "i n", "f"),
        node("If", "f", "u", **branches),
        node("Loop", "n - u", "v", body=inner),
        node("Less", "i n", "g1"),
    ]
    body = graph(steps, "i g a", "g1 v v")
    scanned = graph([node("Add", "h s", "z"), node("Sigmoid", "z", "o")], "h s", "z o")
    nodes = [
        node("Loop", "n - r", "last rows", body=body),
        node("Scan", "last rows", "end all", body=scanned, num_scan_inputs=1, scan_output_axes=[1]),
        node("Own", "all n", "y"),
    ]
    nodes[-1].domain = "own"
    model.graph.node.extend(nodes)
    calls = [node("Loop", "n - a", "b", body=inner), node("Relu", "b", "y")]
    opsets = [helper.make_opsetid("", 17)]
    model.functions.append(helper.make_function("own", "Own", ["a", "n"], ["y"], calls, opsets))
    model.opset_import.append(helper.make_opsetid("own", 1))
    del model.graph.output[:]
    model.graph.output.append(helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, (1, 3, 4)))
    return model


def _quantized() -> onnx.ModelProto:
    m = QuantizedModel()
    x = m.quantize("x", 0.05, 5)
    c = m.add(
        "Conv", f"{x} {m.weights('w', (4, 2, 3, 3))} {m.bias('b', np.full(4, 0.001))}", "c", pads=[1, 1, 1, 1]
    )
    a = m.quantize(m.add("Relu", c, "r"), 0.05, -128)
    d = m.quantize(
        m.add("Conv", f"{a} {m.weights('v', (4, 1, 3, 3))}", "d", pads=[1, 1, 1, 1], group=4), 0.05, 0
    )
    s = m.quantize(m.add("Add", f"{a} {d}", "s"), 0.1, 3)
    p = m.quantize(m.add("MaxPool", s, "p", kernel_shape=[2, 2], strides=[2, 2]), 0.1, 3)
    m.constants["none"], m.constants["scales"] = np.zeros(0, np.float32), np.array([1, 1, 2, 2], np.float32)
    u = m.quantize(m.add("Resize", f"{p} none scales", "u", mode="nearest"), 0.1, 3)
    k = m.quantize(m.add("Concat", f"{u} {s}", "k", axis=1), 0.1, 3)
    h = m.quantize(m.add("Mul", f"{k} {m.quantize(m.add('HardSigmoid', k, 'hs'), 0.004, -128)}", "h"), 0.1, 0)
    v = m.quantize(m.add("GlobalAveragePool", h, "v1"), 0.1, 0)
    f = m.add("Flatten", v, "f")
    g = m.quantize(m.add("Gemm", f"{f} {m.weights('g', (8, 4), axis=1)}", "g1"), 0.1, 0)
    y = m.quantize(m.add("Softmax", g, "y1", axis=1), 1 / 256, -128)
    return build(m.nodes, {"x": np.zeros((1, 2, 6, 6), np.float32)}, [y], m.constants)


def _real() -> onnx.ModelProto:
    random = np.random.default_rng(3)
    values = {
        "w": random.normal(size=(4, 2, 3, 3)), "scale": np.ones(4), "bias": np.zeros(4), "mean": np.zeros(4),
        "variance": np.ones(4), "low": np.array(0), "high": np.array(6), "g": random.normal(size=(4, 5)),
        "sizes": np.array([1, 1, 2, 2]),
    }  # fmt: skip
    constants = {name: value.astype(np.float32) for name, value in values.items()}
    constants |= {"pads": np.array([0, 0, 1, 1, 0, 0, 1, 1]), "none": np.zeros(0, np.float32)}
    nodes = [
        node("Pad", "x pads", "padded"),
        node("Conv", "padded w", "c"),
        node("BatchNormalization", "c scale bias mean variance", "n"),
        node("Clip", "n low high", "l"),
        node("AveragePool", "l", "a", kernel_shape=[2, 2], strides=[2, 2]),
        node("Resize", "a none sizes", "u", mode="linear"),
        node("Sigmoid", "u", "sg"),
        node("Mul", "u sg", "m"),
        node("Sub", "m l", "s"),
        node("HardSwish", "s", "h"),
        node("LeakyRelu", "h", "lr", alpha=0.1),
        node("Tanh", "lr", "t"),
        node("GlobalMaxPool", "t", "gm"),
        node("Div", "t gm", "dv"),
        node("ReduceMean", "dv", "rm", axes=[2, 3], keepdims=0),
        node("MatMul", "rm g", "y"),
    ]
    return build(nodes, {"x": np.zeros((1, 2, 6, 6), np.float32)}, ["y"], constants)


def _shapes() -> onnx.ModelProto:
    constants = {
        "shape": np.array([1, 6, 2, 4]), "starts": np.array([1]), "ends": np.array([5]),
        "axes": np.array([1]), "parts": np.array([2, 2]), "index": np.array(0), "back": np.array([1, 4, -1]),
        "last_axis": np.array([2]),
        "key": np.random.default_rng(4).normal(size=(8, 8)).astype(np.float32),
    }  # fmt: skip
    nodes = [
        node("Reshape", "x shape", "r"),
        node("Transpose", "r", "t", perm=[0, 1, 3, 2]),
        node("Slice", "t starts ends axes", "s"),
        node("Split", "s parts", "one two", axis=1),
        node("Concat", "two one", "k", axis=1),
        node("Reshape", "k back", "f"),
        node("MatMul", "f key", "q"),
        node("Transpose", "q", "qt", perm=[0, 2, 1]),
        node("MatMul", "q qt", "scores"),
        node("Softmax", "scores", "p", axis=-1),
        node("MatMul", "p q", "o"),
        node("Gather", "o index", "g", axis=1),
        node("Unsqueeze", "g last_axis", "y"),
    ]
    return build(nodes, {"x": np.zeros((1, 6, 8), np.float32)}, ["y"], constants)
