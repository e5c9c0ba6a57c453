"""Generated C against tests/golden: a change of the output shows in review.

A folder has all files of a program, a .diff how those of another one differ from `residual_8_rows`.

After a change that is meant: pytest tests/program --update-golden
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from difflib import unified_diff
from pathlib import Path
from random import Random
from unittest.mock import patch

import pytest
from fuzzing.wandering import BOARDS, wandering
from graphs import recurrent, residual

from mcudeploy.boards.board import Board, Unit
from mcudeploy.boards.catalogue import load_board
from mcudeploy.codegen.folder import write_folder
from mcudeploy.codegen.kernelfiles import kernel_files
from mcudeploy.codegen.library import library_files
from mcudeploy.codegen.program import Program, make_program
from mcudeploy.codegen.render import LibraryModel, Source, render_firmware, render_model, render_package
from mcudeploy.common.errors import UsageError
from mcudeploy.ir.graph import Graph
from mcudeploy.ir.opdef import KernelCall
from mcudeploy.ir.parameter_table import ParameterTable
from mcudeploy.ir.plan import Function, Plan, Run, Transfer, Wait
from mcudeploy.planner.cores import parts
from mcudeploy.planner.cores.lanes import on_cores
from mcudeploy.planner.hop.moving_window import MovingWindow
from mcudeploy.planner.model.forms import stream_inputs
from mcudeploy.planner.order.rpo import reverse_post_order
from mcudeploy.planner.tape.plan_view import PlanView
from mcudeploy.tiling.blocks import BlockId, TiledGraph
from mcudeploy.tiling.dataflow import Dataflow
from mcudeploy.tiling.live import work_bytes
from tests.linked import STRICT, linked
from tests.moves import with_moves
from tests.one_memory import laid_out
from tests.residing import repeating

GOLDEN = Path(__file__).parent.parent / "golden"
SOURCE = Source("residual.onnx", "0123456789abcdef")
BOARD = load_board("mps2-an386").model_copy(
    update={"units": (Unit(name="core"), Unit(name="npu", alignment=16))}
)
TWO_UNITS = (Function("npu", ("conv_b", "conv_c")),)


def planned(
    block_rows: int, prefix: str = "residual", functions: tuple[Function, ...] = (), *, moves: float = 0
) -> tuple[Program, Plan]:
    graph = residual()
    plan = with_moves(plan_of(graph, block_rows, BOARD, functions), share=moves)
    return program_of(plan, BOARD, prefix), plan


def _calls(graph: Graph) -> dict[str, KernelCall]:
    operators = (operator for operator in graph.operators if not operator.op.is_view)
    return {o.name: o.op.kernel(o, graph.input_tensors(o), graph.tensors[o.output]) for o in operators}


def program_of(plan: Plan, board: Board, prefix: str = "residual") -> Program:
    return make_program(PlanView(plan, _calls(plan.graph)), prefix, board)


def plan_of(
    graph: Graph,
    block_rows: int,
    board: Board,
    functions: tuple[Function, ...] = (),
    *,
    cores: int = 1,
    again: tuple[BlockId, ...] = (),
) -> Plan:
    """The plan of a graph; the blocks `again` are made twice."""
    tiled = TiledGraph(Dataflow.of(graph), {operator.name: block_rows for operator in graph.operators})
    schedule = repeating(tiled, reverse_post_order(tiled), *again)
    layout, estimate = laid_out(tiled, schedule, work_bytes(_calls(graph), cores), board, functions)
    return Plan(graph, board.name, tiled.block_rows, schedule, layout, estimate, functions=functions)


def _two_memories() -> tuple[Program, Plan]:
    """An engine transfers blocks to a slow memory and back."""
    graph, (board, *_) = residual(), BOARDS
    plan = wandering(plan_of(graph, 2, board), work_bytes(_calls(graph)), board, Random(3), 8)
    assert {type(entry) for entry in plan.tape} == {Run, Transfer, Wait}
    return program_of(plan, board), plan


def _streamed_state() -> tuple[Program, Plan]:
    plan = plan_of(stream_inputs(recurrent()), 1, BOARD)
    return program_of(plan, BOARD, "recurrent"), plan


def _new_rows() -> tuple[Program, Plan]:
    """A run takes two rows of a window; the others stay."""
    plan = plan_of(MovingWindow.of(residual(), 2).run_graph(), 8, BOARD)
    return program_of(plan, BOARD), plan


def _two_cores() -> tuple[Program, Plan]:
    """Two cores share rows, and columns of the last row."""
    graph = residual()
    with patch.object(parts, "_LEAST_ITERATIONS", 1):
        plan = on_cores(plan_of(graph, 3, BOARD, cores=2), _calls(graph), 2)
    return program_of(plan, BOARD), plan


def _replaceable(*, in_flash: bool) -> tuple[Program, Plan]:
    """The constants of two operators are in RAM, or in flash where the application says."""
    plan = plan_of(residual(), 8, BOARD)
    table = ParameterTable.of(_calls(plan.graph), {"conv_a", "conv_c"}, in_flash=in_flash)
    plan = replace(plan, parameters=table)
    return program_of(plan, BOARD), plan


PROGRAMS: dict[str, Callable[[], tuple[Program, Plan]]] = {
    "residual_8_rows": lambda: planned(8),
    "residual_2_rows": lambda: planned(2),
    "residual_two_units": lambda: planned(4, functions=TWO_UNITS),
    "residual_moved": lambda: planned(2, moves=0.4),
    "residual_two_memories": _two_memories,
    "recurrent_streamed": _streamed_state,
    "residual_two_cores": _two_cores,
    "residual_new_rows": _new_rows,
    "residual_replaceable": lambda: _replaceable(in_flash=False),
    "residual_repointed": lambda: _replaceable(in_flash=True),
}


WHOLE = ("residual_8_rows", "recurrent_streamed")


@pytest.mark.parametrize("golden", PROGRAMS)
def test_generated_files_are_the_golden_ones(golden: str, request: pytest.FixtureRequest) -> None:
    program, plan = PROGRAMS[golden]()
    source = replace(SOURCE, file_name=f"{program.prefix}.onnx")
    texts = render_firmware(program, plan, source)
    texts |= render_package(program.prefix, [LibraryModel(program, plan, source)])
    update = request.config.getoption("--update-golden")
    path = GOLDEN / golden
    if golden in WHOLE:
        golden_files = {path / name: text for name, text in texts.items()}
    else:
        golden_files = {path.with_suffix(".diff"): "".join(map(difference, texts, texts.values()))}
    for path, text in golden_files.items():
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        assert text == path.read_text("utf-8"), f"{path} differs; if that is meant, --update-golden"


def difference(name: str, text: str) -> str:
    """Return how a generated file differs from that of `residual_8_rows`, as `diff -u1` does."""
    path = GOLDEN / "residual_8_rows" / name
    lines = path.read_text("utf-8").splitlines(keepends=True) if path.exists() else []
    return "".join(unified_diff(lines, text.splitlines(keepends=True), name, name, n=1))


@pytest.mark.parametrize(
    ("compiler", "golden"),
    [
        *(("gcc", golden) for golden in PROGRAMS),
        ("arm-none-eabi-gcc", "residual_two_units"),
        ("riscv64-unknown-elf-gcc", "residual_two_units"),
    ],
)
def test_generated_c_compiles_without_a_warning(compiler: str, golden: str, tmp_path: Path) -> None:
    program, plan = PROGRAMS[golden]()
    write_folder(tmp_path, library_files([LibraryModel(program, plan, SOURCE)], program.prefix))
    extra = ["--specs=picolibc.specs"] if compiler.startswith("riscv") else []
    sources = sorted((tmp_path / "src").glob("*.c"))
    subprocess.run(
        [compiler, *STRICT, *extra, "-I", tmp_path / "include", "-fsyntax-only", *sources], check=True
    )


@pytest.mark.parametrize("functions", [(), TWO_UNITS])
def test_library_folder_builds_with_cmake_and_runs(functions: tuple[Function, ...], tmp_path: Path) -> None:
    program, plan = planned(8, functions=functions)
    write_folder(tmp_path, library_files([LibraryModel(program, plan, SOURCE)], "residual"))
    build = tmp_path / "build"
    subprocess.run(["cmake", "-S", tmp_path, "-B", build], check=True, capture_output=True)
    subprocess.run(["cmake", "--build", build], check=True, capture_output=True)
    result = subprocess.run([build / "residual_example"], check=True, capture_output=True, text=True)
    assert len(result.stdout.splitlines()) == 256


@pytest.mark.parametrize("offset_bits", [16, 32])
def test_libraries_with_other_types_do_not_link(offset_bits: int, tmp_path: Path) -> None:
    program, plan = planned(8)
    other, _ = planned(8, "other")
    archives = []
    for one in (program, replace(other, offset_bits=offset_bits)):
        folder = tmp_path / one.prefix
        write_folder(folder, library_files([LibraryModel(one, plan, SOURCE)], one.prefix))
        sources = sorted((folder / "src").glob("*.c"))
        flags = ["-std=c99", "-O2", "-I", folder / "include"]
        subprocess.run(["gcc", *flags, "-c", *sources], check=True, cwd=folder)
        archives.append(folder / "lib.a")
        subprocess.run(["ar", "rc", archives[-1], *folder.glob("*.o")], check=True)
    main = tmp_path / "main.c"
    main.write_text(
        "void residual_run(void);\nvoid other_run(void);\n"
        "int main(void)\n{\n    residual_run();\n    other_run();\n    return 0;\n}\n"
    )
    link = ["gcc", main, *archives, "-lm", "-o", tmp_path / "both"]
    result = subprocess.run(link, capture_output=True, text=True, check=False)
    assert program.offset_bits == 16
    assert (result.returncode == 0) == (offset_bits == 16)
    assert ("multiple definition" in result.stderr) == (offset_bits == 32)


def test_shared_objects_with_other_types_do_not_mix_their_kernels(tmp_path: Path) -> None:
    program, plan = planned(2)
    other, _ = planned(2, "other")
    objects = []
    for one in (program, replace(other, offset_bits=32)):
        folder = tmp_path / one.prefix
        write_folder(folder, library_files([LibraryModel(one, plan, SOURCE)], one.prefix))
        objects.append(tmp_path / f"lib{one.prefix}.so")
        sources = sorted((folder / "src").glob("*.c"))
        flags = ["-std=c99", "-O2", "-fPIC", "-shared", "-I", folder / "include"]
        subprocess.run(["gcc", *flags, *sources, "-lm", "-o", objects[-1]], check=True)
    main = tmp_path / "main.c"
    main.write_text(_BOTH)
    include = [f"-I{tmp_path / name / 'include'}" for name in ("residual", "other")]
    link = [*objects, f"-Wl,-rpath,{tmp_path}", "-o", tmp_path / "both"]
    subprocess.run(["gcc", "-std=c99", *include, main, *link], check=True)
    subprocess.run([tmp_path / "both"], check=True)


_BOTH = """
#include <string.h>

#include "other.h"
#include "residual.h"

int main(void)
{
    memset(residual_input(), 3, 256);
    memset(other_input(), 3, 256);
    residual_run();
    other_run();
    return memcmp(residual_output(), other_output(), 256) != 0;
}
"""


@pytest.mark.parametrize("other", [{"offset_bits": 32}, {"code_bits": 32}, {"alignment": 16}])
@pytest.mark.parametrize("wider", [False, True])
def test_another_program_s_configuration_does_not_compile(
    other: dict[str, int], wider: bool, tmp_path: Path
) -> None:
    """As where the sources of two libraries are mixed: wider types are right, all else is an error."""
    program, plan = planned(8)
    changed = replace(program, **other)
    own, foreign = (program, changed) if wider else (changed, program)
    texts = render_model(own, plan, SOURCE) | {
        "mcud_config.h": render_model(foreign, plan, SOURCE)["mcud_config.h"]
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    for source in kernel_files(program.kernels):
        (tmp_path / source.name).write_text(source.text)
    command = ["gcc", "-std=c99", "-fsyntax-only", tmp_path / "residual.c"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == (wider and "alignment" not in other), done.stderr
    assert done.returncode == 0 or "is that of another program" in done.stderr


def test_two_models_in_one_library_share_kernels_and_types(tmp_path: Path) -> None:
    (first, plan), (second, other_plan) = planned(8), planned(2, "other")
    second = replace(second, offset_bits=32)
    members = [
        LibraryModel(first, plan, SOURCE),
        LibraryModel(second, other_plan, Source("other.onnx", "89abcdef")),
    ]
    write_folder(tmp_path, library_files(members, "both"))
    assert "#define MCUD_OFFSET_BITS 32\n" in (tmp_path / "src" / "mcud_config.h").read_text()
    build = tmp_path / "build"
    subprocess.run(["cmake", "-S", tmp_path, "-B", build], check=True, capture_output=True)
    subprocess.run(["cmake", "--build", build], check=True, capture_output=True)
    for member in members:
        name = member.program.prefix
        alone = tmp_path / "alone" / name
        write_folder(alone, library_files([member], name))
        program = linked(alone, alone / "examples" / "main.c", "-O2", "-ffp-contract=off")
        expected = subprocess.run([program], check=True, capture_output=True).stdout
        assert (
            expected
            and expected
            == subprocess.run([build / f"{name}_example"], check=True, capture_output=True).stdout
        )


def test_models_whose_files_would_be_called_the_same_are_refused() -> None:
    program, plan = planned(8)
    member = LibraryModel(program, plan, SOURCE)
    other = LibraryModel(replace(planned(8, "residual_weights")[0]), plan, SOURCE)
    with pytest.raises(UsageError, match=r"src/residual_weights\.[ch]"):
        library_files([member, other], "both")


def test_library_has_only_the_kernels_it_uses() -> None:
    names = [source.name for source in kernel_files(["add_s8"])]
    assert "add_s8.c" in names and "mcud.h" in names
    assert not [name for name in names if "conv" in name]
