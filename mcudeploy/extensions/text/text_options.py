"""Options of language models, for `build` and `generate`, and the section of their reports."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import rich_click as click

from mcudeploy.cli.options import Command
from mcudeploy.cli.output import Values
from mcudeploy.cli.parameter_types import InputFile
from mcudeploy.cli.table_grids import ReportSection
from mcudeploy.common.errors import UsageError

_CHOICE = ("token", "logits", "positions")


def tokenizer_options(required: bool) -> Callable[[Command], Command]:
    """Add --tokenizer and its options, which become `tokenizer`, a `Tokenizer` or None, and `choice`."""

    def wrapped(command: Command) -> Command:
        @functools.wraps(command)
        def packed(*args: Any, tokenizer: Path | None, stop_token: tuple[str, ...], **rest: Any) -> None:
            given = {name: rest.pop(name) for name in _CHOICE}
            if tokenizer is None:
                if stop_token or any(given.values()):
                    raise UsageError("--stop-token, --token, --logits and --positions need --tokenizer")
                command(*args, tokenizer=None, choice=None, **rest)
                return
            from mcudeploy.extensions.text.decoder_io import DecoderChoice
            from mcudeploy.extensions.text.tokenizer_file import read_tokenizer

            read = read_tokenizer(tokenizer, stop_token)
            command(*args, tokenizer=read, choice=DecoderChoice(**given), **rest)

        result: Command = packed
        for option in _options(required):
            result = option(result)
        return result

    return wrapped


def _options(required: bool) -> list[Any]:
    return [
        click.option(
            "--positions",
            metavar="N",
            type=click.IntRange(1, 2**20),
            help="Most tokens of prompt and text together.  [default: the rows of the model's tables]",
        ),
        click.option("--logits", metavar="OUTPUT", help="The output with the logits, if several may be."),
        click.option("--token", metavar="INPUT", help="The input with the token, if several may be."),
        click.option(
            "--stop-token",
            metavar="TEXT",
            multiple=True,
            help="Token that ends a text, as the file has it; may be given several times.  [default: the "
            "special ones that are known for it, such as </s>]",
        ),
        click.option(
            "--tokenizer",
            metavar="FILE",
            type=InputFile(),
            required=required,
            help="The tokenizer.json of a language model that reads one token a run"
            f"{'' if required else ': also write MODEL_generate(), which continues a prompt'}.",
        ),
    ]


def _build_option(command: Command) -> Command:
    """Add --tokenizer, which becomes one of the `parts`."""

    @functools.wraps(command)
    def packed(*args: Any, tokenizer: Any, choice: Any, parts: tuple[Any, ...] = (), **rest: Any) -> None:
        if tokenizer is not None:
            from mcudeploy.extensions.text.generate_part import GeneratePart

            parts = (*parts, GeneratePart(tokenizer, choice))
        command(*args, parts=parts, **rest)

    return tokenizer_options(required=False)(packed)


OPTIONS = {"build": (_build_option,)}


def _facts(report: Values) -> list[tuple[str, str]]:
    """Return the line `text`: tokens, positions, the bytes that a token reads, and those of the tokenizer."""
    text = report.get("text")
    if not text:
        return []
    places = "" if text["positions"] is None else f", {text['positions']:,} positions"
    sizes = f"{text['constants_read_bytes']:,} B of constants read for a token; "
    sizes += f"{text['table_bytes']:,} B of tables in flash, {text['ram_bytes']:,} B of RAM beside the arena"
    return [("text", f"{text['tokens']:,} tokens{places}; {sizes}")]


SECTION = ReportSection(lambda _console, _report: None, _facts)
