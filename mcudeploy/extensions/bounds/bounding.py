"""One counted run of a program in the emulator, and the bounds that follow from it.

Each step is counted, and taint analysis follows the data of the arenas from instruction to instruction. If no
branch depends on data, all data execute the same instructions, so the count is the bound. A branch that
depends on data adds the difference between its longest path and the one that was taken. A step has no bound
if data decide how often a loop runs, or which function is called.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from mcudeploy.codegen.render import render_firmware
from mcudeploy.common.errors import ConfigError, ProtocolError
from mcudeploy.common.text import count_text
from mcudeploy.device.target import Target, open_device
from mcudeploy.execution.cycles.core import Core, Executed
from mcudeploy.execution.cycles.plugin import Counts, plugin_arguments, read_windows
from mcudeploy.execution.cycles.profile import CORES, Profile, profile
from mcudeploy.execution.deployment import Deployment
from mcudeploy.extensions.bounds.control_flow import ControlFlow
from mcudeploy.extensions.bounds.data_flow import (
    DataFlow,
    Finding,
    Memories,
    Regions,
    data_flow_arguments,
    read_data_flow,
    write_table,
)
from mcudeploy.extensions.bounds.program_bounds import Dependence, ProgramBounds, StepBound
from mcudeploy.extensions.bounds.twin import twin_of
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.plan import Entry, Run, Wait
from mcudeploy.toolchain import Firmware, build_firmware
from mcudeploy.toolchain.disassembly import Functions, Instruction, read_symbols
from mcudeploy.toolchain.emulator import emulator_of
from mcudeploy.toolchain.firmware_build import compiler_version
from mcudeploy.toolchain.stack import INTERRUPT_HANDLERS
from mcudeploy.verify.compare import run_once
from mcudeploy.verify.samples import Sample

T = TypeVar("T")
_MOST_RUNS = 8
_STEP, _RUN, _RUN_WHOLE = "mcud_step", "mcud_run", "mcud_run_whole"
_CLOCK, _CALLER = "hal_ticks", "timing_run"
"""Functions of the firmware: a step, all steps, an operator as a whole; the timer that is read after a step,
the caller of a step.
"""
_CALLERS = """/* Keeps functions of the library that no firmware calls: the linker keeps boot blocks. */
#include <stdint.h>
#define KEPT __attribute__((used, section(".boot_block")))
void {prefix}_run(void);
void {prefix}_step(uint32_t step);
extern void (*const mcud_kept_run)(void);
extern void (*const mcud_kept_step)(uint32_t);
KEPT void (*const mcud_kept_run)(void) = {prefix}_run;
KEPT void (*const mcud_kept_step)(uint32_t) = {prefix}_step;
"""


@dataclass(frozen=True, slots=True, eq=False)
class StepWindow:
    """One entry of the tape as it ran: its counts, and its dependences on data."""

    counts: Counts
    flow: DataFlow


def bounds_of(deployment: Deployment, sample: Sample) -> ProgramBounds:
    """Return the bounds of a deployment for all data; `sample` is what the counted run computes.

    Raises ConfigError for a board without an emulated twin and for programs of several compute units, and
    what building and running raise.
    """
    counted = CountedProgram.of(deployment)
    return counted.bounds(counted.windows(sample))


def _build(deployment: Deployment, target: Target) -> Firmware:
    """Build the firmware for the emulated board, with functions of the library that it does not call."""
    files = render_firmware(deployment.program, deployment.plan, deployment.source)
    callers = {"callers.c": _CALLERS.format(prefix=deployment.prefix)}
    return build_firmware(
        deployment.firmware_board(target), files | callers, deployment.program.sources, emulate=True
    )


class CountedProgram:
    """A firmware with its instructions, and the rules by which its runs become bounds."""

    @classmethod
    def of(cls, deployment: Deployment) -> CountedProgram:
        """Build the program of a deployment for the emulated board with its core. Raises as `bounds_of`."""
        plan = deployment.plan
        if plan.lanes or len({function.unit for function in plan.functions}) > 1:
            raise ConfigError(
                "bounds are those of one core: plan with --parallel 1 and without --assign, or leave out "
                "--bounds"
            )
        target = Target(twin_of(deployment.board, plan), emulate=True)
        return cls(deployment, target, _build(deployment, target))

    def __init__(self, deployment: Deployment, target: Target, firmware: Firmware) -> None:
        self._deployment = deployment
        self._target = target
        self._firmware = firmware
        self._core = CORES.get(target.board.core)
        self._profile: Profile = profile(target, firmware, {})
        functions, instructions = self._profile.functions, self._profile.instructions
        self._flow = ControlFlow(instructions, functions, self._worst_cycles)
        self._regions = Regions.of(self._flow)

    def windows(self, sample: Sample) -> list[StepWindow]:
        """Run the program, and return what each entry of the tape executed without an interrupt.

        Raises ProtocolError if the emulator has not counted every entry, or its two counts differ.
        """
        with tempfile.TemporaryDirectory(prefix="mcudeploy-") as folder:
            counts, table, flows = (Path(folder) / name for name in ("counts", "table", "flows"))
            write_table(self._flow, self._regions, table)
            memories = Memories(_arenas(self._firmware.elf), self._target.board.flash.addresses)
            arguments = (
                *plugin_arguments(self._qemu, *self._window, counts),
                *data_flow_arguments(self._qemu, self._window, (table, flows), memories),
            )

            def read() -> list[StepWindow]:
                counted, followed = list(read_windows(counts)), list(read_data_flow(flows))
                _require_all(len(counted), len(followed))
                return list(map(StepWindow, counted, followed))

            windows = self._uninterrupted(sample, arguments, read, lambda window: window.counts)
        differing = next((it for it in windows if it.counts.total != it.flow.instructions), None)
        if differing is not None:
            raise ProtocolError(
                f"the emulator counted {differing.counts.total} and {differing.flow.instructions} "
                "instructions of one step"
            )
        return windows

    def counts(self, sample: Sample) -> list[Counts]:
        """Run the program, and count each entry of the tape without an interrupt. Raises as `windows`."""
        with tempfile.TemporaryDirectory(prefix="mcudeploy-") as folder:
            out = Path(folder) / "counts"
            arguments = plugin_arguments(self._qemu, *self._window, out)
            return self._uninterrupted(sample, arguments, lambda: list(read_windows(out)), lambda it: it)

    @property
    def functions(self) -> Functions:
        """The functions of the counted firmware."""
        return self._profile.functions

    @property
    def _qemu(self) -> str:
        return emulator_of(self._target.board).qemu

    @property
    def _window(self) -> tuple[int, int]:
        """The first instruction of a window, and the one after it."""
        functions = self._profile.functions
        return functions.named(_STEP).address, functions.named(_CLOCK).address

    def _uninterrupted(
        self,
        sample: Sample,
        arguments: Sequence[str],
        read: Callable[[], list[T]],
        counts_of: Callable[[T], Counts],
    ) -> list[T]:
        """Run until every entry of the tape has a window without interrupt, and return those windows.

        The host repeats a request if the answer is late, which interrupts a step at any place.
        """
        handlers = {it.address for it in self._profile.functions.all if it.name in INTERRUPT_HANDLERS}
        entries, storage = len(self._deployment.view.entries), self._deployment.storage
        chosen: dict[int, T] = {}
        patience = 10 * self._deployment.patience_s
        with open_device(self._target, self._firmware, patience, arguments) as device:
            for run in range(1, _MOST_RUNS + 1):
                run_once(device, storage, sample.stored)
                windows = read()
                _require_all(len(windows), run * entries)
                for at, window in enumerate(windows[-entries:]):
                    if not handlers & counts_of(window).executed.keys():
                        chosen.setdefault(at, window)
                if len(chosen) == entries:
                    return [chosen[at] for at in range(entries)]
        raise ProtocolError(
            f"{count_text(entries - len(chosen), 'step')} had an interrupt in each of {_MOST_RUNS} runs: "
            "the emulator is too slow on this computer"
        )

    def most_cycles(self, counts: Counts) -> float:
        """Return the most cycles of a window by the core's model; 0 without a model."""
        if self._core is None:
            return 0.0
        return sum(it.most for it in self._profile.cycles(counts, self._core).values())

    def bounds(self, windows: Sequence[StepWindow]) -> ProgramBounds:
        """Return the bounds that follow from a run."""
        tape = self._deployment.view.entries
        steps = tuple(self._step(entry, window) for entry, window in zip(tape, windows, strict=True))
        # MODEL_run() executes mcud_run, at most all of it for a step, in place of what is around a kernel.
        around = [self._around(window.counts) for window in windows]
        loop = self._whole(_RUN_WHOLE if self._deployment.program.calls else _RUN)
        run, step = (self._whole(f"{self._deployment.prefix}_{name}") for name in ("run", "step"))
        return ProgramBounds(
            board=self._target.board.name,
            core=self._core,
            compiler=compiler_version(self._target.board),
            steps=steps,
            step_overhead=step,
            run_overhead=(
                run[0] + loop[0] * len(steps) - sum(instructions for instructions, _ in around),
                run[1] + loop[1] * len(steps) - sum(cycles for _, cycles in around),
            ),
        )

    def _step(self, entry: Entry, window: StepWindow) -> StepBound:
        counts, flow = window.counts, window.flow
        name = self._deployment.plan.name_of(entry)
        step = StepBound(name, self._kernel(entry), counts.total, Dependence.NONE, None, None)
        reason = self._reason(entry, flow)
        if reason is not None:
            return replace(step, dependence=Dependence.LOOPS, reason=reason)
        extra, extra_cycles = self._regions.extra(flow)
        tables = any(map(flow.found, (Finding.LOAD_ADDRESS, Finding.STORE_ADDRESS, Finding.DIVISION)))
        dependence = Dependence.TABLES if tables else Dependence.NONE
        if flow.entered:
            dependence = Dependence.BRANCHES
        cycles = None if self._core is None or self._waits else self.most_cycles(counts) + extra_cycles
        return replace(
            step,
            dependence=dependence,
            instructions=counts.total + extra,
            cycles=None if cycles is None else math.ceil(cycles),
        )

    def _kernel(self, entry: Entry) -> str:
        if isinstance(entry, Run):
            operator = self._deployment.plan.graph.operators[entry.operator]
            return self._deployment.model.calls[operator.name].kernel
        return "await_transfers" if isinstance(entry, Wait) else "transfer"

    def _reason(self, entry: Entry, flow: DataFlow) -> str | None:
        """Return why a step has no bound; None if it has one."""
        if isinstance(entry, Wait):
            return f"it waits for the engine {entry.engine}"
        texts = {
            Finding.UNKNOWN_INSTRUCTION: "the effects of an instruction are unknown",
            Finding.JUMP_BY_DATA: "data decide which function is called",
            Finding.LEFT_REGION: "the paths of a branch do not join",
        }
        for kind, text in texts.items():
            for address in flow.found(kind):
                return self._at(address, text)
        for address in flow.found(Finding.BRANCH_WITHOUT_REGION):
            ends = "the ends of its paths depend on data"
            return self._at(address, self._regions.reasons.get(address, ends))
        return None

    def _at(self, address: int, text: str) -> str:
        instruction = self._profile.instructions[address]
        function = self._profile.functions.at(address)
        return f"{function}, {instruction.mnemonic} at {address:#x}: {text}"

    @cached_property
    def _waits(self) -> bool:
        """Whether the plan uses a memory for which the core waits."""
        board, arenas = self._deployment.board, self._deployment.plan.layout.arenas
        return any(
            memory.read_cost or memory.write_cost for memory in board.memories if arenas.get(memory.name)
        )

    def _worst_cycles(self, instruction: Instruction) -> float:
        """Return the most cycles of one execution of an instruction, after any other."""
        return 0.0 if self._core is None else _worst(self._core, instruction, self._before(instruction))

    def _before(self, instruction: Instruction) -> Instruction | None:
        """Return the instruction before it in memory."""
        for size in (2, 4):
            before = self._profile.instructions.get(instruction.address - size)
            if before is not None and before.size == size:
                return before
        return None

    def _around(self, counts: Counts) -> tuple[int, float]:
        """Return the instructions of a window outside its kernel, and their least cycles."""
        functions = self._profile.functions
        outside = [address for address in counts.executed if functions.at(address) in (_STEP, _CALLER)]
        cycles = {} if self._core is None else self._profile.cycles(counts, self._core)
        return (
            sum(counts.executed[address] for address in outside),
            sum(cycles[address].least for address in outside if address in cycles),
        )

    def _whole(self, name: str) -> tuple[int, int]:
        """Return the instructions of a function, each once, and their most cycles."""
        function = self._profile.functions.typed(name)
        span = Interval(function.address, function.address + function.size)
        body = [it for address, it in self._profile.instructions.items() if address in span and it.mnemonic]
        return len(body), math.ceil(sum(map(self._worst_cycles, body)))


def _require_all(counted: int, steps: int) -> None:
    if counted != steps:
        raise ProtocolError(f"the emulator counted {count_text(counted, 'step')}, the program has {steps}")


def _worst(core: Core, instruction: Instruction, before: Instruction | None) -> float:
    here = Executed.of(instruction, 1, 1)
    previous = [None] if before is None else [None, Executed.of(before, 1, 0)]
    return max(core.cost(here, it, False)[0].most for it in previous)


def _arenas(elf: Path) -> list[Interval]:
    """Return the addresses of a program's arenas."""
    return [
        Interval(it.value, it.value + it.size)
        for it in read_symbols(elf)
        if it.type == "STT_OBJECT" and it.name.startswith("arena_")
    ]
