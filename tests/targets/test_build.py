"""Builds: what goes in, what comes out, what fails and how, and that the cache stays whole."""

from __future__ import annotations

import configparser
import errno
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mcudeploy.boards.catalogue import list_boards, load_board
from mcudeploy.codegen.kernelfiles import ON_UNIT, RUN_CORES, kernel_files, source_index
from mcudeploy.codegen.printed_kernels import PRINTED, PRINTED_TWINS
from mcudeploy.common.errors import BuildError, ConfigError, FitError, UsageError
from mcudeploy.common.resources import cache_fault, resource_dir
from mcudeploy.ops.conv.conv_s4w import S4W_TWINS
from mcudeploy.toolchain import Firmware, build_firmware
from mcudeploy.toolchain import firmware_build as build
from mcudeploy.toolchain.board_texts import environments
from mcudeploy.toolchain.firmware import CALLS_NAME
from mcudeploy.toolchain.project import assemble
from tests.shared_objects import SharedObjects

from .board_line import BOOT, CONFIG, FILES

WARNINGS = "-Wall -Wextra -Wpedantic -Wconversion -Wcast-align=strict -Wredundant-decls -Werror".split()  # noqa: SIM905
MODES = [
    (board.name, emulate)
    for board in list_boards()
    for emulate in (True, False)
    if not board.is_host and (board.timer.emulated if emulate else board.timer.hardware)
]


def test_a_board_without_a_hal_for_its_other_units_is_refused() -> None:
    with pytest.raises(BuildError, match=r"other compute units of mps2-an386.*unit_hal"):
        assemble(load_board("mps2-an386"), {}, [ON_UNIT], emulate=True)


@pytest.mark.parametrize(("name", "emulate"), MODES)
def test_hal_compiles_without_a_warning(name: str, emulate: bool, tmp_path: Path) -> None:
    board = load_board(name)
    kernels = [*([ON_UNIT] if board.unit_hal else []), *([RUN_CORES] if board.core_hal else [])]
    project = assemble(board, {"mcud_config.h": CONFIG}, kernels, emulate=emulate, measurer=False)
    build.write_project(project, tmp_path)
    defines = [f"-DMCUD_EMULATED={int(emulate)}", "-DMCUD_FIRMWARE_HASH=1u", f'-DMCUD_BOARD_NAME="{name}"']
    folders = ["-Iinclude", "-Isrc/generated", "-Isrc/hal", "-Isrc/kernels"]
    sources = sorted(str(path.relative_to(tmp_path)) for path in (tmp_path / "src").rglob("*.c"))
    assert len(sources) >= 5
    compiler = [f"{board.toolchain}-gcc", *board.cpu_flags, "-O2", "-std=c99", *WARNINGS, *defines, *folders]
    if board.toolchain.startswith("riscv"):
        compiler.append("--specs=picolibc.specs")
    done = subprocess.run(
        [*compiler, "-c", *sources], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_same_inputs_are_built_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = build_firmware(load_board("microbit"), FILES, [], emulate=True, measurer=False)
    monkeypatch.setattr(build, "_build", lambda *_: pytest.fail("built again"))
    again = build_firmware(load_board("microbit"), FILES, [], emulate=True, measurer=False)
    assert again == first
    assert first.elf.is_relative_to(cache)
    assert 0 < first.hash < 2**32


def test_the_other_tests_build_the_same_programs(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tests of a run share objects, and link them with the flags of PlatformIO."""
    programs = []
    for run in (build.run_logged, SharedObjects(tmp_path, build.run_logged)):
        monkeypatch.setattr(build, "run_logged", run)
        firmware = build_firmware(load_board("microbit"), FILES, [], emulate=True, measurer=False)
        image = tmp_path / "image.bin"
        subprocess.run(["arm-none-eabi-objcopy", "-O", "binary", firmware.elf, image], check=True)
        programs.append((image.read_bytes(), (firmware.elf.parent / CALLS_NAME).read_text("utf-8")))
        monkeypatch.setenv("MCUDEPLOY_CACHE_DIR", str(tmp_path / "cache"))
    assert programs[0] == programs[1] and len(programs[0][0]) > 1000


def test_hash_tells_boards_forms_and_sources_apart() -> None:
    board = load_board("stm32f405")
    hashes = {
        assemble(one, files, [], emulate=emulate, measurer=False, salt=salt).firmware_hash
        for one, files, emulate, salt in (
            (board, FILES, True, ""),
            (board, FILES, False, ""),
            (board, FILES, True, "other compiler"),
            (board, FILES | {"boot.c": BOOT + "\n"}, True, ""),
            (load_board("mps2-an386"), FILES, True, ""),
        )
    }
    assert len(hashes) == 5


def test_parallel_builds_of_the_same_and_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCUDEPLOY_CACHE_DIR", str(tmp_path))
    names = ["microbit", "microbit", "stm32f100", "microbit"]

    def one(name: str) -> Firmware:
        return build_firmware(load_board(name), FILES, [], emulate=True, measurer=False)

    with ThreadPoolExecutor(4) as pool:
        built = list(pool.map(one, names))
    assert len({it.elf for it in built}) == 2
    assert all(it.elf.is_file() for it in built)
    assert len(list((tmp_path / "firmware").iterdir())) == 2


def test_interrupt_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCUDEPLOY_CACHE_DIR", str(tmp_path))

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(build, "run_logged", interrupt)
    with pytest.raises(KeyboardInterrupt):
        build_firmware(load_board("microbit"), FILES, [], emulate=True, measurer=False)
    assert list((tmp_path / "firmware").iterdir()) == []


def test_entry_without_its_mark_is_built_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCUDEPLOY_CACHE_DIR", str(tmp_path))
    board = load_board("microbit")
    first = build_firmware(board, FILES, [], emulate=True, measurer=False)
    (first.elf.parent / "firmware.json").write_text("{", encoding="utf-8")
    assert build_firmware(board, FILES, [], emulate=True, measurer=False) == first


@pytest.mark.parametrize(("kind", "why"), [("file", "Not a directory"), ("loop", "levels of symbolic links")])
def test_unwritable_cache_names_the_way_out(
    kind: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / kind
    if kind == "file":
        blocked.write_text("", encoding="utf-8")
    else:
        blocked.symlink_to(blocked)
    monkeypatch.setenv("MCUDEPLOY_CACHE_DIR", str(blocked))
    with pytest.raises(
        ConfigError, match=rf"cannot write .*{kind}.*{why}. Set MCUDEPLOY_CACHE_DIR to a folder"
    ):
        build_firmware(load_board("microbit"), FILES, [], emulate=True, measurer=False)


def test_a_full_disk_asks_for_space() -> None:
    error = cache_fault(OSError(errno.ENOSPC, "No space left on device"), Path("/cache"))
    assert error.startswith("cannot write /cache: No space left on device. Free some space, or set")


def test_compiler_errors_are_shown_with_the_log(cache: Path) -> None:
    broken = FILES | {"model.c": "int broken(void) { return missing; }\n"}
    with pytest.raises(BuildError) as caught:
        build_firmware(load_board("stm32f405"), broken, [], emulate=True, measurer=False)
    message = str(caught.value)
    assert re.search(r"model\.c:1:\d+: error: .*missing", message)
    log = Path(message.rpartition("log: ")[2])
    assert log.is_relative_to(cache)
    assert "error:" in log.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["host", "microbit"])
def test_a_compiler_that_a_signal_ends_is_told(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    board = load_board(name)
    compiler = tmp_path / build.compiler_names(board.toolchain)[0]
    compiler.write_text('#!/bin/sh\n[ "$1" = --version ] || kill -SEGV $$\n', "utf-8")
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("MCUDEPLOY_CACHE_DIR", str(tmp_path / "cache"))
    with pytest.raises(BuildError, match=r"does not build:\n.* was ended by SIGSEGV\n"):
        build_firmware(board, FILES, [], emulate=not board.is_host, measurer=False)


def array(name: str, count: int, rest: str = "") -> str:
    """C for an array that the linker must keep."""
    return (
        "#include <stdint.h>\n"
        f"extern uint8_t {name}[];\n"
        f"__attribute__((used{rest})) uint8_t {name}[{count}];\n"
        f"__attribute__((constructor, used)) static void touch(void) {{ {name}[0] = 1; }}\n"
    )


def test_too_much_ram_names_the_memory_and_the_bytes(cache: Path) -> None:
    board = load_board("stm32f100")
    boot = BOOT.replace("static uint32_t cleared[4];", "static volatile uint32_t cleared[2500];")
    with pytest.raises(FitError) as caught:
        build_firmware(board, FILES | {"boot.c": boot}, [], emulate=True, measurer=False)
    match = re.search(r"sram \(8192 B\) is (\d+) B too small", str(caught.value))
    assert match is not None
    static = 288 + 10000  # of the small program, with the larger array
    assert abs(int(match[1]) - (static + board.stack_bytes - board.ram_bytes)) <= 32


def test_too_much_flash_names_the_bytes(cache: Path) -> None:
    table = "const unsigned char table[150000] = {1};\n"
    boot = BOOT.replace("hal_init();", "hal_init(); send(table + receive(), 1);").replace(
        "int main", "extern const unsigned char table[];\nint main"
    )
    files = FILES | {"boot.c": boot, "weights.c": "extern const unsigned char table[];\n" + table}
    with pytest.raises(FitError, match=r"flash \(131072 B\) is 2\d{4} B too small"):
        build_firmware(load_board("stm32f100"), files, [], emulate=True, measurer=False)
    fits = build_firmware(load_board("microbit"), files, [], emulate=True, measurer=False)
    assert fits.sizes.weights_bytes == 150_000
    tables_and_data = fits.sizes.tables_bytes + fits.sizes.data_bytes
    assert fits.sizes.flash_bytes == fits.sizes.code_bytes + fits.sizes.weights_bytes + tables_and_data


@pytest.mark.parametrize("qualifier", ["const", ""])
def test_too_much_flash_names_the_bytes_where_constants_have_another_address(
    qualifier: str, cache: Path
) -> None:
    """A table of constants, or of variables whose first values are in flash."""
    board = load_board("esp32c3")
    size = board.flash.bytes if qualifier else board.memories[0].bytes - board.stack_bytes - 1000
    rest = "" if qualifier else f"const unsigned char rest[{board.flash.bytes - size}] = {{1}};\n"
    used = "send(table + receive(), 1);" + ("" if qualifier else " send(rest + receive(), 1);")
    declared = f"extern {qualifier} unsigned char table[]; extern const unsigned char rest[];\n"
    boot = BOOT.replace("hal_init();", f"hal_init(); {used}").replace("int main", f"{declared}int main")
    tables = f"{declared}{qualifier} unsigned char table[{size}] = {{1}};\n{rest}"
    with pytest.raises(FitError, match=r"esp32c3: flash \(4194304 B\) is \d{3,4} B too small \("):
        build_firmware(
            board, FILES | {"boot.c": boot, "weights.c": tables}, [], emulate=False, measurer=False
        )


def test_sizes_tell_weights_tables_and_code_apart(cache: Path) -> None:
    declare = "extern const int weights[]; extern const int *const model[]; extern unsigned char arena[];\n"
    files = FILES | {
        "weights.c": declare + "const int weights[100] = {1};\n",
        "model.c": declare + "const int *const model[2] = {weights, weights};\nunsigned char arena[512];\n",
        "boot.c": declare + BOOT.replace("hal_init();", "hal_init(); arena[0] = (uint8_t)*model[receive()];"),
    }
    plain = build_firmware(load_board("stm32f405"), FILES, [], emulate=True, measurer=False)
    larger = build_firmware(load_board("stm32f405"), files, [], emulate=True, measurer=False)
    assert (larger.sizes.weights_bytes, larger.sizes.tables_bytes) == (400, 8)
    assert larger.sizes.bss_bytes - plain.sizes.bss_bytes == 512
    assert larger.sizes.data_bytes == plain.sizes.data_bytes
    assert larger.sizes.static_ram_bytes == larger.sizes.data_bytes + larger.sizes.bss_bytes
    assert 0 < larger.sizes.code_bytes - plain.sizes.code_bytes < 100


def test_further_memories_hold_arenas(cache: Path) -> None:
    boot = BOOT.replace(
        "static uint32_t cleared[4];",
        'static uint32_t cleared[4];\n__attribute__((section(".arena.psram"))) uint8_t far_arena[1 << 23];',
    ).replace("hal_init();", "hal_init(); far_arena[receive()] = 1;")
    firmware = build_firmware(
        load_board("mps2-an386"), FILES | {"boot.c": boot}, [], emulate=True, measurer=False
    )
    symbols = subprocess.run(
        ["arm-none-eabi-nm", str(firmware.elf)], capture_output=True, text=True, check=True
    ).stdout
    assert re.search(r"^21000000 \w far_arena$", symbols, re.MULTILINE)
    assert firmware.sizes.bss_bytes > 1 << 23


def test_unknown_kernel_and_missing_form(cache: Path) -> None:
    with pytest.raises(BuildError, match=r"conv9d\.c does not exist"):
        build_firmware(load_board("stm32f405"), FILES, ["conv9d"], emulate=True, measurer=False)
    with pytest.raises(UsageError, match="mps2-an386: it exists only in the emulator: add --emulate"):
        build_firmware(load_board("mps2-an386"), FILES, [], emulate=False, measurer=False)


def test_missing_compiler_names_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(BuildError, match="apt-get install gcc-arm-none-eabi libnewlib-arm-none-eabi"):
        build_firmware(load_board("stm32f405"), FILES, [], emulate=True)


def test_a_compiler_without_the_vectors_of_a_board_is_named(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / "riscv64-unknown-elf-gcc"
    old.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo "gcc 11.1.0" && exit\n'
        "echo \"cc1: error: '-march=rv32imafc_zve32x': unsupported ISA subset\"; exit 1\n"
    )
    old.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(
        BuildError, match=r"riscv32-virt-v needs .* GCC 12 .* is gcc 11\.1\.0; .* unsupported"
    ):
        build_firmware(load_board("riscv32-virt-v"), FILES, [], emulate=True, measurer=False)


def test_kernels_bring_what_they_include_and_nothing_else() -> None:
    owner = {"mcud_owner.h", "mcud_owner_slots.h", "mcud_owner_slots.c"}
    runtime = {"mcud.h", "mcud_compiler.h", "mcud_tape.c", *owner}
    assert {source.name for source in kernel_files([])} == runtime
    names = {source.name for source in kernel_files(["maxpool_f32"])}
    assert names == {*runtime, "mcud_params.h", "mcud_window.h", "maxpool_f32.c", "maxpool_f32.h"}
    project = assemble(load_board("host"), FILES, ["maxpool_f32"], emulate=True)
    assert names <= {Path(path).name for path in project.files}
    assert not [path for path in project.files if "conv" in path or "dot" in path]


def test_kernels_and_headers_have_names_of_their_own_in_all_folders() -> None:
    firmware = resource_dir("firmware")
    folders = ("include", "kernels", "arith", "parameters", "heads", "owner")
    files = [path.name for name in folders for path in (firmware / name).rglob("*.[ch]")]
    assert sorted([*files, *PRINTED, *PRINTED_TWINS]) == list(source_index())


@pytest.mark.parametrize("kernel", ["sign_f32", "max_f32"])
def test_kernels_of_scalar_functions_are_printed(kernel: str) -> None:
    text = {source.name: source.text for source in kernel_files([kernel])}
    assert f"void mcud_{kernel}(const mcud_op *op, int32_t first_row, int32_t end_row)" in text[f"{kernel}.c"]
    assert f"mcud_kernel mcud_{kernel};" in text[f"{kernel}.h"]


def test_twins_by_four_bits_have_no_code_that_depends_on_weights_of_int8() -> None:
    """A source whose lines have changed would be printed as it is, without a message."""
    texts = {name: source_index()[f"{name}.c"].text for name in S4W_TWINS}
    for name, text in texts.items():
        assert re.search(r"mcud_(multiply|pixel)_s4w\(", text), name
        assert not re.search(r"mcud_(multiply|pixel)_s8\(|mcud_dot\w*_s8\.h", text), name
    for line, changed in (("left -= 3)", "for (; 0; left -= 3)"), ("words = ", "words = mcud_words_s4w(")):
        counts = [(text.count(line), text.count(changed)) for text in texts.values()]
        assert any(count for count, _ in counts) and all(count == new for count, new in counts)


def test_every_board_has_its_environment_and_a_project_only_its_own() -> None:
    text = (resource_dir("firmware") / "platformio.ini").read_text(encoding="utf-8")
    for board in list_boards():
        if board.is_host or board.facts_only:
            continue
        ini = configparser.ConfigParser(interpolation=None)
        ini.read_string(environments(text, board))
        kept = [name for name in ini.sections() if name.startswith("env:")]
        assert dict(ini[f"env:{board.name}"]) == {"extends": "local", "board": board.name}
        if board.registry is None:
            assert kept == [f"env:{board.name}"]
            continue
        registry = ini[f"env:{board.name}_registry"]
        assert registry["platform"] == board.registry.platform
        assert registry["board"] == board.registry.board
        assert registry["custom_mcud_board"] == board.name
        assert len(kept) == 2


def test_registry_is_never_asked(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLATFORMIO_BUILD_FLAGS", "-DBROKEN -Werror=nothing-of-the-kind")
    environment = build.platformio_environment(cache / "core")
    assert "PLATFORMIO_BUILD_FLAGS" not in environment
    assert environment["PLATFORMIO_SETTING_ENABLE_TELEMETRY"] == "no"
    assert environment["PLATFORMIO_CORE_DIR"] == str(cache / "core")


@pytest.mark.parametrize("sanitize", [False, True])
def test_host_program(cache: Path, sanitize: bool) -> None:
    files = {
        "mcud_config.h": CONFIG,
        "weights.c": "extern const int weights[];\nconst int weights[10] = {7};\n",
        "main.c": "extern const int weights[];\nint main(int count, char **arguments)\n"
        "{\n    (void)arguments;\n    return weights[count == 1 ? 0 : count * 5];\n}\n",
    }
    board = load_board("host")
    board = board.model_copy(update={"hal": ()})
    firmware = build_firmware(board, files, [], emulate=True, sanitize=sanitize, measurer=False)
    assert firmware.sizes.weights_bytes >= 40  # the sanitiser pads
    assert subprocess.run([firmware.elf], check=False).returncode == 7
    if sanitize:
        done = subprocess.run([firmware.elf, "x"], capture_output=True, text=True, check=False)
        assert "out of bounds" in done.stderr or "AddressSanitizer" in done.stderr
