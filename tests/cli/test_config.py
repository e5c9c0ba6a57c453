"""mcudeploy.toml and MCUDEPLOY_*: the command line wins over variables, variables over the file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from mcudeploy.cli.config import load_settings
from mcudeploy.cli.main import cli
from mcudeploy.common.errors import ConfigError
from mcudeploy.common.sizes import parse_size
from tests.cli.conftest import Deploy

Invoke = Callable[[str], Result]


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("49152", 49152),
        ("96k", 98304),
        ("64KiB", 65536),
        ("64 kb", 65536),
        ("1M", 1048576),
        ("2GiB", 2**31),
        ("5B", 5),
    ],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5M", "k", "96q", "1e3", "٣k"])
def test_no_sizes(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size"):
        parse_size(text)


def test_a_size_may_be_too_large() -> None:
    for text in ("9" * 16, f"{10**25} k"):
        with pytest.raises(ValueError, match="is too large: a size has at most 15 digits"):
            parse_size(text)


def test_command_line_over_variable_over_file(
    folder: Path, mcudeploy_command: Invoke, deploy: Deploy, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "mcudeploy.toml").write_text('board = "tiny"\nram-limit = "8k"\nseed = 3\nmax-overhead = 1\n')
    monkeypatch.setenv("MCUDEPLOY_RAM_LIMIT", "16k")
    monkeypatch.setenv("MCUDEPLOY_FLOAT_IO", "true")
    assert mcudeploy_command("plan m.onnx --max-overhead 2").exit_code == 0
    options = deploy.options("plan_model")
    assert (options.ram_limit, options.seed, options.max_overhead, options.float_io) == (16384, 3, 2, True)
    assert mcudeploy_command("plan m.onnx --no-float-io").exit_code == 0
    assert deploy.options("plan_model").float_io is False


def test_limits_for_memories(
    folder: Path, mcudeploy_command: Invoke, deploy: Deploy, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "mcudeploy.toml").write_text('memory = ["sram=64k", "ccm=0"]\n')
    assert mcudeploy_command("plan m.onnx --board tiny").exit_code == 0
    assert deploy.options("plan_model").memory_limits == (("sram", 65536), ("ccm", 0))
    (folder / "mcudeploy.toml").write_text('memory = "sram=8k"\n')
    assert mcudeploy_command("plan m.onnx --board tiny").exit_code == 0
    assert deploy.options("plan_model").memory_limits == (("sram", 8192),)
    monkeypatch.setenv("MCUDEPLOY_MEMORY", "sram=96KiB:ccm=1k")
    assert mcudeploy_command("plan m.onnx --board tiny").exit_code == 0
    assert deploy.options("plan_model").memory_limits == (("sram", 98304), ("ccm", 1024))
    assert mcudeploy_command("plan m.onnx --board tiny --memory sram=8k").exit_code == 0
    assert deploy.options("plan_model").memory_limits == (("sram", 8192),)
    for wrong in ("sram", "sram=", "=4k", "sram=-1", "sram=2apples"):
        result = mcudeploy_command(f"plan m.onnx --board tiny --memory {wrong!r}")
        assert result.exit_code == 2 and "is not a" in result.stderr
    monkeypatch.setenv("MCUDEPLOY_MEMORY", "64k")
    result = mcudeploy_command("plan m.onnx --board tiny")
    assert result.exit_code == 3 and "MCUDEPLOY_MEMORY" in result.stderr


def test_rules_for_units(
    folder: Path, mcudeploy_command: Invoke, deploy: Deploy, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "mcudeploy.toml").write_text('assign = ["auto", "core=add_*"]\n')
    assert mcudeploy_command("plan m.onnx --board tiny").exit_code == 0
    assert deploy.options("plan_model").assign == ("auto", "core=add_*")
    monkeypatch.setenv("MCUDEPLOY_ASSIGN", "npu=Conv2d,MatMul:auto")
    assert mcudeploy_command("plan m.onnx --board tiny").exit_code == 0
    assert deploy.options("plan_model").assign == ("npu=Conv2d,MatMul", "auto")
    assert mcudeploy_command("plan m.onnx --board tiny --assign npu=x --assign core=y").exit_code == 0
    assert deploy.options("plan_model").assign == ("npu=x", "core=y")


def test_lists_and_flags(
    folder: Path, mcudeploy_command: Invoke, deploy: Deploy, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "mcudeploy.toml").write_text('input = ["x.npy"]\nemulate = true\njson = true\noutput = "out"\n')
    monkeypatch.setenv("MCUDEPLOY_EXPECTED", "x.npy:y.npy")
    result = mcudeploy_command("run m.onnx --board tiny")
    assert result.exit_code == 0
    assert result.stdout.startswith("{")
    _, target, _, request, _ = deploy.calls["run_model"][0]
    assert target.emulate is True
    assert (request.inputs, request.expected) == ((Path("x.npy"),), (Path("x.npy"), Path("y.npy")))
    assert mcudeploy_command("build m.onnx --board tiny").exit_code == 0
    assert deploy.calls["build_models"][0][0].directory == Path("out")


def test_a_file_may_begin_with_a_mark(folder: Path, mcudeploy_command: Invoke) -> None:
    (folder / "mcudeploy.toml").write_bytes(b"\xef\xbb\xbfjson = true\n")
    assert mcudeploy_command("nope").stdout.startswith("{")


def test_one_string_stands_for_a_list_of_files(
    folder: Path, mcudeploy_command: Invoke, deploy: Deploy
) -> None:
    (folder / "mcudeploy.toml").write_text('input = "x.npy"\n')
    assert mcudeploy_command("run m.onnx --board tiny").exit_code == 0
    assert deploy.calls["run_model"][0][3].inputs == (Path("x.npy"),)


def test_json_from_the_file_holds_for_errors_too(folder: Path, mcudeploy_command: Invoke) -> None:
    (folder / "mcudeploy.toml").write_text("json = true\n")
    assert mcudeploy_command("nope").stdout.startswith("{")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('ram-limit = "lots"', "mcudeploy.toml: key 'ram-limit': 'lots' is not a size"),
        ('bord = "tiny"', "mcudeploy.toml: key 'bord': no such option; did you mean 'board'?"),
        ("seed = -1", "mcudeploy.toml: key 'seed'"),
        ("time-limit = nan", "mcudeploy.toml: key 'time-limit'"),
        ("board = 5", "mcudeploy.toml: key 'board'"),
        ('plan = "missing.json"', "mcudeploy.toml: key 'plan'"),
        ("board = ", "mcudeploy.toml is not valid TOML"),
    ],
)
def test_a_wrong_file_exits_3(
    text: str, message: str, folder: Path, mcudeploy_command: Invoke, deploy: Deploy
) -> None:
    (folder / "mcudeploy.toml").write_text(text)
    result = mcudeploy_command("plan m.onnx --board tiny")
    assert result.exit_code == 3
    assert message in result.stderr


def test_help_does_not_mind_a_wrong_file(folder: Path, mcudeploy_command: Invoke) -> None:
    (folder / "mcudeploy.toml").write_text("nonsense")
    assert mcudeploy_command("plan --help").exit_code == 0


@pytest.mark.parametrize("content", [b"\xff\xfe", b"seed = 1\x00"])
def test_a_file_that_is_not_text_exits_3(content: bytes, folder: Path) -> None:
    (folder / "mcudeploy.toml").write_bytes(content)
    with pytest.raises(ConfigError, match="not valid TOML"):
        load_settings(folder, {}, cli.commands)


def test_a_folder_in_the_place_of_the_file(folder: Path) -> None:
    (folder / "mcudeploy.toml").mkdir()
    with pytest.raises(ConfigError, match="cannot be read"):
        load_settings(folder, {}, cli.commands)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_in_the_place_of_the_file_is_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "mcudeploy.toml")
    with pytest.raises(ConfigError, match="cannot be read: not a file"):
        load_settings(folder, {}, cli.commands)


def test_a_wrong_variable_is_named(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"^MCUDEPLOY_SEED: "):
        load_settings(folder, {"MCUDEPLOY_SEED": "x"}, cli.commands)
    with pytest.raises(ConfigError, match=r"^MCUDEPLOY_RAM_LIMT: no such option; did you mean 'ram-limit'"):
        load_settings(folder, {"MCUDEPLOY_RAM_LIMT": "9k"}, cli.commands)


def test_other_variables_are_left_alone(folder: Path) -> None:
    assert load_settings(folder, {"MCUDEPLOY_CACHE_DIR": "x", "PATH": "y"}, cli.commands) == {}


def test_an_empty_variable_counts_as_unset(folder: Path) -> None:
    (folder / "mcudeploy.toml").write_text('board = "microbit"')
    names = ("BOARD", "RAM_LIMIT", "SEED", "EMULATE", "INPUT", "PLAN", "JSON", "TIME_LIMIT")
    assert load_settings(folder, {f"MCUDEPLOY_{name}": "" for name in names}, cli.commands) == {
        "board": "microbit"
    }
