"""Heads: classifiers on a model's output that learn from examples, and their check on this computer."""

from __future__ import annotations

import hashlib
import logging
import time
from contextlib import closing
from dataclasses import dataclass, replace

import numpy as np

from mcudeploy.boards.catalogue import load_board
from mcudeploy.codegen.program import Program
from mcudeploy.codegen.render import render_head_check
from mcudeploy.codegen.texts import FeatureStatistics, HeadText
from mcudeploy.common.errors import BuildError, DeployError, FitError, OutputsDifferError, UsageError
from mcudeploy.common.progress import SILENT, Progress
from mcudeploy.device.target import Target
from mcudeploy.device.transport import Transport, open_transport
from mcudeploy.execution.deployment import Deployment
from mcudeploy.execution.parts import BuildRequest, LibraryPart
from mcudeploy.execution.results import BuiltModel
from mcudeploy.extensions.heads.head_kinds import (
    EXAMPLES_PER_CLASS,
    HEADS,
    MOST_EXAMPLES,
    MOST_FEATURES,
    Features,
    HeadKind,
    HeadReference,
    HeadSize,
    Scores,
    table_bytes,
)
from mcudeploy.extensions.heads.head_statistics import SeenInputs
from mcudeploy.ir.graph import DType, Graph
from mcudeploy.ir.operator_facts import HASH_BYTES, facts_hash, operator_facts
from mcudeploy.toolchain import build_firmware
from mcudeploy.toolchain.stack import library_bytes
from mcudeploy.verify.samples import drawn_samples

_LOG = logging.getLogger(__name__)
_CHECKED_RUNS, _ROUND, _ROUND_EXAMPLES = 32, 16, 12
"""Runs of the check, in rounds that first enrol, then classify."""
_WORD_BYTES = 4
_ONE_TO_ONE = (
    "a head is for a model with one input, one output and no states: leave out --stream-input, --stateful "
    "and --hop"
)


@dataclass(frozen=True, slots=True)
class HeadPart(LibraryPart):
    """The head of a library by the name of its kind.

    `examples`: the number that it stores in total; None for 5 per class. `statistics`: those of training, to
    which it maps the features of the device; None if it does not map them.
    """

    name: str
    classes: int
    examples: int | None = None
    statistics: FeatureStatistics | None = None

    def __post_init__(self) -> None:
        if self.examples is not None and not self.kind.stores:
            raise UsageError(f"--head {self.name} stores no examples: leave out --examples")
        if self.kind.stores and self.capacity > MOST_EXAMPLES:
            raise UsageError(
                f"--head {self.name} stores at most {MOST_EXAMPLES} examples, not {self.capacity}"
            )

    @property
    def kind(self) -> HeadKind:
        """The kind of head with this name."""
        return HEADS[self.name]

    @property
    def capacity(self) -> int:
        """The examples that it stores; 0 if its kind stores none."""
        if not self.kind.stores:
            return 0
        return self.classes * EXAMPLES_PER_CLASS if self.examples is None else self.examples

    def completed(self, built: BuiltModel, request: BuildRequest, progress: Progress) -> BuiltModel:
        """Return a model with the head, verified if the library is verified.

        Raises what `with_head` and `require_head` raise.
        """
        deployment, unknown = built.deployment, built.stack_unknown
        program = with_head_stack(deployment, with_head(deployment, built.program, self))
        if request.verify:
            require_head(deployment, program, request.options.seed, progress)
        if program.stack_bytes is None and unknown is None:
            unknown = "a function that the head calls has no bound"
        return replace(built, program=program, stack_unknown=unknown)


def require_features(graph: Graph) -> int:
    """Return the number of int8 features that a model computes.

    Raises UsageError for a model with another interface than one input and int8 features.
    """
    inputs, outputs = graph.own_inputs(), graph.own_outputs()
    if len(inputs) != 1 or len(outputs) != 1:
        raise UsageError(_ONE_TO_ONE)
    tensor = graph.tensors[outputs[0].tensor]
    if tensor.dtype is not DType.INT8 or tensor.elements > MOST_FEATURES:
        raise UsageError(
            f"a head takes up to {MOST_FEATURES} int8 features, and {outputs[0].name} has {tensor.elements} "
            f"of {tensor.dtype.value}: quantise the model, or name other --features"
        )
    return tensor.elements


def with_head(deployment: Deployment, program: Program, part: HeadPart) -> Program:
    """Return a program with a head on its output.

    Raises UsageError for a program that has another interface than one input and int8 features, and FitError
    if the board's first memory has no room for the head beside the arena.
    """
    if program.streamed or program.continues:
        raise UsageError(_ONE_TO_ONE)
    head = _head_text(deployment, program, part, require_features(deployment.plan.graph))
    _require_room(deployment, head)
    return replace(program, head=head)


def _head_text(deployment: Deployment, program: Program, part: HeadPart, features: int) -> HeadText:
    size, kind = HeadSize(part.classes, features, part.capacity), part.kind
    members, numbers, statistics = kind.members(size), kind.numbers(size), part.statistics
    stored = [*(statistics.members if statistics else ()), *members]
    table, scratch = table_bytes(stored), kind.scratch_count(size)
    arena = max(program.arenas, key=lambda it: it.size_bytes)
    in_arena = 0 < scratch * _WORD_BYTES <= arena.size_bytes
    facts = facts_hash(
        operator_facts(deployment.plan.graph, deployment.model.calls, deployment.model.replaceable)
    )
    layout = ", ".join(f"{it.type} {it.name}[{it.count}]" for it in stored)
    moved = f"; {statistics}" if statistics else ""
    digest = hashlib.sha256(facts + f"{part.name}: {layout}{moved}".encode()).digest()
    return HeadText(
        kind=part.name,
        classes=part.classes,
        features=features,
        members=members,
        numbers=numbers,
        size_bytes=table,
        gap_bytes=table - sum(it.size_bytes for it in stored),
        scratch_count=scratch,
        scratch_base=program.bases[arena.memory] if in_arena else "",
        hash=", ".join(f"0x{byte:02x}" for byte in digest[:HASH_BYTES]),
        statistics=statistics,
    )


def head_bytes(head: HeadText) -> int:
    """Return the RAM of a head beside the arena: its table, moved features, and scratch without room in an
    arena.
    """
    moved = head.features if head.statistics else 0
    return head.size_bytes + moved + (0 if head.scratch_base else head.scratch_count * _WORD_BYTES)


def _require_room(deployment: Deployment, head: HeadText) -> None:
    size, first = head_bytes(head), deployment.board.memories[0]
    used = deployment.plan.layout.arenas.get(first.name, 0) + deployment.plan.parameters.ram_bytes
    free = deployment.board.free_bytes(first)
    if used + size > free:
        raise FitError(
            f"the head needs {size:,} bytes, arena and parameters {used:,}; {first.name} of "
            f"{deployment.board.name} has room for {free:,}: {used + size - free:,} too many. "
            "Take fewer classes, features or examples."
        )


def require_head(deployment: Deployment, program: Program, seed: int, progress: Progress = SILENT) -> None:
    """Run the head on this computer on drawn inputs, with sanitizers, and compare it with its reference.

    Raises OutputsDifferError if a label or a score differs, BuildError without a C compiler.
    """
    progress.stage("checking the head against the reference")
    files = render_head_check(program, deployment.plan, deployment.source)
    host = load_board("host")
    firmware = build_firmware(host, files, program.sources, emulate=False, sanitize=True, measurer=False)
    with closing(open_transport(f"process:{firmware.elf}")) as line:
        fault = head_fault(deployment, program, line, seed)
    if fault:
        raise OutputsDifferError(f"the head is not verified, nothing is written: {fault}")


def with_head_stack(deployment: Deployment, program: Program) -> Program:
    """Return a program whose stack bound includes the functions of its head.

    If their bound is unknown, the program has no stack bound, after a warning with the cause.
    """
    if program.stack_bytes is None:
        return program
    files = render_head_check(program, deployment.plan, deployment.source)
    emulated = Target(deployment.board).emulated
    try:
        firmware = build_firmware(deployment.board, files, program.sources, emulate=emulated, measurer=False)
    except DeployError as error:
        _LOG.warning("warning: no bound for the stack of the head: %s", error)
        return replace(program, stack_bytes=None)
    return replace(program, stack_bytes=library_bytes(firmware))


@dataclass(frozen=True, slots=True)
class HeadAnswer:
    """The answer of a running head to a call: features, scores, the call's ticks and result.

    `output`: the features before the head moved them.
    """

    output: Features
    features: Features
    scores: Scores
    ticks: int
    result: int


def call_head(
    line: Transport, head: HeadText, label: int | None, stored: bytes, limit_s: float
) -> HeadAnswer:
    """Enrol an input as an example of a label; without a label, classify it.

    Raises BuildError if the program does not answer within the limit.
    """
    return _call(line, head, (head.classes + 1 if label is None else label, stored), limit_s)


def observe_input(line: Transport, head: HeadText, stored: bytes, limit_s: float) -> Features:
    """Add an input to the statistics of a running head, and return its features.

    Raises BuildError if the program does not answer within the limit.
    """
    return _call(line, head, (head.classes + 2, stored), limit_s).output


def _call(line: Transport, head: HeadText, call: tuple[int, bytes], limit_s: float) -> HeadAnswer:
    """Send the number of a call and an input, and read the answer."""
    code, stored = call
    line.write(code.to_bytes(2, "little") + stored)
    count = head.features * (2 if head.statistics else 1)
    answer = _read(line, count + _WORD_BYTES * (2 + head.classes), limit_s)
    features = np.frombuffer(answer, np.int8, count)
    scores = np.frombuffer(answer, "<f4", head.classes, count).astype(np.float64)
    ticks, result = np.frombuffer(answer, "<u4", 2, count + _WORD_BYTES * head.classes).tolist()
    return HeadAnswer(features[: head.features], features[-head.features :], scores, ticks, result)


def head_fault(deployment: Deployment, program: Program, line: Transport, seed: int) -> str:
    """Return how a running head differs from the reference; empty if it does not."""
    head, graph = program.head, deployment.plan.graph
    assert head is not None
    (io,) = graph.own_inputs()
    labels = np.random.default_rng(seed).integers(0, head.classes, _CHECKED_RUNS)
    size = HeadSize(head.classes, head.features, head.numbers.get("capacity", 0))
    reference = HEADS[head.kind].reference(size)
    seen = SeenInputs(head.statistics) if head.statistics else None
    for number, sample in enumerate(drawn_samples(graph, seed, _CHECKED_RUNS)):
        label = int(labels[number]) if number % _ROUND < _ROUND_EXAMPLES else None
        stored = sample.stored[io.tensor].tobytes()
        if seen is not None:
            seen = seen.observe(observe_input(line, head, stored, deployment.patience_s))
        answer = call_head(line, head, label, stored, deployment.patience_s)
        if seen is not None and (fault := seen.fault(answer.output, answer.features)):
            return f"run {number} {fault}"
        if label is None:
            fault = _query_fault(reference, answer)
        else:
            fault, reference = _enrol(reference, answer, label)
        if fault:
            return f"run {number} {fault}"
    return ""


def _enrol(reference: HeadReference, answer: HeadAnswer, label: int) -> tuple[str, HeadReference]:
    """Return how the result of an example differs, and the reference with the example if it has room."""
    wanted = 0 if reference.has_room(label) else 2  # MCUD_ENROLLED, MCUD_ENROL_FULL
    fault = "" if answer.result == wanted else f"returns {answer.result} for an example, not {wanted}"
    return fault, reference.enrol(answer.features, label) if wanted == 0 else reference


def _query_fault(reference: HeadReference, answer: HeadAnswer) -> str:
    if not reference.is_label(answer.features, answer.result):
        return f"returns the label {answer.result}, which is not the reference's"
    wanted = reference.scores(answer.features)
    finite = np.isfinite(wanted)
    allowed = reference.tolerance * np.maximum(1, np.abs(wanted[finite]))
    same = np.array_equal(finite, np.isfinite(answer.scores))
    if same and np.all(np.abs(answer.scores[finite] - wanted[finite]) <= allowed):
        return ""
    return f"has scores {answer.scores.round(5).tolist()}, the reference {wanted.round(5).tolist()}"


def _read(line: Transport, count: int, limit_s: float) -> bytes:
    """Return the next bytes. Raises BuildError if the program is silent."""
    data, until = b"", time.monotonic() + limit_s
    while len(data) < count:
        if time.monotonic() > until:
            raise BuildError(f"the program with the head sent {len(data)} of {count} bytes")
        data += line.read(0.5)
    return data
