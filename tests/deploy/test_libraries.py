"""build: what it writes compiles on its own and was verified."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from models import fully_connected

from mcudeploy.boards.catalogue import load_board
from mcudeploy.cli.main import cli
from mcudeploy.codegen.program import Program, make_program
from mcudeploy.common.errors import (
    BuildError,
    OutputsDifferError,
    UsageError,
)
from mcudeploy.device.target import Target
from mcudeploy.execution import deployment
from mcudeploy.planner.plan_options import Options
from mcudeploy.toolchain.images import flash_content
from tests import reports
from tests.linked import linked

HOST = Target(load_board("host"))


def test_library_compiles_on_its_own(model: Path, tmp_path: Path) -> None:
    report = reports.build_models([model], load_board("mps2-an386"), Options(name="tiny"), tmp_path / "out")
    names = {Path(name).relative_to(tmp_path / "out").as_posix() for name in report["files"]}
    assert {"include/tiny.h", "src/tiny.c", "src/tiny_weights.c", "CMakeLists.txt", "library.json"} <= names
    assert "firmware/tiny-mps2-an386.elf" in names
    assert 0 < report["weights_bytes"] < report["flash_bytes"]
    program = linked(tmp_path / "out", tmp_path / "out" / "examples" / "main.c")
    printed = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    assert len(printed.splitlines()) == 4 * 12 * 12


@pytest.mark.parametrize(("board", "family"), [("rp2040", 0xE48BFF56), ("rp2350", 0xE48BFF59)])
def test_build_writes_the_file_that_the_boot_loader_takes(
    board: str, family: int, model: Path, tmp_path: Path
) -> None:
    flash = load_board(board).flash
    reports.build_models([model], load_board(board), Options(name="tiny"), tmp_path / "out", verify=False)
    elf = tmp_path / "out" / "firmware" / f"tiny-{board}.elf"
    blocks = list(struct.iter_unpack("<8I476sI", elf.with_suffix(".uf2").read_bytes()))
    loaded = b"".join(block[8][: block[4]] for block in blocks)
    assert loaded.rstrip(b"\xff") == flash_content(elf, flash).rstrip(b"\xff")
    assert [block[3] for block in blocks] == [flash.origin + 256 * number for number in range(len(blocks))]
    assert {(block[0], block[1], block[7], block[9]) for block in blocks} == {
        (0x0A324655, 0x9E5D5157, family, 0x0AB16F30)
    }


def test_the_difference_of_two_libraries(model: Path, tmp_path: Path) -> None:
    folders = [str(tmp_path / name) for name in ("split", "unsplit")]
    for folder, split in zip(folders, (True, False), strict=True):
        options = Options(name="tiny", split=split, time_limit=1)
        reports.build_models([model], HOST.board, options, Path(folder), verify=False, library_only=True)
    (tmp_path / "unsplit" / "README.md").unlink()
    report = json.loads(CliRunner().invoke(cli, ["diff", *folders, "--json"]).stdout)
    figures = {it["figure"]: (it["first"], it["second"]) for it in report["figures"]}
    one, other = figures["TINY_ARENA_BYTES"]
    assert 0 < one < other and figures["tiny: weights"][0] > 0
    assert "README.md" in report["removed"] and "include/tiny.h" in report["changed"]
    assert f"{other - one:+,}" in CliRunner().invoke(cli, ["diff", *folders]).stdout
    assert CliRunner().invoke(cli, ["diff", folders[0], folders[0]]).stdout.endswith("equal\n")
    copy = shutil.copytree(folders[0], tmp_path / "copy")
    (copy / "src" / "mine.c").write_text("int mine;\n")
    header = copy / "include" / "tiny.h"
    header.write_text(header.read_text() + f"#define TINY_LONG {'9' * 5000}\n")
    report = json.loads(CliRunner().invoke(cli, ["diff", folders[0], str(copy), "--json"]).stdout)
    assert not report["equal"] and report["added"] == ["src/mine.c"]
    (copy / "mcudeploy.json").write_text("[")
    damaged = CliRunner().invoke(cli, ["diff", folders[0], str(copy)])
    assert damaged.exit_code == 2 and "is damaged: build" in " ".join(damaged.stderr.split())
    foreign = CliRunner().invoke(cli, ["diff", folders[0], str(tmp_path)])
    assert foreign.exit_code == 2 and "is not a folder that `mcudeploy build` wrote" in foreign.stderr


def test_build_says_what_was_verified(model: Path, tmp_path: Path) -> None:
    report = reports.build_models([model], HOST.board, Options(), tmp_path / "out")
    assert report["verified"] and report["elements"] == 4 * 12 * 12
    assert report["operator_checks"].keys() == {"conv_0", "conv_1"}
    unverified = reports.build_models([model], HOST.board, Options(), tmp_path / "other", verify=False)
    assert unverified["verified"] is None and unverified["files"]


def test_several_models_in_one_folder(model: Path, tmp_path: Path) -> None:
    other = fully_connected(tmp_path / "dense.onnx", (16, 8), quantised=True)
    board, out = load_board("stm32u585"), tmp_path / "out"
    report = reports.build_models([model, other], board, Options(), out)
    assert [each["name"] for each in report["models"]] == ["small", "dense"]
    assert all(each["verified"] for each in report["models"])
    assert {path.name for path in (out / "include").iterdir()} >= {"small.h", "dense.h"}
    reports.build_models([other], board, Options(), out)
    assert {path.name for path in (out / "include").iterdir()} == {
        *("dense.h", "dense_selftest.h", "mcud_owner.h")
    }
    (out / "src" / "dense.c").write_text("edited")
    with pytest.raises(UsageError, match=r"src/dense\.c"):
        reports.build_models([model], board, Options(), out)
    with pytest.raises(UsageError, match="two models would be called small"):
        reports.build_models([model, model], board, Options(), tmp_path / "new")
    with pytest.raises(UsageError, match="--state and --replaceable are for one model"):
        reports.build_models([model, other], board, Options(replaceable=("*",)), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_wrong_program_is_not_written(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def spoiled(*args: Any) -> Program:
        program = make_program(*args)
        lines = [[line.replace("1", "2") for line in c.lines] for c in program.constants]
        texts = zip(program.constants, lines, strict=True)
        return replace(program, constants=[replace(text, lines=its) for text, its in texts])

    monkeypatch.setattr(deployment, "make_program", spoiled)
    with pytest.raises(OutputsDifferError, match=r"small.onnx is not verified, nothing is written:\nconv_0 "):
        reports.build_models([model], HOST.board, Options(), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_build_without_a_host_compiler_names_the_way_out(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", str(tmp_path / "no-compiler"))
    board = load_board("stm32u585")  # library only: nothing else needs a compiler
    with pytest.raises(BuildError, match=r"no C compiler .*\n.*--no-verify"):
        reports.build_models([model], board, Options(), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert reports.build_models([model], board, Options(), tmp_path / "out", verify=False)["files"]


def test_a_streamed_library_asks_for_its_rows(model: Path, tmp_path: Path) -> None:
    reports.build_models([model], HOST.board, Options(name="tiny", stream_input=True), tmp_path / "out")
    (tmp_path / "main.c").write_text(
        """#include <stdio.h>
#include "tiny.h"
static void feed(void *user, uint32_t input, int32_t first_row, int32_t rows, void *to)
{
    int8_t *at = to;
    int32_t *next = user;
    if (input != 0 || first_row != *next) {
        *next = -1000;
    }
    *next += rows;
    for (int32_t i = 0; i < rows * 12 * 3; i++) {
        at[i] = (int8_t)(first_row * 36 + i);
    }
}
int main(void)
{
    int32_t next = 0;
    tiny_set_feed(feed, &next);
    tiny_run();
    return next == 12 ? 0 : 1;
}
""",
        "utf-8",
    )
    out = tmp_path / "out"
    for main in (tmp_path / "main.c", out / "examples" / "main.c"):
        subprocess.run([linked(out, main)], check=True, capture_output=True)
