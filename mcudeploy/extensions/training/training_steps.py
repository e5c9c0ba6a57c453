"""Training steps as files to plan, and the choice of the tensors that they recompute."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import combinations
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory

from mcudeploy.boards.board import Board
from mcudeploy.common.errors import FitError, ModelError, UsageError
from mcudeploy.common.interrupts import signalled
from mcudeploy.common.progress import SILENT, Progress
from mcudeploy.common.text import agree, printable
from mcudeploy.extensions.training.forward import convolutions, problem_of
from mcudeploy.extensions.training.lora import adapted
from mcudeploy.extensions.training.recipe import Recipe, Trained
from mcudeploy.extensions.training.recomputing import keep_choices
from mcudeploy.extensions.training.step import TrainingStep, training_step
from mcudeploy.frontend.onnx.input_choices import InputChoices
from mcudeploy.frontend.onnx.nodes import OnnxModel
from mcudeploy.frontend.reader import read
from mcudeploy.ir.graph import Graph, Operator
from mcudeploy.ir.plan import Plan
from mcudeploy.planner.model.model import read_model
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.planner import find_plans, search_plans

_SHARE = 0.5
"""Share of the time limit in which `smallest_step` chooses the recomputed tensors."""

_SHORTEST_S = 1.0
"""Time limit of the search that makes the plan after Ctrl-C."""


@dataclass(frozen=True, slots=True, eq=False)
class WrittenStep:
    """A training step in a file with the name of the model. `options`: for the step's plan.

    `graph`: of the model; `adapted`: the same with the factors of lora. `recomputed_percent`: how much longer
    the unsplit step takes than the step that keeps all tensors.
    """

    path: Path
    step: TrainingStep
    graph: Graph
    adapted: Graph
    options: Options
    recomputed_percent: float = 0.0


@contextmanager
def written_step(
    path: Path, options: Options, recipe: Recipe, keep: frozenset[str] | None = None
) -> Iterator[WrittenStep]:
    """Write the training step of a model into a folder that lasts as long as the context.

    `keep`: as in `training_step`. Raises ModelError for a model that cannot be trained, and UsageError for
    options that do not apply.
    """
    _require_plain(options)
    graph = read_model(path, replace(options, keep_constant=True)).graph
    changed = adapted(graph, recipe.update)
    step = training_step(changed, recipe, keep)
    trained = recipe.update.trained(convolutions(changed))
    _require_separate_constants(
        read(path, InputChoices(dict(options.shapes), dict(options.constants))), graph, trained
    )
    inputs = [it.name for it in step.proto.graph.input]  # those of the model first
    planned = replace(
        options,
        keep_constant=True,
        float_io=False,
        shapes=(),
        constants=(),
        whole_inputs=tuple(inputs[len(graph.inputs) :]),
    )
    with TemporaryDirectory(prefix="mcudeploy-") as folder:
        file = Path(folder, f"{path.stem}.onnx")  # the C library has the model's name
        file.write_bytes(step.proto.SerializeToString())
        yield WrittenStep(file, step, graph, changed, planned)


@contextmanager
def smallest_step(
    path: Path, board: Board, options: Options, recipe: Recipe, progress: Progress = SILENT
) -> Iterator[WrittenStep]:
    """Write the training step with the least RAM within the latency limit, or with a RAM limit the fastest.

    Short searches choose the tensors to keep. The latency limit is relative to the unsplit step that keeps
    all tensors. Raises what `written_step` raises.
    """
    with ExitStack() as folders:
        whole = folders.enter_context(written_step(path, options, recipe))
        trained = recipe.update.trained(convolutions(whole.adapted))
        choices = keep_choices(whole.adapted, trained) if options.split else ()
        written = [whole, *(folders.enter_context(written_step(path, options, recipe, it)) for it in choices)]
        fast = _fast_enough(written, board)
        if len(fast) == 1:
            yield fast[0]
            return
        share = options.time_limit * _SHARE / len(fast)
        ranked: list[tuple[tuple[float, float, float], int]] = []
        for number, step in enumerate(fast):
            progress.stage(f"planning with recomputed tensors, choice {number + 1} of {len(fast)}")
            with suppress(FitError):
                model = read_model(step.path, step.options, isa=board.isa)
                plans = find_plans(model, board, replace(step.options, time_limit=share))
                ranked.append((_rank(plans.choices[0], step), number))
            if signalled():  # Ctrl-C ends all searches, not only the present one
                break
        chosen = fast[min(ranked)[1]] if ranked else whole
        left = _SHORTEST_S if signalled() else options.time_limit * (1 - _SHARE)
        yield replace(chosen, options=replace(chosen.options, time_limit=left))


def _fast_enough(written: list[WrittenStep], board: Board) -> list[WrittenStep]:
    """Return the steps whose unsplit plan keeps the latency limit; their options state the rest of the limit.

    The first step keeps all tensors. With a RAM limit, all steps are fast enough.
    """
    result: list[WrittenStep] = []
    least, most = 0.0, 0.0
    for step in written:
        model = read_model(step.path, step.options, isa=board.isa)
        unsplit = search_plans(model, board, replace(step.options, split=False)).baseline
        ticks = unsplit.estimate.latency_ticks
        if not result:
            least, most = ticks, ticks * (1 + step.options.overhead_limit / 100)
        percent = 100 * (ticks / least - 1)
        if step.options.ram_limit is not None:
            result.append(replace(step, recomputed_percent=percent))
        elif ticks <= most:
            options = replace(step.options, max_overhead=100 * (most / ticks - 1))
            result.append(replace(step, options=options, recomputed_percent=percent))
    return result


def _rank(plan: Plan, written: WrittenStep) -> tuple[float, float, float]:
    """Return a key that is least for the best plan: the latency if the core waits for a slow memory, else 0;
    then the arena in bytes and the latency, or with a RAM limit the latency and the arena.
    """
    arena_bytes, ticks = plan.layout.arena_bytes, plan.estimate.latency_ticks
    waiting = ticks if plan.estimate.exposed_ticks else 0.0
    others = (arena_bytes, ticks) if written.options.ram_limit is None else (ticks, arena_bytes)
    return (waiting, *others)


def _require_plain(options: Options) -> None:
    """Raise UsageError for an option that a training step does not have."""
    present: Mapping[str, bool] = {
        "--state": bool(options.states),
        "--int8-cache": bool(options.int8_caches),
        "--stateful": options.stateful,
        "--hop": options.hop is not None,
        "--replaceable": bool(options.replaceable),
        "--rounding": options.rounding is not None,
        "--plan": options.plan_file is not None,
        "--order": options.order_file is not None,
    }
    names = [name for name, is_present in present.items() if is_present]
    if names:
        raise UsageError(
            f"{', '.join(names)} {agree(len(names), 'is', 'are')} not for a training step: leave "
            f"{agree(len(names), 'it', 'them')} out"
        )


def _require_separate_constants(model: OnnxModel, graph: Graph, trained: Trained) -> None:
    """Raise ModelError if two trained operators of `graph` share weights or a bias of `model`, its file."""
    sources = _constants_of_nodes(model)
    constants = {
        operator: _trained_constants(operator, trained, model, sources)
        for operator in graph.operators
        if operator.name in trained.operators
    }
    problems = []
    for one, other in combinations(constants, 2):
        for name in sorted(constants[one] & constants[other]):
            reason = (
                f"it shares the constant {printable(name)!r} with {', '.join(one.onnx_nodes)}, and training "
                "would change each copy by itself: train fewer layers, or write a constant for each into the "
                "file"
            )
            problems.append(problem_of(other, reason))
    if problems:
        raise ModelError.unsupported(tuple(problems))


def _trained_constants(
    operator: Operator, trained: Trained, model: OnnxModel, sources: dict[str, set[str]]
) -> set[str]:
    """The names of an operator's constants that become parameters: weights and bias, or the bias alone."""
    names: set[str] = set().union(*(sources.get(label, ()) for label in operator.onnx_nodes))
    if operator.name in trained.weights:
        return names
    shapes = {name: _shape(model, name) for name in names}
    return {name for name, shape in shapes.items() if max(shape) == prod(shape)}  # a bias is a vector


def _constants_of_nodes(model: OnnxModel) -> dict[str, set[str]]:
    """The names of the float constants that each node reads, by label, directly or through nodes that read
    constants alone. Scalars, as bounds of clips, and values of a BatchNormalization are not parameters.
    """
    sources = {name: _parameter_source(model, name) for name in model.constants}
    by_label: dict[str, set[str]] = {}
    for node in model.nodes:
        names: set[str] = set().union(*(sources.get(name, set()) for name in node.inputs))
        if not any(node.inputs):
            sources |= {name: _parameter_source(model, name) for name in node.outputs}
        elif all(name in sources for name in node.inputs if name):
            sources |= dict.fromkeys(node.outputs, names)
        elif node.op != "BatchNormalization":
            by_label.setdefault(node.label, set()).update(names)
    return by_label


def _parameter_source(model: OnnxModel, name: str) -> set[str]:
    """The name itself if this constant may be a parameter: floats, more than one; else nothing."""
    constant, info = model.constants.get(name), model.infos.get(name)
    dtype = constant.value.dtype.name if constant else info.dtype if info else ""
    return {name} if dtype.startswith("float") and prod(_shape(model, name)) > 1 else set()


def _shape(model: OnnxModel, name: str) -> tuple[int, ...]:
    constant = model.constants.get(name)
    return constant.shape if constant else model.infos[name].shape or ()
