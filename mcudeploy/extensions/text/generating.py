"""A text that a language model on a device generates, and its comparison with ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mcudeploy.boards.catalogue import load_board
from mcudeploy.commands.commands import plan_model
from mcudeploy.common.errors import UsageError
from mcudeploy.common.progress import Progress
from mcudeploy.device.target import Device, Target, open_device, require_port
from mcudeploy.execution.deployment import Deployment
from mcudeploy.execution.running import Observation, Place, retimed
from mcudeploy.extensions.text.decoder_io import DecoderChoice, DecoderIo, decoder_io
from mcudeploy.extensions.text.host_text import HostText, host_text
from mcudeploy.extensions.text.tokenizer_file import Tokenizer
from mcudeploy.ir.graph import DType
from mcudeploy.ir.plan import Measurement
from mcudeploy.ops.host_io import from_device, to_device
from mcudeploy.planner.plan_options import Options
from mcudeploy.toolchain import Firmware
from mcudeploy.verify.cache_loss import CacheLoss, cache_loss
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
from mcudeploy.verify.samples import Sample, initial_states, stored_inputs

Array = NDArray[Any]
Ending = Literal["end", "tokens", "positions"]


@dataclass(frozen=True, slots=True, eq=False)
class TextRequest:
    """A prompt, and how tokens are chosen. `tokens`: the most to generate; None: as positions permit."""

    tokenizer: Tokenizer
    choice: DecoderChoice
    prompt: str
    tokens: int | None = None
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class TextRun:
    """A text from a device: `ids` of prompt and text, stored logits of each run, mean time of a run."""

    ids: Sequence[int]
    logits: Sequence[Array]
    ending: Ending
    mean: Measurement


@dataclass(frozen=True, slots=True, eq=False)
class GeneratedText:
    """A text from a device, compared with ONNX Runtime. `token`: the time of one token.

    `reasons`: why it is not verified. `error`: the largest error of a logit; `tolerance`: that of logits,
    None for int8. `loss`: what int8 caches cost, None without int8 caches.
    """

    ready: ReadyText
    run: TextRun
    token: Measurement
    reasons: Sequence[str]
    error: float
    tolerance: Tolerance | None
    loss: CacheLoss | None = None


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
        request, ids, steps = self.request, list(self.prompt), list[tuple[Array, int]]()
        ending: Ending | None = None
        sampler = self.host.sampler(request.temperature, request.top_k, request.top_p, seed)
        quantization = self.deployment.plan.graph.tensors[self.io.logits.tensor].quantization
        scale = None if quantization is None else float(quantization.scale)
        with open_device(self.target, self.firmware, self.deployment.patience_s) as device:
            device.session.reset()
            while ending is None:
                while len(steps) < len(ids):
                    steps.append(self._step(device, ids[len(steps)], len(steps)))
                logits, _ = steps[-1]
                ids.append(self.host.sample(sampler, logits, scale))
                ending = self._ending(ids)
                if ending != "end":
                    on_token(ids[-1])
            unit, convert = device.time_unit(self.target)
        mean = Measurement(convert(round(sum(ticks for _, ticks in steps) / len(steps))), unit)
        return TextRun(ids, [logits for logits, _ in steps], ending, mean)

    def _ending(self, ids: Sequence[int]) -> Ending | None:
        """Why a text ends after these ids; None if it goes on."""
        if ids[-1] in self.request.tokenizer.ends:
            return "end"
        if len(ids) - len(self.prompt) == self.request.tokens:
            return "tokens"
        return "positions" if self.io.positions is not None and len(ids) > self.io.positions else None

    def _step(self, device: Device, token: int, position: int) -> tuple[Array, int]:
        """Run the model on a token; return the stored logits and the ticks."""
        ticks = run_once(device, self.deployment.storage, self._sample(token, position).stored)
        return self.deployment.storage.get_tensor(device, self.io.logits.tensor), ticks

    def _sample(self, token: int, position: int) -> Sample:
        inputs = _inputs(self.io, token, position)
        return Sample(inputs, stored_inputs(self.deployment.plan.graph, inputs), {})

    def with_comparison(self, run: TextRun, progress: Progress) -> GeneratedText:
        """Compare a run with ONNX Runtime. A difference is not an exception."""
        progress.stage("comparing with ONNX Runtime")
        position = len(run.logits) - 1
        last, place = self._sample(run.ids[position], position), Place(self.target, self.firmware)
        observed = retimed(Observation(run.mean, [], None), self.deployment, place, last)
        result = _compare(self, run, observed.measurement)
        model = self.deployment.model
        if not model.choices.int8_caches:
            return result
        inputs = [_inputs(self.io, token, at) for at, token in enumerate(run.ids[: len(run.logits)])]
        return replace(result, loss=cache_loss(model.path, model.choices, [self.io.logits.name], inputs))


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
    """The logits of ONNX Runtime for these ids in turn, in stored form, with its own states.

    Where an element of an int8 cache differs by one from that of the program, run on this computer, it takes
    the program's: the last bits of floats decide how such an element rounds.
    """
    graph, model, host = deployment.plan.graph, deployment.model, Target(load_board("host"))
    names = [io.logits.name, *(it.after.name for it in graph.states)]
    before = [it.before.name for it in graph.states]
    reference = Reference(model.path, names, model.choices, before)
    states, expected = initial_states(graph), []
    with ExitStack() as stack:
        program: Device | None = None
        if model.choices.int8_caches:
            opened = open_device(host, deployment.build(host), deployment.patience_s)
            program = stack.enter_context(opened)
        for position, token in enumerate(ids):
            inputs = _inputs(io, token, position)
            values = reference.run({**inputs, **states})
            expected.append(to_device(io.logits, graph.tensors[io.logits.tensor], values[io.logits.name]))
            if program is not None:
                run_once(program, deployment.storage, stored_inputs(graph, inputs))
            for it in graph.states:
                stored = to_device(it.after, graph.tensors[it.after.tensor], values[it.after.name])
                if program is not None and stored.dtype == np.int8:
                    of_program = deployment.storage.get_tensor(program, it.after.tensor)
                    near = np.abs(of_program.astype(np.int16) - stored.astype(np.int16)) <= 1
                    stored = np.where(near, of_program, stored)
                states[it.before.name] = from_device(it.before, graph.tensors[it.tensor], stored)
    return expected


def _compare(ready: ReadyText, run: TextRun, token: Measurement) -> GeneratedText:
    """Compare the logits of every run, and without a temperature the tokens. `token`: the time of one."""
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
        if not np.isfinite(flat.max()):  # neither this logit nor later ones choose a token
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
    return GeneratedText(ready, run, token, reasons, error, tolerance)
