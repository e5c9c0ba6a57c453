"""Random networks over a window that moves: every run of the program by rows equals that of the window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from fuzzing import layers, plans, programs, shapes
from fuzzing.draft import Draft, grown
from fuzzing.plans import HOST, JudgedPlan
from fuzzing.quantise import draw_style, quantised
from mcudeploy.common.errors import DeployError, UsageError
from mcudeploy.ir.graph import KeptRows
from mcudeploy.planner.model.model import Model, load_model
from mcudeploy.planner.plan_options import Options
from mcudeploy.verify.compare import Storage, run_once

KINDS = ("float32", "int8", "uint8", "channels", "mixed")

_LAYERS = (
    (layers.convolution, 8),
    (layers.pool, 2),
    (layers.binary, 2),
    (layers.function, 1),
    (layers.concat, 1.5),
    (layers.normalisation, 0.5),
    (layers.inverted_residual, 0.8),
    (layers.squeeze_excite, 0.2),
    (layers.global_pool, 0.4),
    (shapes.slice_, 0.5),
    (shapes.pad, 0.7),
    (shapes.split, 0.3),
    (shapes.softmax, 0.3),
    (shapes.dense, 0.4),
    (shapes.view, 0.3),
    (shapes.resize, 0.2),
)

_SPLITTING = Options(time_limit=0.15, max_overhead=100)
_COMPARED = 4
"""Number of runs that are compared, from the first one that fills the window on."""


def draw_window(seed: int) -> onnx.ModelProto:
    """A network with one input of one or two dimensions, whose first one is long."""
    random = np.random.default_rng((seed, 36))
    kind = KINDS[int(random.integers(len(KINDS)))]
    draft = Draft(random, int(random.choice([13, 17, 18])), "v{}".format)
    rows = draft.pick((9, 12, 16, 20, 24, 31, 40))
    sizes = (rows,) if draft.chance(0.4) else (rows, draft.pick((1, 2, 4, 7)))
    draft.input((1, draft.pick((1, 2, 3, 5, 8)), *sizes))
    grown(draft, _LAYERS, draft.whole(2, 14))
    draft.choose_outputs()
    return draft.model() if kind == "float32" else quantised(draft, draw_style(draft, kind))


@dataclass(frozen=True, slots=True)
class HopFinding:
    """How one network went: `verified`, or what is wrong with it. `saved`: the share of MACs not computed."""

    seed: int
    verdict: str
    text: str = ""
    hop: int = 0
    saved: float = 0.0
    programs: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class _Subject:
    seed: int
    hop: int
    whole: JudgedPlan
    ways: Sequence[JudgedPlan]
    written: Sequence[programs.Written]


def examine_hops(seeds: Sequence[int], folder: Path) -> list[HopFinding]:
    """Try the networks of seeds in an empty folder: build all programs, and compare their runs."""
    subjects, findings = [], []
    for seed in seeds:
        try:
            subject = _planned(seed, folder)
        except DeployError as error:
            findings.append(HopFinding(seed, "refused", f"{type(error).__name__}: {error}"))
            continue
        for written in subject.written:
            programs.compile_program(written)
        subjects.append(subject)
    if not subjects:
        return findings
    executable = programs.link([one for it in subjects for one in it.written], folder)
    first = 0
    for subject in subjects:
        findings.append(_compared(subject, executable, first))
        first += len(subject.written)
    return findings


def _planned(seed: int, folder: Path) -> _Subject:
    path = folder / f"h{seed}.onnx"
    path.write_bytes(draw_window(seed).SerializeToString())
    random = np.random.default_rng(seed)
    whole = load_model(path)
    hop = _hop(path, whole, random)
    model = load_model(path, hop=hop)
    assert model.window is not None
    choices: tuple[KeptRows, ...] = ("all", "last")
    names = list(model.window.keeping)
    some = {name: choices[int(random.integers(2))] for name in names if random.random() < 0.6}
    last: dict[str, KeptRows] = dict.fromkeys(names, "last")
    ways = [
        plans.searched("all", model, HOST, _SPLITTING),
        replace(plans.unsplit(model.keeping(some)), way=f"some: {some}"),
        plans.searched("last", model.keeping(last), HOST, _SPLITTING),
    ]
    base = plans.unsplit(whole)
    written = [programs.write(judged, f"h{seed}_{at}", folder) for at, judged in enumerate((base, *ways))]
    return _Subject(seed, hop, base, ways, written)


def _hop(path: Path, model: Model, random: np.random.Generator) -> int:
    """A hop that the network can move by. Raises UsageError if there is none."""
    rows = model.graph.tensors[model.graph.inputs[0].tensor].shape[0]
    error = UsageError(f"the window has {rows} rows")
    for hop in random.permutation(np.arange(1, max(2, rows // 2))):
        try:
            load_model(path, hop=int(hop))
        except UsageError as fault:
            error = fault
        else:
            return int(hop)
    raise error


def _compared(subject: _Subject, executable: Path, first: int) -> HopFinding:
    graph, hop = subject.whole.model.graph, subject.hop
    source = graph.tensors[graph.inputs[0].tensor]
    random = np.random.default_rng(subject.seed)
    fill = -(-source.shape[0] // hop)
    stream = _values((hop * (fill + _COMPARED - 1), *source.shape[1:]), source.dtype.value, random)
    ends = [hop * (fill + number) for number in range(_COMPARED)]
    windows = [{source.name: stream[end - source.shape[0] : end]} for end in ends]
    pushes = [{source.name: stream[at : at + hop]} for at in range(0, len(stream), hop)]
    try:
        with programs.Runner(executable) as runner:
            expected = _run(runner, first, subject.whole, windows)
            for number, judged in enumerate(subject.ways, 1):
                results = _run(runner, first + number, judged, pushes)[-_COMPARED:]
                for step, (want, got) in enumerate(zip(expected, results, strict=True)):
                    for at, (one, other) in enumerate(zip(want, got, strict=True)):
                        if one.tobytes() != other.tobytes():
                            where = (
                                f"output {at}, run {step}: {int((one != other).sum())} of {one.size} differ"
                            )
                            return HopFinding(subject.seed, "wrong", f"{judged.way}: {where}", hop)
    except programs.RunError as error:
        return HopFinding(subject.seed, "fault", str(error), hop)
    macs = subject.whole.model.macs
    saved = 1 - subject.ways[0].model.macs / macs if macs else 0.0
    return HopFinding(subject.seed, "verified", hop=hop, saved=saved, programs=len(subject.written))


def _values(shape: tuple[int, ...], dtype: str, random: np.random.Generator) -> NDArray[Any]:
    if dtype == "int8":
        return random.integers(-128, 127, shape, np.int8, endpoint=True)
    return random.standard_normal(shape).astype(np.float32)


def _run(
    runner: programs.Runner, number: int, judged: JudgedPlan, inputs: Sequence[dict[str, NDArray[Any]]]
) -> list[list[NDArray[Any]]]:
    """The outputs of a sequence of runs; states begin with zeros."""
    storage, graph = Storage.of(judged.plan), judged.plan.graph
    runner.select(number, 1)
    states = {state.tensor: state.initial for state in graph.states}
    results = []
    for values in inputs:
        run_once(runner, storage, {**values, **states})
        states = {}
        results.append([storage.get_tensor(runner, io.tensor) for io in graph.own_outputs()])
    return results
