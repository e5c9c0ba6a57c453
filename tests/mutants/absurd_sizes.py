"""Valid ONNX nodes with an attribute or a constant far beyond any use: work and memory must stay bounded."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from mutant_subjects import UNSPLIT, generated
from onnx import TensorProto, helper

from mcudeploy.boards.catalogue import load_board
from mcudeploy.planner.model.model import load_model
from tests.networks.onnx_files import build

IMAGE, MOST = [1, 3, 4, 4], (2**31 - 1, 2**16)
"""Shape of the input, and the values tried."""

Constants = dict[str, object]

_WEIGHTS = np.ones((3, 2, 2, 2), np.float32)


def _conv(n: int, **given: object) -> tuple[str, Constants, Constants]:
    return "Conv", {"w": np.ones((2, 3, 1, 1), np.float32)}, given


def _pool(kind: str, n: int, **given: object) -> tuple[str, Constants, Constants]:
    return kind, {}, {"kernel_shape": [1, 1], **given}


CASES: dict[str, Callable[[int], tuple[str, Constants, Constants]]] = {
    "LRN size": lambda n: ("LRN", {}, {"size": n}),
    "Conv pads": lambda n: _conv(n, pads=[n, n, n, n]),
    "Conv one pad": lambda n: _conv(n, pads=[0, 0, 0, n]),
    "Conv pads and strides": lambda n: _conv(n, pads=[0, 0, n, n], strides=[n, n]),
    "Conv strides": lambda n: _conv(n, strides=[n, n]),
    "Conv dilations": lambda n: _conv(n, dilations=[n, n]),
    "Conv group": lambda n: _conv(n, group=n),
    "ConvTranspose pads": lambda n: ("ConvTranspose", {"w": _WEIGHTS}, {"pads": [n] * 4}),
    "ConvTranspose strides": lambda n: ("ConvTranspose", {"w": _WEIGHTS}, {"strides": [n, 1]}),
    "ConvTranspose output_padding": lambda n: (
        "ConvTranspose",
        {"w": _WEIGHTS},
        {"output_padding": [n, n], "strides": [1, 1]},
    ),
    "MaxPool window and pads": lambda n: _pool("MaxPool", n, kernel_shape=[n, n], pads=[n - 1] * 4),
    "MaxPool window, pads and strides": lambda n: _pool(
        "MaxPool", n, kernel_shape=[1, n], pads=[0, n - 2, 0, n - 2], strides=[1, n]
    ),
    "AveragePool window and pads": lambda n: _pool(
        "AveragePool",
        n,
        kernel_shape=[1, n],
        pads=[0, n // 2, 0, n // 2],
        count_include_pad=1,
        strides=[1, n],
    ),
    "AveragePool window, not counted": lambda n: _pool(
        "AveragePool", n, kernel_shape=[1, n], pads=[0, n // 2, 0, n // 2]
    ),
    "LpPool window": lambda n: _pool("LpPool", n, kernel_shape=[1, n], pads=[0, n - 2, 0, n - 2]),
    "LpPool p": lambda n: _pool("LpPool", n, p=n),
    "Pad": lambda n: ("Pad", {"p": np.array([0, 0, 0, n, 0, 0, 0, 0])}, {}),
    "Pad reflected": lambda n: ("Pad", {"p": np.array([0, 0, 0, n, 0, 0, 0, 0])}, {"mode": "reflect"}),
    "Tile": lambda n: ("Tile", {"r": np.array([1, 1, n, 1])}, {}),
    "Expand": lambda n: ("Expand", {"r": np.array([n, 3, 4, 4])}, {}),
    "TopK": lambda n: ("TopK", {"k": np.array([n])}, {}),
    "Resize": lambda n: (
        "Resize",
        {"a": np.zeros(0, np.float32), "b": np.zeros(0, np.float32), "s": np.array([1, 3, n, n])},
        {},
    ),
    "Resize by scales": lambda n: (
        "Resize",
        {"a": np.zeros(0, np.float32), "b": np.array([1, 1, n, n], np.float32)},
        {},
    ),
    "Slice": lambda n: (
        "Slice",
        {"a": np.array([-n]), "b": np.array([n]), "c": np.array([2]), "d": np.array([n])},
        {},
    ),
    "SpaceToDepth": lambda n: ("SpaceToDepth", {}, {"blocksize": n}),
    "DepthToSpace": lambda n: ("DepthToSpace", {}, {"blocksize": n}),
    "CumSum": lambda n: ("CumSum", {"a": np.array(n)}, {}),
    "Trilu": lambda n: ("Trilu", {"k": np.array(n)}, {}),
    "Split": lambda n: ("Split", {"k": np.array([n, 3 - n])}, {"axis": 1}),
    "Flatten": lambda n: ("Flatten", {}, {"axis": n}),
    "Softmax": lambda n: ("Softmax", {}, {"axis": n}),
    "Gather": lambda n: ("Gather", {"i": np.array([n])}, {"axis": 1}),
    "GroupNormalization": lambda n: (
        "GroupNormalization",
        {"s": np.ones(3, np.float32), "b": np.ones(3, np.float32)},
        {"num_groups": n},
    ),
    "EyeLike": lambda n: ("EyeLike", {}, {"k": n}),
    "Reshape": lambda n: ("Reshape", {"r": np.array([n, -1])}, {}),
    "Col2Im": lambda n: ("Col2Im", {"a": np.array([n, n]), "b": np.array([1, 1])}, {}),
    "CenterCropPad": lambda n: ("CenterCropPad", {"a": np.array([n, n])}, {"axes": [2, 3]}),
    "Unsqueeze": lambda n: ("Unsqueeze", {"a": np.array([n])}, {}),
    "ReduceSum axes": lambda n: ("ReduceSum", {"a": np.array([n])}, {}),
    "Pow": lambda n: ("Pow", {"a": np.array(n, np.float32)}, {}),
    "STFT step": lambda n: ("STFT", {"a": np.array(n), "b": np.ones(4, np.float32)}, {}),
    "DFT length": lambda n: ("DFT", {"l": np.array(n)}, {"axis": 2}),
}

_SOURCES: dict[str, Callable[[int], tuple[str, Constants, Constants]]] = {
    "Range": lambda n: ("Range", {"a": np.array(0), "b": np.array(n), "c": np.array(1)}, {}),
    "ConstantOfShape": lambda n: ("ConstantOfShape", {"a": np.array([n])}, {}),
    "HannWindow": lambda n: ("HannWindow", {"a": np.array(n)}, {}),
    "MelWeightMatrix": lambda n: (
        "MelWeightMatrix",
        {"a": np.array(n), "b": np.array(n), "c": np.array(16000), "d": np.float32(0), "e": np.float32(8000)},
        {},
    ),
    "RandomNormal": lambda n: ("RandomNormal", {}, {"shape": [n]}),
}
"""Nodes without an input of the graph, whose result is added to it."""


def model(name: str, n: int) -> onnx.ModelProto:
    """The node of a case with the value `n`."""
    source = name in _SOURCES
    op, constants, attributes = (_SOURCES if source else CASES)[name](n)
    inputs = [*constants] if source else ["x", *constants]
    nodes = [helper.make_node(op, inputs, ["v"], "absurd", **attributes)]
    if source:
        nodes += [
            helper.make_node("Cast", ["v"], ["f"], "cast", to=TensorProto.FLOAT),
            helper.make_node("ReduceSum", ["f"], ["s"], "sum"),
            helper.make_node("Add", ["x", "s"], ["y"], "last"),
        ]
    else:
        nodes.append(helper.make_node("Identity", ["v"], ["y"], "last"))
    return build(nodes, {"x": (np.float32, IMAGE)}, {"y": (np.float32, None)}, constants)


EVERY = [(name, n) for name in (*CASES, *_SOURCES) for n in MOST]


class AbsurdSubject:
    """Each case in turn."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "absurd.onnx"
        self.board = load_board("host")
        self.done = 0

    def __call__(self, _: random.Random) -> None:
        name, n = EVERY[self.done]
        self.done += 1
        self.path.write_bytes(model(name, n).SerializeToString())
        generated(load_model(self.path), self.board, UNSPLIT)
