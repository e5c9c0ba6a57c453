"""The functional model of an Ethos-U runs streams of Arm's Vela, with every byte of TFLite Micro."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from vela_streams import ACCELERATORS, Array, VelaStream, compiled, macs_of, micro_outputs, model_library

sys.path.append(str(Path(__file__).resolve().parents[1] / "frontend" / "tflite"))

from flat_cases import CASES, network
from flat_files import FlatFile, drawn

SINGLE = (
    "CONV_2D-same-1-1",
    "CONV_2D-valid-1-2",
    "CONV_2D-int16-same-2-1",
    "DEPTHWISE_CONV_2D-same-2-1",
    "DEPTHWISE_CONV_2D-int16-valid-1-2",
    "FULLY_CONNECTED-int8",
    "TRANSPOSE_CONV-int8-0-2-3",
    "AVERAGE_POOL_2D-0-2-0",
    "AVERAGE_POOL_2D-int16-valid",
    "MAX_POOL_2D-0-1-3",
    "MEAN-int8",
    "ADD-int8",
    "ADD-int16-broadcast",
    "SUB-int8",
    "MUL-int8",
    "MINIMUM-int8",
    "ABS-int8",
    "LEAKY_RELU-int8",
    "LOGISTIC-int16",
    "TANH-int16-power-of-two",
    "SOFTMAX-int16",
    "PRELU-int8 (1, 1, 6)",
    "MIRROR_PAD-int8-reflect",
    "CONCATENATION-int16",
    "QUANTIZE-between-scales",
    "UNIDIRECTIONAL_SEQUENCE_LSTM-int8",
)
"""Operators that Vela puts on the unit whole, and whose results TFLite Micro has right."""


def _doubled(f: FlatFile) -> Any:
    """Nearest neighbours, which the unit reads from an input that it scales up."""
    x, y = f.int8(1, 5, 6, 3), f.int8(1, 10, 12, 3)
    f.operator(
        "RESIZE_NEAREST_NEIGHBOR", [x, f.constant([10, 12])], y, AlignCorners=False, HalfPixelCenters=False
    )
    return [x], [y]


NETWORKS = {"network": network, "doubled": _doubled, **{name: CASES[name].make for name in SINGLE}}
Made = tuple[Path, list[Array]]


def _saved(folder: Path, make: Callable[[FlatFile], Any]) -> Made:
    f = FlatFile()
    inputs, outputs = make(f)
    folder.mkdir()
    return f.save(folder, inputs, outputs), [drawn(f, it) for it in inputs]


@pytest.fixture(scope="module")
def networks(tmp_path_factory: pytest.TempPathFactory) -> list[Made]:
    folder = tmp_path_factory.mktemp("networks")
    return [_saved(folder / str(number), make) for number, make in enumerate(NETWORKS.values())]


@pytest.fixture(scope="module")
def expected(networks: list[Made]) -> list[bytes]:
    return [it.tobytes() for it in micro_outputs(*zip(*networks, strict=True))]


@pytest.fixture(scope="module")
def streams(
    networks: list[Made], tmp_path_factory: pytest.TempPathFactory
) -> dict[tuple[str, int], VelaStream]:
    """By accelerator and number of a network: the whole network, and a part of the single operators."""
    jobs = [
        (accelerator, number)
        for at, accelerator in enumerate(ACCELERATORS)
        for number in (0, *range(1 + at, len(networks), len(ACCELERATORS)))
    ]
    pairs = [(accelerator, networks[number][0]) for accelerator, number in jobs]
    return dict(zip(jobs, compiled(pairs, tmp_path_factory.mktemp("streams")), strict=True))


@pytest.mark.parametrize("accelerator", ACCELERATORS)
def test_streams_of_vela_have_the_bytes_of_tflite_micro(
    accelerator: str,
    networks: list[Made],
    expected: list[bytes],
    streams: dict[tuple[str, int], VelaStream],
    tmp_path: Path,
) -> None:
    model = model_library(tmp_path, macs_of(accelerator), "-DMCUD_NPU_ACCUMULATORS=128")  # in several passes
    for number, stream in ((number, it) for (unit, number), it in streams.items() if unit == accelerator):
        code, outputs = stream.run(model, networks[number][1])
        assert (code, outputs[0]) == (0, expected[number]), list(NETWORKS)[number]
