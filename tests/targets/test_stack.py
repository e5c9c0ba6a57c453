"""The bound of the stack: GCC's call graph, what is read from instructions, and that the two agree."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from mcudeploy.boards.catalogue import load_board
from mcudeploy.codegen.bench import bench_sources
from mcudeploy.codegen.kernelfiles import AWAIT, START
from mcudeploy.common.errors import BuildError
from mcudeploy.toolchain import Firmware, build_firmware
from mcudeploy.toolchain.disassembly import parse
from mcudeploy.toolchain.firmware import CALLS_NAME
from mcudeploy.toolchain.stack import CompiledFunction, Depths, StackBound, bound_of, read_calls, stack_bound
from mcudeploy.toolchain.stack_frames import LibraryFunctions, pushed_bytes

KERNELS = ["conv2d_s8", "feed", "integer_binary", "softmax_f32"]

GRAPH = r"""graph: { title: "a.c"
node: { title: "main" label: "main\na.c:3:5\n16 bytes (static)" }
node: { title: "/tmp/a.c:helper.isra.0" label: "helper.isra\n/tmp/a.c:1:5\n24 bytes (static)" }
edge: { sourcename: "main" targetname: "/tmp/a.c:helper.isra.0" label: "a.c:4:1" }
node: { title: "expf" label: "expf\n/usr/include/math.h:1:2" shape : ellipse }
edge: { sourcename: "/tmp/a.c:helper.isra.0" targetname: "expf" label: "a.c:5:1" }
}
graph: { title: "b.c"
node: { title: "main" label: "main\nb.c:3:5\n40 bytes (dynamic,bounded)" }
}
"""


class Library(LibraryFunctions):
    """Functions of a C library with the frames that a test gives."""

    def __init__(self, frames: Mapping[str, int]) -> None:
        self._frames = frames

    def frame(self, name: str) -> tuple[int, frozenset[str]]:
        return self.pushed(name), frozenset()

    def pushed(self, name: str) -> int:
        return self._frames.get(name, 0)


def compiled(calls: Mapping[str, set[str]], source: str = "src/kernels/any.c") -> dict[str, CompiledFunction]:
    """Functions with frames of 8 bytes."""
    return {name: CompiledFunction(8, frozenset(callees), Path(source)) for name, callees in calls.items()}


def test_the_deepest_chain_counts() -> None:
    functions = read_calls(GRAPH)
    assert functions["main"].frame_bytes == 40  # of two functions of one name, the larger frame
    depths = Depths(functions, Library({"expf": 100}))
    assert depths.of("main") == 40 + 24 + 100
    assert depths.above("/tmp/a.c:helper.isra.0") == 40
    assert depths.of("not linked") == 0


def test_pushes_of_assembler_count() -> None:
    functions = {
        "mcud_wide": CompiledFunction(8, frozenset({"wide.c:block"}), Path("wide.c")),
        "wide.c:block": CompiledFunction(0, frozenset(), Path("wide.c")),
    }
    assert Depths(functions, Library({"block": 64})).of("mcud_wide") == 8 + 64


def test_a_frame_that_grows_is_refused() -> None:
    with pytest.raises(BuildError, match="frame of main grows"):
        read_calls(GRAPH.replace("dynamic,bounded", "dynamic"))


def test_recursion_is_refused() -> None:
    depths = Depths(compiled({"a": {"b"}, "b": {"c"}, "c": {"b"}}), Library({}))
    with pytest.raises(BuildError, match="b -> c -> b is a recursion"):
        depths.of("a")


def test_only_the_tape_calls_through_pointers() -> None:
    functions = compiled({"helper": {"__indirect_call"}, "mcud_step": {"__indirect_call"}})
    functions["mcud_deep"] = CompiledFunction(48, frozenset(), Path("src/kernels/deep.c"))
    depths = Depths(functions, Library({}))
    assert depths.of("mcud_step") == 8 + 48
    with pytest.raises(BuildError, match="calls by pointer are unknown"):
        depths.of("helper")


@pytest.mark.parametrize(
    ("line", "pushed"),
    [
        ("    8000:\tb5f0      \tpush\t{r4, r5, r6, r7, lr}", 20),
        ("    8000:\te92d 4ff0 \tstmdb\tsp!, {r4, r5, r6, r7, r8, r9, sl, fp, lr}", 36),
        ("    8000:\ted2d 8b08 \tvpush\t{d8-d11}", 32),
        ("    8000:\te96d ce04 \tstrd\tip, lr, [sp, #-16]!", 16),
        ("    8000:\tf84d ed04 \tstr.w\tlr, [sp, #-4]!", 4),
        ("    8000:\tb083      \tsub\tsp, #12", 12),
        ("    8000:\tf2ad 4d04 \tsubw\tsp, sp, #1028\t@ 0x404", 1028),
        ("    8000:\tb003      \tadd\tsp, #12", 0),
        ("    8000:\tbdf0      \tpop\t{r4, r5, r6, r7, pc}", 0),
        ("    8000:\t9301      \tstr\tr3, [sp, #4]", 0),
        ("    8000:\te88d 0a20 \tstmia.w\tsp, {r5, r9, fp}", 0),
        ("80010dac:\t1141                \tadd\tsp,sp,-16", 16),
        ("80010dac:\t0141                \tadd\tsp,sp,16", 0),
        ("80010dac:\tce06                \tsw\tra,28(sp)", 0),
    ],
)
def test_what_instructions_push(line: str, pushed: int) -> None:
    instruction = parse(line)
    assert instruction is not None and pushed_bytes(instruction, "f") == pushed


@pytest.mark.parametrize(
    "line",
    ["8000:\t46bd      \tmov\tsp, r7", "8000:\t44a5      \tadd\tsp, r4", "8000:\t40610133  \tsub\tsp,sp,t1"],
)
def test_a_stack_pointer_that_is_set_to_anything_is_refused(line: str) -> None:
    instruction = parse(line)
    assert instruction is not None
    with pytest.raises(BuildError, match="in f sets an unknown depth"):
        pushed_bytes(instruction, "f")


@pytest.fixture(params=["stm32f405", "microbit", "mps3-an547", "riscv32-virt"])
def firmware(request: pytest.FixtureRequest, cache: Path) -> Firmware:
    """The measurer with a few kernels."""
    board = load_board(request.param)
    return build_firmware(board, bench_sources(KERNELS, 1024), KERNELS, emulate=True)


def test_instructions_say_what_gcc_says(firmware: Firmware) -> None:
    functions = read_calls(firmware.elf.with_name(CALLS_NAME).read_text("utf-8"))
    library = LibraryFunctions(firmware.elf, firmware.board.toolchain)
    compared = 0
    for name, function in functions.items():
        # stack_paint has a frame pointer, the others call through pointers
        if name in library and name not in (
            "stack_paint",
            "timing_call",
            "timing_run",
            "mcud_feed",
            "mcud_integer_binary",
            "mcud_step",
            "command_answer",
        ):
            assert library.frame(name)[0] == function.frame_bytes, name
            compared += 1
    assert compared > 20


def test_a_firmware_has_a_bound(firmware: Firmware) -> None:
    bound = stack_bound(firmware)
    assert bound is not None
    functions = read_calls(firmware.elf.with_name(CALLS_NAME).read_text("utf-8"))
    kernel = functions["mcud_conv2d_s8"].frame_bytes
    assert kernel < bound.library_bytes < bound.program_bytes < kernel + 400
    assert 60 <= bound.interrupt_bytes <= 200


def test_a_library_function_that_recurses_is_refused(firmware: Firmware) -> None:
    functions = read_calls(firmware.elf.with_name(CALLS_NAME).read_text("utf-8"))
    kernel = functions["mcud_conv2d_s8"]
    calls = kernel.calls | {"mcud_step"}
    functions["mcud_conv2d_s8"] = CompiledFunction(kernel.frame_bytes, calls, kernel.source)
    library = LibraryFunctions(firmware.elf, firmware.board.toolchain)
    with pytest.raises(BuildError, match="mcud_step -> mcud_conv2d_s8 -> mcud_step is a recursion"):
        bound_of(functions, library, firmware.board.toolchain)


@pytest.mark.parametrize("text", ["", 'node: { title: "f" label: "f\\nf.c:1:1\\n8 bytes (static)" }\n'])
def test_a_wrapper_that_drops_call_graphs_is_named(text: str, firmware: Firmware) -> None:
    library = LibraryFunctions(firmware.elf, firmware.board.toolchain)
    with pytest.raises(BuildError, match=r"call graphs \(\.ci\) of the compiler are missing.*wrapper"):
        bound_of(read_calls(text), library, firmware.board.toolchain)


def test_the_host_has_none(cache: Path) -> None:
    kernels = KERNELS[:1]
    assert (
        stack_bound(build_firmware(load_board("host"), bench_sources(kernels, 1024), kernels, emulate=False))
        is None
    )


@pytest.mark.usefixtures("cache")
def test_the_interrupt_of_a_driver_counts() -> None:
    board = load_board("mps2-an505")

    def bound(kernels: list[str]) -> StackBound:
        sources = bench_sources(kernels, 1024)
        result = stack_bound(build_firmware(board, sources, kernels, emulate=True))
        assert result is not None
        return result

    assert bound(["copy", START, AWAIT]).interrupt_bytes > bound(["copy"]).interrupt_bytes
