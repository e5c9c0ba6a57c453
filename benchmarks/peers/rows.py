"""Rows of the league: a tool's figures for a network on a board, measured or read from earlier runs."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np

from mcudeploy.boards.board import Board
from mcudeploy.common.resources import cache_dir
from mcudeploy.planner.plan_options import Options
from peers import bakenn_tool, emx_tool, environment, micro_tool, own_tool, tflm_tool
from peers.generated import NOTHING, Array, Expected, Generated, NetworkRefusedError, adapter
from peers.networks import Network
from peers.program import Run, run

ROOT = Path(__file__).resolve().parents[2]
OWN = "mcudeploy"
SMALL = "mcudeploy, least flash"
MICRO = "TensorFlow Lite Micro"
CMSIS = "TensorFlow Lite Micro, CMSIS-NN"
WRONG_SHARE = 1 / 3
"""A tool's outputs are wrong if one differs from ONNX Runtime's by more than this share of their range.

Deep networks with drawn weights amplify a last bit of other tools' rounding to more than a quarter.
"""
_PASSING = ("no result in", "no end in")
"""Beginnings of messages that another run may not repeat: such rows are not cached."""
OF_OWN = ("mcudeploy", "firmware", "templates", "boards")
"""The folders that decide about mcudeploy's C."""
_DSP = ("cortex-m4", "cortex-m7", "cortex-m33")


@dataclass(frozen=True, slots=True)
class Row:
    """A tool's figures for a network on a board; `refusal` replaces them if there are none.

    `ram_bytes` = static + stack. `generation_s`: CPU time of the tool. `difference`: of an output from the
    reference's, at most, and `output_range`: of that output; in integers, if the output has them.
    """

    network: str
    board: str
    tool: str
    is_int8: bool
    is_convolutional: bool
    ram_bytes: int | None = None
    stack_bytes: int | None = None
    flash_bytes: int | None = None
    instructions: int | None = None
    cycles: int | None = None
    level: str = ""
    difference: float | None = None
    output_range: float | None = None
    remark: str = ""
    refusal: str = ""
    generation_s: float | None = None

    @property
    def is_wrong(self) -> bool:
        """Whether an output differs too much, or is not a number."""
        if self.difference is None or self.output_range is None:
            return False
        return not self.difference <= WRONG_SHARE * self.output_range


@dataclass(frozen=True, slots=True)
class Contender:
    """A tool with its options: `key` and `board_key` change with whatever changes its figures."""

    name: str
    key: str
    generate: Callable[[Network, Board, Path], Generated]
    takes: Callable[[Network, Board], bool] = lambda _, __: True
    board_key: Callable[[Board], str] = lambda _: ""


def contenders(time_limit: float) -> list[Contender]:
    """Return the tools that generate C."""
    ours = f"{own_key()} {_key_of(own_tool)} {time_limit}"
    own = {
        OWN: Options(time_limit=time_limit),
        f"{OWN}, unsplit": Options(time_limit=time_limit, split=False),
        SMALL: Options(time_limit=time_limit, split=False, optimize="size"),
    }
    return [
        *(
            Contender(name, f"{ours} {options}", partial(own_tool.generate, options=options))
            for name, options in own.items()
        ),
        Contender(
            CMSIS,
            f"{environment.MICRO} {_key_of(tflm_tool)}",
            tflm_tool.generate,
            tflm_tool.takes,
            tflm_tool.board_key,
        ),
        Contender(
            "BakeNN, CMSIS-NN",
            f"{environment.BAKENN} cmsis {_bakenn_key()}",
            lambda network, board, folder: bakenn_tool.generate(network, board, folder, cmsis=True),
            lambda network, board: network.is_int8 and board.core in _DSP,
        ),
        Contender(
            "BakeNN, portable",
            f"{environment.BAKENN} portable {_bakenn_key()}",
            lambda network, board, folder: bakenn_tool.generate(network, board, folder, cmsis=False),
            lambda network, _: network.is_int8,
        ),
        Contender(
            "emx-onnx-cgen",
            f"{environment.EMX} {_key_of(emx_tool)}",
            lambda network, _, folder: emx_tool.generate(network, folder),
        ),
        Contender(
            "emx-onnx-cgen, float model",
            f"{environment.EMX} {_key_of(emx_tool)} float",
            lambda network, _, folder: emx_tool.generate(network.twin, folder),
            lambda network, _: network.float_twin is not None,
        ),
    ]


def row_of(contender: Contender, network: Network, board: Board, *, cached: bool = False) -> Row | None:
    """Return a row, from the cache or measured; with `cached` None if it is not in the cache."""
    return _kept(
        f"{contender.name} {contender.key} {contender.board_key(board)} {harness_key(board.toolchain)}",
        network,
        board.name,
        None if cached else lambda: _measured(contender, network, board),
    )


def micro_row(network: Network, board: Board, *, cached: bool = False) -> Row | None:
    """Return TensorFlow Lite Micro's arena as a row: RAM alone, without its stack and its own data."""

    def measure() -> Row:
        labels = network.name, board.name, MICRO, network.is_int8, network.is_convolutional
        try:
            total = micro_tool.arena_bytes(network)
        except NetworkRefusedError as error:
            return Row(*labels, refusal=str(error))
        return Row(*labels, ram_bytes=total, remark="arena alone, on x86-64")

    return _kept(
        f"{environment.MICRO} {_key_of(micro_tool)}", network, board.name, None if cached else measure
    )


def _measured(contender: Contender, network: Network, board: Board) -> Row:
    labels = network.name, board.name, contender.name, network.is_int8, network.is_convolutional
    with tempfile.TemporaryDirectory(prefix="league-") as folder:
        start = cpu_seconds()
        try:
            generated = contender.generate(network, board, Path(folder))
            seconds = cpu_seconds() - start
            level, best = _fastest(generated, board)
        except NetworkRefusedError as error:
            return Row(*labels, refusal=" ".join(str(error).split()))
    difference, output_range = compared(generated.expected, best.outputs)
    return Row(
        *labels,
        best.needs.ram_bytes,
        best.needs.stack_bytes,
        best.needs.flash_bytes,
        best.needs.instructions,
        best.needs.cycles,
        level,
        difference,
        output_range,
        generated.remark,
        generation_s=seconds,
    )


def cpu_seconds() -> float:
    """Return the CPU time of this process and of those that it has waited for."""
    return sum(os.times()[:4])


def _fastest(generated: Generated, board: Board) -> tuple[str, Run]:
    runs = {level: run(generated, board, level) for level in generated.levels}
    level = min(runs, key=lambda it: runs[it].needs.time)
    return level, runs[level]


def compared(expected: Iterable[Expected], outputs: Iterable[bytes]) -> tuple[float, float]:
    """Return the largest difference of an output from the expected one, as a share of its range; and that."""
    worst = (0.0, 1.0)
    for each, sent in zip(expected, outputs, strict=True):
        wanted, values = each.values.astype(np.float64), each.decode(sent).astype(np.float64)
        difference = float(np.max(np.abs(values - wanted), initial=0.0))
        candidate = (difference, range_of(each.values))
        if not candidate[0] / candidate[1] <= worst[0] / worst[1]:  # also for NaN
            worst = candidate
    return worst


def range_of(values: Array) -> float:
    """Return the range of an output: of its type for integers of a byte, else of its values and 0."""
    if values.dtype.itemsize == 1:
        return 255.0
    return max(float(np.max(values, initial=0.0) - np.min(values, initial=0.0)), 1e-6)


def _kept(key: str, network: Network, board: str, measure: Callable[[], Row] | None) -> Row | None:
    content = [key, board, network.name, *(_text_key(it) for it in network.files)]
    digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()[:24]
    path = cache_dir() / "league" / "rows" / f"{digest}.json"
    if path.is_file():
        return Row(**json.loads(path.read_text("utf-8")))
    if measure is None:
        return None
    row = measure()
    if row.refusal.startswith(_PASSING):
        return row
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(row)) + "\n", encoding="utf-8")
    return row


def _bakenn_key() -> str:
    files = (bakenn_tool.__file__, bakenn_tool.SCRIPT, bakenn_tool.GRAPH)
    return " ".join(_text_key(Path(it)) for it in files)


@cache
def own_key() -> str:
    """Return a hash of all files of mcudeploy that decide about its C."""
    listed = subprocess.run(
        ["git", "ls-files", *OF_OWN], cwd=ROOT, capture_output=True, text=True, check=True
    )
    digest = hashlib.sha256()
    for name in sorted(listed.stdout.splitlines()):
        if (ROOT / name).is_file():
            digest.update(name.encode() + (ROOT / name).read_bytes())
    return digest.hexdigest()[:16]


@cache
def compiler_version(toolchain: str) -> str:
    """Return the name and version of a compiler."""
    command = [f"{toolchain}-gcc", "-dumpversion"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return f"{command[0]} {done.stdout.strip()}"


@cache
def harness_key(toolchain: str) -> str:
    """Return a hash of the program around a network, and of the compiler's version."""
    files = [Path(__file__).with_name(name) for name in ("program.c", "program.py", "network.h")]
    return " ".join([compiler_version(toolchain), adapter(NOTHING), *map(_text_key, files)])


def _key_of(module: object) -> str:
    return _text_key(Path(str(module.__file__)))  # type: ignore[attr-defined]


@cache
def _text_key(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]
