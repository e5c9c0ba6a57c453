"""Several models in one product: their sum, one arena for all, and arenas that the application gives."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from models import fully_connected, quantised_convolutions

from mcudeploy.boards.board import load_board
from mcudeploy.cli.main import cli
from mcudeploy.cli.proposed import with_commands
from mcudeploy.codegen.arenas import ArenaKind, Share, require_room, together, with_arenas
from mcudeploy.codegen.exporters import Kind
from mcudeploy.codegen.folder import write_folder
from mcudeploy.codegen.library import library_files
from mcudeploy.codegen.render import LibraryModel
from mcudeploy.commands import build as building
from mcudeploy.common.errors import FitError, UsageError
from mcudeploy.common.progress import SILENT
from mcudeploy.execution.parts import BuildRequest
from mcudeploy.execution.results import BuiltModel
from mcudeploy.planner.plan_options import Options
from tests import reports
from tests.deploy.test_stateful import network, saved

BOARD = load_board("stm32f405")
QUICK = Options(split=False, time_limit=0.5)
STRICT = [
    "-std=c99",
    "-O1",
    "-Wall",
    "-Wextra",
    "-Wpedantic",
    "-Wconversion",
    "-Wcast-align=strict",
    "-Werror",
]
CHECKED = ["-Werror", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("arenas")
    return [
        quantised_convolutions(folder / "small.onnx"),
        fully_connected(folder / "dense.onnx", (300, 20, 3), quantised=True),
    ]


def built(models: list[Path], out: Path, arena: ArenaKind, options: Options = QUICK, **how: object) -> dict:
    how = {"library_only": True, **how}
    return reports.build_models(models, BOARD, options, out, arena=arena, **how)  # type: ignore[arg-type]


def run(out: Path, main: str, *macros: str) -> None:
    (out.parent / "main.c").write_text(main)
    sources = [*sorted((out / "src").glob("*.c")), out.parent / "main.c"]
    program = out.parent / "program"
    flags = [*STRICT, *CHECKED, *macros, "-I", out / "include"]
    subprocess.run(["gcc", *flags, *sources, "-lm", "-o", program], check=True)
    subprocess.run([program], check=True)


def test_the_sum_of_arenas_is_checked_and_each_share_named(models: list[Path], tmp_path: Path) -> None:
    arenas = [built([model], tmp_path / model.stem, "own")["arena_bytes"] for model in models]
    limits = (("sram", max(arenas) + 8), ("ccm", 0))
    narrow = Options(split=False, time_limit=0.5, memory_limits=limits)
    assert min(arenas) > 8
    with pytest.raises(FitError) as caught:
        built(models, tmp_path / "out", "own", narrow)
    short = sum(arenas) - max(arenas) - 8
    assert f"{short:,} too many (small {arenas[0]:,}, dense {arenas[1]:,})" in str(caught.value)
    assert "--ram-limit" in str(caught.value)
    assert [each.option for each in caught.value.proposals] == ["--arena shared"]
    line = ["build", "small.onnx", "dense.onnx", "--board", "stm32f405", "-o", "out"]
    (proposal,) = with_commands(caught.value, line, cli.commands).proposals
    assert proposal.command == f"mcudeploy {' '.join(line)} --arena shared"
    assert caught.value.exit_code == 5 and not (tmp_path / "out").exists()
    report = built(models, tmp_path / "out", "shared", narrow)
    assert report["library_arenas"] == {"sram": max(arenas)}


def test_flash_is_checked_for_all_models_together() -> None:
    each = BOARD.flash_bytes // 2 + 1
    shares = [Share("a", {"sram": 8}, each, stateful=False), Share("b", {"sram": 8}, each, stateful=False)]
    with pytest.raises(FitError, match=rf"2 too many \(a {each:,}, b {each:,}\)"):
        require_room(shares, BOARD, "shared")


def test_states_are_not_shared() -> None:
    shares = [Share(name, {"sram": size}, 0, name == "c") for name, size in (("a", 10), ("b", 20), ("c", 40))]
    assert together(shares, "own") == {"sram": 70}
    assert together(shares, "shared") == {"sram": 60}


BOTH = """
#include <string.h>
#include "dense.h"
#include "dense_selftest.h"
#include "small.h"
#include "small_selftest.h"
%s
int main(void)
{
%s
    for (int i = 0; i < 3; i++) {
        if (small_selftest() != 0u || dense_selftest() != 0u) {
            return 1;
        }
    }
    return %s;
}
"""
GIVEN = """
#define FENCE 64
static struct {
    uint64_t align;
    uint8_t small[SMALL_ARENA_SRAM_BYTES], fence[FENCE];
    uint64_t again;
    uint8_t dense[DENSE_ARENA_SRAM_BYTES], end[FENCE];
} given;
static uint8_t clean[FENCE];
"""
HANDED = """
    if (small_init(0) != 1u || small_init(given.small + 1) != 1u) {
        return 2;
    }
    if (small_init(given.small) != 0u || dense_init(given.dense) != 0u) {
        return 3;
    }
"""
FENCED = "memcmp(given.fence, clean, FENCE) != 0 || memcmp(given.end, clean, FENCE) != 0"


def test_models_that_share_an_arena_run_in_turn(models: list[Path], tmp_path: Path) -> None:
    report = built(models, tmp_path / "out", "shared")
    check = f"sizeof out_arena_sram.bytes != {max(each['arena_bytes'] for each in report['models'])}u"
    run(tmp_path / "out", BOTH % ('#include "out_arena.h"', "", check))


def test_an_application_defines_the_arenas(models: list[Path], tmp_path: Path) -> None:
    built(models, tmp_path / "out", "extern")
    arrays = "".join(
        f"uint8_t {name}_arena_sram[{name.upper()}_ARENA_SRAM_BYTES] "
        f"__attribute__((aligned({name.upper()}_ARENA_ALIGNMENT)));\n"
        for name in ("small", "dense")
    )
    run(tmp_path / "out", BOTH % (arrays, "", "0"))


def test_an_application_hands_arenas_over_and_moves_them(models: list[Path], tmp_path: Path) -> None:
    """Nothing is written beyond what the macros say; misaligned buffers are refused."""
    built(models, tmp_path / "out", "init")
    run(tmp_path / "out", BOTH % (GIVEN, HANDED, FENCED))
    other = GIVEN + "static union { uint64_t align; uint8_t bytes[SMALL_ARENA_SRAM_BYTES]; } place;\n"
    moved = HANDED + "    (void)(small_selftest() + small_init(place.bytes));\n"
    run(tmp_path / "out", BOTH % (other, moved, FENCED))


@pytest.mark.parametrize("kind", ["cmake", "platformio"])
@pytest.mark.parametrize("arena", ["shared", "extern", "init"])
def test_examples_bring_what_a_library_asks_for(
    models: list[Path], arena: ArenaKind, kind: Kind, tmp_path: Path
) -> None:
    built(models, tmp_path / "out", arena, kind=kind)
    example = "examples/selftest/main.c" if kind == "cmake" else "examples/selftest/src/main.c"
    run(tmp_path / "out", (tmp_path / "out" / example).read_text())


@pytest.mark.parametrize("arena", ["extern", "init"])
def test_the_example_of_one_model_gives_its_arena(
    models: list[Path], arena: ArenaKind, tmp_path: Path
) -> None:
    built(models[:1], tmp_path / "out", arena)
    run(tmp_path / "out", (tmp_path / "out" / "examples" / "main.c").read_text())


def test_memories_are_given_one_by_one(models: list[Path], tmp_path: Path) -> None:
    spread = Options(split=False, time_limit=0.5, memory_limits=(("sram", 1200),))
    built(models[:1], tmp_path / "out", "init", spread)
    header = (tmp_path / "out" / "include" / "small.h").read_text()
    assert "uint32_t small_init(void *ccm_arena, void *sram_arena);" in header
    assert "#define SMALL_ARENA_CCM_BYTES" in header and "#define SMALL_ARENA_SRAM_BYTES" in header
    run(tmp_path / "out", (tmp_path / "out" / "examples" / "main.c").read_text())


def _built(path: Path, options: Options) -> BuiltModel:
    request = BuildRequest([path], BOARD, options, path.parent / "lib", library_only=True)
    return building.built_model(path, request, SILENT)


def test_a_stateful_model_has_an_arena_for_itself(models: list[Path], tmp_path: Path) -> None:
    """States outlive runs of the models that share an arena."""
    found = [_built(path, QUICK) for path in models]
    stateful = replace(QUICK, stateful=True, name="net")
    found.append(_built(saved(network("GRU"), tmp_path), stateful))
    programs = with_arenas([each.deployment.program for each in found], "shared", "lib")
    assert [program.arena for program in programs] == ["shared", "shared", "own"]
    members = [
        LibraryModel(program, each.deployment.plan, each.deployment.source, each.selftest)
        for program, each in zip(programs, found, strict=True)
    ]
    write_folder(tmp_path / "lib", library_files(members, "lib"))
    run(tmp_path / "lib", KEPT)
    with pytest.raises(UsageError, match="net keeps states between runs"):
        with_arenas(programs[1:], "shared", "lib")


KEPT = """
#include <string.h>
#include "dense_selftest.h"
#include "net.h"
#include "net_selftest.h"
#include "small_selftest.h"

int main(void)
{
    float first[NET_OUTPUT_COUNT], second[NET_OUTPUT_COUNT];
    memset(net_input(), 0, sizeof(float) * NET_INPUT_COUNT);
    net_run();
    memcpy(first, net_output(), sizeof first);
    memset(net_input(), 0, sizeof(float) * NET_INPUT_COUNT);
    net_run();
    memcpy(second, net_output(), sizeof second);
    net_reset();
    memset(net_input(), 0, sizeof(float) * NET_INPUT_COUNT);
    net_run();
    if (memcmp(first, net_output(), sizeof first) != 0 || memcmp(first, second, sizeof first) == 0) {
        return 1;
    }
    if (small_selftest() != 0u || dense_selftest() != 0u) {
        return 2;
    }
    memset(net_input(), 0, sizeof(float) * NET_INPUT_COUNT);
    net_run();
    return memcmp(second, net_output(), sizeof second) != 0;
}
"""


def test_what_cannot_be_shared_is_refused(models: list[Path], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--arena shared is for several models"):
        built(models[:1], tmp_path / "one", "shared")
    with pytest.raises(UsageError, match="a crate owns its arenas"):
        built(models, tmp_path / "rust", "init", kind="rust")
