"""emx-onnx-cgen: C of an ONNX model. It computes quantised models in float."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import onnx

from peers.environment import output_of_tool
from peers.generated import Array, Generated, raw, static_buffers
from peers.networks import Network

OPTIONS = (
    *("--emit-data-file", "--large-weight-threshold", "0"),
    *("--large-temp-threshold", "0", "--restrict-arrays"),
)
"""Constants in C arrays; all temporaries on the stack, not on a heap; pointers declared to be distinct."""


def generate(network: Network, folder: Path) -> Generated:
    """Generate the C of a network. Raises NetworkRefusedError."""
    file, source = folder / "network.onnx", folder / "emx.c"
    onnx.save(network.model, file)
    output_of_tool("emx-onnx-cgen", "compile", file, source, "--model-name", "emx", *OPTIONS)
    arrays = list(network.inputs.values())
    outputs = network.outputs(network.output_names)
    return Generated(
        sorted(folder.glob("emx*.c")),
        [],
        *_call(arrays, outputs),
        [array.tobytes() for array in arrays],
        [raw(values) for values in outputs],
        remark="computes in float" if network.is_int8 else "",
    )


def _call(inputs: Sequence[Array], outputs: Sequence[Array]) -> tuple[str, str, list, list]:
    """Return declarations, the call, and the buffers of inputs and outputs."""
    ins, read = static_buffers("input", inputs)
    outs, written = static_buffers("output", outputs)
    arguments = ", ".join(it.address for it in (*read, *written))
    # without a prototype: the tool writes none, and its types are those of arrays
    return f"{ins}{outs}void emx();\n", f"emx({arguments})", read, written
