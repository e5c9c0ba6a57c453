"""No file that a command writes is one that it reads; files of others stay, unless --force is given."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tests.cli.conftest import Deploy

Invoke = Callable[[str], Result]
PLAN_LINE = "plan m.onnx --board tiny"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (f"{PLAN_LINE} -o m.onnx", "--output m.onnx is also MODEL"),
        (f"{PLAN_LINE} -o ./sub/../m.onnx", "is also MODEL"),
        (f"{PLAN_LINE} -o soft.onnx", "is also MODEL"),
        (f"{PLAN_LINE} -o hard.onnx", "is also MODEL"),
        (f"{PLAN_LINE} --plan p.json -o p.json", "--output p.json is also --plan"),
        ("plan m.svg --board tiny --chart m.svg", "--chart m.svg is also MODEL"),
        (f"{PLAN_LINE} -o new.svg --chart new.svg", "--chart new.svg is also --output"),
        (f"{PLAN_LINE} -o mcudeploy.toml", "is also mcudeploy.toml"),
        ("tune m.onnx --board tiny -o m.onnx", "is also MODEL"),
        ("place r.csv --capacity 9 -o r.csv", "--output r.csv is also RECTS"),
        ("schedule g.json -o g.json", "--output g.json is also GRAPH"),
    ],
)
@pytest.mark.parametrize("force", ["", " --force"])
def test_an_output_is_not_an_input(
    line: str, message: str, force: str, mcudeploy_command: Invoke, deploy: Deploy, folder: Path
) -> None:
    for name in ("r.csv", "g.json", "m.svg"):
        (folder / name).write_bytes(b"data")
    (folder / "sub").mkdir()
    (folder / "soft.onnx").symlink_to("m.onnx")
    (folder / "hard.onnx").hardlink_to("m.onnx")
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    result = mcudeploy_command(f"{line}{force}")
    assert result.exit_code == 2, result.output
    assert message in " ".join(result.stderr.split())
    assert before == {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    assert not deploy.calls


@pytest.mark.parametrize("option", ["-o notes.svg", "--chart notes.svg"])
def test_files_of_others_are_overwritten_by_force_only(
    option: str, mcudeploy_command: Invoke, deploy: Deploy, folder: Path
) -> None:
    (folder / "notes.svg").write_text("<svg></svg>")
    result = mcudeploy_command(f"{PLAN_LINE} {option}")
    assert result.exit_code == 2 and not deploy.calls
    assert "notes.svg exists and was not written by mcudeploy" in result.stderr and "--force" in result.stderr
    assert mcudeploy_command(f"{PLAN_LINE} {option} --force").exit_code == 0


def test_our_own_files_are_replaced(mcudeploy_command: Invoke, folder: Path) -> None:
    (folder / "r.csv").write_text("id,lower,upper,size\na,0,2,4\n")
    node = {"id": 0, "op": "op", "inputs": [], "outputs": [0]}
    (folder / "g.json").write_text(json.dumps({"nodes": [node], "tensors": [{"bytes": 1}], "outputs": [0]}))
    for line in ("place r.csv --capacity 9 -o out.csv", "schedule g.json -o order.json --time-limit 1"):
        for _ in range(2):
            assert mcudeploy_command(line).exit_code == 0


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs /dev/zero")
@pytest.mark.parametrize(
    "line",
    [
        f"{PLAN_LINE} --plan /dev/zero",
        "plan /dev/zero --board tiny",
        "run m.onnx --board tiny --input /dev/zero",
        "run m.onnx --board tiny --input x.npy --expected /dev/zero",
        "place /dev/zero --capacity 9",
        "schedule /dev/zero",
    ],
)
def test_a_device_is_not_a_file_to_read(line: str, mcudeploy_command: Invoke, deploy: Deploy) -> None:
    result = mcudeploy_command(line)
    assert result.exit_code == 2 and not deploy.calls
    assert "/dev/zero is not a file" in " ".join(result.stderr.split())


def test_a_link_to_nothing_is_not_an_output(
    mcudeploy_command: Invoke, deploy: Deploy, folder: Path, tmp_path: Path
) -> None:
    (folder / "soft.json").symlink_to(tmp_path / "elsewhere")
    result = mcudeploy_command(f"{PLAN_LINE} -o soft.json --force")
    assert result.exit_code == 2 and not deploy.calls and not (tmp_path / "elsewhere").exists()
    assert "which does not exist" in " ".join(result.stderr.split())
