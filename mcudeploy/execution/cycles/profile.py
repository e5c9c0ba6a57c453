"""One run of a plan in the emulator with every instruction counted, and the cycles by a model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from mcudeploy.common.errors import BuildError, ConfigError
from mcudeploy.costs.estimate import STAND_INS
from mcudeploy.device.target import Target
from mcudeploy.execution.cycles.classes import Kind, classify
from mcudeploy.execution.cycles.core import Core, Cycles, Executed
from mcudeploy.execution.cycles.cortex_m4 import CORTEX_M4
from mcudeploy.execution.cycles.cortex_m7 import CORTEX_M7
from mcudeploy.execution.cycles.cortex_m33 import CORTEX_M33
from mcudeploy.execution.cycles.cortex_m55 import CORTEX_M55
from mcudeploy.execution.cycles.plugin import Counts
from mcudeploy.toolchain import Firmware
from mcudeploy.toolchain.disassembly import Functions, Instruction, disassemble

CORES = {core.name: core for core in (CORTEX_M4, CORTEX_M7, CORTEX_M33, CORTEX_M55)}


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """Counts by operator, in the order of the first steps, and of moves; the program's instructions."""

    operators: Mapping[str, Counts]
    instructions: Mapping[int, Instruction]
    functions: Functions

    def whole(self) -> Counts:
        """Return the counts of all operators."""
        total = Counts()
        for counts in self.operators.values():
            total.add(counts)
        return total

    def by_kind(self, counts: Counts) -> dict[Kind, int]:
        """Return the executed instructions of each kind, the most frequent first."""
        totals: defaultdict[Kind, int] = defaultdict(int)
        for address, count in counts.executed.items():
            totals[classify(self.instructions[address])] += count
        return dict(sorted(totals.items(), key=lambda it: -it[1]))

    def by_function(self, counts: Counts) -> dict[str, int]:
        """Return the executed instructions of each function, the most frequent first."""
        totals: defaultdict[str, int] = defaultdict(int)
        for address, count in counts.executed.items():
            totals[self.functions.at(address)] += count
        return dict(sorted(totals.items(), key=lambda it: -it[1]))

    def cycles(self, counts: Counts, core: Core) -> dict[int, Cycles]:
        """Return the cycles that a core spends at each address."""
        cycles = {}
        before, paired = None, False
        for address in sorted(counts.executed):
            instruction = self.instructions[address]
            here = Executed.of(instruction, counts.executed[address], counts.not_followed[address])
            if before is not None and before.instruction.address + before.instruction.size != address:
                before, paired = None, False
            cycles[address], paired = core.cost(here, before, paired)
            before = here
        return cycles


def cycle_model(core: str) -> Core | None:
    """Return the cycle model of a core, or of the core that stands in for it; None if there is none."""
    return CORES.get(STAND_INS.get(core, core))


def core_of(target: Target) -> Core:
    """Return the core model of a target. ConfigError if there is none, or time can be measured instead."""
    board = target.board
    core = cycle_model(board.core)
    if not target.emulated:
        reason = "is this computer" if board.is_host else "is to run on hardware, which counts its own cycles"
        way_out = "Leave --timing out" + (", or add --emulate." if core and board.emulator else ".")
        raise ConfigError(f"--timing cycles-model is for emulated boards; {board.name} {reason}. {way_out}")
    if core is None:
        raise ConfigError(
            f"--timing cycles-model knows {', '.join(CORES)}; {board.name} has a {board.core}. "
            "Leave --timing out: instructions are counted on every emulated board."
        )
    return core


def profile(target: Target, firmware: Firmware, operators: Mapping[str, Counts]) -> Profile:
    """Return the profile of operators, with the program's instructions. BuildError if a tool is missing."""
    instructions = disassemble(firmware.elf, target.board.toolchain, vectors=target.board.vectors)
    profiled = Profile(operators, instructions, Functions(firmware.elf))
    unknown = profiled.whole().executed.keys() - profiled.instructions.keys()
    if unknown:
        raise BuildError(f"{firmware.elf} has no instruction at {min(unknown):#x}, which was executed")
    return profiled
