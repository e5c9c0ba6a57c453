"""Heads: classifiers on a model's output that learn from examples, and their check on this computer."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mcudeploy.boards.board import load_board
from mcudeploy.codegen.program import Program
from mcudeploy.codegen.render import render_head_check
from mcudeploy.codegen.texts import HeadText
from mcudeploy.common.errors import BuildError, FitError, OutputsDifferError, UsageError
from mcudeploy.common.progress import SILENT, Progress
from mcudeploy.device.transport import Transport, open_transport
from mcudeploy.execution.deployment import Deployment
from mcudeploy.ir.graph import DType
from mcudeploy.ir.operator_facts import HASH_BYTES, facts_hash, operator_facts
from mcudeploy.ir.parameter_table import TABLE_GRAIN_BYTES
from mcudeploy.toolchain import build_firmware
from mcudeploy.verify.samples import drawn_samples

_LEAST_COLUMNS, _MOST_FEATURES = 7, 4096
_SUM_BYTES = 2
_CHECKED_EXAMPLES, _CHECKED_QUERIES = 24, 8
_ANSWER_BYTES = 4

Features = NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class Prototypes:
    """The reference of mcud_prototypes.c: the examples of each class."""

    classes: tuple[tuple[Features, ...], ...]

    def enrol(self, features: Features, label: int) -> Prototypes:
        """Return the prototypes with one more example of a class."""
        classes = list(self.classes)
        classes[label] = (*classes[label], features)
        return replace(self, classes=tuple(classes))

    def classify(self, features: Features) -> int:
        """Return the first label whose mean is nearest; the number of classes if all are empty."""
        distances = [
            (_distance(features, examples), label) for label, examples in enumerate(self.classes) if examples
        ]
        return min(distances)[1] if distances else len(self.classes)


def _distance(features: Features, examples: Sequence[Features]) -> Fraction:
    total = np.sum(np.stack(examples), axis=0, dtype=np.int64)
    count = len(examples)
    apart = count * features.astype(np.int64) - total
    return Fraction(sum(int(each) ** 2 for each in apart), count**2)


def head_bytes(classes: int, features: int) -> int:
    """Return the RAM of prototypes: the sums of each class, as a blob has them."""
    size = classes * max(features, _LEAST_COLUMNS) * _SUM_BYTES
    return -(-size // TABLE_GRAIN_BYTES) * TABLE_GRAIN_BYTES


def with_head(made: Deployment, program: Program, classes: int) -> Program:
    """Return a program with prototypes on its output.

    Raises UsageError for a program that has another interface than one input and int8 features, and FitError
    if the board's first memory has no room for the head beside the arena.
    """
    graph = made.plan.graph
    inputs, outputs = graph.own_inputs(), graph.own_outputs()
    if program.streamed or program.continues or len(inputs) != 1 or len(outputs) != 1:
        raise UsageError(
            "a head is for a model with one input, one output and no states: leave out --stream-input, "
            "--stateful and --hop"
        )
    tensor = graph.tensors[outputs[0].tensor]
    if tensor.dtype is not DType.INT8 or tensor.elements > _MOST_FEATURES:
        raise UsageError(
            f"a head takes up to {_MOST_FEATURES} int8 features, and {outputs[0].name} has {tensor.elements} "
            f"of {tensor.dtype.value}: quantise the model, or name other --features"
        )
    size = head_bytes(classes, tensor.elements)
    first = made.board.memories[0]
    used = made.plan.layout.arenas.get(first.name, 0) + made.plan.parameters.ram_bytes
    free = made.board.free_bytes(first)
    if used + size > free:
        raise FitError(
            f"the head needs {size:,} bytes, arena and parameters {used:,}; {first.name} of "
            f"{made.board.name} has room for {free:,}: {used + size - free:,} too many. Take fewer classes "
            "or features."
        )
    columns = max(tensor.elements, _LEAST_COLUMNS)
    facts = facts_hash(operator_facts(graph, made.model.calls, made.model.replaceable))
    digest = hashlib.sha256(facts + f"prototypes-7 {classes} {tensor.elements}".encode()).digest()
    return replace(
        program,
        head=HeadText(
            classes=classes,
            features=tensor.elements,
            columns=columns,
            size_bytes=size,
            gap_bytes=size - classes * columns * _SUM_BYTES,
            hash=", ".join(f"0x{byte:02x}" for byte in digest[:HASH_BYTES]),
        ),
    )


def require_head(made: Deployment, program: Program, seed: int, progress: Progress = SILENT) -> None:
    """Run the head on this computer on drawn inputs, with sanitizers, and compare it with `Prototypes`.

    Raises OutputsDifferError if a label differs, BuildError without a C compiler.
    """
    progress.stage("checking the head against the reference")
    files = render_head_check(program, made.plan, made.source)
    host = load_board("host")
    firmware = build_firmware(host, files, program.sources, emulate=False, sanitize=True, measurer=False)
    with closing(open_transport(f"process:{firmware.elf}")) as line:
        fault = head_fault(made, program, line, seed)
    if fault:
        raise OutputsDifferError(f"the head is not verified, nothing is written: {fault}")


def head_fault(made: Deployment, program: Program, line: Transport, seed: int) -> str:
    """Return how a running head differs from the reference; empty if it does not."""
    head, graph = program.head, made.plan.graph
    assert head is not None
    (border,) = graph.own_inputs()
    samples = drawn_samples(graph, seed, _CHECKED_EXAMPLES + _CHECKED_QUERIES)
    labels = np.random.default_rng(seed).integers(0, head.classes, _CHECKED_EXAMPLES)
    reference = Prototypes(((),) * head.classes)
    for number, sample in enumerate(samples):
        enrols = number < _CHECKED_EXAMPLES
        label = int(labels[number]) if enrols else head.classes + 1
        line.write(label.to_bytes(2, "little") + sample.stored[border.tensor].tobytes())
        answer = _read(line, head.features + _ANSWER_BYTES, made.patience_s)
        features = np.frombuffer(answer, np.int8, head.features)
        returned = int.from_bytes(answer[head.features :], "little")
        wanted = 0 if enrols else reference.classify(features)
        if returned != wanted:
            return f"run {number} returns {returned}, the reference {wanted}"
        if enrols:
            reference = reference.enrol(features, label)
    return ""


def _read(line: Transport, count: int, patience_s: float) -> bytes:
    """Return the next bytes. Raises BuildError if the program is silent."""
    data, until = b"", time.monotonic() + patience_s
    while len(data) < count:
        if time.monotonic() > until:
            raise BuildError(f"the program with the head sent {len(data)} of {count} bytes")
        data += line.read(0.5)
    return data
