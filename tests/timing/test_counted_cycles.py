"""The plugin counts exactly: a known loop, and the same number of instructions as the board's own counter."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mcudeploy.common.errors import BuildError, ProtocolError
from mcudeploy.execution.cycles.core import Cycles
from mcudeploy.execution.cycles.cortex_m4 import CORTEX_M4
from mcudeploy.execution.cycles.plugin import Counts, build_plugin, plugin_arguments, read_windows
from mcudeploy.execution.cycles.profile import Profile
from mcudeploy.toolchain import Emulator, Firmware
from mcudeploy.toolchain.disassembly import Functions, disassemble
from tests.targets.board_line import Line
from tests.targets.conftest import boot, cache  # noqa: F401 - fixtures

Build = Callable[..., Firmware]
ROUNDS = (1, 100, 300_000)


def counted(firmware: Firmware, out: Path) -> tuple[list[int], list[Counts]]:
    """Instructions of the known loop, as the board's counter says, and what is between its readings."""
    ticks = Functions(firmware.elf).named("hal_ticks").address
    facts = firmware.board.emulator
    assert facts is not None
    arguments = plugin_arguments(facts.qemu, ticks, ticks, out)
    with Emulator(firmware.board, firmware.elf, arguments) as emulator:
        line = Line(emulator.url)
        measured = [line.instructions(firmware.board, rounds) for rounds in ROUNDS]
        line.close()
    # Every second window: between the two readings around the loop, not from there to the next request.
    return measured, list(read_windows(out))[::2]


@pytest.mark.parametrize("name", ["mps2-an386", "stm32f405", "mps2-an500"])
def test_a_known_loop_counts_exactly(name: str, boot: Build, tmp_path: Path) -> None:  # noqa: F811
    firmware = boot(name)
    measured, windows = counted(firmware, tmp_path / "counts, in a file")
    assert [it.total for it in windows] == measured
    instructions = disassemble(firmware.elf, "arm-none-eabi")
    for rounds, counts in zip(ROUNDS, windows, strict=True):
        if rounds == 1:
            continue
        loop = [instructions[at] for at, count in counts.executed.items() if count == rounds]
        assert sorted(it.mnemonic for it in loop) == ["bne", "subs"]
        branch = next(it for it in loop if it.mnemonic == "bne")
        assert counts.not_followed[branch.address] == rounds - 1


def test_a_loop_costs_its_taken_branches(boot: Build, tmp_path: Path) -> None:  # noqa: F811
    firmware = boot("mps2-an386")
    _, windows = counted(firmware, tmp_path / "counts")
    profile = Profile({}, disassemble(firmware.elf, "arm-none-eabi"), Functions(firmware.elf))
    short, long = (sum(profile.cycles(it, CORTEX_M4).values(), Cycles()) for it in windows[1:])
    more = ROUNDS[2] - ROUNDS[1]
    # subs 1, bne 1 and a refill of 1 to 3
    assert long.typical - short.typical == 4 * more
    assert (long.least - short.least, long.most - short.most) == (3 * more, 5 * more)


def test_a_torn_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "counts"
    path.write_bytes((2).to_bytes(8, "little") + bytes(24))
    with pytest.raises(ProtocolError, match="incomplete"):
        list(read_windows(path))


def test_without_a_compiler_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(BuildError, match="apt-get install gcc"):
        build_plugin(1)


def test_what_the_compiler_says_is_shown(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    cache: Path,  # noqa: F811
) -> None:
    compiler = tmp_path / "cc"
    compiler.write_text("#!/bin/sh\necho 'error: no room'; exit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    with pytest.raises(BuildError, match="no room"):
        build_plugin(1)
