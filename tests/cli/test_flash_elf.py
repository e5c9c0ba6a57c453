"""`flash --elf`: a program that the user has built, in the form that the board takes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mcudeploy.cli.main import cli
from mcudeploy.common.errors import FlashError, UsageError


def call(*words: str) -> Result:
    return CliRunner().invoke(cli, ["flash", *words])


@pytest.mark.usefixtures("small_bench")
def test_a_program_becomes_blocks_beside_it(tmp_path: Path) -> None:
    ours = json.loads(call("--board", "rp2040", "--dry-run", "--json").stdout)
    blocks = Path(ours["commands"][0][1])
    elf = Path(shutil.copy(blocks.with_suffix(".elf"), tmp_path / "program.elf"))
    report = json.loads(call("--board", "rp2040", "--elf", str(elf), "--dry-run", "--json").stdout)
    assert report["commands"] == [["cp", str(elf.with_suffix(".uf2")), *ours["commands"][0][2:]]]
    assert report["flasher"] == "uf2" and report["firmware_hash"] is None
    assert elf.with_suffix(".uf2").read_bytes() == blocks.read_bytes()


@pytest.mark.parametrize(
    ("words", "text", "code"),
    [
        (["--board", "rp2040", "--dry-run"], "is not an ELF file", FlashError.exit_code),
        (["--board", "mps2-an386"], "is emulated here", UsageError.exit_code),
        (["--board", "rp2040", "m.onnx"], "leave out MODEL", UsageError.exit_code),
    ],
)
def test_what_is_refused(words: list[str], text: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(b"no program")
    words = [str(tmp_path / word) if word.endswith(".onnx") else word for word in words]
    result = call(*words, "--elf", str(tmp_path / "m.onnx"))
    assert text in result.stderr and result.exit_code == code
