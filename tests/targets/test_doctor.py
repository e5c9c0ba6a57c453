"""The checks of `doctor`, without anything attached."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mcudeploy.boards.catalogue import list_boards, load_board
from mcudeploy.common.errors import BoardNotFoundError, ProtocolError, UsageError
from mcudeploy.device.target import Target, open_device
from mcudeploy.toolchain import Check, Emulator, Firmware, checks, doctor, lacking
from mcudeploy.toolchain.doctor import Use
from mcudeploy.toolchain.firmware import Sizes

ELF = Path("/a folder/firmware.elf")


def test_every_failed_check_has_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_output", lambda *_, **__: None)
    monkeypatch.setattr(doctor, "_installed", lambda _: None)
    monkeypatch.setattr(doctor, "installed", lambda _: False)
    by_name = {check.name: check for check in checks()}
    assert not by_name["qemu-system-arm"].ok
    assert by_name["qemu-system-arm"].remedy == "sudo apt-get install qemu-system-arm"
    assert by_name["qemu-system-riscv32"].remedy == "sudo apt-get install qemu-system-misc"
    assert by_name["picolibc"].remedy == "sudo apt-get install picolibc-riscv64-unknown-elf"
    assert by_name["newlib (nano)"].remedy == "sudo apt-get install libnewlib-arm-none-eabi"
    assert by_name["arm-none-eabi-gcc"].remedy == "sudo apt-get install gcc-arm-none-eabi"
    assert by_name["flasher of stm32f405"].remedy == "sudo apt-get install openocd"
    assert by_name["flasher of stm32f405"].found.startswith("none of openocd or st-flash or ")
    assert "pip install 'platformio" in by_name["platformio"].remedy
    assert "pip install '" in by_name["python packages"].remedy
    assert " 'onnx>=" in by_name["python packages"].remedy
    assert all(bool(check.remedy) is not check.ok for check in by_name.values())


def test_a_warning_is_not_the_version_of_a_tool(tmp_path: Path) -> None:
    tool = tmp_path / "tool"
    tool.write_text("#!/bin/sh\necho '/bin/tool: warning: no home'\necho 'tool 1.2'\n")
    tool.chmod(0o755)
    assert doctor._output([str(tool)]) == "tool 1.2"


def test_a_remedy_is_a_command_where_paths_have_blanks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.sys, "executable", "/a folder/python3")
    assert doctor._pip("numba") == "'/a folder/python3' -m pip install numba"


def test_packages_are_those_the_project_declares(monkeypatch: pytest.MonkeyPatch) -> None:
    stated = ["onnx>=1.17", "scons<4.12,>=4.11.1", "onnxruntime>=1.20", 'pytest>=8.3; extra == "dev"']
    monkeypatch.setattr(doctor.importlib.metadata, "requires", lambda name: stated)
    versions = {"onnx": "1.16.2", "scons": "4.11.3", "onnxruntime": "1.20"}
    monkeypatch.setattr(doctor, "_installed", versions.get)
    by_name = {check.name: check for check in checks(load_board("mps2-an386"))}
    assert by_name["python packages"].found == "missing: onnx>=1.17"
    assert by_name["python packages"].remedy.endswith("pip install 'onnx>=1.17'")
    assert by_name["scons for platformio"].ok
    versions["scons"] = "4.12"
    assert not {check.name: check for check in checks(load_board("mps2-an386"))}["scons for platformio"].ok


def test_here_everything_for_the_emulated_boards_is_there() -> None:
    missing = [check.name for check in checks(load_board("mps2-an386")) if not check.ok]
    assert missing == []


def test_one_way_to_run_programs_is_enough() -> None:
    def names(*missing: str) -> list[str]:
        uses: dict[str, Use] = {
            "gcc": "always",
            "openocd": "hardware",
            "port": "hardware",
            "qemu": "emulator",
        }
        uses["gdb"] = "debugging"
        results = [Check(name, name not in missing, "", "", use) for name, use in uses.items()]
        return [check.name for check in lacking(results)]

    assert names("gdb") == names("openocd", "port", "gdb") == names("qemu") == []
    assert names("gcc", "openocd") == ["gcc"]
    assert names("port", "qemu") == ["port", "qemu"]
    assert [
        it.name for it in lacking([Check("gcc", True, "", ""), Check("qemu", False, "", "", "emulator")])
    ] == ["qemu"]
    assert lacking([Check("gcc", True, "", "")]) == []


def test_a_board_needs_only_its_own_tools() -> None:
    host = {check.name for check in checks(load_board("host"))}
    of_tools = {name for name in host if not name.startswith("extension ")}
    assert of_tools == {"python", "python packages", "numba", "ortools", "build cache", "C compiler"}
    riscv = {check.name for check in checks(load_board("riscv32-virt"))}
    assert {"riscv64-unknown-elf-gcc", "picolibc", "qemu-system-riscv32"} <= riscv
    assert not riscv & {"arm-none-eabi-gcc", "qemu-system-arm", "serial port permission"}
    assert not any(name.startswith("flasher") for name in riscv)
    arm = {it.name for it in checks(load_board("stm32f405"))}
    assert {"flasher of stm32f405", "serial port permission"} <= arm


def test_what_makes_a_search_fast_is_not_required(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.fast, "lacking", lambda: ("numba",))
    by_name = {it.name: it for it in checks(load_board("host"))}
    assert by_name["ortools"].ok and not by_name["numba"].ok
    assert by_name["numba"].found.startswith("not installed: searches run as plain Python")
    assert by_name["numba"].remedy.endswith("pip install numba")
    assert "numba" not in [it.name for it in lacking(list(by_name.values()))]


def test_links_of_a_board_are_told() -> None:
    facts = {it.name: it.found for it in checks(load_board("mps2-an505")) if it.name.startswith("transfers")}
    assert facts == {"transfers by dma0": "sram, psram (mps/pl081.c)"}


def test_an_old_qemu_lacks_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    known = "Supported machines are:\nmicrobit  BBC micro:bit\n"

    def output(command: list[str], **_: bool) -> str:
        return known if "help" in command else "QEMU emulator version 5.2"

    monkeypatch.setattr(doctor, "_output", output)
    qemu = {check.name: check for check in checks(load_board("mps3-an547"))}["qemu-system-arm"]
    assert not qemu.ok
    assert qemu.found == "QEMU emulator version 5.2, without machine mps3-an547"


def test_missing_qemu_names_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    for board in list_boards():
        if board.emulator is None:
            continue
        with pytest.raises(BoardNotFoundError, match="sudo apt-get install qemu-system-"):
            Emulator(board, ELF).__enter__()
    with pytest.raises(UsageError, match="host cannot be emulated"):
        Emulator(load_board("host"), ELF).__enter__()


def test_a_board_of_facts_alone_runs_nothing() -> None:
    results = checks(load_board("esp32s3"))
    (firmware,) = [it for it in results if it.name == "firmware"]
    assert not firmware.ok and firmware.remedy == "mcudeploy build MODEL --board esp32s3"
    assert "firmware" in [it.name for it in lacking(results)]
    assert "firmware" not in {it.name for it in checks()}


def test_a_cache_that_cannot_be_made_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cache() -> Check:
        return next(it for it in checks(load_board("host")) if it.name == "build cache")

    monkeypatch.setenv("MCUDEPLOY_CACHE_DIR", str(tmp_path / "new" / "cache"))
    assert cache().ok
    (tmp_path / "file").touch()
    monkeypatch.setenv("MCUDEPLOY_CACHE_DIR", str(tmp_path / "file" / "cache"))
    assert not cache().ok and cache().found.endswith("cache: Not a directory")
    monkeypatch.setenv("MCUDEPLOY_CACHE_DIR", "/proc/cache")  # root may write everywhere, but not there
    assert not cache().ok and "MCUDEPLOY_CACHE_DIR" in cache().remedy


def test_an_emulator_that_dies_as_it_starts_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    qemu = tmp_path / "qemu-system-arm"
    qemu.write_text("#!/bin/sh\necho 'cannot set up guest memory'\nexit 1\n", "utf-8")
    qemu.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    board = load_board("mps2-an386")
    firmware = Firmware(ELF, board, 1, emulated=True, sizes=Sizes(0, 0, 0, 0, 0, 0))
    message = "^the emulator ended with status 1: cannot set up guest memory\n"
    with pytest.raises(ProtocolError, match=message), open_device(Target(board, emulate=True), firmware):
        pass
    qemu.write_text("#!/bin/sh\nkill -KILL $$\n", "utf-8")
    message = r"^the emulator was ended by SIGKILL while it ran mps2-an386\. Run the command again; .*memory"
    with pytest.raises(ProtocolError, match=message), open_device(Target(board, emulate=True), firmware):
        pass
