"""C that a tool generated for one network, and how a program calls it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class NetworkRefusedError(Exception):
    """A tool does not take a network, or its program does not run; the text is the tool's message."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """Memory of an input or output in the program: a C expression of its address, and its bytes."""

    address: str
    count: int


@dataclass(frozen=True, slots=True, eq=False)
class Expected:
    """An output as ONNX Runtime computes it, and the function that reads it from the program's bytes."""

    values: Array
    decode: Callable[[bytes], Array]


@dataclass(frozen=True, slots=True, eq=False)
class Generated:
    """Sources of a network, and what the program calls.

    `declarations`: C before the functions of network.h; `call`: the statement that runs the network.
    `sent`: the bytes of each input. `levels`: the compiler's levels to try; the fastest program counts.
    `options`: others of the compiler. `libraries`: archives that the program links.
    `spare_bytes`: those of static arrays that the network does not use.
    `remark`: a restriction that the table states.
    """

    sources: Sequence[Path]
    includes: Sequence[Path]
    declarations: str
    call: str
    inputs: Sequence[Buffer]
    outputs: Sequence[Buffer]
    sent: Sequence[bytes]
    expected: Sequence[Expected]
    levels: Sequence[str] = ("-O2", "-O3")
    defines: Sequence[str] = ()
    options: Sequence[str] = ()
    libraries: Sequence[Path] = ()
    spare_bytes: int = 0
    remark: str = ""


def raw(values: Array) -> Expected:
    """Return an output whose bytes are those of the ONNX tensor."""
    return Expected(values, lambda sent: np.frombuffer(sent, values.dtype).reshape(values.shape))


def static_buffers(kind: str, arrays: Sequence[Array]) -> tuple[str, list[Buffer]]:
    """Return C that defines an array for each tensor of the ONNX model, and the buffers."""
    names = [f"{kind}_{number}" for number in range(len(arrays))]
    text = "".join(
        f"static uint8_t {name}[{array.nbytes}] __attribute__((aligned(16)));\n"
        for name, array in zip(names, arrays, strict=True)
    )
    return text, [Buffer(name, array.nbytes) for name, array in zip(names, arrays, strict=True)]


def adapter(generated: Generated) -> str:
    """Return the functions of network.h for these sources."""

    def buffers(name: str, listed: Sequence[Buffer]) -> str:
        cases = "".join(
            f"    case {number}:\n"
            f"        return (network_buffer){{(uint8_t *)(uintptr_t){it.address}, {it.count}u}};\n"
            for number, it in enumerate(listed)
        )
        return (
            f"const uint32_t network_{name}s = {len(listed)}u;\n"
            f"network_buffer network_{name}(uint32_t index)\n{{\n    switch (index) {{\n{cases}"
            "    default:\n        return (network_buffer){0, 0u};\n    }\n}\n"
        )

    return (
        f'#include "network.h"\n{generated.declarations}\n'
        + buffers("input", generated.inputs)
        + buffers("output", generated.outputs)
        + f"void network_run(void)\n{{\n    {generated.call};\n}}\n"
    )


NOTHING = Generated((), (), "", "(void)0", (), (), (), ())
"""A network without operators: its program has the harness alone."""
