"""Generated C against the golden files of tests/golden: a change of the output shows in review.

After a change that is meant: pytest tests/codegen --update-golden
"""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from graphs import residual

from mcudeploy.board import Unit, load_board
from mcudeploy.codegen.library import write_library
from mcudeploy.codegen.program import Program, make_program
from mcudeploy.codegen.render import Source, render_firmware, render_package
from mcudeploy.kernelfiles import kernel_files
from mcudeploy.layout.solve import spread
from mcudeploy.plan import Function, Plan
from mcudeploy.scheduler.rpo import reverse_post_order
from mcudeploy.simulator.blocks import TiledGraph
from mcudeploy.simulator.flow import Flow
from mcudeploy.simulator.live import work_bytes
from tests.moves import with_moves

GOLDEN = Path(__file__).parent.parent / "golden"
SOURCE = Source("residual.onnx", "0123456789abcdef")
BOARD = load_board("mps2-an386").model_copy(
    update={"units": (Unit(name="core"), Unit(name="npu", alignment=16))}
)
TWO_UNITS = (Function("npu", ("conv_b", "conv_c")),)
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wcast-align=strict", "-Werror"]


def planned(
    block_rows: int, prefix: str = "residual", functions: tuple[Function, ...] = (), *, moves: float = 0
) -> tuple[Program, Plan]:
    graph = residual()
    tiled = TiledGraph(Flow.of(graph), {operator.name: block_rows for operator in graph.operators})
    calls = {o.name: o.op.kernel(o, graph.input_tensors(o), graph.tensors[o.output]) for o in graph.operators}
    schedule = reverse_post_order(tiled)
    layout, estimate = spread(tiled, schedule, work_bytes(calls), BOARD, functions, seconds=0)
    plan = Plan(graph, BOARD.name, tiled.block_rows, schedule, layout, estimate, functions=functions)
    plan = with_moves(plan, share=moves)
    return make_program(plan, calls, prefix, BOARD), plan


@pytest.mark.parametrize(
    ("golden", "block_rows", "functions", "moves"),
    [
        ("residual_8_rows", 8, (), 0),
        ("residual_2_rows", 2, (), 0),
        ("residual_two_units", 4, TWO_UNITS, 0),
        ("residual_moved", 2, (), 0.4),
    ],
)
def test_generated_files_are_the_golden_ones(
    golden: str,
    block_rows: int,
    functions: tuple[Function, ...],
    moves: float,
    request: pytest.FixtureRequest,
) -> None:
    program, plan = planned(block_rows, functions=functions, moves=moves)
    texts = render_firmware(program, plan, SOURCE) | render_package(program, plan, SOURCE)
    folder = GOLDEN / golden
    for name, text in texts.items():
        path = folder / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        assert text == path.read_text("utf-8"), f"{path} differs; if that is meant, --update-golden"


@pytest.mark.parametrize("compiler", ["gcc", "arm-none-eabi-gcc", "riscv64-unknown-elf-gcc"])
def test_generated_c_compiles_without_a_warning(compiler: str, tmp_path: Path) -> None:
    program, plan = planned(2, functions=TWO_UNITS)
    write_library(program, plan, SOURCE, tmp_path, Path(__file__))
    extra = ["--specs=picolibc.specs"] if compiler.startswith("riscv") else []
    sources = sorted((tmp_path / "src").glob("*.c"))
    subprocess.run(
        [compiler, *STRICT, *extra, "-I", tmp_path / "include", "-fsyntax-only", *sources], check=True
    )


@pytest.mark.parametrize("functions", [(), TWO_UNITS])
def test_library_folder_builds_with_cmake_and_runs(functions: tuple[Function, ...], tmp_path: Path) -> None:
    program, plan = planned(8, functions=functions)
    write_library(program, plan, SOURCE, tmp_path, Path(__file__))
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
        write_library(one, plan, SOURCE, folder, Path(__file__))
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


def test_library_has_only_the_kernels_it_uses() -> None:
    names = [path.name for path in kernel_files(["add_s8"])]
    assert "add_s8.c" in names and "mcud.h" in names
    assert not [name for name in names if "conv" in name]
