"""From drawn graphs to findings: planned in every way, built in one executable, run, compared, judged."""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from fuzzing import plans, programs
from fuzzing.flat import DrawnFile
from fuzzing.litert import compared
from fuzzing.plans import JudgedPlan
from mcudeploy.common.errors import DeployError, ModelError
from mcudeploy.common.progress import SILENT
from mcudeploy.extension import added
from mcudeploy.planner.model.model import load_model
from mcudeploy.planner.tape.plan_view import PlanView
from mcudeploy.verify.compare import Storage, run_once
from mcudeploy.verify.reference import Reference
from mcudeploy.verify.samples import Sample, load_samples
from mcudeploy.verify.verdict import judge

BAD = ("wrong", "fault", "traceback", "sanitizer", "form")
"""Kinds of findings that are defects: of outputs, of unexpected errors, of the process, of a graph in another
form.
"""


@dataclass(frozen=True, slots=True)
class Finding:
    """A failure of one way of planning a graph; `kind` is one of BAD, "refused", or "undefined"."""

    kind: str
    way: str
    text: str


@dataclass
class Subject:
    """A model and its findings. Without findings it is verified."""

    name: str
    seed: int
    path: Path
    producers: Mapping[str, str] = field(default_factory=dict)
    """Of a .tflite file, the operator that makes each tensor."""
    findings: list[Finding] = field(default_factory=list)
    plans: list[tuple[JudgedPlan, programs.Written]] = field(default_factory=list)
    outputs: list[bytes] = field(default_factory=list)
    """Of the unsplit plan."""
    seconds: float = 0.0

    @property
    def verdict(self) -> str:
        """The first kind of finding, or verified."""
        kinds = [finding.kind for finding in self.findings]
        return next((kind for kind in kinds if kind in BAD), kinds[0] if kinds else "verified")


def examine(
    models: Sequence[tuple[str, int, onnx.ModelProto | DrawnFile]],
    folder: Path,
    ways: Sequence[str] | None = None,
) -> list[Subject]:
    """Try models (a C identifier, a seed for plans and inputs, the model) in an empty folder.

    `ways`: only these plans beside the unsplit one.
    """
    subjects = [_planned(name, seed, model, folder, ways) for name, seed, model in models]
    compiled = [written for subject in subjects for written in _compiled(subject)]
    if not compiled:
        return subjects
    models = [judged.model for subject in subjects for judged, _ in subject.plans]
    streams = any(call.isa.unit for model in models for call in model.calls.values())
    executable = programs.link(compiled, folder, streams=streams)
    numbers = {written.symbol: number for number, written in enumerate(compiled)}
    for subject in subjects:
        with _timed(subject):
            _run(subject, executable, numbers)
    return subjects


@contextmanager
def _timed(subject: Subject) -> Iterator[None]:
    start = time.monotonic()
    yield
    subject.seconds += time.monotonic() - start


@contextmanager
def _guarded(subject: Subject, way: str) -> Iterator[None]:
    """Whatever is raised becomes a finding."""
    try:
        yield
    except ModelError as error:
        named = bool(error.problems)
        lines = [f"{problem.op}: {problem.reason}" for problem in error.problems]
        subject.findings.append(Finding("refused" if named else "fault", way, "\n".join(lines) or str(error)))
    except programs.RunError as error:
        text = str(error)
        sanitizer = "Sanitizer" in text or "runtime error" in text
        subject.findings.append(Finding("sanitizer" if sanitizer else "fault", way, text))
    except (DeployError, programs.BuildError) as error:
        subject.findings.append(Finding("fault", way, f"{type(error).__name__}: {error}"))
    except Exception:
        subject.findings.append(Finding("traceback", way, traceback.format_exc()))


class _Defects(logging.Handler):
    """The defect that mcudeploy itself reports, if any."""

    def __init__(self, subject: Subject) -> None:
        super().__init__(logging.WARNING)
        self.subject, self.way = subject, ""

    def emit(self, record: logging.LogRecord) -> None:
        if "defect" in record.getMessage():
            self.subject.findings.append(Finding("fault", self.way, record.getMessage()))


def _planned(
    name: str, seed: int, model: onnx.ModelProto | DrawnFile, folder: Path, ways: Sequence[str] | None
) -> Subject:
    flat = isinstance(model, DrawnFile)
    path = folder / f"{name}.{'tflite' if flat else 'onnx'}"
    path.write_bytes(model.content if flat else model.SerializeToString())
    subject = Subject(name, seed, path, producers=model.producers if flat else {})
    defects = _Defects(subject)
    logging.getLogger("mcudeploy").addHandler(defects)
    with _timed(subject):
        try:
            _plan(subject, folder, ways, defects)
        finally:
            logging.getLogger("mcudeploy").removeHandler(defects)
    return subject


def _plan(subject: Subject, folder: Path, ways: Sequence[str] | None, defects: _Defects) -> None:
    base = None
    with _guarded(subject, "front end"):
        model = load_model(subject.path)
        defects.way = "unsplit"
        base = plans.unsplit(model)
        subject.plans.append((base, programs.write(base, f"{subject.name}_unsplit", folder)))
    if base is None:
        return
    for way, make in plans.others(model, base, subject.seed):
        if ways is not None and way not in ways:
            continue
        defects.way = way
        with _guarded(subject, way):
            judged = make()
            subject.plans.append((judged, programs.write(judged, f"{subject.name}_{way}", folder)))


def _compiled(subject: Subject) -> list[programs.Written]:
    kept = []
    with _timed(subject):
        for judged, written in subject.plans:
            with _guarded(subject, judged.way):
                programs.compile_program(written)
                kept.append((judged, written))
    subject.plans = kept
    return [written for _, written in kept]


Outputs = list[NDArray[Any]]


def _run(subject: Subject, executable: Path, numbers: dict[str, int]) -> None:
    """The unsplit plan is judged by ONNX Runtime, and that of a .tflite file by LiteRT as well; the others by
    its outputs.
    """
    expected: Outputs | None = None
    for judged, written in subject.plans:
        with _guarded(subject, judged.way), programs.Runner(executable) as runner:
            runner.select(numbers[written.symbol], subject.seed)
            samples = load_samples(judged.model.graph, [], [], subject.seed)
            storage = Storage.of(judged.plan)
            if expected is None:
                verdict = judge(runner, judged.plan, subject.path, samples, SILENT)
                if verdict.reasons:
                    kind = "undefined" if _rounds_nan(subject, samples) else "wrong"
                    subject.findings.append(Finding(kind, judged.way, "\n".join(verdict.reasons)))
                if subject.producers:
                    runner.select(numbers[written.symbol], subject.seed)
                    reasons = compared(runner, storage, subject.path, samples[0], subject.producers)
                    subject.findings += [Finding("wrong", "beside LiteRT", reason) for reason in reasons]
                runner.select(numbers[written.symbol], subject.seed + 1)
                expected = _outputs(runner, storage, samples[0])
                subject.outputs = [value.tobytes() for value in expected]
            for again in ("", ", the second time"):
                _compare(subject, judged, expected, _outputs(runner, storage, samples[0]), again)
            if steps := _joined_steps(judged):
                computed = _outputs(runner, storage, samples[0], steps)
                _compare(subject, judged, expected, computed, ", by joined streams")
        if expected is None:
            return


def _rounds_nan(subject: Subject, samples: Sequence[Sample]) -> bool:
    """Whether a QuantizeLinear of the model rounds a NaN, of which ONNX defines no result."""
    if subject.producers:
        return False
    nodes = onnx.load(subject.path).graph.node
    rounded = [node.input[0] for node in nodes if node.op_type == "QuantizeLinear"]
    reference = Reference(subject.path, rounded)
    return any(np.isnan(value).any() for each in samples for value in reference.run(each.inputs).values())


def _joined_steps(judged: JudgedPlan) -> list[int]:
    """The steps of joined streams of a unit, for each entry of the tape; none without a unit. The checker
    accepts them.
    """
    for unit in added("unit") if judged.model.isa.unit else ():
        unit.check(judged.plan, judged.model)
    streams, count = PlanView(judged.plan, judged.model.calls).streams, len(judged.plan.tape)
    return [count + it for it in streams.steps_of(count)] if streams else []


def _outputs(
    runner: programs.Runner, storage: Storage, sample: Sample, steps: Sequence[int] = ()
) -> Outputs:
    run_once(runner, storage, sample.stored, steps)
    return [storage.get_tensor(runner, io.tensor) for io in storage.plan.graph.outputs]


def _compare(subject: Subject, judged: JudgedPlan, expected: Outputs, computed: Outputs, again: str) -> None:
    for io, want, got in zip(judged.plan.graph.outputs, expected, computed, strict=True):
        if want.tobytes() != got.tobytes():
            count = int((want != got).sum())
            where = int(np.flatnonzero((want != got).reshape(-1))[0]) if count else 0
            text = (
                f"{io.name}: {count} of {want.size} elements differ from the unsplit plan{again}, "
                f"the first at {where}"
            )
            subject.findings.append(Finding("wrong", judged.way, text))
