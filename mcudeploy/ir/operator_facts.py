"""Facts of operators that must be equal in two models, so that one can take the parameters of the other."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np

from mcudeploy.ir.graph import Graph, Operator
from mcudeploy.ir.opdef import ArrayPointer, CallTable, ConstantArray, KernelCall, ParamValue, Symbol

HASH_BYTES = 8


@dataclass(frozen=True, slots=True)
class OperatorFacts:
    """Facts of an operator; models with equal facts of all operators can exchange parameter tables.

    `kernel`: the variant. `arrays`: by name, the type and size of a replaceable array, or the digest of
    another one. `scalars`: the other parameters of the kernel. `tensors`: inputs and output.
    """

    kernel: str
    scalars: Mapping[str, str] = field(default_factory=dict)
    arrays: Mapping[str, str] = field(default_factory=dict)
    tensors: tuple[str, ...] = ()


def operator_facts(
    graph: Graph, calls: Mapping[str, KernelCall], replaceable: Collection[str]
) -> dict[str, OperatorFacts]:
    """Return the facts of every operator of a model, by name and in order."""
    return {
        it.name: _facts_of(graph, it, calls.get(it.name), it.name in replaceable) for it in graph.operators
    }


def _facts_of(graph: Graph, operator: Operator, call: KernelCall | None, replaceable: bool) -> OperatorFacts:
    tensors = tuple(_tensor_text(graph, name) for name in (*operator.inputs, operator.output))
    if call is None:
        return OperatorFacts("", tensors=tensors)
    arrays = {name: value for name, value in call.params.items() if isinstance(value, np.ndarray)}
    return OperatorFacts(
        call.variant,
        {name: _scalar_text(value) for name, value in call.params.items() if name not in arrays},
        {
            name: f"{array.dtype.name}[{array.size}]" if replaceable else _digest(array)
            for name, array in arrays.items()
        },
        tensors,
    )


def _scalar_text(value: ParamValue) -> str:
    match value:
        case Symbol():
            return value.name
        case ArrayPointer():
            return f"{_digest(value.array)} + {value.first}"
        case CallTable():
            return " ".join(_call_text(call) for call in value.calls)
        case None:
            return "none"
        case float():
            return float(value).hex()
        case _:
            return str(value)


def _call_text(call: KernelCall) -> str:
    params = (
        f"{name}={_digest(value) if isinstance(value, np.ndarray) else _scalar_text(value)}"
        for name, value in call.params.items()
    )
    return f"{call.variant}({', '.join(params)})"


def _tensor_text(graph: Graph, name: str) -> str:
    tensor = graph.tensors[name]
    text = f"{name} {tensor.dtype.value}{list(tensor.shape)}"
    if tensor.quantization is None:
        return text
    return f"{text} {tensor.quantization.scale:.9g} {tensor.quantization.zero_point}"


def _digest(array: ConstantArray) -> str:
    return hashlib.sha256(f"{array.dtype.name} ".encode() + array.tobytes()).hexdigest()[:16]


def facts_hash(facts: Mapping[str, OperatorFacts]) -> bytes:
    """Return the hash of the facts of all operators, which a blob of parameters states."""
    digest = hashlib.sha256()
    for name, it in facts.items():
        fields = (name, it.kernel, sorted(it.scalars.items()), sorted(it.arrays.items()), it.tensors)
        digest.update(repr(fields).encode())
    return digest.digest()[:HASH_BYTES]
