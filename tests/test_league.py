"""The league: other tools' files are parsed, programs counted, rows compared; no other tool is needed."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from models import quantised_convolutions
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))

from peers.bakenn_graph import described
from peers.bakenn_tool import sizes_of, source_lists
from peers.chart import drawing, tool_points
from peers.environment import last_message
from peers.generated import Buffer, Expected, Generated, NetworkRefusedError, adapter, raw
from peers.judge import RAM_GOAL, Comparison, compare, share_within
from peers.micro_tool import total_of
from peers.networks import networks_in
from peers.own_tool import accessors
from peers.page import Provenance, page
from peers.program import run
from peers.quoted import published, read
from peers.rows import OWN, SMALL, Row, compared
from peers.tflm_tool import methods_of

from mcudeploy.boards.catalogue import load_board
from mcudeploy.ir.graph import DType, Graph, GraphIO, Operator, Quantization, Tensor
from mcudeploy.ops.conv.conv import Conv2d
from mcudeploy.ops.pool.pool import MaxPool
from mcudeploy.ops.reduce.norm import LayerNorm
from mcudeploy.ops.scalar.elementwise import Lut
from mcudeploy.planner.model.model import read_model
from mcudeploy.planner.plan_options import Options
from tests.targets.conftest import cache  # noqa: F401 - a fixture

CMAKE = """\
# paths are relative to this file
set(BAKENN_MODEL_SOURCES
  "${CMAKE_CURRENT_LIST_DIR}/bknn_model.c"
  "${CMAKE_CURRENT_LIST_DIR}/third_party/arm_convolve_s8.c"
)
set(BAKENN_MODEL_COMPILE_DEFINITIONS
  BAKENN_CMSIS_NN_BUILTIN_MEMORY
)
"""
HEADER = """\
#define BKNN_MODEL_INPUT_BYTES 490u
#define BKNN_MODEL_INPUT_SCALE 0x1.2b5e2e0000000p-1f
#define BKNN_MODEL_ARENA_SIZE 17152u
"""
DOUBLING = """\
#include <stdint.h>
static uint8_t input[4], output[4];
static void doubling(void)
{
    volatile uint8_t taken[1000];
    for (int i = 0; i < 1000; i++) {
        taken[i] = 1;
    }
    for (int i = 0; i < 4; i++) {
        output[i] = (uint8_t)(input[i] * 2 * taken[i]);
    }
}
"""
DOUBLED = Generated(
    (),
    (),
    DOUBLING,
    "doubling()",
    [Buffer("input", 4)],
    [Buffer("output", 4)],
    [bytes([1, 2, 3, 4])],
    [raw(np.array([2, 4, 6, 8], np.uint8))],
)
ROW = Row("kws", "mps2-an386", OWN, True, True, 100, 10, 1000, 500, 600)
WRONG = {"difference": 200.0, "output_range": 255.0}
PROVENANCE = Provenance("abc", "today", "league", "gcc 12", 10.0)
PEER = replace(ROW, tool="BakeNN", ram_bytes=250, instructions=1000, cycles=1000)


def test_a_cmake_file_names_sources_and_definitions() -> None:
    lists = source_lists(CMAKE, Path("/c"))
    assert lists["SOURCES"] == ["/c/bknn_model.c", "/c/third_party/arm_convolve_s8.c"]
    assert lists["COMPILE_DEFINITIONS"] == ["BAKENN_CMSIS_NN_BUILTIN_MEMORY"]


def test_sizes_are_read_from_macros() -> None:
    assert sizes_of(HEADER) == {"INPUT_BYTES": 490, "ARENA_SIZE": 17152}


def test_accessors_of_our_libraries_are_inputs_and_outputs() -> None:
    header = "int8_t *model_image(void);\nfloat *model_hint(void);\nconst int8_t *model_output(void);\n"
    assert accessors(header) == (["model_image", "model_hint"], ["model_output"])


def test_the_arena_is_the_total_of_the_report() -> None:
    assert total_of("[RecordingMicroAllocator] Arena allocation total 103680 bytes\n") == 103680
    with pytest.raises(NetworkRefusedError):
        total_of("Didn't find op for builtin opcode 'SVDF'")


RESOLVER = """\
  TfLiteStatus AddConv2D(
      const TFLMRegistration& registration = Register_CONV_2D()) {
    return AddBuiltin(BuiltinOperator_CONV_2D, registration, ParseConv2D);
  }

  TfLiteStatus AddDequantize() {
    return AddBuiltin(BuiltinOperator_DEQUANTIZE, tflite::Register_DEQUANTIZE(),
                      ParseDequantize);
  }
"""


def test_operators_of_a_file_have_methods_of_the_resolver() -> None:
    assert methods_of(RESOLVER) == {"CONV_2D": "AddConv2D", "DEQUANTIZE": "AddDequantize"}


def test_the_message_of_a_tool_is_its_error() -> None:
    assert last_message("Traceback\nValueError: no such node\nsee the log\n") == "ValueError: no such node"
    assert last_message("") == "no message"


def test_the_adapter_compiles_without_a_warning(tmp_path: Path) -> None:
    file = tmp_path / "adapter.c"
    file.write_text(adapter(DOUBLED), "utf-8")
    include = Path(__file__).resolve().parents[1] / "benchmarks" / "peers"
    subprocess.run(
        ["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", f"-I{include}", "-fsyntax-only", str(file)],
        check=True,
    )


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("name", ["mps2-an386", "riscv32-virt"])
def test_a_program_is_counted_and_answers(name: str) -> None:
    board = load_board(name)
    ran = run(DOUBLED, board, "-O2")
    assert ran.outputs == (bytes([2, 4, 6, 8]),)
    assert 8 <= ran.needs.static_bytes <= 16
    assert 1000 <= ran.needs.stack_bytes <= 1200
    assert 3000 <= ran.needs.instructions <= 8000
    assert (ran.needs.cycles is None) == (name == "riscv32-virt")
    assert ran.needs.cycles is None or ran.needs.cycles > ran.needs.instructions
    assert 50 <= ran.needs.flash_bytes <= 500


@pytest.mark.usefixtures("cache")
def test_a_fault_is_the_refusal(tmp_path: Path) -> None:
    broken = replace(DOUBLED, call='doubling(); __asm__ volatile("udf #0")')
    with pytest.raises(NetworkRefusedError, match="the program faulted"):
        run(broken, load_board("mps2-an386"), "-O2")
    large = DOUBLING.replace("1000", "5000000")
    with pytest.raises(NetworkRefusedError, match="one function needs 5,000,0"):
        run(replace(DOUBLED, declarations=large), load_board("mps2-an386"), "-O2")
    with pytest.raises(NetworkRefusedError, match="undefined reference"):
        run(replace(DOUBLED, call="elsewhere()"), load_board("mps2-an386"), "-O2")


def test_the_difference_of_outputs_is_their_largest() -> None:
    wanted = np.array([-100, 0, 100], np.int8)
    assert compared([raw(wanted)], [(wanted + np.int8(12)).tobytes()]) == (12, 255)
    floats = np.array([-0.5, 1.0], np.float32)
    assert compared([raw(floats)], [floats.tobytes()]) == (0, 1)
    assert compared([raw(floats)], [(floats + np.float32(0.5)).tobytes()]) == (0.5, 1.5)
    both = [raw(wanted), raw(floats)], [wanted.tobytes(), (floats + np.float32(0.5)).tobytes()]
    assert compared(*both) == (0.5, 1.5)


def test_outputs_are_wrong_beyond_a_share_of_their_range() -> None:
    assert not replace(ROW, difference=85.0, output_range=255.0).is_wrong
    assert replace(ROW, difference=86.0, output_range=255.0).is_wrong
    assert not ROW.is_wrong
    nothing = Expected(np.ones(2, np.float32), lambda _: np.full(2, np.nan))
    difference, output_range = compared([nothing], [b""])
    assert replace(ROW, difference=difference, output_range=output_range).is_wrong


def test_the_best_other_tool_counts() -> None:
    better = replace(PEER, tool="better", ram_bytes=150, cycles=None)
    (comparison,) = compare([ROW, PEER, better])
    assert comparison.ram is not None and (comparison.ram.tool, comparison.ram.theirs) == ("better", 150)
    assert comparison.time is not None and comparison.time.unit == "cycles"
    assert comparison.time.value == 0.6 and comparison.missing == ""


def test_instructions_are_compared_where_one_has_no_cycles() -> None:
    quick = replace(PEER, cycles=None, instructions=550)
    (comparison,) = compare([ROW, PEER, quick])
    assert comparison.time is not None
    assert (comparison.time.unit, comparison.time.ours, comparison.time.theirs) == ("instructions", 500, 550)


def test_wrong_and_refused_tools_do_not_count() -> None:
    wrong = replace(PEER, ram_bytes=1, **WRONG)
    (comparison,) = compare([ROW, wrong, replace(PEER, refusal="no Softmax", ram_bytes=None)])
    assert comparison == Comparison("kws", "mps2-an386", True, None, None, None)


def test_our_missing_result_is_a_loss() -> None:
    (comparison,) = compare([replace(ROW, **WRONG), PEER])
    assert comparison.missing == "wrong outputs" and comparison.ram is None
    (comparison,) = compare([replace(ROW, refusal="no room"), PEER])
    assert comparison.missing == "no room"
    (comparison,) = compare([replace(ROW, refusal="no room")])
    assert comparison.missing == ""


def test_only_int8_networks_with_convolutions_have_goals() -> None:
    other = [replace(ROW, is_int8=False), replace(PEER, is_int8=False, ram_bytes=99)]
    assert [it.has_goals for it in compare(other)] == [False]
    text = page(other, PROVENANCE)
    assert "| kws | mps2-an386 | ram | 100 B | 99 (BakeNN) | 1.01 |" in text and "| time |" not in text
    assert "| all | 0 |" in text


def test_a_row_with_more_flash_states_the_trade() -> None:
    small = replace(ROW, tool=SMALL, flash_bytes=600, cycles=660)
    text = page([ROW, small, replace(PEER, flash_bytes=500)], PROVENANCE)
    assert "| flash | 1,000 B | 500 (BakeNN) | 2.00 | `--optimize size --no-split`: 600 B at 1.10" in text


def test_a_share_is_of_the_ratios() -> None:
    rows = [ROW, PEER, replace(ROW, network="ic"), replace(PEER, network="ic", ram_bytes=180)]
    ratios = [it.ram for it in compare(rows) if it.ram]
    assert [it.value for it in ratios] == [0.4, 100 / 180]
    assert share_within(ratios, RAM_GOAL) == 0.5


def test_a_point_is_the_geometric_mean_of_multiples() -> None:
    rows = [ROW, PEER, replace(ROW, network="ic"), replace(PEER, network="ic", ram_bytes=1000)]
    ours, theirs = tool_points(rows)
    assert (ours.tool, ours.time, ours.ram) == (OWN, 1, 1)
    assert theirs.ram == pytest.approx(5) and theirs.time == pytest.approx(10 / 6) and theirs.rows == 2
    tree = ElementTree.fromstring(drawing([ours, theirs]))
    signs = [it for it in tree.iter() if it.tag.endswith("circle")]
    assert len(signs) == 2  # the point and its legend


def test_the_page_begins_with_lost_rows() -> None:
    lost = replace(PEER, ram_bytes=110)
    refused = Row("kws", "mps2-an386", "emx", True, True, refusal="no | such <op>")
    text = page([ROW, lost, refused], PROVENANCE)
    places = [
        text.index(it) for it in ("## Rows beyond", "| 0.91 |", "## Goals", "## mps2-an386", "## Refused")
    ]
    assert places == sorted(places)
    assert "## Published" in text
    assert "## Published" not in page([ROW, lost], replace(PROVENANCE, chosen=True))
    assert "0 of 1 (0%)" in text and "| emx | no / such &lt;op> | kws |" in text


def test_quoted_figures_are_complete() -> None:
    assert all(it.source and it.date and it.figures for it in published())
    for it in read()["measured"]:
        assert load_board(it["board"]).emulator is not None
        assert it["instructions"] > 0 and it["remark"].startswith("quoted")


def test_networks_are_found_with_their_forms(tmp_path: Path) -> None:
    for name in ("a_int8", "a_fp32", "b_int8"):
        (tmp_path / "group" / name).mkdir(parents=True)
        (tmp_path / "group" / name / "model.onnx").touch()
    for name in ("a_int8", "c_int8"):
        (tmp_path / f"{name}.tflite").touch()
    a32, a, original, b, c = networks_in(tmp_path)
    assert (original.name, original.path) == ("a_int8.tflite", a.tflite)
    assert original.float_twin == a.float_twin
    assert (a32.tflite, a32.float_twin) == (None, None)
    assert a.path.name == "model.onnx" and a.tflite is not None
    assert a.float_twin is not None and a.float_twin.parent.name == "a_fp32"
    assert (b.tflite, b.float_twin) == (None, None)
    assert c.path == c.tflite == tmp_path / "c_int8.tflite"


def test_a_network_is_described_for_bakenn(tmp_path: Path) -> None:
    graph = read_model(quantised_convolutions(tmp_path / "small.onnx"), Options(keep_constant=True)).graph
    result = described(graph)
    assert [kind for kind, _ in result.steps] == ["Conv2DOp", "Conv2DOp"]
    first, second = (fields for _, fields in result.steps)
    assert first["padding"] == (1, 1, 1, 1) and first["output"] == second["input"]
    assert result.values["image"]["shape"] == (1, 12, 12, 3) and result.inputs == ["image"]
    weights, bias = (result.values[first[name]] for name in ("weight", "bias"))
    scale = np.float32(result.values["image"]["scale"])
    assert bias["scales"] == [float(np.float32(scale * np.float32(it))) for it in weights["scales"]]
    assert result.constants[first["weight"]].shape == weights["shape"] == (8, 3, 3, 3)


def test_the_four_sides_of_a_padding_change_places() -> None:
    operator = Operator("pool", MaxPool((3, 3), (2, 2), (1, 1), (0, 1, 2, 3), (4, 4)), ("x",), "y", {})
    scale = Quantization(0.5, 3)
    tensors = {
        "x": Tensor("x", (8, 6, 4), DType.INT8, scale),
        "y": Tensor("y", (4, 4, 4), DType.INT8, Quantization(0.25, 3)),
    }
    ios = (GraphIO(it, it, tensors[it].shape, "int8", np.arange(tensors[it].elements)) for it in "xy")
    taken, result = ios
    graph = described(Graph("g", tensors, (operator,), (taken,), (result,)))
    (kind, pool), (_, scaling) = graph.steps
    assert kind == "MaxPool2DOp" and pool["padding"] == (0, 2, 1, 3)  # top, bottom, left, right
    assert (pool["output"], scaling["input"], scaling["output"]) == ("y_pooled", "y_pooled", "y")
    assert graph.values["y_pooled"] == {**graph.values["y"], "scale": 0.5}


def test_dense_layers_are_linear_and_others_are_refused() -> None:
    constants = {
        "weights": np.ones((2, 1, 1, 4), np.int8),
        "bias": np.zeros(2, np.int32),
        "weight_scale": np.ones(2, np.float32),
    }
    scale = Quantization(0.5, 3)
    tensors = {
        "x": Tensor("x", (1, 1, 4), DType.INT8, scale),
        "y": Tensor("y", (1, 1, 2), DType.INT8, scale),
    }
    ios = [GraphIO(it, it, tensors[it].shape, "int8", np.arange(tensors[it].elements)) for it in "xy"]
    dense = Operator("dense", Conv2d(2, high=1.0), ("x",), "y", constants)
    graph = described(Graph("g", tensors, (dense,), (ios[0],), (ios[1],)))
    (_, _), (kind, fields) = graph.steps
    assert kind == "LinearOp" and fields["input"] == "x_flat" and fields["activation_max"] == 5
    assert graph.constants[fields["weight"]].shape == (2, 4)
    with pytest.raises(NetworkRefusedError, match="has no LayerNorm"):
        same = {"x": tensors["x"], "y": replace(tensors["x"], name="y")}
        described(
            Graph(
                "g",
                same,
                (replace(dense, op=LayerNorm(1e-5)),),
                (ios[0],),
                (replace(ios[0], tensor="y"),),
            )
        )


def test_tables_are_the_operations_that_have_them() -> None:
    source, output = Quantization(0.1, 0), Quantization(0.05, -128)
    tensors = {
        "x": Tensor("x", (2, 2, 4), DType.INT8, source),
        "y": Tensor("y", (2, 2, 4), DType.INT8, output),
    }
    ios = [GraphIO(it, it, (2, 2, 4), "int8", np.arange(16)) for it in "xy"]
    values = np.arange(-128, 128) * 0.1

    def kind_of(results: NDArray[np.float64]) -> str:
        table = np.clip(np.rint(results / 0.05) - 128, -128, 127).astype(np.int8)
        operator = Operator("lut", Lut(), ("x",), "y", {"table": table})
        (step,) = described(Graph("g", tensors, (operator,), (ios[0],), (ios[1],))).steps
        return step[0]

    assert kind_of(np.maximum(values, 0)) == "RequantizeOp"
    assert kind_of(values * np.clip(values / 6 + 0.5, 0, 1)) == "HardSwishOp"
    with pytest.raises(NetworkRefusedError, match="tables of other functions"):
        kind_of(np.sin(values) + 1)
