"""Options that several commands share; each decorator packs its options into one value for the command."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import rich_click as click
from click import get_current_context

from mcudeploy.cli.config import FILE_NAME
from mcudeploy.cli.output import Output, tell_commands
from mcudeploy.cli.parameter_types import (
    Cores,
    Finite,
    InputFile,
    InputModel,
    InputShape,
    Limit,
    NewFile,
    SizeType,
)
from mcudeploy.common.errors import UsageError

Command = Callable[..., None]
_PLAN_HELP = (
    "Use this plan, written by `mcudeploy plan -o`. `plan` and `tune` continue the search from it, unless "
    "--no-split is given."
)


def model_argument(command: Command) -> Command:
    """Add MODEL as `model: Path`."""
    return click.argument("model", type=InputModel())(command)


def float_io_option(command: Command) -> Command:
    """Add --float-io as `float_io: bool`."""
    return click.option(
        "--float-io/--no-float-io",
        default=False,
        help="Keep the float inputs and outputs of a quantised model; by default the caller converts.",
    )(command)


def shape_option(command: Command) -> Command:
    """Add --shape as `shapes: tuple[tuple[str, Sizes], ...]`."""

    @click.option(
        "--shape",
        "shapes",
        metavar="NAME=SIZE,SIZE,...",
        type=InputShape(),
        multiple=True,
        help="Shape of an input that has open dimensions, or replaces the file's shape. Once for each input.",
    )
    @functools.wraps(command)
    def checked(*args: Any, shapes: tuple[tuple[str, tuple[int, ...]], ...], **rest: Any) -> None:
        names = [name for name, _ in shapes]
        twice = next((name for index, name in enumerate(names) if name in names[:index]), None)
        if twice is not None:
            raise UsageError(f"--shape {twice} is given twice")
        command(*args, shapes=shapes, **rest)

    return checked


def reading_options(command: Command) -> Command:
    """Add the options for reading a model, packed as `model_options`: fields of `planner.Options`."""

    @float_io_option
    @click.option(
        "--keep-constant-channels/--no-keep-constant-channels",
        "keep_constant",
        default=False,
        help="Keep constant and unused channels instead of removing them.",
    )
    @shape_option
    @click.option(
        "--stateful/--no-stateful",
        default=False,
        help="Keep the states of LSTM, GRU and RNN between runs: each run continues from the previous one.",
    )
    @functools.wraps(command)
    def packed(
        *args: Any,
        float_io: bool,
        keep_constant: bool,
        shapes: tuple[tuple[str, tuple[int, ...]], ...],
        stateful: bool,
        **rest: Any,
    ) -> None:
        model_options = {
            "float_io": float_io,
            "keep_constant": keep_constant,
            "shapes": shapes,
            "stateful": stateful,
        }
        command(*args, model_options=model_options, **rest)

    return packed


def overhead_option(command: Command) -> Command:
    """Add --max-overhead as `max_overhead: float`."""
    return click.option(
        "--max-overhead",
        metavar="PERCENT",
        type=Finite(min=0),
        default=5.0,
        show_default=True,
        help="Maximum slowdown of a plan against the unsplit plan, in percent.",
    )(command)


def planning_options(command: Command) -> Command:
    """Add the options of the search, packed as `options: deploy.Options`."""

    @click.option("--plan", "plan_file", type=InputFile(), help=_PLAN_HELP)
    @overhead_option
    @click.option(
        "--time-limit",
        metavar="SECONDS",
        type=Finite(min=0, min_open=True),
        default=60.0,
        show_default=True,
        help="Time limit for planning on an ordinary PC. Work is counted, not timed: a busy machine takes "
        "longer and finds the same plan.",
    )
    @click.option(
        "--ram-limit", type=SizeType(), help="Bytes that the arena may take, such as 96k, 64KiB or 1M."
    )
    @click.option(
        "--memory",
        "memory_limits",
        metavar="NAME=SIZE",
        type=Limit(),
        multiple=True,
        help="Maximum arena size in this memory, 0 for none. Once for each memory.",
    )
    @click.option(
        "--dma-io/--no-dma-io",
        default=True,
        show_default=True,
        help="Keep inputs and outputs out of memories that no DMA engine reaches.",
    )
    @click.option("--split/--no-split", default=True, show_default=True, help="Cut operators into rows.")
    @click.option(
        "--stream-input/--no-stream-input",
        default=False,
        help="The application delivers the input row by row while the model runs.",
    )
    @click.option(
        "--assign",
        metavar="UNIT=PATTERN[,PATTERN...]",
        multiple=True,
        help="Run operators with these names (globs) or of these kinds on this compute unit of the board; "
        "`auto` follows the board's rules. Several times for several units.",
    )
    @click.option(
        "--placement",
        type=click.Choice(["blocks", "tags"]),
        default="blocks",
        show_default=True,
        help="With --no-split: place tensors at free offsets, or let those with one memory tag share memory.",
    )
    @click.option(
        "--parallel",
        metavar="N|auto",
        type=Cores(),
        help="Number of the board's cores that run the model together, each a part of every step; "
        "`auto` uses all cores.  [default: 1]",
    )
    @click.option(
        "--objective",
        type=click.Choice(["instructions", "cycles"]),
        default="instructions",
        show_default=True,
        help="Metric to optimise on emulated boards: instruction count or modelled cycles. Hardware always "
        "uses measured cycles.",
    )
    @click.option(
        "--seed",
        metavar="N",
        type=click.IntRange(min=0),
        default=0,
        show_default=True,
        help="Seed of every random choice.",
    )
    @reading_options
    @functools.wraps(command)
    def packed(
        *args: Any,
        plan_file: Path | None,
        max_overhead: float,
        time_limit: float,
        ram_limit: int | None,
        memory_limits: tuple[tuple[str, int], ...],
        dma_io: bool,
        split: bool,
        stream_input: bool,
        assign: tuple[str, ...],
        placement: Literal["blocks", "tags"],
        parallel: int | None,
        objective: Literal["instructions", "cycles"],
        seed: int,
        model_options: dict[str, Any],
        **rest: Any,
    ) -> None:
        from mcudeploy.planner.planner import Options

        memories = [name for name, _ in memory_limits]
        twice = next((name for index, name in enumerate(memories) if name in memories[:index]), None)
        if twice is not None:
            raise UsageError(f"--memory {twice} is given twice")
        if placement == "tags" and (split or plan_file is not None):
            raise UsageError("--placement tags places whole tensors: add --no-split, and leave out --plan")
        options = Options(
            max_overhead=max_overhead,
            time_limit=time_limit,
            ram_limit=ram_limit,
            memory_limits=memory_limits,
            dma_io=dma_io,
            split=split,
            stream_input=stream_input,
            assign=assign,
            placement=placement,
            cores=parallel,
            objective=objective,
            seed=seed,
            plan_file=plan_file,
            **model_options,
        )
        command(*args, options=options, **rest)

    return packed


def plan_file_options(command: Command) -> Command:
    """Add -o and --chart: files for the plan and for its picture."""
    destination = click.option(
        "-o",
        "--output",
        "destination",
        metavar="FILE",
        type=NewFile(),
        help="Write the plan to this file, for --plan.",
    )
    picture = click.option(
        "--chart",
        metavar="FILE",
        type=NewFile(),
        callback=_chart_file,
        help="Draw the plan, the arena over steps, as .svg or .html.",
    )
    return destination(picture(files_option(command)))


def files_option(command: Command) -> Command:
    """Add --force, and refuse to overwrite an input file or a file that mcudeploy did not write.

    Every command with a `NewFile` needs it.
    """

    @click.option("--force", is_flag=True, help="Overwrite files that mcudeploy did not write.")
    @functools.wraps(command)
    def guarded(*args: Any, force: bool, **rest: Any) -> None:
        _require_new_files(get_current_context(), force)
        command(*args, **rest)

    return guarded


def _require_new_files(context: click.Context, force: bool) -> None:
    from mcudeploy.common.files import is_ours, same_file

    known = [(FILE_NAME, Path(FILE_NAME)), *_paths(context, InputFile)]
    for name, path in _paths(context, NewFile):
        for other, taken in known:
            if same_file(path, taken):
                raise UsageError(f"{name} {path} is also {other}: choose another file")
        if path.is_file() and not force and not is_ours(path):
            raise UsageError(
                f"{path} exists and was not written by mcudeploy: choose another file, or overwrite it with "
                "--force"
            )
        known.append((name, path))


def _paths(context: click.Context, kind: type[click.ParamType[Any]]) -> list[tuple[str, Path]]:
    """The name and the path of each parameter of this kind, as the user gave them."""
    given = [(each, context.params.get(each.name or "")) for each in context.command.params]
    return [
        (parameter.opts[-1] if isinstance(parameter, click.Option) else parameter.make_metavar(context), path)
        for parameter, value in given
        if isinstance(parameter.type, kind) and value is not None
        for path in (value if isinstance(value, tuple) else (value,))
    ]


def _chart_file(_: click.Context, __: click.Parameter, path: Path | None) -> Path | None:
    from mcudeploy.report.chart import require_format

    if path is not None:
        require_format(path)  # refused before the search, not after it
    return path


def timing_option(command: Command) -> Command:
    """Add --timing as `timing: str`."""
    return click.option(
        "--timing",
        type=click.Choice(["instructions", "cycles-model", "traffic"]),
        default="instructions",
        show_default=True,
        help="Metric that the emulator counts: executed instructions; cycles by a model of the core; or "
        "instructions and what slow memories add. The last two also count bytes by memory.",
    )(command)


def output_options(command: Command) -> Command:
    """Add --json, --quiet, --verbose and --traceback, packed as `output: Output`."""

    @click.option(
        "--json", "as_json", is_flag=True, help="Print one JSON object on stdout instead of tables."
    )
    @click.option(
        "-q", "--quiet", is_flag=True, is_eager=True, help="Print errors only: no tables, no progress."
    )
    @click.option(
        "-v",
        "--verbose",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=lambda _, __, wanted: tell_commands() if wanted else None,
        help="Print the command lines of the tools that run, and the files that are written.",
    )
    @click.option(
        "--traceback", is_flag=True, expose_value=False, help="Show the Python traceback of an error."
    )
    @functools.wraps(command)
    def packed(*args: Any, as_json: bool, quiet: bool, **rest: Any) -> None:
        command(*args, output=Output(as_json, quiet), **rest)

    return packed
