"""Conventions of command lines: completion, versions, -q and -v, examples, plain text."""

from __future__ import annotations

import os
import pty
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import Result

from mcudeploy.cli.help import EXAMPLES, leaves
from mcudeploy.cli.main import cli
from mcudeploy.ir.clock import LOWER_BOUND
from mcudeploy.toolchain import Check
from mcudeploy.toolchain.tools import run_tool
from tests.cli.conftest import MEASURE, PLAN, RUN, Deploy

Invoke = Callable[[str], Result]
COMMAND = [sys.executable, "-m", "mcudeploy"]
COLOUR = re.compile(r"\x1b\[[0-9;]*(3[0-7]|9[0-7])m")


def completed(shell: str, words: str) -> list[str]:
    known = words.split(" ")
    asked = {
        "_MCUDEPLOY_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(known) - 1),
    }
    done = subprocess.run(
        COMMAND, env={**os.environ, **asked}, capture_output=True, text=True, check=False, timeout=60
    )
    return [line.removeprefix("plain,") for line in done.stdout.splitlines()]


def test_commands_options_and_boards_are_completed() -> None:
    assert completed("bash", "mcudeploy bu") == ["build"]
    assert completed("bash", "mcudeploy plan m.onnx --board stm32f7") == ["stm32f746", "stm32f746-disco"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script(shell: str, tmp_path: Path) -> None:
    environment = {**os.environ, "_MCUDEPLOY_COMPLETE": f"{shell}_source"}
    done = subprocess.run(COMMAND, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert f"_MCUDEPLOY_COMPLETE={shell}_complete" in done.stdout
    if shutil.which(shell):
        (tmp_path / "script").write_text(done.stdout)
        subprocess.run([shell, "-n", tmp_path / "script"], check=True)


def test_the_version_names_the_tools(mcudeploy_command: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "mcudeploy.toolchain.versions", lambda: [("onnxruntime", "1.20"), ("qemu", "QEMU 7.2")]
    )
    (Path.cwd() / "mcudeploy.toml").write_text("nonsense")
    result = mcudeploy_command("--version")
    assert (result.exit_code, result.stdout) == (0, "mcudeploy 0.1.0\nonnxruntime: 1.20\nqemu: QEMU 7.2\n")


def test_q_prints_why_a_run_is_not_verified(mcudeploy_command: Invoke, deploy: Deploy) -> None:
    deploy.answers["run_model"] = RUN | {"verified": False, "reason": "conv_0: 3 is not 4"}
    result = mcudeploy_command("run m.onnx --board tiny -q")
    assert result.exit_code == 11 and result.stdout.startswith("NOT verified: 2 output elements")
    assert result.stdout.endswith("\nconv_0: 3 is not 4\n") and not result.stderr


def test_v_tells_the_command_lines_of_tools(
    mcudeploy_command: Invoke, deploy: Deploy, monkeypatch: pytest.MonkeyPatch
) -> None:
    import mcudeploy.commands.commands  # noqa: PLC0415

    def run(*_: object, **__: object) -> dict[str, object]:
        run_tool(["echo", "a b"], 10)
        return RUN

    monkeypatch.setattr(mcudeploy.commands.commands, "run_model", run)
    assert "+ echo" not in mcudeploy_command("run m.onnx --board tiny").stderr
    assert "+ echo 'a b'\n" in mcudeploy_command("run m.onnx --board tiny -v").stderr


def test_colours_are_for_terminals_that_want_them(tmp_path: Path) -> None:
    def shown(**variables: str) -> str:
        parent, child = pty.openpty()
        kept = {name: text for name, text in os.environ.items() if name not in ("FORCE_COLOR", "NO_COLOR")}
        environment = {**kept, "TERM": "xterm", **variables}
        command = [*COMMAND, "nope"]
        subprocess.run(
            command, env=environment, stdout=child, stderr=child, cwd=tmp_path, check=False, timeout=60
        )
        os.close(child)
        text = os.read(parent, 65536).decode()
        os.close(parent)
        return text

    assert COLOUR.search(shown())
    assert not COLOUR.search(shown(NO_COLOR="1"))
    done = subprocess.run([*COMMAND, "nope"], capture_output=True, cwd=tmp_path, check=False, timeout=60)
    assert b"\x1b" not in done.stdout + done.stderr


@pytest.mark.parametrize("name", sorted(leaves(cli)))
def test_each_command_shows_an_example_that_is_one(name: str, mcudeploy_command: Invoke) -> None:
    assert EXAMPLES[name].startswith(f"mcudeploy {name} ") or EXAMPLES[name] == f"mcudeploy {name}"
    words = shlex.split(EXAMPLES[name].removeprefix(f"mcudeploy {name}"))
    known = {option for each in leaves(cli)[name].params for option in each.opts}
    assert {word for word in words if word.startswith("-")} <= known
    text = " ".join(mcudeploy_command(f"{name} --help").stdout.split())
    assert "Example: mcudeploy" in text and "What is printed" in text


@pytest.mark.parametrize("name", sorted(leaves(cli)))
def test_help_is_short_and_help_all_is_complete(name: str, mcudeploy_command: Invoke) -> None:
    brief, whole = (mcudeploy_command(f"{name} {option}").stdout for option in ("--help", "--help-all"))
    options = [it for it in leaves(cli)[name].params if isinstance(it, click.Option) and not it.hidden]
    names = {"--help", *(it.opts[-1] for it in options)}
    shown = set(re.findall(r"^\u2502 [* ]*(--[a-z0-9-]+)", brief, re.M))
    assert len(shown) <= 22 and shown >= {it.opts[-1] for it in options if it.required}
    assert shown == names or all(it in whole for it in names)
    usages = (re.search(r"Usage: .*", text) for text in (brief, whole))
    assert len({match[0].rstrip() for match in usages if match}) == 1


def test_the_help_of_a_run_leaves_out_what_few_need(mcudeploy_command: Invoke) -> None:
    text = mcudeploy_command("run --help").stdout
    assert "--ram-limit" in text and "--objective" not in text
    assert "--objective" in mcudeploy_command("run --help-all").stdout
    assert "--objective" in completed("bash", "mcudeploy run --obj")


def test_commands_are_grouped(mcudeploy_command: Invoke) -> None:
    text = mcudeploy_command("-h").stdout
    for title in ("A model and a board", "Into your project", "What is here", "Graphs of your own"):
        assert title in text
    assert set(EXAMPLES) == set(leaves(cli))


def test_doctor_fails_where_the_board_cannot_run(
    mcudeploy_command: Invoke, deploy: Deploy, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert mcudeploy_command("doctor --board tiny").exit_code == 0, "it runs emulated"
    checks = [Check("gcc", False, "", "install gcc")]
    monkeypatch.setattr("mcudeploy.toolchain.checks", lambda _: checks)
    assert mcudeploy_command("doctor").exit_code == 0
    result = mcudeploy_command("doctor --board tiny --json")
    assert result.exit_code == 1 and '"missing": [\n    "gcc"\n  ]' in result.stdout


@pytest.mark.parametrize(
    ("by", "unit", "message"),
    [
        (
            "one clock an instruction",
            "instructions",
            "≥ 0.02 ms (4,000 instructions at 168 MHz and one clock an instruction, the least)",
        ),
        ("cycle model", "cycles (model)", "0.02 ms, modelled (4,000 cycles (model) at 168 MHz)"),
        (
            "estimate",
            "cycles (model and estimate)",
            "0.02 ms, estimated in part (4,000 cycles (model and estimate) at 168 MHz)",
        ),
        ("cycles", "cycles", "0.02 ms (4,000 cycles at 168 MHz)"),
        ("timer", "us", "4,000 us\n"),
    ],
)
def test_latency_is_told_in_milliseconds(
    by: str, unit: str, message: str, mcudeploy_command: Invoke, deploy: Deploy
) -> None:
    more = {"unit": unit, "milliseconds": 0.0238, "milliseconds_by": by, "clock_hz": 168_000_000}
    deploy.answers["measure_model"] = MEASURE | {"latency": MEASURE["latency"] | more}
    text = mcudeploy_command("measure m.onnx --board tiny").stdout
    assert re.search(re.escape(message).replace(r"\ ", " ").replace("\\\n", r"\s"), text)


def test_one_latency_stands_first_in_every_command(mcudeploy_command: Invoke, deploy: Deploy) -> None:
    at = {"clock_hz": 168_000_000}
    counted = MEASURE["latency"] | at | {"milliseconds": 0.02, "milliseconds_by": LOWER_BOUND}
    modelled = at | {"value": 9000, "unit": "cycles (model)", "milliseconds": 53.6}
    modelled |= {"milliseconds_by": "cycle model"}
    both = {"latency": counted, "estimated_latency": modelled}
    deploy.answers |= {"plan_model": PLAN | both, "run_model": RUN | both}
    first = "53.6 ms, modelled (4,000 instructions counted: 0.02 ms at one clock an instruction, the least)"
    for line in ("plan m.onnx --board tiny", "run m.onnx --board tiny"):
        assert re.search(rf"^latency +{re.escape(first)}$", mcudeploy_command(line).stdout, re.M)
    deploy.answers["plan_model"] = PLAN | {"latency": None, "estimated_latency": modelled}
    text = mcudeploy_command("plan m.onnx --board tiny").stdout
    assert re.search(r"^latency +53.6 ms, modelled$", text, re.M)
