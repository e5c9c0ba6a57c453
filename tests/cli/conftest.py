"""The commands with a fake deploy module that records its arguments and returns what a test wants."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from click.testing import CliRunner, Result

import mcudeploy.commands
from mcudeploy.boards.board import Board, Unit
from mcudeploy.boards.catalogue import family, load_board
from mcudeploy.cli.main import cli
from mcudeploy.planner.plan_options import Options
from mcudeploy.toolchain import Check

OPERATORS = [
    {"name": "conv_0", "nodes": ["conv_0"], "kernel": "conv2d_s8", "variant": "conv2d_s8:3"}
    | {"steps": 1, "ticks": 3000, "macs": 1000, "share": 0.75},
    {"name": "softmax", "nodes": ["softmax"], "kernel": "softmax_s8", "variant": "softmax_s8"}
    | {"steps": 1, "ticks": 1000, "macs": 0, "share": 0.25},
]
PLAN = {
    "arena_bytes": 2048,
    "arenas": {"sram": 2048},
    "peak_bytes": 2000,
    "lower_bound_bytes": 2000,
    "unsplit_arena_bytes": 2048,
    "tables_bytes": 300,
    "order_status": "feasible",
    "layout_status": "optimal",
    "splits": [],
    "steps": 2,
    "moves": 0,
    "moved_bytes": 0,
}
SIZES = {
    "flash_bytes": 9000,
    "code_bytes": 4000,
    "weights_bytes": 5000,
    "static_ram_bytes": 2100,
}
_REAL = load_board("stm32f405")
TINY = _REAL.model_copy(
    update={
        "name": "tiny",
        "title": "Tiny board",
        "memories": _REAL.memories[:1],
        "units": (Unit(name="core"),),
    }
)
MEASURE = {"latency": {"value": 4000, "unit": "instructions"}, "operators": OPERATORS}
VERDICT = {
    "verified": True,
    "mismatches": 0,
    "elements": 2,
    "max_abs_error": 0,
    "error_unit": "LSB",
    "tolerance": {"lsb": 4, "share_of_range": None, "least": None},
    "coarse_tolerances": {},
    "range": 255.0,
    "ties_resolved": 0,
    "mismatches_resolved": 0,
    "max_abs_error_resolved": 0,
    "operator_checks": {
        "conv_0": {
            "elements": 9,
            "mismatches": 2,
            "ties": 1,
            "max_abs_error": 1.0,
            "range": 255.0,
            "error_unit": "LSB",
            "within_tolerance": True,
        }
    },
    "reason": None,
}
OUTPUT = {
    "sample": 0,
    "name": "y",
    "type": "int8",
    "shape": [1, 2],
    "elements": 2,
    "least": -105,
    "most": 105,
} | {
    "top": [
        {"index": 1, "value": 105, "real": 0.91, "label": "a person"},
        {"index": 0, "value": -105, "real": 0.09, "label": "[red]none[/]"},
    ],
    "values": [-105, 105],
}
LONGEST = {"step": 3, "operator": "conv_0", "time": None}
COSTS = {"stack_unknown": "no compiler", "longest_step": LONGEST}
BUILD = {"files": ["model.c", "model.h"], "name": "model", "selftest": True} | SIZES | PLAN | VERDICT | COSTS
STACK = {"stack_bytes": 300, "stack_bound_bytes": 316, "library_stack_bound_bytes": 240}
RUN = PLAN | SIZES | MEASURE | VERDICT | STACK
RUN |= {"total_ram_bytes": 2400, "outputs": [OUTPUT], "inputs": [], "warnings": []}
CHECK = {
    "supported": True,
    "problems": [],
    "notes": [],
    "parameters": 10,
    "macs": 1000,
    "weights_bytes": 5000,
}
FLASH = {"board": "tiny", "port": "/dev/ttyACM0", "flasher": "openocd"} | {
    "firmware_hash": "1234abcd",
    "commands": None,
}
FIT = {
    "boards": [
        {"board": "tiny", "core": "cortex-m4", "fits": True, "way": "split", "options": ""}
        | {"ram_bytes": 9000, "board_ram_bytes": 131072}
        | {"flash_bytes": 5000, "board_flash_bytes": 1048576, "flash_free_bytes": 1043576, "excess_bytes": 0}
        | {"latency": {"value": 420000, "milliseconds": 2.5, "milliseconds_by": "cycle model"}}
    ]
}
ANSWERS: dict[str, Any] = {
    "fit_model": FIT,
    "check_model": CHECK,
    "plan_model": PLAN,
    "save_plan": None,
    "save_chart": None,
    "build_models": BUILD,
    "flash_board": FLASH,
    "measure_model": MEASURE,
    "run_model": RUN,
}


@dataclass
class Deploy:
    """Answers per function: a value, a function of what is asked, or an exception to raise. `calls` has what
    was asked.
    """

    answers: dict[str, Any] = field(default_factory=lambda: dict(ANSWERS))
    calls: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = field(default_factory=dict)

    def function(self, name: str) -> Callable[..., Any]:
        def answer(*args: Any, **kwargs: Any) -> Any:
            self.calls[name] = (args, kwargs)
            reply = self.answers[name]
            reply = reply(*args) if callable(reply) else reply
            if isinstance(reply, BaseException):
                raise reply
            return reply

        return answer

    def options(self, name: str) -> Options:
        return next(value for value in self.calls[name][0] if isinstance(value, Options))


def _board(name: str) -> Board:
    if name != "tiny":
        return load_board(name)
    return TINY


@pytest.fixture
def deploy(monkeypatch: pytest.MonkeyPatch) -> Deploy:
    """Stands for mcudeploy.deploy, the boards and the checks of doctor."""
    answers = Deploy()
    flow = ModuleType("mcudeploy.commands.commands")
    building = ModuleType("mcudeploy.commands.build")
    checking = ModuleType("mcudeploy.commands.checking")
    modules = {"build_models": building, "check_model": checking, "fit_model": checking}
    for name in ANSWERS:
        setattr(modules.get(name, flow), name, answers.function(name))
    for module in (flow, building, checking):
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setattr(mcudeploy.commands, module.__name__.rpartition(".")[2], module, raising=False)
    monkeypatch.setattr("mcudeploy.boards.catalogue.load_board", _board)
    monkeypatch.setattr(
        "mcudeploy.boards.catalogue.family", lambda name: (_board(name),) if name == "tiny" else family(name)
    )
    monkeypatch.setattr("mcudeploy.boards.catalogue.list_boards", lambda: (_board("tiny"),))
    monkeypatch.setattr("mcudeploy.boards.catalogue.catalogue", lambda: (_board("tiny"),))
    checks = [
        Check("arm-none-eabi-gcc", True, "12.2", ""),
        Check("qemu-system-arm", True, "7.2", "", "emulator"),
        Check("openocd", False, "", "sudo apt-get install openocd", "hardware"),
    ]
    monkeypatch.setattr("mcudeploy.toolchain.checks", lambda board: checks, raising=False)
    return answers


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory but for `m.onnx` and `x.npy`, and an environment without options."""
    for name in ("m.onnx", "x.npy", "y.npy", "p.json"):
        (tmp_path / name).write_bytes(b"data")
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("MCUDEPLOY_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


@pytest.fixture
def mcudeploy_command(folder: Path) -> Callable[[str], Result]:
    """Run a command line in `folder`."""
    return lambda line: CliRunner().invoke(cli, line.split())
