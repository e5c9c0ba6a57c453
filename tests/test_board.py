"""The shipped board files, and what the loader refuses."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from mcudeploy.boards.board import Board, Link, board_at, read_board
from mcudeploy.boards.catalogue import family, list_boards, load_board
from mcudeploy.boards.emulated import emulated_twin
from mcudeploy.boards.fact_types import pin_number
from mcudeploy.common.errors import BoardNotFoundError, ConfigError, UsageError
from mcudeploy.common.resources import resource_dir
from mcudeploy.device.target import Target
from mcudeploy.ir.isa import Isa
from mcudeploy.toolchain.project import assemble
from tests.chips.facts import BOARDS

NAMES = tuple(board.name for board in list_boards())
HAL = resource_dir("firmware") / "hal"
LINK = """
[[link]]
engine = "{}"
memories = [{}]
setup_cycles = 20
source = "mps/pl081.c"
base = 0x40110000
irq = 57

"""


def test_the_promised_boards_ship() -> None:
    assert set(NAMES) >= {
        *("stm32f405", "stm32f100", "microbit", "mps2-an385", "mps2-an386", "mps2-an500", "mps2-an505"),
        *("mps2-an521", "mps3-an547", "riscv32-virt", "riscv32-virt-v", "host"),
        *("stm32f411", "stm32f746", "stm32h743", "stm32h747", "stm32l476", "stm32l4r5", "stm32u585"),
        *("rp2040", "rp2350", "nrf52840", "esp32s3", "teensy41"),
    }


@pytest.mark.parametrize("name", NAMES)
def test_shipped_board(name: str) -> None:
    board = load_board(name)
    sources = [
        *board.hal,
        *board.unit_hal,
        *board.core_hal,
        *(it.source for it in (board.timer.emulated, board.timer.hardware) if it),
        *(it.source for it in board.links if it.source),
    ]
    assert all((HAL / source).is_file() for source in sources)
    assert read_board(resource_dir("boards") / f"{name}.toml") == board
    assert board.stack_bytes * 2 <= board.ram_bytes
    assert board.is_host or board.facts_only or board.emulator is not None or name in BOARDS
    assert all(board.reach(unit) for unit in board.units)
    assert min(memory.cost for memory in board.memories) == 1
    assert [it.name for it in list_boards() if it.family == board.family and it.family_default], (
        f"family {board.family} has no default"
    )
    if board.emulator is not None and board.timer.emulated is not None:
        # Two readings are each off by less than a tick: with more than two ticks for each instruction, or
        # exactly one, the rounded count is exact.
        ticks = board.timer.emulated.hz * 2**board.emulator.icount_shift / 1e9
        assert ticks == 1.0 or ticks > 2.0
        assert board.instructions(round(1_000_003 * ticks)) == 1_000_003


@pytest.mark.parametrize(
    ("right", "wrong", "fault"),
    [
        ("column_bits = 8", "column_bits = 9", "sdram has 0x800000 bytes, its sdram 0x1000000"),
        ("origin = 0xC0000000", "origin = 0x60000000", "SDRAM at 0xc0000000 and 0xd0000000 only"),
        ("rc_ns = 60\n", "rc_ns = 600\n", "less than or equal to 100"),
        ("rp_ns = 18\n", "", "rp_ns: Field required"),
    ],
)
def test_an_sdram_that_cannot_be_is_refused(right: str, wrong: str, fault: str) -> None:
    path = resource_dir("boards") / "stm32f746-disco.toml"
    text = path.read_text(encoding="utf-8")
    assert right in text
    with pytest.raises(ConfigError, match=fault):
        board_at(tomllib.loads(text.replace(right, wrong)), path)


@pytest.mark.parametrize(
    ("name", "right", "wrong", "fault"),
    [
        ("stm32f405", "clock_hz = 168_000_000", f"clock_hz = {10**40}", "clock_hz: Input should be less"),
        ("stm32f405", '"-mcpu=cortex-m4"', '"-mcpu=cortex-m7"', "core is cortex-m4, cpu_flags have -mcpu="),
        ("alif-e7", "base = 0x400E1000", "base = 0x02000000", "npu.base = 0x02000000 lies in sram0: it is"),
        ("alif-e7", "base = 0x400E1000\n", "", "npu: irq is of a unit of the chip: name its reg"),
    ],
)
def test_facts_that_contradict_each_other_are_refused(name: str, right: str, wrong: str, fault: str) -> None:
    path = resource_dir("boards") / f"{name}.toml"
    text = path.read_text(encoding="utf-8")
    assert text.count(right) == 1
    with pytest.raises(ConfigError, match=fault):
        board_at(tomllib.loads(text.replace(right, wrong)), path)


def test_an_integer_of_thousands_of_digits_is_not_toml(tmp_path: Path) -> None:
    (tmp_path / "b.toml").write_text(f"clock_hz = 1{'0' * 5000}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"b.toml is not valid TOML: .*digits"):
        load_board(str(tmp_path / "b.toml"))


def test_a_family_has_one_default() -> None:
    defaults = [board.family for board in list_boards() if board.family_default]
    assert len(defaults) == len(set(defaults))


def test_family_name_means_its_default_first() -> None:
    assert load_board("stm32").name == "stm32f405"
    names = [board.name for board in family("stm32")]
    assert names == [
        "stm32f405",
        "stm32f100",
        "stm32f411",
        "stm32f746",
        "stm32g071",
        "stm32h743",
        "stm32h743i-eval",
        "stm32l476",
    ]
    assert [board.name for board in family("mps2-an385")] == ["mps2-an385"]


def test_an_unknown_name_is_answered_in_two_lines() -> None:
    with pytest.raises(BoardNotFoundError, match=r"no board 'stm32f4'. Is it stm32f405 .*\?\n`mcud"):
        load_board("stm32f4")


@pytest.mark.parametrize(
    ("name", "board"),
    [
        ("pico", "rp2040-usb"),
        ("Pico_W", "rp2040-usb"),
        ("pico2", "rp2350-usb"),
        ("xiao-c3", "esp32c3-usb"),
        ("XIAO RP2040", "rp2040-usb"),
        ("supermini", "esp32c3-usb"),
        ("blackpill", "stm32f411"),
        ("nano33", "nano33ble"),
        ("nucleo-f411re", "stm32f411"),
        ("nucleo-f446re", "pio:nucleo_f446re"),
        ("STM32F405", "stm32f405"),
    ],
)
def test_names_that_people_type(name: str, board: str) -> None:
    assert load_board(name).name == board
    assert [it.name for it in family(name)] == [board]


@pytest.mark.parametrize("name", ["esp32", "discovery"])
def test_an_alias_of_several_boards_lists_them(name: str) -> None:
    with pytest.raises(BoardNotFoundError, match=rf"'{name}' may be one of 3 boards; name one:\n") as error:
        load_board(name)
    assert ("esp32s3: " in str(error.value)) == ("library only" in str(error.value))


def test_a_name_in_the_brackets_of_a_title_names_its_board() -> None:
    assert load_board("Arduino Nano 33 BLE").name == "nano33ble"
    with pytest.raises(BoardNotFoundError, match="may be one of 2 boards; name one:\n  rp2350-usb: "):
        load_board("Raspberry Pi Pico 2")
    with pytest.raises(BoardNotFoundError, match="no board 'BLE'"):
        load_board("BLE")


@pytest.mark.parametrize(
    ("name", "emulated"),
    [
        ("rp2040", "mps2-an385"),
        ("rp2350", "mps2-an521"),
        ("esp32c3", "riscv32-virt"),
        ("stm32f411", "stm32f405"),
        ("nano33ble", "mps2-an386"),
        ("teensy41", "mps2-an500"),
    ],
)
def test_an_emulated_board_runs_the_code_of_another(name: str, emulated: str) -> None:
    board = load_board(name)
    twin = emulated_twin(board)
    assert twin is not None and twin.emulator is not None
    assert (twin.name, twin.core, twin.cpu_flags) == (emulated, board.core, board.cpu_flags)
    assert twin.ram_bytes >= board.ram_bytes


def test_a_board_of_platformio_gets_the_code_of_its_core() -> None:
    twin = emulated_twin(load_board("pio:nucleo_l073rz"))
    assert twin is not None and (twin.name, twin.core) == ("mps2-an385", "cortex-m0plus")
    assert twin.cpu_flags == load_board("rp2040").cpu_flags


@pytest.mark.parametrize("name", ["host", "stm32f405", "esp32s3"])
def test_others_have_no_emulated_twin(name: str) -> None:
    """This computer, a board with an emulator, and a core that none executes."""
    assert emulated_twin(load_board(name)) is None


def test_no_alias_hides_a_board_or_a_family() -> None:
    aliases = {alias for board in list_boards() for alias in board.aliases}
    assert aliases.isdisjoint({name for board in list_boards() for name in (board.name, board.family)})


def test_unknown_memory_lists_the_known_ones() -> None:
    assert load_board("mps2-an386").memory("psram").bytes == 16 << 20
    with pytest.raises(ConfigError, match="no memory 'ccm'; it has sram, psram"):
        load_board("mps2-an386").memory("ccm")


def test_the_small_core_of_the_h747_does_not_reach_the_other_ones_tcm() -> None:
    board = load_board("stm32h747")
    assert board.reach(board.unit("cm7")) == ("dtcm", "axi_sram", "d2_sram", "d3_sram")
    assert board.reach(board.unit("cm4")) == ("axi_sram", "d2_sram", "d3_sram")
    with pytest.raises(ConfigError, match="no compute unit 'cm0'; it has cm7, cm4"):
        board.unit("cm0")


def test_a_board_without_firmware_is_not_a_target() -> None:
    board = load_board("stm32u585")
    assert board.facts_only and not board.has_firmware(emulated=False)
    with pytest.raises(UsageError, match=r"stm32u585: there is no firmware for it.*mcudeploy build"):
        Target(board)
    with pytest.raises(UsageError, match=r"ra8p1: .*`run --emulate` runs the code of its core"):
        Target(load_board("ra8p1"))


def test_host_ticks_are_not_instructions() -> None:
    with pytest.raises(ConfigError, match="host is not emulated"):
        load_board("host").instructions(1)


@pytest.mark.parametrize(
    ("march", "allowed"), [("rv32imcv", True), ("rv32imc_zve32x", True), ("rv32imc", False)]
)
def test_vectors_of_risc_v_are_among_the_flags(march: str, allowed: bool) -> None:
    path = resource_dir("boards") / "riscv32-virt-v.toml"
    text = path.read_text("utf-8").replace("rv32imafc_zve32x", march)
    if allowed:
        assert board_at(tomllib.loads(text), path).isa is Isa.RVV
    else:
        with pytest.raises(ConfigError, match="-march=rv32imc has neither v nor zve32x"):
            board_at(tomllib.loads(text), path)


def test_a_cortex_m_without_vectors_has_no_unit_beside_it() -> None:
    path = resource_dir("boards") / "mps3-an547-u55.toml"
    text = path.read_text("utf-8").replace('"cortex-m55"', '"cortex-m33"')
    with pytest.raises(ConfigError, match="vectors is true, but cortex-m33 has none"):
        board_at(tomllib.loads(text), path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("clock_hz =", "clock_mhz =", "clock_mhz: Extra inputs are not permitted"),
        ('name = "sram"', 'name = "flash"', "memory names must differ"),
        ("origin = 0x20000000", "origin = 0x08010000", "memories overlap at 0x08010000"),
        ("origin = 0x20000000", "origin = 0x20000002", "sram at 0x20000002 is not aligned to 4"),
        ("origin = 0x20000000", "origin = 0xfffffff0", "0x20000 bytes from 0xfffffff0 end beyond 4 GiB"),
        ("alignment = 4", "alignment = 3", "alignment"),
        ("alignment = 4", "alignment = true", "alignment = true: expected a value that is not a boolean"),
        ("bytes = 0x20000\n", "bytes = -1\n", "bytes: Input should be greater than 0"),
        ("stack_bytes = 2048", "stack_bytes = 1000000", "does not fit sram"),
        ("clock_hz =", "cores = 9\nclock_hz =", "cores: Input should be less than or equal to 8"),
        ("clock_hz =", 'core_hal = ["memory.c"]\nclock_hz =', "cores is missing"),
        ("[[flasher]]", "[[probe]]", "probe: Extra inputs"),
        ('tool = "st-flash"', 'tool = "magic"', "flasher.1: Input tag 'magic'"),
        ('tool = "st-flash"', 'tool = "st-flash"\nspeed = 9', "flasher.1.st-flash.speed: Extra inputs"),
        ('target = "stm32f405rgtx"', "", "flasher.2.pyocd.target: Field required"),
        (
            'target = "stm32f405rgtx"',
            'target = "--erase"',
            "pyocd.target: '--erase' is not possible: letters",
        ),
        ('tool = "st-flash"', 'tool = "openocd"\nargs = []', "a flasher is named twice"),
        ("[timer.hardware]", "[timer.soft]", "timer.soft: Extra inputs"),
        (
            "[uart]",
            "[[memory]]\nname = 'x'\norigin = 0\nbytes = 8\nalignment = 4\nread_rate = inf\n\n[uart]",
            "read_rate",
        ),
        (
            "[uart]",
            "[flash.external]\norigin = 0x90000000\nbytes = 4096\n\n[uart]",
            "no firmware that a flasher writes starts an external flash",
        ),
        ("line_bytes = 16", "", "wait_states and line_bytes of flash come together"),
        ("line_bytes = 16", "line_bytes = 12", "flash.line_bytes"),
        ("line_bytes = 16", "line_bytes = 16\nread_rate = 1.0", "flash has read_rate, or wait_states"),
        ('"memory.c"', '"../../memory.c"', "hal.2: there is no file"),
        ('"memory.c"', '"/etc/memory.c"', " is not possible: a source is a .c, .cpp or .S file"),
        ('"memory.c"', '"memory.c\\u0000"', " is not possible: a source is a .c, .cpp or .S file"),
        ('"memory.c"', '"stm32"', " is not possible: a source is a .c, .cpp or .S file"),
        ('"stm32/tim2.c"', '""', "timer.emulated.source: '' is not possible: "),
        ('core = "cortex-m4"', 'core = "../cortex-m4"', "core: '../cortex-m4' is not possible: lower-case"),
        ('core = "cortex-m4"', f'core = "{"a" * 300}"', "core: String should have at most 40"),
        ("[uart]", '[[unit]]\nname = "dsp"\nmemories = ["tcm"]\n\n[uart]', "lacks: ['tcm']"),
        ("[uart]", '[[unit]]\nname = "a"\n\n[[unit]]\nname = "a"\n\n[uart]', "unit names must differ"),
        ("[uart]", LINK.format("dma0", "'sram', 'ccm'") * 2, "engines must differ"),
        ("[uart]", LINK.format("cpu", "'sram', 'ccm'"), "engines must differ"),
        ("[uart]", LINK.format("dma0", "'sram', 'psram'"), "lacks: ['psram']"),
        ("[uart]", LINK.format("dma0", "'sram', 'sram'"), "names a memory twice"),
        ("[uart]", LINK.format("dma0", "'sram'"), "link.0.memories"),
        ("[uart]", LINK.format("dma0", "'sram', 'ccm'").replace("base", "#"), "come together"),
        (
            "[uart]",
            LINK.format("a", "'sram', 'ccm'") + LINK.format("b", "'sram', 'ccm'").replace("pl081", "dma"),
            "one driver serves all links",
        ),
        ("clock_hz", "clock hz", "Expected '='"),
    ],
)
def test_wrong_board_file_is_a_configuration_error(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = (resource_dir("boards") / "stm32f405.toml").read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / "stm32f405.toml"
    new = new + old if new.startswith(LINK[:10]) else new
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        read_board(path)
    assert message in str(caught.value)


def test_a_board_without_firmware_names_its_source(tmp_path: Path) -> None:
    text = (resource_dir("boards") / "stm32u585.toml").read_text(encoding="utf-8")
    path = tmp_path / "stm32u585.toml"
    path.write_text(text.replace("\nsource = ", "\n# source = ", 1), encoding="utf-8")
    with pytest.raises(ConfigError, match="a board without hal names the source of its facts"):
        read_board(path)


def test_costs_follow_from_rates() -> None:
    board = load_board("mps2-an386")
    assert [it.cost for it in board.memories] == [1.0, 6.0]
    psram = board.memory("psram")
    assert (psram.read_cost, psram.write_cost, psram.latency_cycles) == (5.0, 5.0, 0.0)
    assert psram.model_copy(update={"read_rate": None}).cost == 3.5


def test_a_transfer_is_as_slow_as_the_slowest_of_engine_source_and_target() -> None:
    memories = "sram", "psram"
    link = Link(engine="dma0", memories=memories, setup_cycles=30, bytes_per_cycle=2.0, descriptor_bytes=1000)
    sram, psram = (load_board("mps2-an386").memory(name) for name in memories)
    late = psram.model_copy(update={"latency_cycles": 7})
    assert link.cycles(1000, sram, sram) == 30 + 500
    assert link.cycles(1001, sram, psram) == 2 * 30 + 1001 * 5
    assert link.cycles(0, late, sram) == 30 + 7
    assert link.model_copy(update={"descriptor_bytes": None}).cycles(9000, late, sram) == 30 + 7 + 9000 * 5


def test_boards_are_immutable() -> None:
    board: Board = load_board("host")
    with pytest.raises(ValueError, match="frozen"):
        board.clock_hz = 1


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("nrf52840", 'tx = "P0.06"\n', "", "nrf52840: [uart] tx: its hal needs this pin"),
        ("stm32f746", 'rx = "PD9"\n', "", "stm32f746: [uart] rx: its hal needs this pin"),
        (
            "rp2040",
            "baud = 115200\n",
            'baud = 115200\ntx = "P0.12"\n',
            "rp2040: [uart] tx: no source of its",
        ),
        ("stm32f100", "baud = 115200\n", 'baud = 115200\nrx = "PB7"\n', "stm32f100: [uart] rx: no source of"),
        ("nrf52840", 'tx = "P0.06"', 'tx = "P0.32"', "a pin is named like PD8 (STM32) or P1.03 (nRF)"),
        ("stm32f746", 'tx = "PD8"', 'tx = "D8"', "a pin is named like PD8 (STM32) or P1.03 (nRF)"),
    ],
)
def test_pins_are_those_that_the_hal_takes(
    name: str, old: str, new: str, message: str, tmp_path: Path
) -> None:
    text = (resource_dir("boards") / f"{name}.toml").read_text(encoding="utf-8")
    assert text.count(old) == 1
    with pytest.raises(ConfigError) as caught:
        assemble(board_at(tomllib.loads(text.replace(old, new)), tmp_path / "x.toml"), {}, [], emulate=False)
    assert message in str(caught.value)


def test_numbers_of_pins() -> None:
    pins = {"PA0": 0, "PA15": 15, "PB7": 23, "PD9": 57, "PK15": 175, "P0.00": 0, "P0.31": 31, "P1.03": 35}
    assert {pin: pin_number(pin) for pin in pins} == pins


def test_a_board_prints_as_one_line() -> None:
    board = load_board("stm32f405")
    text = f"<board stm32f405: {board.title}; 196,608 B of RAM, 1,048,576 B of flash>"
    assert repr(board) == str(board) == text
