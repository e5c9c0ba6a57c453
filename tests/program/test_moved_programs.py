"""Programs with moves compute the bits of those without; the kernel that moves is memmove."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from graphs import conv, graph_io, pooled, residual
from numpy.typing import NDArray
from test_golden import SOURCE, STRICT

from mcudeploy.boards.catalogue import load_board
from mcudeploy.checker.judge import check
from mcudeploy.codegen.folder import write_folder
from mcudeploy.codegen.kernelfiles import AWAIT, START, source_folders, source_index
from mcudeploy.codegen.library import library_files
from mcudeploy.codegen.program import Program, make_program
from mcudeploy.codegen.render import LibraryModel, render_firmware
from mcudeploy.common.resources import resource_dir
from mcudeploy.device.target import Device, Target, open_device
from mcudeploy.ir.graph import Graph, Operator
from mcudeploy.ir.opdef import KernelCall
from mcudeploy.ir.plan import Plan
from mcudeploy.ops.move.view import Reshape
from mcudeploy.ops.scalar.elementwise import Binary, Lut
from mcudeploy.planner.model.forms import stream_inputs
from mcudeploy.planner.order.rpo import reverse_post_order
from mcudeploy.planner.tape.plan_view import PlanView
from mcudeploy.planner.tape.tape import Tape
from mcudeploy.tiling.blocks import BlockId, TiledGraph
from mcudeploy.tiling.dataflow import Dataflow
from mcudeploy.tiling.live import work_bytes
from mcudeploy.toolchain import Firmware, build_firmware
from mcudeploy.verify.compare import Storage, check_operators, run_once, run_with_ties_as_reference
from tests.moves import with_moves
from tests.one_memory import lay_out
from tests.residing import Move, elsewhere, moving, offsets_of, repeating

HOST = load_board("host")
Array = NDArray[Any]


def viewed() -> Graph:
    """As `residual`, but a is read through two views of another shape, by a convolution and by the sum."""
    graph, tall = residual(), (16, 4, 4)
    names = {
        name: replace(graph.tensors["b"], name=name, shape=tall)
        for name in ("flat", "b", "c", "sum", "flat_a")
    }
    views = [Operator(name, Reshape(tall), ("a",), name) for name in ("flat", "flat_a")]
    first, second, third, add = graph.operators
    last = replace(add, inputs=("c", "flat_a"))
    order = np.arange(256, dtype=np.int32)
    return Graph(
        graph.name,
        {**graph.tensors, **names},
        (first, views[0], replace(second, inputs=("flat",)), third, views[1], last),
        graph.inputs,
        (replace(graph.outputs[0], shape=(1, 256), order=order),),
    )


def viewed_by_rows() -> Graph:
    """image -> a, viewed with the same rows by a convolution and a sum: wide -> b -> c -> sum."""
    graph, names = residual(), ("wide", "b", "c", "sum")
    shapes = {name: (8, 16, 4 if name == "b" else 2) for name in names}
    tensors = {name: replace(graph.tensors["a"], name=name, shape=shape) for name, shape in shapes.items()}
    return Graph(
        graph.name,
        {"image": graph.tensors["image"], "a": graph.tensors["a"], **tensors},
        (
            graph.operators[0],
            Operator("widen", Reshape(shapes["wide"]), ("a",), "wide"),
            conv("conv_b", "wide", "b", (2, 4)),
            conv("conv_c", "b", "c", (4, 2)),
            Operator("add", Binary("add"), ("c", "wide"), "sum"),
        ),
        graph.inputs,
        (graph_io("sum", shapes["sum"]),),
    )


def chained() -> Graph:
    """image -> a -> l -> m -> sum: l and m are made in place of what they are made of, value by value."""
    graph = residual()
    shapes = {name: replace(graph.tensors["a"], name=name) for name in ("image", "a", "l", "m", "sum")}
    first, second, *_ = graph.operators
    table = np.random.default_rng(2).permutation(np.arange(-128, 128)).astype(np.int8)
    return Graph(
        graph.name,
        shapes,
        (
            first,
            Operator("lut_l", Lut(), ("a",), "l", {"table": table}),
            Operator("lut_m", Lut(), ("l",), "m", {"table": table[::-1].copy()}),
            replace(second, inputs=("m",), output="sum"),
        ),
        graph.inputs,
        graph.outputs,
    )


def calls_of(graph: Graph) -> dict[str, KernelCall]:
    return {
        o.name: o.op.kernel(o, graph.input_tensors(o), graph.tensors[o.output])
        for o in graph.operators
        if not o.op.is_view
    }


def planned(graph: Graph, block_rows: Mapping[str, int] | int, *again: BlockId) -> Plan:
    """The plan of a graph; the blocks `again` are made twice."""
    rows = (
        dict.fromkeys((o.name for o in graph.operators), block_rows)
        if isinstance(block_rows, int)
        else dict(block_rows)
    )
    tiled, work = TiledGraph(Dataflow.of(graph), rows), work_bytes(calls_of(graph))
    schedule = repeating(tiled, reverse_post_order(tiled), *again)
    layout, estimate = lay_out(tiled, schedule, work, "ram", HOST.offset_unit)
    return Plan(graph, HOST.name, tiled.block_rows, schedule, layout, estimate)


def program_of(plan: Plan) -> Program:
    return make_program(PlanView(plan, calls_of(plan.graph)), "net", HOST)


def firmware_of(plan: Plan) -> Firmware:
    program = program_of(plan)
    files = render_firmware(program, plan, SOURCE)
    return build_firmware(HOST, files, program.kernels, emulate=False, sanitize=True)


GRAPHS: dict[str, tuple[Any, ...]] = {
    "in blocks of a row": (residual(), 1),
    "in blocks of three rows": (residual(), 3),
    "whole": (residual(), 8),
    "with recomputed blocks": (residual(), 2, ("a", 0), ("a", 1)),
    "fed": (stream_inputs(residual()), 2),
    "in place": (chained(), 2),
    "sums": (pooled(), {"conv_a": 2, "mean": 2}),
    "views with the same rows": (
        viewed_by_rows(),
        {"conv_a": 2, "widen": 8, "conv_b": 3, "conv_c": 1, "add": 1},
    ),
    "views": (
        viewed(),
        {"conv_a": 8, "flatten": 8, "flat": 16, "flat_a": 16, "conv_b": 4, "conv_c": 4, "add": 4},
    ),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_moved_plans_compute_the_same_bits(name: str) -> None:
    plan = planned(*GRAPHS[name])
    image = np.random.default_rng(1).integers(-128, 128, (8, 8, 4), np.int8)
    (output,) = (io.tensor for io in plan.graph.outputs)
    outputs, differing = [], []
    plans = [plan, with_moves(plan, seed=0, alignment=HOST.offset_unit)]
    if name == "whole":  # then even what the application has filled may move
        size = plan.layout.arena_bytes
        plans.append(moving(plan, Move(0, "image", 0, size + 8), ram=size + 264))
    for one in plans:
        assert (one is plan) != bool(one.layout.transfers)
        check(one, work_bytes(calls_of(one.graph)), HOST)
        with open_device(Target(HOST), firmware_of(one)) as device:
            assert device.session.info.steps == len(one.tape)
            storage, inputs = Storage.of(one), {"image": image}
            for _ in range(2):  # a run leaves no traces
                run_once(device, storage, inputs)
                outputs.append(storage.get_tensor(device, output))
            differing += _operator_by_operator(device, storage, inputs, outputs[0])
    assert all(np.array_equal(value, outputs[0]) for value in outputs[1:])
    assert not any(differing)


def test_rows_are_read_through_a_view_that_keeps_them() -> None:
    """Of a, at most half of the rows are live at the peak, and no bit changes."""
    image, found = np.random.default_rng(1).integers(-128, 128, (8, 8, 4), np.int8), []
    plans = [planned(viewed_by_rows(), 8), planned(*GRAPHS["views with the same rows"])]
    for plan in plans:
        check(plan, work_bytes(calls_of(plan.graph)), HOST)
        with open_device(Target(HOST), firmware_of(plan)) as device:
            storage = Storage.of(plan)
            run_once(device, storage, {"image": image})
            found.append(storage.get_tensor(device, "sum"))
    assert np.array_equal(*found)
    uncut, cut = (plan.estimate.peak_bytes for plan in plans)
    assert cut <= uncut - 4 * 8 * 4


def test_a_block_recomputed_elsewhere_has_the_same_bits() -> None:
    """Its scratch lies elsewhere as well; another version of both tables serves the steps from there on."""
    plan = planned(residual(), 2, ("a", 0))
    size = plan.layout.arena_bytes
    plan = elsewhere(plan, "a", 0, 1, size, ram=size + 384)
    ((scratch, later), *others) = plan.layout.scratch["conv_a"]
    away = replace(later, offset=size + 128)
    layout = replace(plan.layout, scratch={**plan.layout.scratch, "conv_a": ((scratch, away), *others)})
    plan = replace(plan, layout=layout)
    check(plan, work_bytes(calls_of(plan.graph)), HOST)
    tape = Tape(plan)
    assert [record.operator for record in tape.records] == [0, 0, 1, 2, 3]
    assert {((False, "a", "ram"), 1), ((True, "conv_a", "ram"), 1)} < set(tape.stored_as)
    image, outputs = np.random.default_rng(1).integers(-128, 128, (8, 8, 4), np.int8), []
    for one in (plan, planned(residual(), 8)):
        with open_device(Target(HOST), firmware_of(one)) as device:
            run_once(device, Storage.of(one), {"image": image})
            outputs.append(Storage.of(one).get_tensor(device, "sum"))
    assert np.array_equal(*outputs)


def test_what_is_made_in_place_of_a_moved_block_is_made_there() -> None:
    plan = planned(chained(), 2)
    plans = [with_moves(plan, seed, alignment=HOST.offset_unit) for seed in range(3)]
    assert any(offsets_of(one, "m") != offsets_of(plan, "m") for one in plans)


def _operator_by_operator(
    device: Device, storage: Storage, inputs: dict[str, Array], expected: Array
) -> list[int]:
    """Mismatches where steps are run one by one, with the output and nothing else as a reference."""
    graph = storage.plan.graph
    (output,) = (io.tensor for io in graph.outputs)
    ties = {output: np.ones(expected.shape, np.bool_)}
    given = run_with_ties_as_reference(device, storage, inputs, {output: expected}, ties)
    differences = check_operators(device, storage, {**inputs, output: expected}, {output: expected}, {})
    return [given, *(diff.mismatches for diff in differences.values())]


def test_operators_have_a_record_for_each_version_that_they_need() -> None:
    plan = planned(residual(), 8)
    a, size = offsets_of(plan, "a")[0], plan.layout.arena_bytes
    last = len(plan.schedule.steps) - 1
    moves = Move(1, "a", 0, size), Move(last, "a", 0, size + 64), Move(last, "a", 0, a)
    plan = moving(plan, *moves, ram=size + 320)
    tape = Tape(plan)
    assert [
        (record.operator, tuple(version for _, version in record.touched)) for record in tape.records
    ] == [
        (0, (0, 0, 0)), (1, (1, 0, 0)), (2, (0, 0, 0)), (3, (0, 3, 0))
    ]  # fmt: skip
    tensors = [("image", 0), ("a", 0), ("a", 1), ("a", 3), ("b", 0), ("c", 0), ("sum", 0)]
    scratch = [((True, name, "ram"), 0) for name in ("conv_a", "conv_b", "conv_c")]
    assert tape.stored_as == [*(((False, name, "ram"), version) for name, version in tensors), *scratch]
    assert list(tape.codes >> tape.block_bits) == [0, 4, 1, 2, 4, 4, 3]
    assert list(tape.codes & 3) == [0, 0, 0, 0, 1, 2, 0]


def test_records_are_shared_by_steps_that_the_moves_do_not_concern() -> None:
    plan = planned(residual(), 2)
    size, steps = plan.layout.arena_bytes, plan.schedule.steps
    first = next(time for time, step in enumerate(steps) if (step.operator, step.block) == (0, 0)) + 1
    one = moving(plan, Move(first, "a", 0, size), ram=size + 64)
    assert [record.operator for record in Tape(one).records] == [0, 1, 2, 3]


@pytest.mark.parametrize("compiler", ["gcc", "arm-none-eabi-gcc", "riscv64-unknown-elf-gcc"])
def test_generated_c_compiles_without_a_warning(compiler: str, tmp_path: Path) -> None:
    plan = with_moves(planned(viewed(), GRAPHS["views"][1]), 0, alignment=HOST.offset_unit)
    write_folder(tmp_path, library_files([LibraryModel(program_of(plan), plan, SOURCE)], "moved"))
    extra = ["--specs=picolibc.specs"] if compiler.startswith("riscv") else []
    sources = sorted((tmp_path / "src").glob("*.c"))
    assert "move_blocks.c" in {path.name for path in sources}
    subprocess.run(
        [compiler, *STRICT, *extra, "-I", tmp_path / "include", "-fsyntax-only", *sources], check=True
    )


def test_a_library_with_transfers_shows_what_a_driver_defines() -> None:
    plan = with_moves(planned(viewed(), GRAPHS["views"][1]), 0, alignment=HOST.offset_unit)
    program = program_of(plan)
    moved = library_files([LibraryModel(program, plan, SOURCE)], "moved")
    assert "src/mcud_dma.h" in moved and "include/mcud_dma.h" not in moved
    transferring = replace(program, kernels=sorted([*program.kernels, START, AWAIT]))
    files = library_files([LibraryModel(transferring, plan, SOURCE)], "moved")
    assert "include/mcud_dma.h" in files and "src/mcud_dma.h" not in files
    assert {"src/start_transfers.c", "src/await_transfers.c"} <= files.keys()


MAIN = """#include <stdio.h>
#include "mcud_dma.h"
#include "move_blocks.h"
enum { ROOM = 48 };
static uint8_t arena[ROOM];
int main(void)
{
    for (uint32_t bytes = 0; bytes <= ROOM; bytes++) {
        for (uint32_t from = 0; from + bytes <= ROOM; from++) {
            for (uint32_t to = 0; to + bytes <= ROOM; to++) {
                for (uint32_t i = 0; i < ROOM; i++) {
                    arena[i] = (uint8_t)i;
                }
                const mcud_offset places[] = {(mcud_offset)from, (mcud_offset)to};
                const mcud_tensor old = {arena, &places[0], 0, 1, 0};
                const mcud_tensor new = {arena, &places[1], 0, 1, 0};
                const mcud_tensor *const in[] = {&old};
                const uint32_t marked = bytes | MCUD_ENDS_SOURCE;
                const mcud_move_blocks_params params = {&marked};
                const mcud_op op = {mcud_move_blocks, &params, in, &new, 0, 1, 1};
                mcud_move_blocks(&op, 0, 1);
                for (uint32_t i = 0; i < ROOM; i++) {
                    const uint32_t expected = i >= to && i < to + bytes ? i - to + from : i;
                    const int left = expected == i && from != to && i >= from && i < from + bytes;
                    if (left && MCUD_ENDS_SOURCE ? arena[i] < ROOM : arena[i] != expected) {
                        printf("%u bytes from %u to %u\\n", bytes, from, to);
                        return 1;
                    }
                }
            }
        }
    }
    return 0;
}
"""


@pytest.mark.parametrize("poisoned", [False, True])
def test_the_kernel_moves_over_itself(tmp_path: Path, poisoned: bool) -> None:
    """With the engine in software what it leaves is poison, else as it was."""
    (tmp_path / "main.c").write_text(MAIN)
    (tmp_path / "mcud_config.h").write_text(
        "typedef uint16_t mcud_offset;\ntypedef uint16_t mcud_code;\n#define MCUD_ALIGN 1\n"
        "#define MCUD_OFFSET_BITS 16\n#define MCUD_CODE_BITS 16\n"
    )
    firmware = resource_dir("firmware")
    includes = [f"-I{path}" for path in (tmp_path, *source_folders())]
    flags = [*STRICT, "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    sources = [tmp_path / "main.c", source_index()["move_blocks.c"].path]
    if poisoned:
        flags, sources = [*flags, "-DMCUD_DMA_SOFT=1"], [*sources, firmware / "hal" / "dma_soft.c"]
    subprocess.run(["gcc", *flags, *includes, *sources, "-o", tmp_path / "main"], check=True)
    result = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (0, "")
