"""A text that a language model on a device generates, and its comparison with ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mcudeploy.commands.commands import plan_model
from mcudeploy.common.errors import UsageError
from mcudeploy.common.progress import Progress
from mcudeploy.device.target import Device, Target, open_device, require_port
from mcudeploy.execution.deployment import Deployment
from mcudeploy.execution.running import Observation, Place, retimed
from mcudeploy.extensions.text.decoder_io import DecoderChoice, DecoderIo, decoder_io
from mcudeploy.extensions.text.host_text import HostText, Sampler, host_text
from mcudeploy.extensions.text.tokenizer_file import Tokenizer
from mcudeploy.ir.graph import DType
from mcudeploy.ir.plan import Measurement
from mcudeploy.ops.host_io import from_device, to_device
from mcudeploy.planner.plan_options import Options
from mcudeploy.toolchain import Firmware
from mcudeploy.verify.compare import run_once
from mcudeploy.verify.difference import (
    Tolerance,
    difference,
    least_tolerance,
    output_passes,
    output_share,
    range_of,
)
from mcudeploy.verify.reference import Reference
from mcudeploy.verify.samples import Sample, initial_states

Array = NDArray[Any]
Ending = Literal["end", "tokens", "positions"]


@dataclass(frozen=True, slots=True, eq=False)
class TextRequest:
    """A prompt, and how its tokens are chosen. `tokens`: the most that are generated; None: by positions."""

    tokenizer: Tokenizer
    choice: DecoderChoice
    prompt: str
    tokens: int | None = None
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0


@dataclass(slots=True, eq=False)
class TextRun:
    """A run of a device: `ids` of prompt and text, the stored logits and ticks of each run.

    `token`: the time of one, the mean of all.
    """

    ids: list[int]
    logits: list[Array] = field(default_factory=list)
    ticks: list[int] = field(default_factory=list)
    ending: Ending = "tokens"
    token: Measurement | None = None


@dataclass(frozen=True, slots=True, eq=False)
class GeneratedText:
    """A text from a device. `token`: the time of one.

    `reasons`: why it is not verified; `error`: the largest of the logits, `tolerance`: theirs, None for int8.
    """

    ready: ReadyText
    run: TextRun
    token: Measurement
    reasons: Sequence[str]
    error: float
    tolerance: Tolerance | None


@dataclass(frozen=True, slots=True, eq=False)
class ReadyText:
    """A model whose firmware is built, and the ids of a prompt."""

    target: Target
    deployment: Deployment
    firmware: Firmware
    io: DecoderIo
    request: TextRequest
    host: HostText
    prompt: Sequence[int]

    def run(self, seed: int, on_token: Callable[[int], None]) -> TextRun:
        """Read the prompt on the device, then generate, as MODEL_generate() does."""
        with open_device(self.target, self.firmware, self.deployment.patience_s) as device:
            device.session.reset()
            run = self._run(device, seed, on_token)
            unit, convert = device.time_unit(self.target)
        run.token = Measurement(convert(round(sum(run.ticks) / len(run.ticks))), unit)
        return run

    def _run(self, device: Device, seed: int, on_token: Callable[[int], None]) -> TextRun:
        request, run = self.request, TextRun(list(self.prompt))
        sampler = Sampler(request.temperature, request.top_k, request.top_p, 0)
        self.host.seed(sampler, seed)
        meaning = self.deployment.plan.graph.tensors[self.io.logits.tensor].quantization
        for _ in self.prompt:
            self._step(device, run)
        while True:
            token = self.host.sample(sampler, run.logits[-1], float(meaning.scale) if meaning else None)
            run.ids.append(token)
            if token in request.tokenizer.ends:
                run.ending = "end"
                return run
            on_token(token)
            if len(run.ids) - len(self.prompt) == request.tokens:
                return run
            if self.io.positions is not None and len(run.ids) > self.io.positions:
                run.ending = "positions"
                return run
            self._step(device, run)

    def _step(self, device: Device, run: TextRun) -> None:
        """Run the model on the next id."""
        storage, position = self.deployment.storage, len(run.ticks)
        run.ticks.append(run_once(device, storage, self.sample(run, position).stored))
        run.logits.append(storage.get_tensor(device, self.io.logits.tensor))

    def sample(self, run: TextRun, position: int) -> Sample:
        """Return the inputs of the run at a position."""
        graph, inputs = self.deployment.plan.graph, _inputs(self.io, run.ids[position], position)
        stored = {
            it.tensor: to_device(it, graph.tensors[it.tensor], inputs[it.name]) for it in graph.own_inputs()
        }
        return Sample(inputs, stored, {})

    def judged(self, run: TextRun, progress: Progress) -> GeneratedText:
        """Compare a run with ONNX Runtime. A difference is not an exception."""
        progress.stage("comparing with ONNX Runtime")
        assert run.token is not None
        last, place = self.sample(run, len(run.ticks) - 1), Place(self.target, self.firmware)
        observed = retimed(Observation(run.token, [], None), self.deployment, place, last)
        reasons, error, tolerance = _judged(self, run)
        return GeneratedText(self, run, observed.measurement, reasons, error, tolerance)


def ready_text(
    path: Path, target: Target, options: Options, request: TextRequest, progress: Progress
) -> ReadyText:
    """Plan and build a model that shall continue a prompt.

    Raises UsageError for a model that `decoder_io` refuses, for a prompt without tokens or with too many, and
    for a text without an end.
    """
    require_port(target)
    deployment = plan_model(path, target.board, options, progress)
    io = decoder_io(deployment.plan.graph, len(request.tokenizer.pieces), request.choice)
    if io.positions is None and request.tokens is None:
        raise UsageError("no position limits the text: state its most tokens by --tokens")
    host = host_text(request.tokenizer)
    prompt = host.encode(request.prompt.encode("utf-8", "surrogateescape"))
    _require_prompt(prompt, io)
    firmware = deployment.build(target)
    deployment.require_flash(firmware)
    progress.stage(f"running on {target.title}")
    return ReadyText(target, deployment, firmware, io, request, host, prompt)


def _require_prompt(prompt: Sequence[int], io: DecoderIo) -> None:
    if not prompt:
        raise UsageError(
            "the prompt has no tokens, and the tokenizer puts none before a text: give a --prompt"
        )
    if io.positions is not None and len(prompt) > io.positions:
        raise UsageError(
            f"the prompt has {len(prompt)} tokens, the model {io.positions} positions: shorten it"
        )


def _inputs(io: DecoderIo, token: int, position: int) -> dict[str, Array]:
    """The inputs of a run by ONNX name."""
    given = {io.token: token} if io.position is None else {io.token: token, io.position: position}
    return {it.name: np.full(it.shape, value, it.dtype) for it, value in given.items()}


def _expected(deployment: Deployment, io: DecoderIo, ids: Sequence[int]) -> list[Array]:
    """The logits of ONNX Runtime for these ids in turn, in stored form, with its own states."""
    graph, model = deployment.plan.graph, deployment.model
    names = [io.logits.name, *(it.after.name for it in graph.states)]
    before = [it.before.name for it in graph.states]
    reference = Reference(model.path, names, model.choices, before)
    states, expected = initial_states(graph), []
    for position, token in enumerate(ids):
        values = reference.run({**_inputs(io, token, position), **states})
        expected.append(to_device(io.logits, graph.tensors[io.logits.tensor], values[io.logits.name]))
        for it in graph.states:
            stored = to_device(it.after, graph.tensors[it.after.tensor], values[it.after.name])
            states[it.before.name] = from_device(it.before, graph.tensors[it.tensor], stored)
    return expected


def _judged(ready: ReadyText, run: TextRun) -> tuple[list[str], float, Tolerance | None]:
    """The reasons why a run is wrong, the largest error of its logits, and their tolerance."""
    graph, io, request = ready.deployment.plan.graph, ready.io, ready.request
    dtype = graph.tensors[io.logits.tensor].dtype
    expected = _expected(ready.deployment, io, run.ids[: len(run.logits)])
    tolerance = None
    if dtype is DType.FLOAT32:
        tolerance = Tolerance(output_share(graph), range_of(expected), least_tolerance(io.logits, dtype))
    near = 2 * tolerance.allowed if tolerance else 0.0  # logits that are closer may be in either order
    reasons, error = [], 0.0
    for position, (computed, wanted) in enumerate(zip(run.logits, expected, strict=True)):
        diff = difference(computed, wanted)
        error = max(error, diff.worst)
        if not output_passes(computed, wanted, dtype, tolerance):
            reasons.append(
                f"position {position}: logit {diff.where} is {diff.found:g}, expected {diff.expected:g}"
                f"{f'; allowed: {tolerance}' if tolerance else ''}"
            )
        flat = wanted.ravel()[: len(request.tokenizer.pieces)]
        if not np.isfinite(flat.max()):  # it says nothing about a token, and so does all that follows
            reasons.append(
                f"position {position}: the largest logit of ONNX Runtime is {flat.max():g}, which chooses no "
                "token: look at the weights of the model"
            )
            break
        if request.temperature or position + 1 < len(ready.prompt):
            continue
        chosen = run.ids[position + 1]
        if flat[chosen] < flat.max() - near:
            reasons.append(f"position {position}: the token is {chosen}, expected {int(flat.argmax())}")
    return reasons, error, tolerance
