"""A run of a plan in the emulator, with its instructions, loads and stores counted."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from mcudeploy.common.errors import ConfigError, ProtocolError
from mcudeploy.common.text import count_text
from mcudeploy.device.target import Target, open_device
from mcudeploy.execution.cycles.memory_traffic import MemoryTraffic, regions_of, require_emulated
from mcudeploy.execution.cycles.plugin import Counts, plugin_arguments, read_windows
from mcudeploy.execution.cycles.profile import core_of
from mcudeploy.execution.deployment import Deployment
from mcudeploy.ir.plan import MOVES
from mcudeploy.planner.tape.plan_view import PlanView
from mcudeploy.toolchain import Firmware
from mcudeploy.toolchain.disassembly import Functions
from mcudeploy.toolchain.emulator import emulator_of
from mcudeploy.verify.compare import run_once

Timing = Literal["instructions", "cycles-model", "traffic"]
"""Metric of a run: the board's counter; modelled cycles of its core; or instructions.

The last two include the stalls of slow memories.
"""


def require_timing(timing: Timing, target: Target, cores: int | None = None) -> None:
    """Raise ConfigError for a target without such timing, or for several `cores` at once (0: all)."""
    if timing != "instructions" and cores not in (None, 1):
        raise _one_core()
    if timing == "cycles-model":
        core_of(target)
    elif timing == "traffic":
        require_emulated(target)


def count_steps(
    deployment: Deployment, target: Target, firmware: Firmware, inputs: Mapping[str, Any]
) -> list[Counts]:
    """Run a plan once in the emulator (stored inputs by tensor) and count for each entry of its tape.

    It counts executed instructions, and the bytes loaded and stored in `regions_of` the firmware. A step
    lasts from the entry of mcud_step to the next reading of the counter. Raises the errors of running,
    ProtocolError if the emulator has not counted every step, and BuildError if a tool is missing.
    """
    if deployment.plan.lanes:
        raise _one_core()
    functions = Functions(firmware.elf)
    begin, end = (functions.named(name).address for name in ("mcud_step", "hal_ticks"))
    regions = [region.addresses for region in regions_of(firmware)]
    with tempfile.TemporaryDirectory(prefix="mcudeploy-") as folder:
        out = Path(folder) / "counts"
        arguments = plugin_arguments(emulator_of(target.board).qemu, begin, end, out, regions)
        with open_device(target, firmware, deployment.patience_s, arguments) as device:
            run_once(device, deployment.storage, inputs)
        windows = list(read_windows(out))
    if len(windows) != len(deployment.view.entries):
        counted = count_text(len(windows), "step")
        raise ProtocolError(f"the emulator counted {counted}, the plan has {len(deployment.view.entries)}")
    return windows


def by_operator(view: PlanView, steps: Sequence[Counts]) -> dict[str, Counts]:
    """Return the counts of tape entries by the name of their operator, in the order of its first step."""
    operators: dict[str, Counts] = {}
    for entry, counts in zip(view.entries, steps, strict=True):
        operators.setdefault(view.plan.name_of(entry), Counts()).add(counts)
    return operators


def traffic_of(view: PlanView, steps: Sequence[Counts], firmware: Firmware) -> list[MemoryTraffic]:
    """Return the loads and stores of each entry of the tape, from its counts."""
    regions = regions_of(firmware)
    constant_bytes = {name: call.constant_bytes for name, call in view.calls.items()}
    constant_bytes[MOVES] = sum(it.size_bytes for it in view.plan.layout.constants.values())
    return [
        MemoryTraffic.of(counts, regions, firmware.board, constant_bytes.get(view.plan.name_of(entry), 0))
        for entry, counts in zip(view.entries, steps, strict=True)
    ]


def traffic_by_operator(
    view: PlanView, steps: Sequence[Counts], firmware: Firmware
) -> dict[str, MemoryTraffic]:
    """Return the loads and stores of tape entries, as `traffic_of` has them, by the name of the operator."""
    operators = view.by_name(traffic_of(view, steps, firmware))
    return {name: MemoryTraffic.total(each) for name, each in operators.items()}


def _one_core() -> ConfigError:
    return ConfigError(
        "modelled cycles (--objective cycles, --timing cycles-model) and traffic are counted on one core: "
        "make a plan with --parallel 1"
    )
