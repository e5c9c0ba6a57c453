"""Accuracy over a test set: on devices, by the reference, and by the float model."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from mcudeploy.commands.commands import run_model, warn_of_notes
from mcudeploy.common.errors import UsageError
from mcudeploy.common.files import work_folder
from mcudeploy.common.progress import SILENT, Progress
from mcudeploy.common.text import count_text, printable
from mcudeploy.device.fleet import Fleet
from mcudeploy.device.target import Target, require_port
from mcudeploy.execution.parts import RunRequest
from mcudeploy.execution.results import VerifiedRun
from mcudeploy.extensions.evaluation.dataset import Array, DataRequest, Dataset, open_dataset
from mcudeploy.extensions.evaluation.evaluation_results import (
    Evaluation,
    JudgedOutput,
    ModelResults,
    Origin,
    compare,
    worst_samples,
)
from mcudeploy.extensions.evaluation.on_devices import outputs_on
from mcudeploy.extensions.evaluation.output_task import Task, TaskChoice, choose_task
from mcudeploy.extensions.quantization.agreement import Layer, layers
from mcudeploy.extensions.quantization.float_model import read_float
from mcudeploy.extensions.quantization.ort_quantizer import prepare
from mcudeploy.frontend.parsing import is_tflite, parse
from mcudeploy.ir.graph import Graph, GraphIO
from mcudeploy.ops.host_io import from_device
from mcudeploy.ops.requantize import quantize
from mcudeploy.planner.model.model import Model, read_model
from mcudeploy.planner.plan_options import Options
from mcudeploy.verify.data_faults import (
    InputTally,
    at_ends,
    clipping_warnings,
    one_class,
    same_arrays,
    unchanged,
    with_cause,
)
from mcudeploy.verify.reference import Reference
from mcudeploy.verify.samples import NamedArray

_WORST = 24
"""Number of wrong samples in a report."""
_LAYER_SAMPLES = 32
"""Samples on which layers are compared with those of the float model."""


@dataclass(frozen=True, slots=True)
class EvaluateRequest:
    """The user's choices. `float_model`: the float original of a quantised model.

    `min_accuracy` is in percent of all samples, `max_drop` in percentage points below the float model.
    """

    data: DataRequest
    task: TaskChoice = field(default_factory=TaskChoice)
    float_model: Path | None = None
    min_accuracy: float | None = None
    max_drop: float | None = None


def evaluate_model(
    path: Path,
    targets: Sequence[Target],
    options: Options,
    request: EvaluateRequest,
    progress: Progress = SILENT,
) -> Evaluation:
    """Run a whole test set on devices of one board, which share the samples, and on this computer.

    The plan is that of `run`, which verifies the first sample. Raises UsageError for a model with states, for
    data that do not fit the model, and for a limit without labels or float model.
    """
    for target in targets:
        require_port(target)
    progress.stage(f"reading {path.name}")
    model = read_model(path, options, isa=targets[0].board.isa)
    _require_single_runs(model)
    data = open_dataset(request.data, model.graph)
    task = choose_task(model.graph, data, request.task)
    _require_figures(task, data, request)
    float_model = None if request.float_model is None else read_model(request.float_model, options)
    if float_model is not None:
        _require_same_task(float_model.graph, task, model.graph)
    first = data.sample(0, model.graph)
    values = [NamedArray(data.name(0), first.inputs[it.name]) for it in model.graph.own_inputs()]
    run = run_model(path, targets[0], options, RunRequest(values), progress)
    tally = InputTally(model.graph)
    results = [
        _on_devices(Fleet(targets), run, task, data, progress),
        _by_reference("reference", model, task, replace(data, on_real=tally.add), progress),
    ]
    if float_model is not None:
        warn_of_notes(float_model)
        results.append(_by_reference("float", float_model, task, data, progress))
    lossy = _lossy_layers(model, request, data, results)
    facts = tally.facts()
    fault = _fault_of_outputs(model.graph, task, data, results[0])
    limited = request.min_accuracy is not None or request.max_drop is not None
    return Evaluation(
        run=run,
        task=task,
        data=data,
        results=results,
        compared=compare(results, task),
        worst=worst_samples(task, data, results[0], _WORST),
        layers=lossy,
        failures=_failures(run, results, lossy, request),
        devices=len(targets),
        inputs=facts,
        warnings=[*clipping_warnings(facts), *([] if fault is None else [with_cause(fault, facts)])],
        undecided=fault is not None and not limited,
    )


def _require_single_runs(model: Model) -> None:
    """Raise UsageError for a model whose runs depend on earlier ones."""
    if model.graph.states:
        raise UsageError(
            f"{model.path.name} keeps states from run to run: evaluate takes samples that are independent. "
            "`mcudeploy run --input` runs a sequence"
        )


def _require_figures(task: Task, data: Dataset, request: EvaluateRequest) -> None:
    """Raise UsageError for classes that are not those of the output, and for limits of missing figures."""
    names = len(data.classes)
    if names and task.classes and names != task.classes and task.kind != "class number":
        raise UsageError(
            f"there are {names:,} names of classes, and output {printable(task.output)!r} has "
            f"{task.classes:,} classes: name all of them in the order of the output with --classes FILE, one "
            "a line"
        )
    limits = {"--min-accuracy": request.min_accuracy, "--max-drop": request.max_drop}
    stated = [name for name, limit in limits.items() if limit is not None]
    if stated and (task.labels is None or task.kind == "values"):
        raise UsageError(f"{stated[0]} needs a class for every sample: --labels FILE, or data that have them")
    if stated and task.kind == "anomaly" and task.labels is not None and np.ptp(task.labels) == 0:
        raise UsageError(f"{stated[0]} needs samples of both classes: all labels are {task.labels[0]}")
    if request.max_drop is not None and request.float_model is None:
        raise UsageError("--max-drop needs the float model to compare with: --float MODEL")


def _require_same_task(other: Graph, task: Task, graph: Graph) -> None:
    """Raise UsageError if the float model has other inputs than the model, or no output like the task's."""
    inputs = [[math.prod(it.shape) for it in one.own_inputs()] for one in (graph, other)]
    if inputs[0] != inputs[1]:
        raise UsageError(f"--float: its inputs have {inputs[1]} elements, those of the model {inputs[0]}")
    if JudgedOutput.of(other, task) is None:
        raise UsageError(
            f"--float: it has no output {printable(task.output)!r} with {task.elements:,} elements"
        )


def _on_devices(
    fleet: Fleet, run: VerifiedRun, task: Task, data: Dataset, progress: Progress
) -> ModelResults:
    """The results of the program that `run` has verified."""
    device_run = run.measured.device_run
    graph = device_run.deployment.plan.graph
    judged = _judged(graph, task)
    devices = "" if len(fleet) == 1 else f", {len(fleet)} of them"
    stage = f"running {count_text(data.count, 'sample')} on {fleet.first.title}{devices}"
    progress.stage(stage)
    start = time.monotonic()

    def advance(done: int, total: int) -> None:
        progress.advance(done, total)
        progress.update(f"{stage}, {done / max(time.monotonic() - start, 1e-3):,.0f} a second")

    io, tensor = judged.io, graph.tensors[judged.io.tensor]
    stored = outputs_on(fleet, device_run, data, tensor.name, advance)
    return judged.results("device", task, data, lambda number, _: from_device(io, tensor, stored[number]))


def _by_reference(
    origin: Origin, model: Model, task: Task, data: Dataset, progress: Progress
) -> ModelResults:
    """The results of ONNX Runtime."""
    progress.stage(f"running {count_text(data.count, 'sample')} of {model.path.name} on this computer")
    judged = _judged(model.graph, task)
    reference = Reference(model.path, [judged.io.name], model.choices)

    def output(number: int, inputs: Mapping[str, Array]) -> Array:
        progress.advance(number + 1, data.count)
        return reference.run(inputs)[judged.io.name]

    return judged.results(origin, task, data, output)


def _judged(graph: Graph, task: Task) -> JudgedOutput:
    judged = JudgedOutput.of(graph, task)
    if judged is None:
        raise ValueError(f"no output {task.output!r}")
    return judged


def _failures(
    run: VerifiedRun, results: Sequence[ModelResults], lossy: Sequence[Layer], request: EvaluateRequest
) -> list[str]:
    """Sentences on the limits that the device misses, and on outputs of the first run that are wrong."""
    failures = list(run.verdict.reasons)
    reached, by_float = _percent(results, "device"), _percent(results, "float")
    if request.min_accuracy is not None and reached is not None and reached < request.min_accuracy:
        failures.append(
            f"the device reaches {reached:.2f} %, less than the limit of {request.min_accuracy:g} %"
        )
    if request.max_drop is not None and reached is not None and by_float is not None:
        drop = round(by_float - reached, 6)
        if drop > request.max_drop:
            most = f". Most is lost at {printable(lossy[0].node)}" if lossy else ""
            failures.append(
                f"the device reaches {reached:.2f} %, {drop:.2f} points less than the float model; the "
                f"limit is {request.max_drop:g}{most}"
            )
    return failures


def _fault_of_outputs(graph: Graph, task: Task, data: Dataset, device: ModelResults) -> str | None:
    """Report that nearly all samples have one class, or equal outputs, if that is unlikely; else None."""
    computed, values = task.class_of(device.values), device.values
    if computed is not None:
        fault = one_class(computed, task.labels, values)
        if fault is not None or task.labels is not None:
            return fault
    io = _judged(graph, task).io
    if at_ends(graph, [io], {io.tensor: _codes(graph, io, values[0])}):
        return None

    def same(one: int, other: int) -> bool:
        return same_arrays(data.sample(one, graph).stored, data.sample(other, graph).stored)

    return unchanged([row.tobytes() for row in values], same)


def _codes(graph: Graph, io: GraphIO, values: Array) -> Array:
    """Real values of an output as they are stored."""
    quantization = graph.tensors[io.tensor].quantization
    return values if quantization is None else quantize(values.astype(np.float32), quantization)


def _percent(results: Sequence[ModelResults], origin: Origin) -> float | None:
    return next((it.quality.percent for it in results if it.origin == origin), None)


def _lossy_layers(
    model: Model, request: EvaluateRequest, data: Dataset, results: Sequence[ModelResults]
) -> Sequence[Layer]:
    """The layers of a quantised ONNX model that lose most, if it is less accurate than its float model."""
    reached, by_float = _percent(results, "device"), _percent(results, "float")
    if request.float_model is None or by_float is None or reached is None or reached >= by_float:
        return ()
    return layers_by_loss(request.float_model, model, data)


def layers_by_loss(float_model: Path, model: Model, data: Dataset) -> Sequence[Layer]:
    """Return the layers of a quantised ONNX model, from the one that adds most noise on.

    Tensors are compared by name, since `mcudeploy quantize` and ONNX Runtime's quantiser keep their names.
    Empty for .tflite files, and for inputs of other names or types.
    """
    if is_tflite(model.path) or is_tflite(float_model):
        return ()
    source = read_float(float_model, model.choices)
    inputs = [(it.name, it.dtype) for it in model.graph.own_inputs()]
    if inputs != [(it.name, it.dtype) for it in source.inputs]:
        return ()

    def samples() -> Iterator[Mapping[str, Array]]:
        for number in range(min(data.count, _LAYER_SAMPLES)):
            sample = data.sample(number, model.graph)
            yield {name: sample.inputs[name] for name, _ in inputs}

    with work_folder("mcudeploy-evaluate-") as folder:
        prepared = prepare(source.proto, folder)
        compared = layers(prepared, parse(model.path).proto, model.path, samples())
    return sorted(compared, key=lambda layer: -layer.added_noise)
