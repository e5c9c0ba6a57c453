"""`generate`: a language model on a device continues a prompt."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from mcudeploy.cli.devices import device_options
from mcudeploy.cli.help import LongCommand
from mcudeploy.cli.options import model_argument, output_options, packed_as, planning_options
from mcudeploy.cli.output import Output, Values, cell, terminal
from mcudeploy.cli.parameter_types import Finite
from mcudeploy.cli.table_grids import facts
from mcudeploy.common.errors import OutputsDifferError
from mcudeploy.common.text import plain
from mcudeploy.extensions.text.text_options import tokenizer_options

if TYPE_CHECKING:
    from rich.console import Console

    from mcudeploy.device.target import Target
    from mcudeploy.extensions.text.generating import GeneratedText, TextRequest
    from mcudeploy.extensions.text.tokenizer_file import Tokenizer
    from mcudeploy.planner.plan_options import Options


@click.command(cls=LongCommand)
@model_argument
@device_options
@click.option("--prompt", metavar="TEXT", default="", help="The text to continue.  [default: none]")
@click.option(
    "--tokens",
    metavar="N",
    type=click.IntRange(min=1),
    help="Most tokens to generate.  [default: until all positions are used]",
)
@click.option(
    "--temperature",
    metavar="T",
    type=Finite(0, 1000),
    default=0.0,
    show_default=True,
    help="Draw tokens by their probabilities at this temperature, with --seed; 0: the most probable one.",
)
@click.option(
    "--top-k",
    metavar="K",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Draw among the K most probable tokens; 0: all.",
)
@click.option(
    "--top-p",
    metavar="P",
    type=Finite(0, 1),
    default=1.0,
    show_default=True,
    help="Draw among the fewest tokens whose probabilities together reach P.",
)
@planning_options()
@output_options
@click.pass_context
@tokenizer_options(required=True)
@packed_as(
    "request",
    "mcudeploy.extensions.text.generating:TextRequest",
    *("tokenizer", "choice", "prompt", "tokens", "temperature", "top_k", "top_p"),
)
def generate(
    context: click.Context,
    *,
    model: Path,
    target: Target,
    request: TextRequest,
    options: Options,
    output: Output,
) -> None:
    """Continue a prompt with a language model on a device, and compare its logits with ONNX Runtime."""
    from mcudeploy.extensions.text.generating import ready_text

    writer = _Writer(request.tokenizer, sys.stdout.write if not output.as_json else lambda _: None)
    with output.progress() as progress:
        ready = ready_text(model, target, options, request, progress)
    run = ready.run(options.seed, writer.add)  # without progress, which would be drawn over the text
    writer.end()
    with output.progress() as progress:
        report = _report(ready.with_comparison(run, progress), writer.text)
    if output.as_json:
        output.result(report, _show)
    elif not output.quiet or report["reason"]:
        _show(terminal(stderr=True), report)
    if not report["verified"]:
        context.exit(OutputsDifferError.exit_code)


class _Writer:
    """Writes the text of each token at once; characters that control a terminal are escaped."""

    def __init__(self, tokenizer: Tokenizer, write: Callable[[str], object]) -> None:
        self._tokenizer, self._write = tokenizer, write
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.text = ""

    def add(self, token: int) -> None:
        """Write a token; a character that is not complete waits for the next one."""
        special = token in self._tokenizer.special
        self._put(self._decoder.decode(b"" if special else self._tokenizer.pieces[token]))

    def end(self) -> None:
        """Write the rest, and end the line."""
        self._put(self._decoder.decode(b"", final=True))
        self._write("\n")
        sys.stdout.flush()

    def _put(self, text: str) -> None:
        self.text += text
        self._write("\n".join(plain(it.expandtabs(4)) for it in text.split("\n")))
        sys.stdout.flush()


def _report(result: GeneratedText, text: str) -> dict[str, Any]:
    """The JSON object of a text."""
    from mcudeploy.extensions.text.decoder_io import constants_read_bytes
    from mcudeploy.extensions.text.tokenizer_tables import tokenizer_bytes
    from mcudeploy.ir.clock import latency_object

    ready, run = result.ready, result.run
    deployment, prompt_length = ready.deployment, len(ready.prompt)
    latency = latency_object(result.token.latency, result.token.unit, deployment.board.clock_hz)
    milliseconds = latency["milliseconds"]
    return {
        "board": deployment.board.name,
        "model_sha256": deployment.model.sha256,
        "text": text,
        "prompt_tokens": run.ids[:prompt_length],
        "tokens": run.ids[prompt_length:],
        "ended_by": run.ending,
        "verified": not result.reasons,
        "reason": "; ".join(result.reasons),
        "largest_error": result.error,
        "tolerance": None if result.tolerance is None else result.tolerance.allowed,
        **({} if result.loss is None else {"int8_caches": asdict(result.loss)}),
        "latency": latency,
        "tokens_per_second": 1000 / milliseconds if milliseconds else None,
        "constants_read_bytes": constants_read_bytes(deployment.view),
        "arena_bytes": deployment.plan.layout.arena_bytes,
        "flash_bytes": ready.firmware.sizes.flash_bytes,
        "table_bytes": tokenizer_bytes(ready.request.tokenizer),
    }


def _show(console: Console, report: Values) -> None:
    from mcudeploy.report.wording import int8_caches_text

    latency, rate = report["latency"], report["tokens_per_second"]
    seconds = "" if rate is None else f"{latency['milliseconds']:,.3f} ms, {rate:,.1f} tokens a second"
    facts(
        console,
        [
            ("tokens", f"{len(report['tokens'])} after {len(report['prompt_tokens'])} of the prompt"),
            (
                "ended by",
                {"end": "a token", "tokens": "--tokens", "positions": "the positions"}[report["ended_by"]],
            ),
            ("a token", f"{latency['value']:,} {latency['unit']}; {seconds}"),
            ("constants", f"{report['constants_read_bytes']:,} B read for a token"),
            ("arena", f"{report['arena_bytes']:,} B"),
            ("int8 caches", int8_caches_text(report)),
            ("flash", f"{report['flash_bytes']:,} B, and {report['table_bytes']:,} B of the tokenizer"),
        ],
    )
    if report["verified"]:
        allowed = "" if report["tolerance"] is None else f", allowed {report['tolerance']:.3g}"
        text = f"verified: the logits of every token; largest error {report['largest_error']:.3g}{allowed}"
        console.print(cell(text, "bold"))
    else:
        console.print(cell(f"not verified: {report['reason']}", "bold red"), soft_wrap=True)
