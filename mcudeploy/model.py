"""A model file that can be deployed: its graph, in some form, and the kernels that compute it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from mcudeploy.analyzer.functions import Assignment, partition, require_types
from mcudeploy.board import Board
from mcudeploy.errors import ModelError, Problem
from mcudeploy.frontend import load
from mcudeploy.graph import Graph
from mcudeploy.ops.opdef import KernelCall
from mcudeploy.optimizer.apply import in_form
from mcudeploy.optimizer.transfers import with_transfers
from mcudeploy.plan import Form, Function
from mcudeploy.simulator.live import WorkBytes, work_bytes


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A model file that can be deployed: its graph in some form, and the kernel call of every operator."""

    path: Path
    sha256: str
    graph: Graph
    form: Form
    calls: Mapping[str, KernelCall]
    vectors: bool = False
    """Whether the calls are for a core with vectors."""
    assignment: Assignment = field(default_factory=Assignment)
    """Which operators run elsewhere than on the board's first unit."""
    functions: tuple[Function, ...] = ()
    """What each compute unit runs in one go; none where one unit runs everything."""

    @property
    def work(self) -> WorkBytes:
        """Scratch and state of every operator, in bytes."""
        return work_bytes(self.calls)

    @property
    def macs(self) -> int:
        """Multiply-accumulates of one inference."""
        return sum(self.graph.loops(operator).macs() for operator in self.graph.operators)

    def in_form(self, form: Form) -> Model:
        """The same model, rewritten."""
        graph = in_form(self.graph, self.form, form)
        return replace(
            self,
            graph=graph,
            form=form,
            calls=kernel_calls(graph, self.vectors),
            functions=partition(graph, self.assignment),
        )

    def on_units(self, board: Board, assignment: Assignment) -> Model:
        """The model, in its first form, for these units, with the steps that stand between them.

        Raises UsageError where a unit does not take an operator's types, FitError where a tensor cannot get
        from one unit to another.
        """
        require_types(self.graph, board, assignment)
        if not assignment.elsewhere:
            return self
        graph, assignment = with_transfers(self.graph, board, assignment)
        return replace(
            self,
            graph=graph,
            calls=kernel_calls(graph, self.vectors),
            assignment=assignment,
            functions=partition(graph, assignment),
        )


def load_model(path: Path, float_io: bool = False, *, vectors: bool = False) -> Model:
    """Read a model and choose its kernels, `vectors`: for a core with them.

    Raises ModelError with all problems at once.
    """
    graph = load(path, float_io=float_io)
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    calls = kernel_calls(graph, vectors)
    if not calls:
        raise ModelError(f"{path.name} computes nothing: its outputs are rearranged inputs or constants")
    return Model(path, sha256, graph, Form(), calls, vectors)


def kernel_calls(graph: Graph, vectors: bool = False) -> dict[str, KernelCall]:
    """The kernel call of every operator that has one. Raises ModelError with all problems at once."""
    calls: dict[str, KernelCall] = {}
    problems: list[Problem] = []
    for operator in graph.operators:
        if operator.op.is_view:
            continue
        try:
            inputs, output = graph.input_tensors(operator), graph.tensors[operator.output]
            calls[operator.name] = operator.op.kernel(operator, inputs, output).on(vectors=vectors)
        except ValueError as error:
            node = operator.onnx_nodes[0] if operator.onnx_nodes else operator.name
            problems.append(Problem(node, operator.op.kind, str(error)))
    if problems:
        raise ModelError.unsupported(tuple(problems))
    return calls
