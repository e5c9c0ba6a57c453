"""BakeNN: C of a quantised .tflite file, with its portable kernels or with CMSIS-NN."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from mcudeploy.boards.board import Board
from peers.environment import answer_of_tool
from peers.generated import Buffer, Generated, NetworkRefusedError, raw
from peers.networks import Network, before_softmax

SCRIPT = Path(__file__).with_name("bakenn_compile.py")
_NAMED = re.compile(r"set\(BAKENN_MODEL_(\w+)\n(.*?)^\)", re.M | re.S)
_MACRO = re.compile(r"^#define BKNN_MODEL_(\w+) (\d+)u$", re.M)


def generate(network: Network, board: Board, folder: Path, *, cmsis: bool) -> Generated:
    """Generate the C of a network. Raises NetworkRefusedError."""
    if network.tflite is None:
        raise NetworkRefusedError("reads .tflite files; there is none of this network")
    target = "rv32imc" if board.toolchain.startswith("riscv") else "cortex-m4"
    answer = answer_of_tool(
        "python", SCRIPT, network.tflite, folder, target, "cmsis" if cmsis else "portable"
    )
    name = before_softmax(network.model) if answer["without_softmax"] else network.output_names[0]
    if name is None:
        raise NetworkRefusedError("has no Softmax, and the last one of this network reads no integers")
    (values,) = network.outputs([name])
    (array,) = network.inputs.values()
    folder = folder / "c"
    lists = source_lists((folder / "bakenn_sources.cmake").read_text("utf-8"), folder)
    macros = sizes_of((folder / "bknn_model.h").read_text("utf-8"))
    arrays = "".join(
        f"static uint8_t {kind.lower()}[{macros[size]}] __attribute__((aligned(16)));\n"
        for kind, size in (("ARENA", "ARENA_SIZE"), ("INPUT", "INPUT_BYTES"), ("OUTPUT", "OUTPUT_BYTES"))
    )
    return Generated(
        [Path(it) for it in lists["SOURCES"]],
        [Path(it) for it in lists["INCLUDE_DIRS"]],
        f'#include "bknn_model.h"\n{arrays}',
        "bknn_model_infer(arena, (const int8_t *)input, (int8_t *)output)",
        [Buffer("input", macros["INPUT_BYTES"])],
        [Buffer("output", macros["OUTPUT_BYTES"])],
        [array.astype(np.int8).tobytes()],
        [raw(values)],
        defines=lists.get("COMPILE_DEFINITIONS", []),
        remark="without its Softmax" if answer["without_softmax"] else "",
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
