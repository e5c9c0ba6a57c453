"""A write after the arena, and a stack that reached its end, are reported by name."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_golden import SOURCE
from test_moved_programs import GRAPHS, HOST, planned, program_of

from mcudeploy.codegen.render import render_firmware
from mcudeploy.common.errors import DeployError
from mcudeploy.device.guards import GUARD, arm, guarded, require_intact
from mcudeploy.device.replies import StackReport
from mcudeploy.device.target import Target, open_device
from mcudeploy.toolchain import build_firmware
from mcudeploy.verify.compare import Storage, run_once

INTACT = StackReport(2000, 65536)


@pytest.mark.parametrize("missing_bytes", [0, 8])
def test_an_arena_that_is_too_small(missing_bytes: int) -> None:
    plan = planned(*GRAPHS["in blocks of a row"])
    program = program_of(plan)
    (arena,) = program.arenas
    program = replace(program, arenas=[replace(arena, size_bytes=arena.size_bytes - missing_bytes)])
    files = render_firmware(guarded(program), plan, SOURCE)
    firmware = build_firmware(HOST, files, program.kernels, emulate=False)
    with open_device(Target(HOST, guards=True), firmware) as device:
        assert device.session.info.max_data_bytes == 4096  # verification would wait for frames of 246
        assert device.session.info.arenas[0].size_bytes == program.arenas[0].size_bytes + len(GUARD)
        arm(device, program)
        require_intact(device, program, INTACT)
        run_once(device, Storage.of(plan), {"image": np.zeros((8, 8, 4), np.int8)})
        if missing_bytes:
            with pytest.raises(DeployError, match=r"the guard after the arena in ram, from its byte \d"):
                require_intact(device, program, device.session.stack())
            return
        require_intact(device, program, device.session.stack())
        device.write(0, program.arenas[0].size_bytes + 5, b"\0")
        with pytest.raises(
            DeployError, match=r"arena in ram, from its byte 5 on and the end of the stack, 900 B"
        ):
            require_intact(device, program, StackReport(900, 900))
