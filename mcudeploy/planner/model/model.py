"""A deployable model file: its graph, in some form, and the kernels that compute it."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from mcudeploy.boards.board import Board
from mcudeploy.common.errors import ModelError, Problem, UsageError
from mcudeploy.extension import added
from mcudeploy.frontend.load import load
from mcudeploy.frontend.onnx.input_choices import AS_IN_FILE, InputChoices
from mcudeploy.ir.graph import Graph, KeptRows, Operator, Tensor
from mcudeploy.ir.isa import Isa
from mcudeploy.ir.opdef import KernelCall
from mcudeploy.ir.parameter_table import ParameterTable, guiding_arrays, table_bytes
from mcudeploy.ir.plan import Function, Rewrites
from mcudeploy.ops.requantize import Rounding
from mcudeploy.planner.cores.functions import Assignment, partition, require_types
from mcudeploy.planner.cores.routes import with_transfers
from mcudeploy.planner.hop.moving_window import MovingWindow
from mcudeploy.planner.model.forms import in_form
from mcudeploy.planner.plan_options import Options
from mcudeploy.tiling.live import WorkBytes, scratch_bytes, work_bytes


@dataclass(frozen=True, slots=True)
class ConstantPrices:
    """The bytes of constants by operator and variant, and the ticks that are as dear as a byte of them."""

    sizes: Mapping[tuple[str, str], float] = field(default_factory=dict)
    byte_ticks: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A deployable model file: its graph in some form, and the kernel calls of every operator.

    `variants` contains, for each operator, all calls that the core can run, `calls` the chosen one.
    """

    path: Path
    sha256: str  # of the file, or of it and `choices`
    graph: Graph
    form: Rewrites
    variants: Mapping[str, tuple[KernelCall, ...]]
    calls: Mapping[str, KernelCall]
    isa: Isa = Isa.ANY
    """The instructions of the core that the calls are for."""
    assignment: Assignment = field(default_factory=Assignment)
    """The operators that run on another unit than the board's first."""
    functions: tuple[Function, ...] = ()
    """The functions of the compute units; none if one unit runs everything."""
    cores: int = 1
    """The number of cores that run the model together, each with its own scratch."""
    choices: InputChoices = AS_IN_FILE
    """The user's choices for the inputs."""
    constant_prices: ConstantPrices = field(default_factory=ConstantPrices)
    """The flash that variants take, if they have been compared."""
    window: MovingWindow | None = None
    """The window that the graph computes from new rows; None if a run takes whole inputs."""
    replaceable: tuple[str, ...] = ()
    """The operators whose constants the application may replace, in the order of the graph."""
    whole_inputs: tuple[str, ...] = ()
    """The names of inputs that are not streamed."""
    parameters_in_flash: bool = False
    """Whether kernels read replaced constants where they lie in flash, instead of RAM."""

    @property
    def work(self) -> WorkBytes:
        """Scratch and state of every operator, in bytes."""
        return work_bytes(self.calls, self.cores)

    @property
    def parameters(self) -> ParameterTable:
        """The constants of the replaceable operators, as the chosen kernels read them."""
        return ParameterTable.of(self.calls, self.replaceable, in_flash=self.parameters_in_flash)

    @property
    def in_ram(self) -> tuple[str, ...]:
        """The operators whose constants are in RAM."""
        return () if self.parameters_in_flash else self.replaceable

    def with_replaceable(self, names: Collection[str], *, in_flash: bool = False) -> Model:
        """Return the model, in its first form, with these operators replaceable.

        The name of an ONNX node stands for all operators that it became. Raises UsageError for an operator
        that the model does not have, or whose constants cannot be replaced.
        """
        operators = [operator.name for operator in self.graph.operators]
        meant: dict[str, list[str]] = {}
        for operator in self.graph.operators:
            for node in operator.onnx_nodes:
                meant.setdefault(node, []).append(operator.name)
        meant |= {name: [name] for name in operators}
        names = [it for name in names for it in meant.get(name, [name])]
        unknown = next((name for name in names if name not in operators), None)
        if unknown is not None:
            raise UsageError(
                f"--replaceable {unknown}: {self.path.name} has no such operator; "
                f"it has {', '.join(operators)}"
            )
        bare = next((name for name in names if not any(map(table_bytes, self.variants.get(name, ())))), None)
        if bare is not None:
            raise UsageError(f"--replaceable {bare}: {bare} has no constants that could be replaced")
        chosen = tuple(name for name in operators if name in names)
        model = replace(self, replaceable=chosen, parameters_in_flash=in_flash)
        return model._of(self.graph, self.form, self.assignment)

    def scratch_bytes(self, call: KernelCall) -> int:
        """Return the scratch of a step by this call, over all cores, in bytes."""
        return scratch_bytes(call, self.cores)

    @property
    def macs(self) -> int:
        """Multiply-accumulates of one inference."""
        return sum(self.graph.loops(operator).macs() for operator in self.graph.operators)

    @property
    def may_fuse(self) -> bool:
        """Whether chains may be fused: one core runs all operators, and none is replaceable."""
        return self.cores == 1 and not self.functions and not self.replaceable

    def in_form(self, form: Rewrites) -> Model:
        """Return the same model, rewritten. Raises ValueError for chains that cannot be fused."""
        if form.fused and not self.may_fuse:
            raise ValueError("several cores, other units and replaceable parameters exclude fused chains")
        graph = in_form(self.graph, self.form, form, self.whole_inputs)
        return self._of(graph, form, self.assignment)

    def on_units(self, board: Board, assignment: Assignment) -> Model:
        """Return the model, in its first form, for these units, with the steps between them.

        Raises UsageError if a unit does not support an operator's types, FitError if a tensor cannot get from
        one unit to another.
        """
        require_types(self.graph, board, assignment)
        if not assignment.elsewhere:
            return self
        if self.replaceable:
            raise UsageError("--replaceable cannot be combined with --assign: one unit reads the parameters")
        if self.graph.states:
            raise UsageError("what a model keeps between runs stays on one unit: leave out --assign")
        graph, assignment = with_transfers(self.graph, board, assignment)
        return self._of(graph, self.form, assignment)

    def _of(self, graph: Graph, form: Rewrites, assignment: Assignment) -> Model:
        in_ram = self.in_ram
        variants = kernel_variants(graph, self.isa, in_ram)
        functions = partition(graph, assignment)
        lost = next((name for name in self.replaceable if name not in variants), None)
        if lost is not None:
            raise UsageError(f"--replaceable {lost}: this form of the model does not have {lost}")
        for name in self.replaceable:
            _require_values(name, variants[name])
        return replace(
            self,
            graph=graph,
            form=form,
            variants=variants,
            calls=_first(variants),
            assignment=assignment,
            functions=functions,
        )

    def of_graph(self, graph: Graph, sha256: str, *, isa: Isa = Isa.ANY) -> Model:
        """Return a part of this model: a separate graph for one unit, identified by another digest."""
        return replace(self, sha256=sha256, isa=isa)._of(graph, Rewrites(), Assignment())

    def keeping(self, keeping: Mapping[str, KeptRows]) -> Model:
        """Return the model, in its first form, that keeps rows of these tensors of its window only."""
        if self.window is None:
            raise ValueError("the model has no window")
        window = self.window.keeps(keeping)
        return replace(self, window=window)._of(window.run_graph(), Rewrites(), Assignment())

    def same_rows(self, graph: Graph) -> Model:
        """Return the model that keeps the rows that a graph of the same model keeps."""
        return self if graph.hop is None else self.keeping(dict(graph.hop.keeping))

    def of_window(self, isa: Isa) -> Model:
        """Return the model whose runs take whole windows, in its first form and for a core with these
        instructions.
        """
        if self.window is None:
            raise ValueError("the model has no window")
        return replace(self, window=None, isa=isa)._of(self.window.graph, Rewrites(), Assignment())

    @property
    def kernels(self) -> dict[str, str]:
        """Return the chosen variant of every operator."""
        return {name: call.variant for name, call in self.calls.items()}

    def with_kernels(self, kernels: Mapping[str, str]) -> Model:
        """Return the model with other variants chosen. Raises ValueError for those of another model."""
        if set(kernels) != set(self.variants):
            raise ValueError("it has kernels of other operators, as with another --stateful or --shape")
        calls = {}
        for name, variants in self.variants.items():
            named = [call for call in variants if call.variant == kernels[name]]
            if not named:
                known = ", ".join(call.variant for call in variants)
                raise ValueError(f"{name} has no kernel {kernels[name]}; it has {known}")
            calls[name] = named[0]
        return replace(self, calls=calls)

    def with_calls(self, calls: Mapping[str, KernelCall]) -> Model:
        """Return the model with other calls chosen for some operators."""
        return replace(self, calls={**self.calls, **calls})

    @property
    def min_scratch(self) -> Model:
        """Return the model with the variants of least scratch, without more state than those chosen."""
        lean = {
            name: min(
                (chosen, *(one for one in self.variants[name] if one.state_bytes <= chosen.state_bytes)),
                key=lambda call: call.scratch_bytes,
            )
            for name, chosen in self.calls.items()
        }
        return replace(self, calls=lean)


def load_model(
    path: Path,
    float_io: bool = False,
    *,
    isa: Isa = Isa.ANY,
    keep_constant: bool = False,
    choices: InputChoices = AS_IN_FILE,
    stateful: bool = False,
    rounding: Rounding | None = None,
    hop: int | None = None,
) -> Model:
    """Read a model and choose its kernels.

    `isa`: the instructions of the core. `float_io`, `keep_constant`, `choices`, `stateful` and `rounding` are
    options of the front end. With `hop`, a run takes that number of new rows of the input. Raises ModelError
    with all problems at once, and UsageError for a hop that the model does not have.
    """
    graph = load(
        path,
        float_io=float_io,
        keep_constant=keep_constant,
        choices=choices,
        stateful=stateful,
        rounding=rounding,
    )
    window = None if hop is None else MovingWindow.of(graph, hop)
    graph = graph if window is None else window.run_graph()
    sha256 = _digest(path, choices)
    variants = kernel_variants(graph, isa)
    calls = _first(variants)
    return Model(path, sha256, graph, Rewrites(), variants, calls, isa, choices=choices, window=window)


def on_core(model: Model) -> list[str]:
    """Return which operators stay on the core beside a unit, and why: a text for each reason."""
    names: dict[str, list[str]] = {}
    for unit in added("unit") if model.isa.unit else ():
        for operator in model.graph.operators:
            tensors = model.graph.input_tensors(operator), model.graph.tensors[operator.output]
            reason = unit.reason_against(operator, *tensors) if operator.name in model.variants else None
            if reason is not None:
                names.setdefault(reason, []).append(operator.name)
    return [f"on the core: {', '.join(each)}, because {reason}" for reason, each in names.items()]


def _require_values(name: str, variants: tuple[KernelCall, ...]) -> None:
    guiding = next(filter(None, map(guiding_arrays, variants)), None)
    if guiding is not None:
        raise UsageError(
            f"--replaceable {name}: {', '.join(guiding)} of {name} decide where it reads or when it ends, "
            "and new values cannot be checked. Name operators with weights or biases"
        )


def read_model(path: Path, options: Options, *, isa: Isa = Isa.ANY) -> Model:
    """Return the model of a file as the user wants it read; see `load_model`.

    Channels stay in a model with replaceable operators: other constants may need them.
    """
    if options.replaceable and options.hop is not None:
        raise UsageError("--replaceable cannot be combined with --hop, which divides operators")
    model = load_model(
        path,
        options.float_io,
        isa=isa,
        keep_constant=options.keep_constant or bool(options.replaceable),
        choices=InputChoices(
            dict(options.shapes), dict(options.constants), dict(options.states), options.int8_caches
        ),
        stateful=options.stateful,
        rounding=options.rounding,
        hop=options.hop,
    )
    model = replace(model, whole_inputs=options.whole_inputs)
    names = [name.strip() for each in options.replaceable for name in each.split(",")]
    if not names:
        if options.parameters_in != "ram":
            raise UsageError("--parameters-in is for parameters: name their operators with --replaceable")
        return model
    return model.with_replaceable(names, in_flash=options.parameters_in == "flash")


def _digest(path: Path, choices: InputChoices) -> str:
    """Return the identity of a model: a digest of its file, and of the user's choices for its inputs."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if not choices:
        return digest
    return hashlib.sha256(f"{digest} {choices.digest_text}".encode()).hexdigest()


def _first(variants: Mapping[str, tuple[KernelCall, ...]]) -> dict[str, KernelCall]:
    return {name: calls[0] for name, calls in variants.items()}


@lru_cache(maxsize=512)  # the forms of a graph share operators
def _variants(
    operator: Operator, inputs: tuple[Tensor, ...], output: Tensor, isa: Isa
) -> tuple[KernelCall, ...]:
    calls = operator.op.kernel(operator, inputs, output).variants(isa)
    units = added("unit") if isa.unit else ()
    return (*(it for unit in units for it in unit.calls(operator, inputs, output, calls, isa)), *calls)


def kernel_variants(
    graph: Graph, isa: Isa = Isa.ANY, in_ram: Collection[str] = ()
) -> dict[str, tuple[KernelCall, ...]]:
    """Return the kernel calls of every operator that has a kernel. Raises ModelError with all problems.

    An operator whose constants are in RAM has only those of the core with the smallest constants.
    """
    calls: dict[str, tuple[KernelCall, ...]] = {}
    problems: list[Problem] = []
    for operator in graph.operators:
        if operator.op.is_view:
            continue
        try:
            inputs, output = graph.input_tensors(operator), graph.tensors[operator.output]
            variants = _variants(operator, inputs, output, isa.core if operator.name in in_ram else isa)
            if operator.name in in_ram:
                least = min(map(table_bytes, variants))
                variants = tuple(call for call in variants if table_bytes(call) == least)
            calls[operator.name] = variants
        except ValueError as error:
            node = operator.onnx_nodes[0] if operator.onnx_nodes else operator.name
            problems.append(Problem(node, operator.op.kind, str(error)))
    if problems:
        raise ModelError.unsupported(tuple(problems))
    return calls
