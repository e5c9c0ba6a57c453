"""The measurer of a chip's firmware, in Unicorn."""

from __future__ import annotations

import json
import runpy
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mcudeploy.boards.catalogue import load_board
from mcudeploy.codegen.render import render_firmware
from mcudeploy.commands import commands as api
from mcudeploy.common.progress import SILENT
from mcudeploy.common.resources import resource_dir
from mcudeploy.device.session import Session, Timing
from mcudeploy.device.target import Device, Target, open_device
from mcudeploy.execution.deployment import Deployment
from mcudeploy.execution.running import Observation, observe
from mcudeploy.planner.plan_options import Options
from mcudeploy.toolchain import Firmware
from mcudeploy.toolchain.firmware import measure
from mcudeploy.toolchain.firmware_build import write_project
from mcudeploy.toolchain.project import assemble
from mcudeploy.verify.compare import Storage, run_once
from mcudeploy.verify.samples import Sample, load_samples
from tests.chips.facts import Chip
from tests.chips.machine import Machine, MachineLine
from tests.chips.wiring import wire

HOST = Target(load_board("host"))
PATIENT = Timing(answer_s=600.0, resend_s=600.0)
"""Unicorn runs only while the session waits, and loses nothing."""


def deployed(board: str, model: Path) -> tuple[Deployment, list[Sample]]:
    """A plan of the model for a board, and an input."""
    deployment = api.plan_model(model, load_board(board), Options(split=False))
    return deployment, load_samples(deployment.model.graph, [], [], 0)


class _Flags:
    """Takes the place of PlatformIO's environment: collects the flags of firmware/platform."""

    def __init__(self) -> None:
        self.groups: dict[str, list[Any]] = {}

    def Append(self, **groups: list[Any]) -> None:  # noqa: N802 - SCons's name
        """Keeps the groups."""
        self.groups |= groups

    def StringifyMacro(self, value: str) -> str:  # noqa: N802 - SCons's name
        """Quotes for C; no shell is between."""
        return f'"{value}"'


def built(deployment: Deployment, folder: Path) -> Firmware:
    """The firmware for hardware by one call of the compiler: PlatformIO takes ten times as long."""
    board = deployment.board
    files = render_firmware(deployment.program, deployment.plan, deployment.source)
    project = assemble(board, files, deployment.program.sources, emulate=False)
    write_project(project, folder)
    environment = _Flags()
    build = json.loads(project.files[f"boards/{board.name}.json"])["build"]
    runpy.run_path(str(resource_dir("firmware") / "platform/builder/flags.py"))["apply"](environment, build)
    flags = environment.groups
    sources = sorted(it for it in project.files if it.startswith("src/") and it.endswith((".c", ".S")))
    command = [
        f"{board.toolchain}-gcc",
        *dict.fromkeys([*flags["CFLAGS"], *flags["CCFLAGS"], *flags["LINKFLAGS"], "-Werror"]),
        *(f"-D{name}={value}" for name, value in flags["CPPDEFINES"]),
        *(f"-I{it}" for it in ("include", "src/generated", "src/kernels", "src/hal", "src/measurer")),
        *(*sources, "-Llinker", "-Tlinker/mcudeploy.ld", "-o", "firmware.elf"),
        *(f"-l{it}" for it in flags["LIBS"]),
    ]
    subprocess.run(command, cwd=folder, check=True)
    elf = folder / "firmware.elf"
    return Firmware(elf, board, project.firmware_hash, False, measure(elf))


def ran(deployment: Deployment, device: Device, sample: Sample) -> tuple[int, dict[str, bytes]]:
    """The ticks of one run of a device, and what it leaves."""
    storage = Storage.of(deployment.plan)
    ticks = run_once(device, storage, sample.stored)
    return ticks, {
        it.tensor: storage.get_tensor(device, it.tensor).tobytes() for it in deployment.plan.graph.outputs
    }


@contextmanager
def started(firmware: Firmware) -> Iterator[tuple[Machine, Device]]:
    """The firmware's chip, up to the reply to its HELLO."""
    machine = Machine(firmware, Chip(firmware.board.name), wire)
    with Session(MachineLine(machine), board=firmware.board.name, timing=PATIENT) as session:
        session.hello(firmware.hash)
        yield machine, Device(session, "unicorn", firmware, 3600.0)


def on_host(deployment: Deployment, samples: list[Sample]) -> Observation:
    """Return the outputs of the same plan on this computer."""
    with open_device(HOST, deployment.build(HOST)) as device:
        return observe(device, HOST, deployment, samples, SILENT)
