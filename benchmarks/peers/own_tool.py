"""The libraries of mcudeploy itself."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from mcudeploy.boards.board import Board
from mcudeploy.codegen.folder import write_folder
from mcudeploy.codegen.library import library_files
from mcudeploy.codegen.render import LibraryModel
from mcudeploy.commands.commands import plan_model
from mcudeploy.common.errors import DeployError
from mcudeploy.ir.graph import GraphIO, Tensor
from mcudeploy.ops.host_io import from_device, to_device
from mcudeploy.planner.plan_options import Options
from peers.generated import Array, Buffer, Expected, Generated, NetworkRefusedError
from peers.networks import Network

PREFIX = "model"
_ACCESSOR = re.compile(rf"^(const )?\w+ \*({PREFIX}_\w+)\(void\);", re.M)


def generate(network: Network, board: Board, folder: Path, options: Options) -> Generated:
    """Plan and write the library of a network. Raises NetworkRefusedError."""
    try:
        deployment = plan_model(network.path, board, replace(options, name=PREFIX))
        member = LibraryModel(deployment.program, deployment.plan, deployment.source)
        write_folder(folder, library_files([member], PREFIX), read=[network.path])
    except DeployError as error:
        raise NetworkRefusedError(str(error).replace(str(network.path), network.path.name)) from error
    graph = deployment.plan.graph
    if graph.states:
        raise NetworkRefusedError("networks with states are not measured: one run says little about them")
    inputs, outputs = accessors((folder / "include" / f"{PREFIX}.h").read_text("utf-8"))
    ios = graph.own_inputs(), graph.own_outputs()
    expected = network.outputs([it.name for it in ios[1]])
    return Generated(
        sorted((folder / "src").glob("*.c")),
        [folder / "include", folder / "src"],
        f'#include "{PREFIX}.h"',
        f"{PREFIX}_run()",
        [_buffer(name, graph.tensors[it.tensor]) for name, it in zip(inputs, ios[0], strict=True)],
        [_buffer(name, graph.tensors[it.tensor]) for name, it in zip(outputs, ios[1], strict=True)],
        [to_device(it, graph.tensors[it.tensor], network.inputs[it.name]).tobytes() for it in ios[0]],
        [
            Expected(values, decoder(it, graph.tensors[it.tensor]))
            for it, values in zip(ios[1], expected, strict=True)
        ],
        levels=("-O2",),
        options=("-ffp-contract=off",),
    )


def accessors(header: str) -> tuple[list[str], list[str]]:
    """Return the functions of a library's header that return its inputs, and those of its outputs."""
    names: tuple[list[str], list[str]] = ([], [])
    for constant, name in _ACCESSOR.findall(header):
        names[bool(constant)].append(name)
    return names


def _buffer(name: str, tensor: Tensor) -> Buffer:
    return Buffer(f"{name}()", tensor.elements * tensor.dtype.size_bytes)


def decoder(io: GraphIO, tensor: Tensor) -> Callable[[bytes], Array]:
    """Return the function that reads an output of the ONNX model from the bytes of its tensor."""
    kind = np.dtype(tensor.dtype.value)
    return lambda sent: from_device(io, tensor, np.frombuffer(sent, kind))
