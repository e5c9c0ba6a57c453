"""The analysis as text, and the commands that print it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from mcudeploy.cli.main import cli
from mcudeploy.ops.move.transpose import Transpose
from mcudeploy.ops.move.view import Reshape
from mcudeploy.ops.scalar.elementwise import Binary, Lut
from mcudeploy.planner.axes import explain
from tests.analyzer.build import conv, global_pool, graph, resize

MODEL = str(Path(__file__).resolve().parents[2] / "examples" / "vww" / "model.onnx")


def test_a_residual_network() -> None:
    built = graph(
        {"image": (16, 8, 4)},
        [
            ("a", conv(4), "image"),
            ("b", conv(4, stride=2), "a"),
            ("skip", conv(4, kernel=1, stride=2), "a"),
            ("sum", Binary("add"), "b skip"),
            ("pool", global_pool(8, 4), "sum"),
            ("dense", conv(10, kernel=1), "pool"),
        ],
    )
    assert explain(built) == "\n".join(
        [
            "6 operators; 1 component to be cut along rows",
            "input image  16 rows  taken in parts",
            "",
            "component 1: 4 operators, 23,552 MACs, 3,584 B of outputs",
            "    a     Conv2d  16 rows  18,432 MACs  2,048 B",
            "    b     Conv2d   8 rows   4,608 MACs    512 B",
            "    skip  Conv2d   8 rows     512 MACs    512 B",
            "    sum   Binary   8 rows      no MACs    512 B",
            "  connected along rows",
            "    a -> b       kernel 3, stride 2, pad 1|0, halo 1",
            "    a -> skip    o reads 2*o",
            "    b -> sum     one to one",
            "    skip -> sum  one to one",
            "  ends",
            "    sum -> pool  pool takes all 8 rows into one",
            "",
            "operators alone",
            "    pool   AveragePool  1 row  no MACs  16 B",
            "    dense  Conv2d       1 row  40 MACs  40 B",
            "  ends",
            "    pool -> dense  pool has only 1 row",
        ]
    )


def test_every_end_has_its_reason() -> None:
    built = graph(
        {"image": (8, 8, 4)},
        [
            ("x", conv(4), "image"),
            ("gate", global_pool(8, 8), "x"),
            ("gated", Binary("mul"), "x gate"),
            ("turned", Transpose((8, 8, 4), (1, 0, 2), (8, 8, 4)), "gated"),
            ("view", Reshape((16, 4, 4)), "turned"),
            ("bigger", resize("nearest", 16, 2, cols=4), "view"),
            ("small", conv(4, kernel=1, stride=16), "bigger"),
            ("window", conv(4, kernel=3), "small"),
        ],
    )
    text = explain(built)
    for reason in (
        "gate takes all 8 rows into one",
        "connected, but gate would lie between",
        "gated broadcasts it: every row reads the same",
        "turned turns rows into cols",
        "view is a view with other rows: its memory is one piece",
        "o reads 16*o",
        "a window of window covers all 2 rows",
    ):
        assert reason in text
    assert "table 16 -> 32, up to 1 for each, halo 1" in explain(
        graph({"in": (16, 4, 4)}, [("x", Lut(), "in"), ("y", resize("nearest", 16, 2, cols=4), "x")])
    )


def test_an_input_that_is_read_whole_is_said_so() -> None:
    built = graph({"image": (8, 8, 4)}, [("x", Lut(), "image"), ("pool", global_pool(8, 8), "image")])
    assert "input image  8 rows  read whole by pool" in explain(built)


@pytest.mark.parametrize("as_json", [True, False])
def test_plan_explains(as_json: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    line = [
        "plan",
        MODEL,
        "--board",
        "stm32f405",
        "--explain",
        "--time-limit",
        "2",
        *(["--json"] if as_json else []),
    ]
    result = CliRunner().invoke(cli, line)
    assert result.exit_code == 0, result.stderr
    text = json.loads(result.stdout)["explanation"] if as_json else result.stdout
    assert "kernel 3, stride 1, pad 1, halo 2" in text
    assert ("explanation" in result.stdout) is as_json
