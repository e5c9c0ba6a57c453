"""Boards of the user's own: a file anywhere, made from a shipped one, with a HAL beside it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from mcudeploy.boards.catalogue import load_board
from mcudeploy.boards.trust import require_trusted, trust
from mcudeploy.common.errors import ConfigError
from mcudeploy.common.resources import resource_dir
from mcudeploy.toolchain import build_firmware
from tests.cli.conftest import Deploy
from tests.targets.board_line import CONFIG, FILES

Invoke = Callable[[str], Result]


@pytest.fixture
def mine(folder: Path, mcudeploy_command: Invoke) -> Path:
    """mine.toml, as `boards --new` writes it."""
    result = mcudeploy_command("boards --new mine --like stm32f405 -o mine.toml")
    assert result.exit_code == 0 and "mine.toml" in result.stdout
    return folder / "mine.toml"


def test_a_new_board_is_its_model_under_another_name(mine: Path) -> None:
    board, like = load_board(str(mine)), load_board("stm32f405")
    assert board == like.model_copy(update={"name": "mine", "family_default": False})


def test_a_file_is_a_board_by_option_and_by_setting(
    mine: Path, mcudeploy_command: Invoke, deploy: Deploy
) -> None:
    for line in ("plan m.onnx --board ./mine.toml", "plan m.onnx --board mine.toml"):
        assert mcudeploy_command(line).exit_code == 0
        assert deploy.calls["plan_model"][0][1].name == "mine"
    deploy.calls.clear()
    (mine.parent / "mcudeploy.toml").write_text('board = "./mine.toml"\noutput = "out"\n')
    assert mcudeploy_command("plan m.onnx").exit_code == 0
    assert deploy.calls["plan_model"][0][1].name == "mine"
    assert mcudeploy_command("run m.onnx --emulate").exit_code == 0
    assert deploy.calls["run_model"][0][1].board.name == "mine"
    assert mcudeploy_command("boards").exit_code == 0  # the setting `output` is not its -o


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("clock_hz =", "clock_mhz =", "mine.toml is not a board file:\n  clock_hz: Field required"),
        ("[uart]", "[uart", "mine.toml is not valid TOML: Expected ']'"),
        ('"memory.c"', '"./gone.c"', "hal.2: there is no file"),
        ('"memory.c"', '"./a/x.c", "./b/x.c"', "two sources beside the board file are called x.c"),
        ('name = "mine"', 'name = "no name"', "name: 'no name' is not possible: the name of a board has"),
    ],
)
def test_a_wrong_file_exits_3_with_file_and_key(
    old: str, new: str, message: str, mine: Path, mcudeploy_command: Invoke
) -> None:
    for name in ("a", "b"):
        (mine.parent / name).mkdir()
        (mine.parent / name / "x.c").write_text("")
    text = mine.read_text()
    assert old in text
    mine.write_text(text.replace(old, new, 1))
    result = mcudeploy_command("plan m.onnx --board ./mine.toml")
    assert result.exit_code == 3 and message in result.stderr
    mine.write_bytes(b"\xff")
    assert mcudeploy_command("doctor --board ./mine.toml").exit_code == 3


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("plan m.onnx --board ./gone.toml", 7, "no board file ./gone.toml"),
        ("plan m.onnx --board ./", 3, "cannot be read"),
        ("boards --explain nope", 7, "no board 'nope'"),
        ("boards --new mine -o mine2.toml", 2, "--like"),
        ("boards --new mine --like stm32f405", 2, "-o FILE.toml"),
        ("boards --new mine --like nope -o mine2.toml", 7, "no board 'nope'"),
        (
            "boards --new ../mine --like stm32f405 -o mine2.toml",
            2,
            "--new '../mine' is not possible: the name",
        ),
        ("boards --new Mine --like stm32f405 -o mine2.toml", 2, "has lower-case letters, digits and -"),
        ("boards --new \x1b[2J --like stm32f405 -o mine2.toml", 2, r"--new '\x1b[2J' is not possible"),
        ('boards --new a"b --like stm32f405 -o mine2.toml', 2, """--new 'a"b' is not possible"""),
        ("boards --new mine --like stm32f405 -o mine.toml", 2, "exists"),
    ],
)
def test_what_is_not_a_board_and_cannot_be_a_new_one(
    line: str, code: int, message: str, mine: Path, mcudeploy_command: Invoke
) -> None:
    result = mcudeploy_command(line)
    assert (result.exit_code, (mine.parent / "mine2.toml").exists()) == (code, False)
    assert message in result.stderr


def test_a_copy_of_a_board_with_its_own_sources_needs_them_beside_it(
    mine: Path, mcudeploy_command: Invoke
) -> None:
    (mine.parent / "uart.c").write_text("")
    mine.write_text(mine.read_text().replace('"memory.c"', '"./uart.c"', 1))
    (mine.parent / "other").mkdir()
    result = mcudeploy_command("boards --new other --like ./mine.toml -o other/other.toml")
    assert result.exit_code == 3 and "there is no file" in result.stderr
    assert mcudeploy_command("boards --new other --like ./mine.toml -o other.toml").exit_code == 0


def test_facts_are_explained_by_the_comments_at_them(mine: Path, mcudeploy_command: Invoke) -> None:
    text = mine.read_text().replace("irq = 37", "irq = 37  # RM0090, table 62", 1)
    mine.write_text(text.replace("cpu_flags = [", "cpu_flags = [  # as GCC names them\n", 1))
    report = json.loads(mcudeploy_command("boards --explain ./mine.toml --json").stdout)
    facts = {it["fact"]: it for it in report["facts"]}
    assert report["comment"].startswith("Copied from stm32f405") and "RM0090" in report["source"]
    clock = {"fact": "clock_hz", "value": "168_000_000", "comment": "", "origin": report["source"]}
    assert facts["clock_hz"] == clock
    assert {facts[it]["origin"] for it in ("stack_bytes", "flasher.st-flash.tool")} == {"mcudeploy"}
    assert facts["uart.base"]["origin"] == f"mcudeploy chose it; {report['source']}"
    assert facts["uart.irq"]["origin"] == facts["uart.irq"]["comment"]
    assert facts["memory.ccm.origin"]["value"] == "0x10000000"
    assert "no DMA (RM0090, 2.3.1)" in facts["memory.ccm.origin"]["comment"]
    assert facts["uart.irq"]["comment"] == "RM0090, table 62"
    assert facts["cpu_flags"]["value"].endswith('"-mfloat-abi=hard"]')
    assert "emulator's TIM2" in facts["timer.emulated.hz"]["comment"]
    assert "RM0090, table 62" in mcudeploy_command("boards --explain ./mine.toml").stdout


def test_firmware_has_the_sources_beside_the_board_file(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One file of the HAL, and its header, are the user's; the rest is shipped."""
    monkeypatch.setenv("MCUDEPLOY_CACHE_DIR", str(mine.parent / "cache"))
    own = mine.parent / "my hal"
    own.mkdir()
    shipped = resource_dir("firmware") / "hal" / "stm32"
    source = (shipped / "stm32f4.c").read_text()
    for header in shipped.glob("*.h"):
        shutil.copy(header, own)
    (own / "clock.c").write_text(f'#include "own.h"\n{source}\nint own_answer(void) {{ return OWN; }}\n')
    (own / "own.h").write_text("#define OWN 7\nint own_answer(void);\n")
    mine.write_text(mine.read_text().replace('"stm32/stm32f4.c"', '"./my hal/clock.c"', 1))
    board = load_board(str(mine))
    with pytest.raises(ConfigError, match=r"board mine .*/my hal/clock\.c. Read it; --trust-board"):
        build_firmware(board, FILES, [], emulate=True, measurer=False)
    trust(board)
    built = build_firmware(board, FILES, [], emulate=True, measurer=False)
    assert built.board.name == "mine" and built.sizes.flash_bytes > 100


def test_a_process_runs_the_sources_beside_the_board_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCUDEPLOY_CACHE_DIR", str(folder / "cache"))
    text = (resource_dir("boards") / "host.toml").read_text()
    (folder / "host.toml").write_text(text.replace('"host/host.c"', '"../h/answer.c"', 1))
    (folder.parent / "h").mkdir()
    (folder.parent / "h" / "answer.c").write_text("int answer(void);\nint answer(void) { return 7; }\n")
    main = "int answer(void);\nint main(void)\n{\n    return answer();\n}\n"
    board = load_board(str(folder / "host.toml"))
    trust(board)
    files = {"mcud_config.h": CONFIG, "main.c": main}
    firmware = build_firmware(board, files, [], emulate=True, measurer=False)
    assert subprocess.run([firmware.elf], check=False).returncode == 7


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"memory.c"', '"./own.c"'),
        ('source = "cortexm/dwt.c"', 'source = "./own.c"'),
        ('["-f", "interface/stlink.cfg"', '["-c", "exec ./own.sh", "-f", "interface/stlink.cfg"'),
        ('["-f", "interface/stlink.cfg"', '["-f", "../interface/stlink.cfg"'),
        ('tool = "st-flash"', 'tool = "command"\nline = ["./own.sh"]'),
        ('tool = "st-flash"', 'tool = "command"\nline = ["sh", "./own.sh"]'),
    ],
)
def test_what_a_file_names_runs_only_where_it_is_trusted(
    old: str, new: str, mine: Path, mcudeploy_command: Invoke
) -> None:
    for name in ("own.c", "own.h", "own.sh"):
        (mine.parent / name).write_text("")
    text = mine.read_text()
    assert old in text
    mine.write_text(text.replace(old, new, 1))
    (mine.parent / "mcudeploy.toml").write_text('board = "./mine.toml"\n')
    for line in ("run m.onnx --emulate", "flash --port /dev/null", "init new m.onnx", "build m.onnx -o out"):
        result = mcudeploy_command(line)
        assert (result.exit_code, "own" in result.stderr or "../interface" in result.stderr) == (3, True), (
            line
        )
        assert "--trust-board" in result.stderr
    assert mcudeploy_command("doctor --trust-board").exit_code in (0, 1)
    require_trusted(load_board(str(mine)))
    if "own.sh" in new and "exec" not in new:
        (mine.parent / "own.sh").write_text("changed")
    elif "own.c" in new:
        (mine.parent / "own.h").write_text("changed")
    else:
        mine.write_text(mine.read_text().replace(new, f'{new}, "-c", "exec other"', 1))
    with pytest.raises(ConfigError, match="--trust-board"):
        require_trusted(load_board(str(mine)))


def test_settings_trust_no_board(
    folder: Path, mcudeploy_command: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "mcudeploy.toml").write_text("trust-board = true\n")
    assert mcudeploy_command("plan m.onnx").exit_code == 3
    (folder / "mcudeploy.toml").unlink()
    monkeypatch.setenv("MCUDEPLOY_TRUST_BOARD", "1")
    assert mcudeploy_command("plan m.onnx").exit_code == 3


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("cpu_flags", '["-mcpu=cortex-m4", "-wrapper", "./own.sh"]'),
        ("cpu_flags", '["-mcpu=cortex-m4 -wrapper ./own.sh"]'),
        ("cpu_flags", '["-fplugin=./own.so"]'),
        ("cpu_flags", '["-B."]'),
        ("cpu_flags", '["@options"]'),
        ("machine", '"netduinoplus2,dumpdtb=file"'),
        ("machine", '"netduinoplus2\\n"'),
        ("machine", '"netduinoplus2"\nargs = ["-plugin", "./own.so"]'),
        ("machine", '"netduinoplus2"\nargs = ["-chardev", "file,id=a,path=own"]'),
        ("machine", '"netduinoplus2"\nargs = ["-global", "loader.file=/own"]'),
        ("machine", '"netduinoplus2"\nargs = ["-bios", "own.bin"]'),
        ("machine", '"netduinoplus2"\nargs = ["-m", "16M -plugin own.so"]'),
        ("title", '"a\\nadd_custom_command()"'),
    ],
)
def test_tools_get_known_options_only(key: str, value: str, mine: Path) -> None:
    text, count = re.subn(rf"(?m)^{key} = .*$", lambda _: f"{key} = {value}", mine.read_text(), count=1)
    assert count == 1
    mine.write_text(text)
    with pytest.raises(ConfigError, match=key if "args" not in value else "args may have"):
        load_board(str(mine))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_not_a_board_file(folder: Path, mcudeploy_command: Invoke) -> None:
    os.mkfifo(folder / "pipe.toml")
    result = mcudeploy_command("fit m.onnx --boards ./pipe.toml")
    assert result.exit_code == 3 and "cannot be read: not a file" in result.stderr
