"""Several models in one product: their sum, one arena for all, and arenas that the application gives."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from models import fully_connected, quantised_convolutions

from mcudeploy.boards.catalogue import load_board
from mcudeploy.cli.main import cli
from mcudeploy.cli.proposed import with_commands
from mcudeploy.codegen.arenas import ArenaKind, Share, library_arenas, require_room, share_of, with_arenas
from mcudeploy.codegen.exporters import Kind
from mcudeploy.codegen.folder import write_folder
from mcudeploy.codegen.library import library_files
from mcudeploy.codegen.render import LibraryModel
from mcudeploy.commands import build as building
from mcudeploy.common.errors import FitError, UsageError
from mcudeploy.common.progress import SILENT
from mcudeploy.execution.parts import BuildRequest
from mcudeploy.execution.results import BuiltModel
from mcudeploy.planner.place.states_first import state_tensors
from mcudeploy.planner.plan_options import Options
from tests import reports
from tests.deploy.test_stateful import network, saved
from tests.linked import SANITIZED, linked

BOARD = load_board("stm32f405")
QUICK = Options(split=False, time_limit=0.5)


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
    subprocess.run([linked(out, main, *SANITIZED, *macros)], check=True)


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
    shares = [share("a", 8, flash=each), share("b", 8, flash=each)]
    with pytest.raises(FitError, match=rf"2 too many \(a {each:,}, b {each:,}\)"):
        require_room(shares, BOARD, "shared")


def share(name: str, arena: int, states: int = 0, flash: int = 0) -> Share:
    return Share(name, {"sram": arena}, flash, {"sram": states}, {"sram": 8})


def test_states_are_not_shared() -> None:
    shares = [share("a", 16), share("b", 24), share("c", 40, 24), share("d", 24, 16)]
    assert library_arenas(shares, "own") == {"sram": 104}
    assert library_arenas(shares, "shared") == {"sram": 24 + 16 + 24}


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
    request = BuildRequest([path], BOARD, options, path.parent / "lib", library_only=True, arena="shared")
    return building.built_model(path, request, SILENT)


def test_states_stay_while_other_models_run(models: list[Path], tmp_path: Path) -> None:
    """States overlap neither each other nor what another model writes."""
    nets = [saved(network(op), tmp_path).rename(tmp_path / f"{op.lower()}.onnx") for op in ("LSTM", "GRU")]
    built = [_built(path, replace(QUICK, stateful=path in nets)) for path in (nets[0], *models, nets[1])]
    for each in built:
        layout, kept = each.deployment.plan.layout, state_tensors(each.deployment.plan.graph)
        others = [of for name, of in (*layout.blocks.items(), *layout.scratch.items()) if name not in kept]
        offsets = [it.offset for of in others for block in of for it in block]
        (states_end,) = each.program.states_ends.values()
        assert min(offsets) >= states_end and bool(states_end) == bool(kept)
    shares = [share_of(each.program, 0) for each in built]
    programs = with_arenas([each.program for each in built], "shared", "lib")
    members = [
        LibraryModel(program, each.deployment.plan, each.deployment.source, each.selftest)
        for program, each in zip(programs, built, strict=True)
    ]
    write_folder(tmp_path / "lib", library_files(members, "lib"))
    (arena,) = library_arenas(shares, "shared").values()
    assert arena == sum(each.states["sram"] for each in shares) + max(
        each.arenas["sram"] - each.states["sram"] for each in shares
    )
    run(tmp_path / "lib", KEPT % {"bytes": arena})


KEPT = """
#include <string.h>
#include "dense_selftest.h"
#include "gru.h"
#include "gru_selftest.h"
#include "lib_arena.h"
#include "lstm.h"
#include "lstm_selftest.h"
#include "small_selftest.h"

enum {RUNS = 3};
static float alone[2][RUNS][LSTM_OUTPUT_COUNT + GRU_OUTPUT_COUNT];

static const float *ran(int which)
{
    float *const input = which ? gru_input() : lstm_input();
    memset(input, 0, sizeof(float) * (which ? GRU_INPUT_COUNT : LSTM_INPUT_COUNT));
    which ? gru_run() : lstm_run();
    return which ? gru_output() : lstm_output();
}

int main(void)
{
    const size_t sizes[] = {sizeof(float) * LSTM_OUTPUT_COUNT, sizeof(float) * GRU_OUTPUT_COUNT};
    for (int which = 0; which < 2; which++) {
        for (int i = 0; i < RUNS; i++) {
            memcpy(alone[which][i], ran(which), sizes[which]);
        }
        if (memcmp(alone[which][0], alone[which][1], sizes[which]) == 0) {
            return 1;
        }
    }
    lstm_reset();
    gru_reset();
    for (int i = 0; i < RUNS; i++) {
        for (int which = 0; which < 2; which++) {
            if (memcmp(ran(which), alone[which][i], sizes[which]) != 0) {
                return 2;
            }
            if (small_selftest() != 0u || dense_selftest() != 0u) {
                return 3;
            }
        }
    }
    return sizeof lib_arena_sram.bytes != %(bytes)du || lstm_selftest() != 0u || gru_selftest() != 0u;
}
"""


def test_what_cannot_be_shared_is_refused(models: list[Path], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--arena shared is for several models"):
        built(models[:1], tmp_path / "one", "shared")
    with pytest.raises(UsageError, match="a crate owns its arenas"):
        built(models, tmp_path / "rust", "init", kind="rust")
