"""The constants of a program in flash: from an array in C back to the operators that read it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mcudeploy.codegen.operators import ConstantPool
from mcudeploy.execution.deployment import Deployment
from mcudeploy.ir.opdef import ArrayPointer, CallTable, ConstantArray, KernelCall
from mcudeploy.toolchain.disassembly import read_symbols


@dataclass(frozen=True, slots=True)
class TracedConstant:
    """An array in flash, and the parameters of operators that read it.

    `address`: that in the firmware, None without firmware.
    """

    symbol: str
    size_bytes: int
    sha256: str
    readers: tuple[str, ...]
    address: int | None


def traced_constants(deployment: Deployment, elf: Path | None) -> list[TracedConstant]:
    """Return all arrays of weights.c in their order there."""
    pool = ConstantPool(deployment.prefix)
    addresses = {} if elf is None else {symbol.name: symbol.value for symbol in read_symbols(elf)}
    readers: dict[str, list[str]] = {}
    content: dict[str, bytes] = {}
    for operator in deployment.plan.graph.operators:
        call = deployment.model.calls.get(operator.name)
        for owner, name, array in () if call is None else _arrays(operator.name, call):
            symbol, reader = pool.name_of(owner, name, array), f"{operator.name}.{name}"
            if reader not in readers.setdefault(symbol, []):
                readers[symbol].append(reader)
            content[symbol] = array.tobytes()
    stated = {it.name for it in deployment.program.constants}
    if stated != set(content):
        raise ValueError(f"constants without an operator: {', '.join(sorted(stated ^ set(content)))}")
    return [
        TracedConstant(
            symbol,
            len(data),
            hashlib.sha256(data).hexdigest(),
            tuple(readers[symbol]),
            addresses.get(symbol),
        )
        for symbol, data in content.items()
    ]


def _arrays(owner: str, call: KernelCall) -> Iterator[tuple[str, str, ConstantArray]]:
    """Yield the arrays of a call, then those of the calls that it makes, as the program names them."""
    for name, value in call.params.items():
        array = value.array if isinstance(value, ArrayPointer) else value
        if isinstance(array, np.ndarray):
            yield owner, name, array
    for value in call.params.values():
        for number, stage in enumerate(value.calls) if isinstance(value, CallTable) else ():
            yield from _arrays(f"{owner}_{number}", stage)
