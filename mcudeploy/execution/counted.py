"""A run of a plan in the emulator with everything counted."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from mcudeploy.boards.board import Board
from mcudeploy.common.errors import ConfigError, ProtocolError
from mcudeploy.common.text import count_text
from mcudeploy.device.target import Target, open_device
from mcudeploy.execution.cycles.memory_traffic import MemoryTraffic, regions_of, require_emulated
from mcudeploy.execution.cycles.plugin import Counts, plugin_arguments, read_windows
from mcudeploy.execution.cycles.profile import core_of
from mcudeploy.ir.opdef import KernelCall
from mcudeploy.ir.plan import Plan
from mcudeploy.toolchain import Firmware
from mcudeploy.toolchain.disassembly import Functions
from mcudeploy.verify.compare import Storage, run_once

Timing = Literal["instructions", "cycles-model", "traffic"]
"""Metric of a run: the board's counter; modelled cycles of its core; or instructions.

The last two include the stalls of slow memories.
"""


def require_timing(timing: Timing, target: Target, cores: int | None = None) -> None:
    """Raise ConfigError for a target without such timing, or with several cores at once (0: all)."""
    if timing != "instructions" and cores not in (None, 1):
        raise _one_core()
    if timing == "cycles-model":
        core_of(target)
    elif timing == "traffic":
        require_emulated(target)


def count_steps(
    plan: Plan, target: Target, firmware: Firmware, inputs: Mapping[str, Any], patience_s: float
) -> list[Counts]:
    """Run a plan once in the emulator (stored inputs by tensor) and count for each entry of its tape.

    Counted are executed instructions, loads and stores; regions are those of `regions_of`. A step is counted
    from the entry of mcud_step to the next reading of the counter. Raises the errors of running,
    ProtocolError if the emulator has not counted every step, and BuildError if a tool is missing.
    """
    if plan.lanes:
        raise _one_core()
    functions = Functions(firmware.elf)
    begin, end = (functions.named(name).address for name in ("mcud_step", "hal_ticks"))
    regions = [region.addresses for region in regions_of(firmware)]
    with tempfile.TemporaryDirectory(prefix="mcudeploy-") as folder:
        out = Path(folder) / "counts"
        arguments = plugin_arguments(_qemu(target.board), begin, end, out, regions)
        with open_device(target, firmware, patience_s, arguments) as device:
            run_once(device, Storage.of(plan), inputs)
        windows = list(read_windows(out))
    if len(windows) != len(plan.tape):
        counted = count_text(len(windows), "step")
        raise ProtocolError(f"the emulator counted {counted}, the plan has {len(plan.tape)}")
    return windows


def by_operator(plan: Plan, steps: Sequence[Counts]) -> dict[str, Counts]:
    """Return the counts of tape entries by the name of their operator, in the order of its first step."""
    operators: dict[str, Counts] = {}
    for entry, counts in zip(plan.tape, steps, strict=True):
        operators.setdefault(plan.name_of(entry), Counts()).add(counts)
    return operators


def traffic_of(
    plan: Plan, steps: Sequence[Counts], firmware: Firmware, calls: Mapping[str, KernelCall]
) -> list[MemoryTraffic]:
    """Return the accesses of tape entries, by their counts; `calls`: the kernel of each operator."""
    regions = regions_of(firmware)
    constant_bytes = {name: call.constant_bytes for name, call in calls.items()}
    return [
        MemoryTraffic.of(counts, regions, firmware.board, constant_bytes.get(plan.name_of(entry), 0))
        for entry, counts in zip(plan.tape, steps, strict=True)
    ]


def traffic_by_operator(
    plan: Plan, steps: Sequence[Counts], firmware: Firmware, calls: Mapping[str, KernelCall]
) -> dict[str, MemoryTraffic]:
    """Return the accesses of tape entries by the name of their operator, as `traffic_of` each."""
    operators: dict[str, list[MemoryTraffic]] = {}
    for entry, traffic in zip(plan.tape, traffic_of(plan, steps, firmware, calls), strict=True):
        operators.setdefault(plan.name_of(entry), []).append(traffic)
    return {name: MemoryTraffic.total(each) for name, each in operators.items()}


def _qemu(board: Board) -> str:
    if board.emulator is None:
        raise ConfigError(f"{board.name} cannot be emulated")
    return board.emulator.qemu


def _one_core() -> ConfigError:
    return ConfigError(
        "modelled cycles (--objective cycles, --timing cycles-model) and traffic are counted on one core: "
        "make a plan with --parallel 1"
    )
