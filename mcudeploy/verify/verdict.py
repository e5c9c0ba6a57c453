"""The verdict on a run: each operator on the host against the reference, and all outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcudeploy.common.errors import ModelError
from mcudeploy.common.progress import Progress
from mcudeploy.common.text import agree, count_text, printable
from mcudeploy.frontend.expose import Rounded, has_other_floats, quantizer_inputs
from mcudeploy.frontend.onnx.input_choices import AS_IN_FILE, InputChoices
from mcudeploy.ir.graph import DType, Graph
from mcudeploy.ir.plan import Plan
from mcudeploy.ops.host_io import from_device, to_device
from mcudeploy.verify.compare import (
    Machine,
    Storage,
    check_by_reference,
    diverging,
    merge_all,
    run_once,
    run_with_ties_as_reference,
    stored_references,
    stored_ties,
)
from mcudeploy.verify.difference import (
    FLOAT_SHARE_OF_RANGE,
    Difference,
    Tolerance,
    difference,
    extremes_of,
    least_tolerance,
    output_passes,
    output_share,
)
from mcudeploy.verify.litert import LiteRtVerdict
from mcudeploy.verify.reference import Reference
from mcudeploy.verify.samples import Sample

Array = NDArray[Any]
Outputs = Mapping[str, Array]
"""Stored outputs by tensor name."""

DEVICE_SHARE_OF_RANGE = 1e-5
"""Tolerance between float32 outputs of two machines, whose math libraries round differently."""

CONVERSION_SHARE_OF_RANGE = 2.0**-5
"""Tolerance between float32 and float16 outputs: some fifty roundings of 11 bits in a row, possibly amplified
by a softmax. The program itself is compared with the outputs in float32.
"""

_CONVERSION_FLOOR = 2.0**-9
"""The least tolerance for float16: two units in the last place of 1."""


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """Result of a comparison. `reasons` lists the failures; empty means verified.

    `outputs`: the difference of all outputs of the host build. `resolved`: the same, but a sample that failed
    has run with the reference's choice at ties, `ties_resolved` in total. `micro_runs`: the runs that were
    compared with TensorFlow Lite Micro, if any. `litert`: the comparison with LiteRT, for a .tflite file.
    `extremes`: of each output over all samples.
    """

    plan: Plan
    operators: Mapping[str, Difference]
    expected: Sequence[Outputs]
    host: Sequence[Outputs]
    outputs: Difference
    resolved: Difference
    ties_resolved: int
    reasons: tuple[str, ...]
    runs: Sequence[Outputs] = ()
    micro_runs: int | None = None
    litert: LiteRtVerdict | None = None
    extremes: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    first: int = 0
    """The number of the first sample, for runs that continue from others."""

    @property
    def coarse(self) -> dict[str, float]:
        """The tolerances of float32 outputs, by name, that exceed at least half of the values of a sample.

        Tolerances up to 1 are left out: most probabilities of many classes are below such a tolerance.
        """
        graph, coarse = self.plan.graph, dict[str, float]()
        tolerances = _tolerances(graph, output_share(graph), self.extremes)
        for io in graph.own_outputs():
            allowed = tolerances[io.tensor].allowed if io.tensor in tolerances else 0.0
            if allowed <= 1 or graph.tensors[io.tensor].dtype is not DType.FLOAT32:
                continue
            values = (outputs[io.tensor] for outputs in self.expected)
            sizes = (np.abs(each[each != 0].astype(np.float64)) for each in values)
            if any(each.size and np.median(each) <= allowed for each in sizes):
                coarse[io.name] = allowed
        return coarse

    def with_device(self, device: Sequence[Outputs]) -> Verdict:
        """Add the device's outputs of each sample to the verdict; they must equal those of the host build."""
        reasons, graph = list(self.reasons), self.plan.graph
        tolerances = _tolerances(graph, device_share(graph), self.extremes)
        for number, (device_outputs, host) in enumerate(zip(device, self.host, strict=True), self.first):
            for name, value in device_outputs.items():
                if not _same(value, host[name], tolerances.get(name)):
                    diff = difference(value, host[name])
                    reasons.append(
                        f"sample {number}: {name} on the device differs from the host build in "
                        f"{diff.mismatches} of {count_text(diff.elements, 'element')}"
                        f"{_allowed(tolerances.get(name))}"
                    )
        return replace(self, outputs=_compare(self.plan, device, self.expected), reasons=tuple(reasons))

    def joined(self, later: Verdict) -> Verdict:
        """Join the verdict on further runs, which continued from these; the states of these are dropped."""
        graph, operators = self.plan.graph, merge_all([self.operators, later.operators])
        reasons = (*diverging(graph, operators), *self._reasons_of_runs(), *later._reasons_of_runs())
        return replace(
            later,
            operators=operators,
            expected=[*without_states(graph, self.expected), *later.expected],
            host=[*without_states(graph, self.host), *later.host],
            outputs=self.outputs.merge(later.outputs),
            resolved=self.resolved.merge(later.resolved),
            ties_resolved=self.ties_resolved + later.ties_resolved,
            reasons=reasons,
            first=self.first,
        )

    def _reasons_of_runs(self) -> tuple[str, ...]:
        """Return the reasons that concern whole runs; those of operators come before them in `reasons`."""
        return self.reasons[len(diverging(self.plan.graph, self.operators)) :]

    def with_litert(self, litert: LiteRtVerdict) -> Verdict:
        """Add the comparison with LiteRT."""
        return replace(self, litert=litert, reasons=(*self.reasons, *litert.reasons))


def without_states(graph: Graph, runs: Sequence[Outputs]) -> list[Outputs]:
    """Return the outputs of runs, except the states that they leave."""
    names = {io.tensor for io in graph.own_outputs()}
    return [{name: value for name, value in outputs.items() if name in names} for outputs in runs]


def device_share(graph: Graph) -> float:
    """Tolerance between float32 outputs of two machines, as a share of their range."""
    share = output_share(graph)
    return DEVICE_SHARE_OF_RANGE if share == FLOAT_SHARE_OF_RANGE else share


@dataclass(frozen=True, slots=True, eq=False)
class _Subject:
    """The host build of a plan, and the reference of its model with the inputs that it rounds."""

    machine: Machine
    storage: Storage
    reference: Reference
    quantizers: Mapping[str, Rounded]

    @classmethod
    def of(cls, machine: Machine, plan: Plan, model: Path, choices: InputChoices) -> _Subject:
        graph = plan.graph
        names = [io.name for io in (*graph.references.values(), *graph.outputs)]
        quantizers = quantizer_inputs(model, names, choices)
        states = [state.before.name for state in graph.states]
        floats = [name for rounded in quantizers.values() for name in rounded.floats]
        return cls(
            machine, Storage.of(plan), Reference(model, [*names, *floats], choices, states), quantizers
        )

    def differences(
        self, inputs: Mapping[str, Array], values: Mapping[str, Array]
    ) -> Mapping[str, Difference]:
        """Return how the operators differ from the reference's `values`, if they also read these values."""
        return check_by_reference(self.machine, self.storage, inputs, *self._with_ties(values))

    def run(self, inputs: Mapping[str, Array]) -> Outputs:
        """Run the host build once on stored inputs and states."""
        run_once(self.machine, self.storage, inputs)
        return _outputs(self.machine, self.storage)

    def run_resolved(self, inputs: Mapping[str, Array], values: Mapping[str, Array]) -> tuple[Outputs, int]:
        """Run it with the reference's choice at ties; return also the number of these elements."""
        ties = run_with_ties_as_reference(self.machine, self.storage, inputs, *self._with_ties(values))
        return _outputs(self.machine, self.storage), ties

    def _with_ties(self, values: Mapping[str, Array]) -> tuple[dict[str, Array], dict[str, Array]]:
        """Return the reference's values, and masks of its ties, in stored form by tensor name."""
        graph = self.storage.plan.graph
        return stored_references(graph, values), stored_ties(graph, values, self.quantizers)


def judge(
    machine: Machine,
    plan: Plan,
    model: Path,
    samples: Sequence[Sample],
    progress: Progress,
    *,
    choices: InputChoices = AS_IN_FILE,
    after: Verdict | None = None,
) -> Verdict:
    """Run the samples on the host build, operator by operator and whole, against ONNX Runtime.

    `choices`: those of the user for the model's inputs. The outputs must equal the samples' expected ones, if
    they have any. In a deep network one rounding tie can become any error. So if the outputs of a sample
    fail, the sample runs again with the reference's choice at ties, and these outputs must pass. In a model
    with states every sample, and the reference of it, continues from the states that the program left before;
    those that it leaves are outputs too. With `after` the samples continue from the last one of that verdict,
    and tolerances are those of all samples up to here.
    """
    graph, subject = plan.graph, _Subject.of(machine, plan, model, choices)
    in_file = in_own_floats(model, [io.name for io in graph.outputs], choices)
    first = 0 if after is None else after.first + len(after.host)
    stored_states, states = ({}, {}) if after is None else _states_left(graph, after.host[-1])
    differences, host, expected, reasons, runs = [], [], [], [], []
    for done, sample in enumerate(samples):
        inputs = {**sample.inputs, **states}
        values = subject.reference.run(inputs)
        reasons += conversion_reasons(first + done, in_file, sample.inputs, values)
        differences.append(subject.differences(_stored(graph, sample, inputs), values))
        stored_inputs = {**sample.stored, **stored_states}
        runs.append((inputs, stored_inputs))
        host.append(subject.run(stored_inputs))
        stored_states, states = _states_left(graph, host[-1])
        wanted = {**values, **sample.expected}
        expected.append(
            {io.tensor: to_device(io, graph.tensors[io.tensor], wanted[io.name]) for io in graph.outputs}
        )
        progress.advance(done + 1, len(samples))
    extremes = _extremes(graph, expected, {} if after is None else after.extremes)
    tolerances, judged, ties_resolved = _tolerances(graph, output_share(graph), extremes), list(host), 0
    for at, (inputs, stored_inputs) in enumerate(runs):
        if _output_reasons(plan, first + at, host[at], expected[at], tolerances):
            judged[at], ties = subject.run_resolved(stored_inputs, subject.reference.run(inputs))
            ties_resolved += ties
            reasons += _output_reasons(plan, first + at, judged[at], expected[at], tolerances)
    operators = merge_all(differences)
    return Verdict(
        plan=plan,
        operators=operators,
        expected=expected,
        host=host,
        outputs=_compare(plan, host, expected),
        resolved=_compare(plan, judged, expected),
        ties_resolved=ties_resolved,
        reasons=(*diverging(graph, operators), *reasons),
        extremes=extremes,
        first=first,
    )


def unequal_elements(one: Array, other: Array) -> str:
    """Return how many elements of two programs' results differ, as text; "" if all bits are equal."""
    if one.tobytes() == other.tobytes():
        return ""
    return f"{int((one != other).sum())} of {count_text(one.size, 'element')}"


def outputs_of_runs(
    machine: Machine, plan: Plan, samples: Sequence[Sample], after: Verdict | None
) -> list[Outputs]:
    """Return the outputs of the samples in turn on the host build, with states as in `judge`."""
    storage, results = Storage.of(plan), list[Outputs]()
    states: Outputs = {} if after is None else _states_left(plan.graph, after.host[-1])[0]
    for sample in samples:
        run_once(machine, storage, {**sample.stored, **states})
        results.append(_outputs(machine, storage))
        states = _states_left(plan.graph, results[-1])[0]
    return results


def _states_left(graph: Graph, outputs: Outputs) -> tuple[Outputs, dict[str, Array]]:
    """Return the states that a run left: in stored form by tensor, and in the model's form by ONNX name."""
    stored = {it.tensor: outputs[it.after.tensor] for it in graph.states}
    in_model_form = {
        it.before.name: from_device(it.before, graph.tensors[it.tensor], stored[it.tensor])
        for it in graph.states
    }
    return stored, in_model_form


def in_own_floats(model: Path, outputs: Sequence[str], choices: InputChoices) -> Reference | None:
    """Return the reference in the file's floating-point types; None if they are float32, or not supported."""
    if not has_other_floats(model, choices):
        return None
    try:
        return Reference(model, outputs, choices, own_floats=True)
    except ModelError:  # ONNX Runtime has no such kernel: the note on the types describes the computation
        return None


def conversion_reasons(
    number: int, in_file: Reference | None, inputs: Mapping[str, Array], values: Mapping[str, Array]
) -> list[str]:
    """Return a reason for each output that differs between float32 and the file's floating-point types.

    Integers and truth values must be equal.
    """
    if in_file is None:
        return []
    try:
        expected = in_file.run(inputs)
    except ModelError:  # as above
        return []
    reasons = []
    for name, wanted in expected.items():
        diff = difference(values[name], wanted)
        is_float = wanted.dtype.kind == "f"
        tolerance = Tolerance(CONVERSION_SHARE_OF_RANGE, diff.range, _CONVERSION_FLOOR) if is_float else None
        if diff.worst > (tolerance.allowed if tolerance else 0.0):
            reasons.append(
                f"sample {number}: output {printable(name)!r} is {diff.found:g} at element {diff.where} in "
                f"float32, and {diff.expected:g} in the element types of the file{_allowed(tolerance)}"
            )
    return reasons


def _stored(graph: Graph, sample: Sample, values: Mapping[str, Array]) -> dict[str, Array]:
    """Return the inputs of a sample in stored form, with the given states."""
    states = (it.before for it in graph.states)
    return {
        **sample.stored,
        **{it.tensor: to_device(it, graph.tensors[it.tensor], values[it.name]) for it in states},
    }


def _outputs(machine: Machine, storage: Storage) -> Outputs:
    return {io.tensor: storage.get_tensor(machine, io.tensor) for io in storage.plan.graph.outputs}


def _same(computed: Array, expected: Array, tolerance: Tolerance | None) -> bool:
    if tolerance is None:
        return bool(np.array_equal(computed, expected))
    return difference(computed, expected).worst <= tolerance.allowed


def _extremes(
    graph: Graph, expected: Sequence[Outputs], earlier: Mapping[str, tuple[float, float]]
) -> dict[str, tuple[float, float]]:
    """Return the extremes of each output, by tensor name, over these samples and earlier ones."""
    result = {}
    for io in graph.outputs:
        values = [each[io.tensor] for each in expected]
        result[io.tensor] = extremes_of([*values, np.array(earlier.get(io.tensor, ()))])
    return result


def _tolerances(
    graph: Graph, share: float, extremes: Mapping[str, tuple[float, float]]
) -> dict[str, Tolerance]:
    """Tolerance of each output of float32, or of integers that the reference rounds, by tensor name."""
    return {
        io.tensor: Tolerance(
            share,
            extremes[io.tensor][1] - extremes[io.tensor][0],
            least_tolerance(io, graph.tensors[io.tensor].dtype),
        )
        for io in graph.outputs
        if io.off_by_one or graph.tensors[io.tensor].dtype is DType.FLOAT32
    }


def _allowed(tolerance: Tolerance | None) -> str:
    return f"; allowed: {tolerance}" if tolerance else ""


def _compare(plan: Plan, computed: Sequence[Outputs], expected: Sequence[Outputs]) -> Difference:
    differences = [
        difference(values[io.tensor], wanted[io.tensor])
        for values, wanted in zip(computed, expected, strict=True)
        for io in plan.graph.outputs
    ]
    total = differences[0]
    for diff in differences[1:]:
        total = total.merge(diff)
    return total


def _output_reasons(
    plan: Plan, sample: int, computed: Outputs, expected: Outputs, tolerances: Mapping[str, Tolerance]
) -> list[str]:
    reasons = []
    for io in plan.graph.outputs:
        name, dtype = io.tensor, plan.graph.tensors[io.tensor].dtype
        tolerance = tolerances.get(name)
        if not output_passes(computed[name], expected[name], dtype, tolerance):
            diff = difference(computed[name], expected[name])
            reasons.append(
                f"sample {sample}: output {printable(io.name)!r} is {diff.found:g} at element "
                f"{diff.where}, expected {diff.expected:g}; {diff.mismatches} of "
                f"{count_text(diff.elements, 'element')} {agree(diff.mismatches, 'differs', 'differ')}"
                f"{_allowed(tolerance)}"
            )
    return reasons
