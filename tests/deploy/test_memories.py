"""Arenas in several memories end to end: planned, stored, built, found in the ELF, run and verified."""

from __future__ import annotations

import logging
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from models import fully_connected, quantised_convolutions

from mcudeploy.boards.catalogue import load_board
from mcudeploy.codegen.render import render_model
from mcudeploy.commands import commands as api
from mcudeploy.common.errors import FitError, UsageError
from mcudeploy.common.sizes import parse_alignment
from mcudeploy.device.target import Target
from mcudeploy.ir.plan import Plan
from mcudeploy.planner.place.placement_problem import align_up
from mcudeploy.planner.plan_options import Options
from mcudeploy.report import as_json
from mcudeploy.toolchain import Firmware, emulator
from tests import reports
from tests.residing import offsets_of

VWW = Path(__file__).resolve().parents[2] / "examples" / "vww" / "model.onnx"
UNSPLIT = Options(split=False)
SPREAD = Options(split=False, memory_limits=(("sram", 1200),))  # of 1,728 bytes in three tensors


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return quantised_convolutions(tmp_path_factory.mktemp("memories") / "small.onnx")


def addresses(firmware: Firmware) -> dict[str, tuple[int, int]]:
    """First address and end of every arena, and of all sections that take memory when the program runs."""
    spans = {}
    with firmware.elf.open("rb") as file:
        elf = ELFFile(file)
        for section in elf.iter_sections():
            if section["sh_flags"] & 2 and section["sh_size"]:
                spans[section.name] = section["sh_addr"], section["sh_addr"] + section["sh_size"]
        for symbol in elf.get_section_by_name(".symtab").iter_symbols():
            if symbol.name.startswith("arena_"):
                spans[symbol.name] = symbol["st_value"], symbol["st_value"] + symbol["st_size"]
    return spans


@pytest.mark.parametrize(("version", "ccm"), [(7, 0x20020000), (8, 0x10000000), (None, 0x10000000)])
def test_arenas_lie_in_their_memories(
    model: Path, version: int | None, ccm: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For QEMU 7 and 8, and for the chip itself."""
    board = load_board("stm32f405")
    monkeypatch.setattr(emulator, "qemu_version", lambda _: version or 8)
    deployment = api.plan_model(model, board, SPREAD)
    assert set(deployment.plan.layout.arenas) == {"sram", "ccm"}
    lying = addresses(deployment.build(Target(board, emulate=version is not None)))
    spans = {"sram": (0x20000000, 0x20020000), "ccm": (ccm, ccm + 0x10000)}
    for memory, size in deployment.plan.layout.arenas.items():
        first, end = lying.pop(f"arena_{memory}")
        assert spans[memory][0] <= first < end <= spans[memory][1]
        assert (end - first, first % 8) == (size, 0)
    assert lying[".arena.ccm"][0] == ccm
    for one, other in pairwise(sorted(lying.values())):
        assert one[1] <= other[0]


def test_a_units_alignment_is_that_of_the_arenas_too(model: Path) -> None:
    board = load_board("mps2-an386")
    board = board.model_copy(update={"units": (board.units[0].model_copy(update={"alignment": 64}),)})
    deployment = api.plan_model(model, board, SPREAD)
    assert all(
        at % 64 == 0 for name in deployment.plan.layout.blocks for at in offsets_of(deployment.plan, name)
    )
    placed = addresses(deployment.build(Target(board)))
    assert placed["arena_sram"][0] % 64 == placed["arena_psram"][0] % 64 == 0


def test_notes_name_memories_that_no_source_starts_and_limits_above_their_size(
    model: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "mcudeploy")
    board = load_board("stm32f746-disco")
    api.plan_model(model, board, Options(split=False, memory_limits=(("sdram", 99 << 20),)))
    assert "note: --memory sdram=103809024: sdram of stm32f746-disco has 8,388,608 B" in caplog.text
    assert "starts" not in caplog.text
    bare = board.model_copy(update={"hal": tuple(it for it in board.hal if "fmc_sdram" not in it)})
    api.plan_model(model, bare, Options(split=False))
    assert "note: nothing in the firmware of stm32f746-disco starts sdram" in caplog.text
    caplog.clear()
    api.plan_model(model, bare, Options(split=False, memory_limits=(("sdram", 0),)))
    assert not caplog.text


def test_no_firmware_is_built_for_a_memory_that_it_does_not_start(
    model: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "mcudeploy")
    limits = (("dtcm", 0), ("ocram", 0), ("psram", 1 << 20))
    board = load_board("teensy41")
    silent = tuple(it.model_copy(update={"started": it.name != "psram"}) for it in board.memories)
    board = board.model_copy(update={"memories": silent})
    deployment = api.plan_model(model, board, Options(split=False, memory_limits=limits))
    assert "note: nothing in the firmware of teensy41 starts psram" in caplog.text
    with pytest.raises(UsageError, match=r"for teensy41 does not start psram.*--library-only"):
        deployment.build(Target(deployment.board))


def test_estimated_latencies_count_what_slow_memories_cost(model: Path) -> None:
    board = load_board("mps2-an386")
    deployments = (api.plan_model(model, board, options) for options in (Options(split=False), SPREAD))
    fast, spread = map(as_json, deployments)
    exposed = spread["transfers"]["exposed_ticks"]
    assert exposed > 0
    assert spread["estimated_latency"]["value"] >= fast["estimated_latency"]["value"] + exposed


@pytest.mark.parametrize("name", ["stm32f405", "mps2-an386", "mps3-an547"])
def test_a_spread_plan_runs_and_is_verified(model: Path, name: str) -> None:
    board = load_board(name)
    limits = (("dtcm", 1200),) if name == "mps3-an547" else SPREAD.memory_limits
    options = Options(split=False, memory_limits=limits)
    report = reports.run_model(model, Target(board, emulate=True), options, inputs=[], expected=[])
    assert report["verified"]
    assert len(report["arenas"]) == 2 and sum(report["arenas"].values()) == report["arena_bytes"]
    assert report["static_ram_bytes"] >= report["arena_bytes"]
    outside = [tensor for tensors in report["elsewhere"].values() for tensor in tensors]
    assert 0 < len(outside) < 4
    if (
        name != "stm32f405"
    ):  # the second memory is slow: what lies there costs time, with or without transfers
        slow = next(memory.name for memory in board.memories if not memory.is_fast)
        assert report["traffic"][slow] > 0 and report["transfers"]["exposed_ticks"] > 0
        return
    assert report["layout_status"] == "optimal" and report["transfers"]["exposed_ticks"] == 0
    # The image is read as often as windows of 3 x 3 cover it; between the convolutions 8 channels are written
    # and read; the output is written.
    scratch = sum(report["traffic"].values()) - 34 * 34 * 3 - 12 * 12 * (2 * 8 + 4)
    assert 0 < scratch < 1000
    assert report["traffic"]["sram"] >= 12 * 12 * 2 * 8 and report["traffic"]["ccm"] > 0


def test_a_plan_that_fits_the_cheapest_memory_is_the_one_without_limits(model: Path) -> None:
    board = load_board("stm32f405")
    free = api.plan_model(model, board, UNSPLIT).plan
    limited = api.plan_model(model, board, Options(split=False, memory_limits=(("sram", 4096),))).plan
    assert (free.layout, free.estimate) == (limited.layout, limited.estimate)
    assert set(free.layout.arenas) == {"sram"}


def test_a_plan_file_keeps_the_memories(model: Path, tmp_path: Path) -> None:
    board, file = load_board("stm32f405"), tmp_path / "plan.json"
    deployment = api.plan_model(model, board, SPREAD)
    api.save_plan(deployment, file)
    again = api.plan_model(model, board, Options(plan_file=file))
    assert again.plan.layout.blocks == deployment.plan.layout.blocks
    assert again.plan.layout.arenas == deployment.plan.layout.arenas
    assert again.plan.estimate.traffic == deployment.plan.estimate.traffic
    with pytest.raises(FitError, match=r"has room for 512: [\d,]+ too many"):
        api.plan_model(model, board, Options(plan_file=file, memory_limits=(("sram", 512),)))


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (
            {"sram": 1000, "ccm": 600},
            r"room for (1,000|600): [\d,]+ too many; the peak is at step \d \(conv_\d\)",
        ),
        ({"sram": 1000, "ccm": 700}, r"Of the other memories (sram|ccm) has [\d,]+ of"),
        ({"sram": 0, "ccm": 0}, r"sram of stm32f405 has room for 0: .* too many"),
    ],
)
def test_what_fits_nowhere_is_refused(model: Path, limits: dict[str, int], message: str) -> None:
    options = Options(split=False, memory_limits=tuple(limits.items()))
    with pytest.raises(FitError, match=message) as caught:
        api.plan_model(model, load_board("stm32f405"), options)
    assert caught.value.exit_code == 5


def test_an_unknown_memory_is_refused_with_the_names(model: Path) -> None:
    with pytest.raises(UsageError, match="no memory 'psram'; it has sram, ccm"):
        api.plan_model(model, load_board("stm32f405"), Options(memory_limits=(("psram", 0),)))


def test_a_split_plan_that_fits_the_fast_memory_is_taken(model: Path) -> None:
    options = Options(time_limit=0.5, max_overhead=300, memory_limits=(("sram", 1300),))
    deployment = api.plan_model(model, load_board("mps2-an386"), options)
    assert set(deployment.plan.layout.arenas) == {"sram"} and deployment.plan.splits
    assert set(deployment.planned.baseline.layout.arenas) == {"sram", "psram"}


@pytest.mark.parametrize(
    ("printed", "version"), [("QEMU emulator version 7.2.22 (x)", 7), ("", float("inf"))]
)
def test_the_version_of_qemu(
    printed: str, version: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "qemu-system-arm"
    program.write_text(f"#!/bin/sh\necho '{printed}'\n")
    program.chmod(0o755)
    emulator.qemu_version.cache_clear()
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert emulator.qemu_version("qemu-system-arm") == version
    emulator.qemu_version.cache_clear()
    assert emulator.qemu_version(str(tmp_path / "none")) == float("inf")


def homes(plan: Plan) -> set[str]:
    """The memories of inputs and outputs."""
    ios = {io.tensor for io in (*plan.graph.inputs, *plan.graph.own_outputs())}
    return {each.memory for name in ios for block in plan.layout.blocks[name] for each in block}


def test_inputs_and_outputs_stay_out_of_memory_that_no_dma_reaches(model: Path) -> None:
    board = load_board("stm32f405")
    graph = api.plan_model(model, board, UNSPLIT).plan.graph
    largest = max(graph.tensors[it.tensor].size_bytes for it in (*graph.inputs, *graph.own_outputs()))
    plan = api.plan_model(model, board, Options(split=False, memory_limits=(("sram", largest),))).plan
    assert plan.layout.arenas["ccm"] and homes(plan) == {"sram"}


@pytest.mark.parametrize(
    ("name", "controllers"),
    [
        ("stm32h743", "dma1, dma2 and mdma reach"),
        ("stm32h747", "dma1, dma2 and mdma reach"),
        ("teensy41", "edma reaches"),
    ],
)
def test_the_common_dma_controllers_reach_inputs_and_outputs_in_lines_of_their_own(
    name: str, controllers: str, model: Path, tmp_path: Path
) -> None:
    board = load_board(name)
    small = [fully_connected(tmp_path / f"{at}.onnx", (13, 7, 3), quantised=bool(at)) for at in (0, 1)]
    for path in (model, *small):
        deployment = api.plan_model(path, board, UNSPLIT)
        graph, layout = deployment.plan.graph, deployment.plan.layout
        files = render_model(deployment.program, deployment.plan, deployment.source)
        header, source = (files[f"{deployment.program.prefix}.{kind}"] for kind in "hc")
        for io in (*graph.own_inputs(), *graph.own_outputs()):
            home = layout.blocks[io.tensor][0][0]
            assert home.offset % 32 == 0 and f"In {home.memory}, which {controllers}." in header
        arenas = [it for it in deployment.program.arenas if it.memory in homes(deployment.plan)]
        lines = {it.memory: board.cache_line_of(it.memory) for it in arenas}
        assert arenas and all(it.size_bytes % lines[it.memory] == 0 and it.alignment == 32 for it in arenas)
        assert ("SCB_CleanDCache_by_Addr((void *)" in header) is (max(lines.values()) > 1)
        assert "MCUD_ALIGNED(32)" in source


@pytest.mark.parametrize(("memory", "line"), [("ocram", 32), ("dtcm", 1)])
def test_the_macros_of_sizes_agree_and_only_a_cached_memory_has_whole_lines(
    memory: str, line: int, tmp_path: Path
) -> None:
    path = fully_connected(tmp_path / "small.onnx", (13, 7, 3), quantised=True)
    limits = (("dtcm", 0),) if memory == "ocram" else ()
    deployment = api.plan_model(path, load_board("teensy41"), replace(UNSPLIT, memory_limits=limits))
    assert set(deployment.plan.layout.arenas) == {memory}
    program = replace(deployment.program, arena="extern", arena_owner=deployment.program.prefix)
    header = render_model(program, deployment.plan, deployment.source)[f"{program.prefix}.h"]
    macros = re.findall(r"_ARENA_(?:(\w+)_)?BYTES (\d+)u", header)
    size = align_up(deployment.plan.layout.arenas[memory], line)
    assert sorted(macros) == [("", str(size)), (memory.upper(), str(size))]
    assert ("through a data cache" in header) is (line > 1)


def test_inputs_and_outputs_begin_where_io_align_says(tmp_path: Path) -> None:
    path = fully_connected(tmp_path / "small.onnx", (13, 7, 3), quantised=True)
    deployment = api.plan_model(path, load_board("mps2-an386"), replace(UNSPLIT, io_align=64))
    graph, layout = deployment.plan.graph, deployment.plan.layout
    ios = (*graph.own_inputs(), *graph.own_outputs())
    assert all(layout.blocks[io.tensor][0][0].offset % 64 == 0 for io in ios)
    (arena,) = deployment.program.arenas
    assert (arena.alignment, arena.size_bytes % 64) == (64, 0)
    with pytest.raises(ValueError, match="'48' is not an alignment: 1, 2, 4, 8, 16, 32, 64"):
        parse_alignment("48")


def test_a_plan_that_fits_only_without_dma_names_the_way_out(
    model: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "mcudeploy")  # whatever an earlier test has set
    board = load_board("stm32f405")
    narrow = Options(split=False, memory_limits=(("sram", 64), ("ccm", 8192)))
    with pytest.raises(
        FitError, match=r"stay out of ccm, which no DMA reaches; --no-dma-io lets them in"
    ) as caught:
        api.plan_model(model, board, narrow)
    assert "--no-dma-io" in [it.option for it in caught.value.proposals]
    assert homes(api.plan_model(model, board, replace(narrow, dma_io=False)).plan) == {"ccm"}
    alone = replace(narrow, memory_limits=(("sram", 0),))
    assert homes(api.plan_model(model, board, alone).plan) == {"ccm"}
    assert "inputs and outputs lie in ccm, which no DMA reaches: no memory within their reach" in caplog.text
    caplog.clear()
    api.plan_model(model, board, replace(alone, dma_io=False))
    assert not caplog.text


def test_inputs_outside_of_the_fast_memory_leave_the_search_for_ram_alone() -> None:
    """Of an H7 the DTCM takes no inputs by DMA: their stalls are forced, and RAM counts as without them."""
    board, options = load_board("stm32h743"), Options(time_limit=0.5)
    assert not any(memory.is_fast and memory.name in board.io_memories for memory in board.memories)
    deployment = api.plan_model(VWW, board, options)
    least, unsplit = deployment.plan.layout.arena_bytes, deployment.planned.baseline.layout.arena_bytes
    assert deployment.plan.splits and least < 0.8 * unsplit
    for limit in range(least, unsplit + 1024, (unsplit - least) // 2):
        plan = api.plan_model(VWW, board, replace(options, ram_limit=limit)).plan
        assert plan.layout.arena_bytes <= limit
