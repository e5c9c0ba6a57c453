"""Loads and stores by memory: exact for a known copy, blind for a DMA controller, summed up in reports."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from models import quantised_convolutions

from mcudeploy.boards.catalogue import load_board
from mcudeploy.codegen.kernelfiles import AWAIT, START
from mcudeploy.common.errors import ConfigError
from mcudeploy.device.target import Target
from mcudeploy.execution.counted import Timing
from mcudeploy.execution.cycles.memory_traffic import (
    OTHER,
    AddressRegion,
    MemoryTraffic,
    regions_of,
    require_emulated,
)
from mcudeploy.execution.cycles.plugin import Counts, plugin_arguments, read_windows
from mcudeploy.ir.interval import Interval
from mcudeploy.planner.plan_options import Options
from mcudeploy.report.counted_report import UNIT
from mcudeploy.toolchain import Emulator, build_firmware
from mcudeploy.toolchain.disassembly import Functions
from tests import reports
from tests.targets.board_line import CONFIG, LINE, Line
from tests.targets.test_dma import PROGRAM


def test_a_copy_counts_exactly_and_a_transfer_not_at_all(tmp_path: Path) -> None:
    board, size = load_board("mps2-an505"), 4099
    files = {"mcud_config.h": CONFIG, "line.h": LINE, "transfers.c": PROGRAM}
    firmware = build_firmware(board, files, [START, AWAIT], emulate=True, measurer=False)
    ticks, regions = Functions(firmware.elf).named("hal_ticks").address, regions_of(firmware)
    facts = board.emulator
    assert facts is not None
    out = tmp_path / "counts"
    watched = [region.addresses for region in regions]
    arguments = plugin_arguments(facts.qemu, ticks, ticks, out, watched)
    with Emulator(board, firmware.elf, arguments) as emulator:
        line = Line(emulator.url)
        line.ask(b"T", size, answers=3)
        line.close()
    start, _, copy = (MemoryTraffic.of(counts, regions, board) for counts in list(read_windows(out))[:3])
    assert (copy.loaded["sram"], copy.stored["psram"], copy.loaded["psram"]) == (size, size, 0)
    assert copy.stall_cycles["psram"] == copy.stalls == 5 * size
    assert start.stored["psram"] == start.loaded["psram"] == 0
    assert start.stored[OTHER] > 0  # the controller's registers


def test_an_access_costs_what_its_memory_takes() -> None:
    board = load_board("mps2-an386")
    slow = board.memories[0].model_copy(update={"read_rate": 0.5, "write_rate": None})
    board = board.model_copy(update={"memories": (slow, board.memories[1])})
    nowhere = Interval(0, 0)
    regions = (
        AddressRegion("stack", "sram", nowhere),
        *(AddressRegion(name, name, nowhere) for name in ("sram", "psram")),
        AddressRegion("flash", None, nowhere),
    )
    counts = Counts(loaded=Counter({0: 10, 1: 4, 2: 6, 3: 100}), stored=Counter({1: 8, 2: 1, 4: 3}))
    traffic = MemoryTraffic.of(counts, regions, board)
    assert traffic.stall_cycles == {"stack": 20, "sram": 8, "psram": 6 * 5 + 5, "flash": 0}
    assert traffic.by_region == {"stack": 10, "sram": 12, "psram": 7, "flash": 100, "other": 3}


@pytest.mark.parametrize("timing", ["traffic", "cycles-model"])
def test_stalls_are_in_the_report(tmp_path: Path, timing: Timing) -> None:
    model = quantised_convolutions(tmp_path / "small.onnx")
    target = Target(load_board("mps2-an386"), emulate=True)
    options = Options(split=False, memory_limits=(("sram", 0),), objective="instructions")
    plain = reports.measure_model(model, target, options)
    report = reports.measure_model(model, target, options, timing=timing)
    psram = report["traffic_counted"]["psram"]
    assert report["stalls"]["by_memory"] == {"psram": 5 * (psram["loaded"] + psram["stored"])}
    of_core = report["cycles_model"]["cycles"] if timing == "cycles-model" else plain["latency"]["value"]
    assert report["latency"]["value"] == pytest.approx(of_core + report["stalls"]["cycles"], abs=2)
    assert (report["latency"]["unit"] == UNIT) == (timing == "traffic")
    # what is predicted counts a block once for each step that reads it, kernels read it more often
    assert psram["loaded"] + psram["stored"] > report["traffic"]["psram"]
    for memory in report["traffic_counted"]:
        both = sum(report["traffic_counted"][memory].values())
        assert sum(it["traffic_counted"].get(memory, 0) for it in report["operators"]) == both
    assert sum(it["stall_cycles"] for it in report["operators"]) == pytest.approx(report["stalls"]["cycles"])
    assert sum(it["share"] for it in report["operators"]) == pytest.approx(1)
    assert report["overhead_percent"] == (0 if timing == "traffic" else None)


def test_waits_for_flash_are_in_the_report(tmp_path: Path) -> None:
    model = quantised_convolutions(tmp_path / "small.onnx")
    target = Target(load_board("stm32f405"), emulate=True)
    report = reports.measure_model(model, target, Options(split=False), timing="cycles-model")
    read = report["traffic_counted"]["flash"]["loaded"]
    assert read > report["weights_bytes"]
    assert 0 < report["stalls"]["by_memory"]["flash"] <= read * 5 / 16
    assert report["latency"]["flash_stalls"] == report["stalls"]["by_memory"]["flash"]
    waits = report["estimated_latency"]["flash_stalls"]
    assert waits == pytest.approx(report["stalls"]["cycles"], rel=0.1)


@pytest.mark.parametrize(("name", "emulate"), [("host", False), ("stm32f405", False)])
def test_only_emulators_count(name: str, emulate: bool) -> None:
    with pytest.raises(ConfigError, match="--timing traffic is for emulated boards"):
        require_emulated(Target(load_board(name), emulate=emulate))
