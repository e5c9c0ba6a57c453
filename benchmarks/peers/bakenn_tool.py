"""BakeNN: C of a quantised network, with its portable kernels or with CMSIS-NN."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path

import numpy as np

from mcudeploy.boards.board import Board
from mcudeploy.common.errors import DeployError
from mcudeploy.ops.host_io import to_device
from mcudeploy.planner.model.model import read_model
from mcudeploy.planner.plan_options import Options
from peers.bakenn_graph import described
from peers.environment import output_of_tool
from peers.generated import Buffer, Expected, Generated, NetworkRefusedError
from peers.networks import Network
from peers.own_tool import decoder

SCRIPT = Path(__file__).with_name("bakenn_compile.py")
GRAPH = Path(__file__).with_name("bakenn_graph.py")
_NAMED = re.compile(r"set\(BAKENN_MODEL_(\w+)\n(.*?)^\)", re.M | re.S)
_MACRO = re.compile(r"^#define BKNN_MODEL_(\w+) (\d+)u$", re.M)


def generate(network: Network, board: Board, folder: Path, *, cmsis: bool) -> Generated:
    """Generate the C of a network. Raises NetworkRefusedError."""
    try:
        graph = read_model(network.path, Options(keep_constant=True)).graph
    except DeployError as error:
        raise NetworkRefusedError(str(error)) from error
    written = asdict(described(graph))
    np.savez(folder / "network.npz", **written.pop("constants"))
    (folder / "network.json").write_text(json.dumps(written), "utf-8")
    target = "rv32imc" if board.toolchain.startswith("riscv") else "cortex-m4"
    output_of_tool("python", SCRIPT, folder, target, "cmsis" if cmsis else "portable")
    lists = source_lists((folder / "c" / "bakenn_sources.cmake").read_text("utf-8"), folder / "c")
    macros = sizes_of((folder / "c" / "bknn_model.h").read_text("utf-8"))
    arrays = "".join(
        f"static uint8_t {kind.lower()}[{max(macros[size], 1)}] __attribute__((aligned(16)));\n"
        for kind, size in (("ARENA", "ARENA_SIZE"), ("INPUT", "INPUT_BYTES"), ("OUTPUT", "OUTPUT_BYTES"))
    )
    arena = "arena" if macros["ARENA_SIZE"] else "0"
    (taken,), (result,) = graph.own_inputs(), graph.own_outputs()
    (values,) = network.outputs([result.name])
    return Generated(
        [Path(it) for it in lists["SOURCES"]],
        [Path(it) for it in lists["INCLUDE_DIRS"]],
        f'#include "bknn_model.h"\n{arrays}',
        f"bknn_model_infer({arena}, (const int8_t *)input, (int8_t *)output)",
        [Buffer("input", macros["INPUT_BYTES"])],
        [Buffer("output", macros["OUTPUT_BYTES"])],
        [to_device(taken, graph.tensors[taken.tensor], network.inputs[taken.name]).tobytes()],
        [Expected(values, decoder(result, graph.tensors[result.tensor]))],
        defines=lists.get("COMPILE_DEFINITIONS", []),
    )


def source_lists(text: str, folder: Path) -> dict[str, list[str]]:
    """Return the lists of the CMake file that the tool writes: SOURCES, INCLUDE_DIRS, COMPILE_DEFINITIONS."""
    here = text.replace("${CMAKE_CURRENT_LIST_DIR}", str(folder))
    return {
        name: [it.strip().strip('"') for it in body.splitlines() if it.strip()]
        for name, body in _NAMED.findall(here)
    }


def sizes_of(header: str) -> dict[str, int]:
    """Return the sizes in bytes that the generated header states."""
    return {name: int(value) for name, value in _MACRO.findall(header)}
