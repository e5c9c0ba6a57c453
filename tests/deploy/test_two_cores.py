"""Plans for two compute units: each core of the mps2-an521 runs its part of a model, on shared tensors."""

from __future__ import annotations

import json
import socket
from dataclasses import replace
from pathlib import Path

import numpy as np
from elftools.elf.elffile import ELFFile

from mcudeploy.boards.catalogue import load_board
from mcudeploy.common.progress import SILENT
from mcudeploy.device.target import Target, open_device
from mcudeploy.execution.deployment import Deployment
from mcudeploy.ir.plan import Plan
from mcudeploy.planner.cores.functions import AUTO, assign, partition
from mcudeploy.planner.model.model import Model, load_model
from mcudeploy.planner.order.rpo import reverse_post_order
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.planner import find_plans
from mcudeploy.planner.search.placing import placed
from mcudeploy.planner.tape.tape import handed_over
from mcudeploy.report import as_json
from mcudeploy.tiling.blocks import TiledGraph
from mcudeploy.tiling.dataflow import Dataflow
from mcudeploy.verify.compare import Storage, run_once
from mcudeploy.verify.samples import load_samples
from mcudeploy.verify.verdict import judge

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "vww" / "model.onnx"
BOARD = load_board("mps2-an521")
TARGET = Target(BOARD)
HOST = Target(load_board("host"))
HAND_OVER = 65
"""Instructions of both cores that a step costs beyond its own. The emulator lets the core that waits look
again, by 5 instructions, every tenth of a second.
"""


def on_two_units(plan: Plan) -> Plan:
    """The plan with what the second core prefers on that core."""
    return replace(plan, functions=partition(plan.graph, assign(plan.graph, BOARD, [AUTO])))


class Monitor:
    """Return QEMU's report on the board's memory, read through a socket."""

    def __init__(self, path: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(10)
        self._socket.connect(str(path))
        self._lines = self._socket.makefile("rw")
        self._lines.readline()
        self._ask("qmp_capabilities")

    def words(self, address: int, count: int) -> list[int]:
        """32-bit words of memory as the first core sees it."""
        text = self._ask("human-monitor-command", {"command-line": f"x /{count}wx {address:#x}"})
        return [int(word, 16) for line in text.splitlines() for word in line.partition(":")[2].split()]

    def _ask(self, what: str, arguments: dict[str, str] | None = None) -> str:
        self._lines.write(json.dumps({"execute": what, "arguments": arguments or {}}) + "\n")
        self._lines.flush()
        return str(json.loads(self._lines.readline())["return"])

    def close(self) -> None:
        self._lines.close()
        self._socket.close()


def address_of(elf: Path, symbol: str) -> int:
    with elf.open("rb") as file:
        table = ELFFile(file).get_section_by_name(".symtab")
        (symbols,) = table.get_symbol_by_name(symbol)
        return int(symbols["st_value"])


def in_blocks(model: Model, rows: int) -> Plan:
    """A plan that makes the feature maps of a model in blocks of `rows` rows."""
    graph = model.graph
    heights = {it.name: graph.tensors[it.output].shape[0] for it in graph.operators}
    block_rows = {name: min(rows, height) for name, height in heights.items()}
    tiled = TiledGraph(Dataflow.of(graph), block_rows)
    return placed(model, BOARD, tiled, reverse_post_order(tiled))


def test_the_example_runs_on_both_cores(tmp_path: Path) -> None:
    options = Options(split=False)
    planned = find_plans(load_model(EXAMPLE), BOARD, options)
    plan = in_blocks(planned.models[planned.baseline.form], 8)
    alone = Deployment.of(planned, plan, BOARD, options)
    deployment = Deployment.of(planned, on_two_units(plan), BOARD, options)
    handed = handed_over(deployment.plan, BOARD)
    steps = sum(plan.graph.operators[step.operator].name in handed for step in plan.schedule.steps)
    assert len(handed) == 28 and steps > len(handed)

    samples = load_samples(deployment.model.graph, [], [], 0)
    with open_device(HOST, deployment.build(HOST), deployment.patience_s) as machine:
        verdict = judge(machine, deployment.plan, EXAMPLE, samples, SILENT)
    storage = Storage.of(plan)
    (output,) = plan.graph.outputs

    with open_device(TARGET, alone.build(TARGET), alone.patience_s) as device:
        ticks_alone = [run_once(device, storage, samples[0].stored) for _ in range(2)]
        expected = storage.get_tensor(device, output.tensor)

    firmware = deployment.build(TARGET)
    assert firmware.sizes.tables_bytes - as_json(deployment)["tables_bytes"] in (0, 2, 4)
    monitor = ("-qmp", f"unix:{tmp_path}/monitor,server=on,wait=off")
    stack = BOARD.unit("cpu1").stack
    assert stack is not None and BOARD.timer.emulated is not None
    with open_device(TARGET, firmware, deployment.patience_s, monitor) as device:
        ticks = [run_once(device, storage, samples[0].stored) for _ in range(2)]
        computed = storage.get_tensor(device, output.tensor)
        qemu = Monitor(tmp_path / "monitor")
        *_, posted, served = qemu.words(address_of(firmware.elf, "mailbox"), 5)
        free = next(at for at, word in enumerate(qemu.words(stack.origin, stack.bytes // 4)) if word) * 4
        qemu.close()

    # Only the second core counts what it served.
    assert posted == served == 2 * steps
    assert not verdict.with_device([{output.tensor: computed}]).reasons
    assert np.array_equal(computed, expected)
    # Its stack is as deep as the kernels need, and has room.
    assert 64 < stack.bytes - free < stack.bytes // 2
    # The first run starts the second core, so the second one counts.
    more = BOARD.instructions(ticks[1]) - BOARD.instructions(ticks_alone[1])
    waits = ticks[1] * 10 // BOARD.timer.emulated.hz + 1
    assert HAND_OVER * steps - steps // 10 <= more <= HAND_OVER * steps + 5 * waits + steps // 10
