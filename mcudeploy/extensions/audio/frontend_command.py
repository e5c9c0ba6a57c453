"""`frontend`: write a front end; the option `--before` of other commands, which joins it to a model."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click
from click import get_current_context

from mcudeploy.cli import result_tables as tables
from mcudeploy.cli.options import (
    Command,
    destination_option,
    files_option,
    is_typed,
    output_options,
    packed_as,
)
from mcudeploy.cli.output import Output
from mcudeploy.cli.parameter_types import InputFile, InputModel
from mcudeploy.common.errors import ModelError, UsageError
from mcudeploy.planner.plan_options import Options

if TYPE_CHECKING:
    from mcudeploy.extensions.audio.front_ends import FrontEnd
    from mcudeploy.extensions.audio.wake_word import Role

    _Roles = dict[Role, tuple[Path, ...]]


def before_option(command: Command) -> Command:
    """Add --before, which replaces `model`, or the only model of `models`, by a joined file."""

    @click.option(
        "--before",
        metavar="FILE.tflite",
        type=InputModel(),
        help="Front end that runs before the model, in one program: a queue of its rows of features is the "
        "model's input. A model with states takes new rows in each run. `mcudeploy frontend` writes some.",
    )
    @functools.wraps(command)
    def packed(*args: Any, before: Path | None, **rest: Any) -> None:
        if before is not None:
            name = "models" if "models" in rest else "model"
            rest[name] = _joined(before, rest[name])
        command(*args, **rest)

    return packed


def _wake_word_options(command: Command) -> Command:
    """Add --manifest, --vad and --stop. With --for esphome, ESPHome's front end comes before the models, and
    their wake words are one of the `parts`.
    """
    for option in (
        click.option(
            "--stop",
            "stops",
            metavar="FILE.tflite",
            multiple=True,
            type=InputModel(),
            help="With --for esphome: a further word, which is heard only while the application enables it. "
            "May be repeated.",
        ),
        click.option(
            "--vad",
            metavar="FILE.tflite",
            type=InputModel(),
            help="With --for esphome: the voice activity detector. Words count only where it hears a voice.",
        ),
        click.option(
            "--manifest",
            metavar="FILE.json",
            type=InputFile(),
            help="With --for esphome: ESPHome's description of the wake word.  [default: the .json beside "
            "each model]",
        ),
    ):
        command = option(command)

    @functools.wraps(command)
    def packed(
        *args: Any, manifest: Path | None, vad: Path | None, stops: tuple[Path, ...], **rest: Any
    ) -> None:
        options = (("--manifest", manifest), ("--vad", vad), ("--stop", stops))
        used = [name for name, value in options if value]
        if rest["kind"] == "esphome":
            roles: _Roles = {"word": rest["models"], "stop": stops, "vad": (vad,) if vad else ()}
            rest |= _wake_words(rest, roles, manifest)
        elif used:
            raise UsageError(f"{used[0]} describes wake words for --for esphome")
        command(*args, **rest)

    return packed


def _wake_words(rest: dict[str, Any], roles: _Roles, manifest: Path | None) -> dict[str, Any]:
    """Return the changed arguments of `build`: the models after a front end, wake words, name and arena."""
    import tempfile
    from dataclasses import replace

    from mcudeploy.codegen.model_names import model_name
    from mcudeploy.extensions.audio.wake_word import WakeWords
    from mcudeploy.extensions.audio.wake_word_manifest import front_end, read_manifest

    models = [path for paths in roles.values() for path in paths]
    if rest["arena"] != "shared" and (is_typed("arena") or rest["arena"] != "own"):
        raise UsageError("the models of a component share an arena, which it owns: leave out --arena")
    if manifest is not None and len(models) > 1:
        raise UsageError("--manifest describes one model: several have their manifests beside them")
    words = {
        path: replace(read_manifest(manifest or path.with_suffix(".json")), role=role)
        for role, paths in roles.items()
        for path in paths
    }
    for path, word in words.items():
        if word.model and word.model.rpartition("/")[2] != path.name:
            click.echo(
                f"warning: {manifest or path.with_suffix('.json')} describes {word.model}, and {path} is "
                "built with its phrase and cut-off",
                err=True,
            )
    default = models[0].stem if len(models) == 1 else rest["directory"].resolve().name
    name = model_name(rest["name"], default)
    folder = Path(get_current_context().with_resource(tempfile.TemporaryDirectory(prefix="mcudeploy-")))
    front = front_end(words, folder / "front_end.tflite")
    parts = (*rest.get("parts", ()), WakeWords(name, tuple(words.values())))
    return {"models": (front, *models), "parts": parts, "name": name, "arena": "shared"}


def _joined(before: Path, models: Path | tuple[Path, ...]) -> Path | tuple[Path, ...]:
    paths = models if isinstance(models, tuple) else (models,)
    if len(paths) != 1:
        raise UsageError(f"--before joins a front end to one model, and there are {len(paths)}")
    from tempfile import TemporaryDirectory

    from mcudeploy.extensions.audio.joining import joined_file

    folder = get_current_context().with_resource(TemporaryDirectory(prefix="mcudeploy-"))
    path = Path(folder) / f"{paths[0].stem}.tflite"  # the C library has the model's name
    path.write_bytes(joined_file(before, paths[0]))
    return (path,) if isinstance(models, tuple) else path


@click.command()
@click.argument("kind", type=click.Choice(["micro-speech", "esphome", "log-mel"]))
@destination_option("Write the front end to this file.", "FILE.tflite", endings=(".tflite",), required=True)
@click.option(
    "--sample-rate", metavar="HZ", type=click.IntRange(1000, 192_000), default=16_000, show_default=True
)
@click.option(
    "--window",
    metavar="SAMPLES",
    type=click.IntRange(4, 32_768),
    default=480,
    show_default=True,
    help="Samples of a frame.",
)
@click.option(
    "--step",
    metavar="SAMPLES",
    type=click.IntRange(1, 32_768),
    callback=lambda context, _, step: step or (160 if context.params["kind"] == "esphome" else 320),
    help="New samples for each row of features.  [default: 320; 160 for esphome]",
)
@click.option(
    "--channels",
    metavar="N",
    type=click.IntRange(1, 512),
    default=40,
    show_default=True,
    help="Features of a row.",
)
@click.option(
    "--low", metavar="HZ", type=float, default=125.0, show_default=True, help="Lower end of the channels."
)
@click.option(
    "--high", metavar="HZ", type=float, default=7500.0, show_default=True, help="Upper end of the channels."
)
@click.option(
    "--features",
    type=click.Choice(["int8", "float32"]),
    help="Element type of the features.  [default: int8; float32 for log-mel]",
)
@files_option
@output_options
@click.pass_context
@packed_as(
    "sizes",
    "mcudeploy.extensions.audio.front_ends:FrontEnd",
    *("window", "channels", "low", "high"),
    rate="sample_rate",
    hop="step",
)
def frontend(
    context: click.Context,
    *,
    kind: str,
    destination: Path,
    sizes: FrontEnd,
    features: str | None,
    output: Output,
) -> None:
    """Write a front end: from int16 samples to a row of features, for --before.

    micro-speech computes the features of TensorFlow Lite Micro's micro_speech in fixed point, esphome those
    of ESPHome's wake words, whose tables are rounded differently. log-mel computes the logarithms of mel
    channels in float32.
    """
    from mcudeploy.commands import checking
    from mcudeploy.common.files import write_file
    from mcudeploy.extensions.audio import front_ends
    from mcudeploy.extensions.audio.file_writer import tflite_file

    if kind == "log-mel":
        if features == "int8":
            raise UsageError("log-mel makes float32 features: leave out --features int8")
        contents = front_ends.log_mel(sizes)
    else:
        contents = front_ends.micro_speech(sizes, quantized=features != "float32", esphome=kind == "esphome")
    write_file(destination, tflite_file(contents))
    report = output.result(checking.check_model(destination, None, Options()), tables.check)
    if not report["supported"]:
        destination.unlink()
        context.exit(ModelError.exit_code)


OPTIONS = {
    **dict.fromkeys(("check", "measure", "plan", "run", "tune"), (before_option,)),
    "build": (before_option, _wake_word_options),
}
