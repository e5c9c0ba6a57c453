"""The check that libraries bring along: right as built, wrong where the program is, gone if nobody asks."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import onnx
import pytest
from models import fully_connected, quantised_convolutions
from test_stateful import network, saved

from mcudeploy.boards.catalogue import load_board
from mcudeploy.planner.plan_options import Options
from mcudeploy.toolchain import firmware_build as build
from tests import reports
from tests.linked import linked

MAIN = """#include "m_selftest.h"
int main(void)
{
    return m_selftest() > 100u ? 100 : (int)m_selftest();
}
"""
QUICK = Options(name="m", time_limit=0.5)


def library(path: Path, folder: Path, options: Options = QUICK, *, verify: bool = True) -> dict[str, object]:
    """The library of a model for a real board, without its firmware."""
    board = load_board("stm32f405")
    return reports.build_models([path], board, options, folder, verify=verify, library_only=True)


def wrong(folder: Path) -> int:
    """The number of outputs that differ, in the worse of two runs of the self-test."""
    return subprocess.run([linked(folder, MAIN, "-ffp-contract=off")], check=False).returncode


@pytest.mark.parametrize("kind", ["streamed", "floats", "stateful"])
def test_it_is_right_as_built_and_wrong_with_other_weights(kind: str, tmp_path: Path) -> None:
    options = QUICK
    if kind == "floats":
        path = fully_connected(tmp_path / "m.onnx", (8, 6, 4), quantised=False)
    elif kind == "stateful":
        path = saved(network("LSTM"), tmp_path)
        options = Options(name="m", time_limit=0.5, stateful=True)
    else:
        path = quantised_convolutions(tmp_path / "m.onnx")
        options = Options(name="m", time_limit=0.5, stream_input=True)
    report = library(path, tmp_path / "out", options)
    assert report["selftest"] and report["verified"]
    assert not list((tmp_path / "out").rglob("*.elf"))
    assert wrong(tmp_path / "out") == 0
    weights = tmp_path / "out" / "src" / "m_weights.c"
    text = weights.read_text()
    first = re.compile(r"(= \{\n +)[-0-9.e]+(f?)")
    weights.write_text(first.sub(lambda found: found[1] + ("100.0f" if found[2] else "100"), text))
    assert wrong(tmp_path / "out") > 0


def test_the_header_says_shapes_and_scales(tmp_path: Path) -> None:
    library(quantised_convolutions(tmp_path / "m.onnx"), tmp_path / "out")
    main = """#include "m.h"
static const int32_t in[M_INPUT_DIMS] = M_INPUT_SHAPE, out[M_OUTPUT_DIMS] = M_OUTPUT_SHAPE;
int main(void)
{
    const int right = in[0] == 12 && in[1] == 12 && in[2] == 3 && out[2] == 4;
    return !(right && M_INPUT_SCALE == 0.02f && M_INPUT_ZERO_POINT == -5 && M_INPUT_COUNT == 432);
}
"""
    sections = ("-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections")
    program = linked(tmp_path / "out", main, *sections)
    subprocess.run([program], check=True)
    symbols = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    assert "given_input" not in symbols and "m_selftest" not in symbols, "nobody calls it"


def test_a_library_needs_no_toolchain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = quantised_convolutions(tmp_path / "m.onnx")
    monkeypatch.setattr(build, "find_compiler", lambda _: None)
    report = library(path, tmp_path / "out", verify=False)
    assert (report["verified"], report["selftest"]) == (None, False)
    assert not list((tmp_path / "out").rglob("*selftest*"))
    assert (tmp_path / "out" / "include" / "m.h").is_file()


def test_outputs_that_are_not_numbers_are_not_compared(tmp_path: Path) -> None:
    node = onnx.helper.make_node("Sqrt", ["x"], ["y"])
    ios = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, 4]) for name in "xy"]
    graph = onnx.helper.make_graph([node], "roots", ios[:1], ios[1:])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=9)
    assert library(saved(model, tmp_path), tmp_path / "out")["selftest"] is False
