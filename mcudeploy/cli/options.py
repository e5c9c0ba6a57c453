"""The options that commands share; each decorator packs its options into the value that a command wants."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import rich_click as click
from click import get_current_context
from click.core import ParameterSource

from mcudeploy.cli.config import FILE_NAME
from mcudeploy.cli.output import Output
from mcudeploy.cli.values import Finite, InputFile, Limit, NewFile, Size
from mcudeploy.common.errors import UsageError

if TYPE_CHECKING:
    from mcudeploy.boards.board import Board

Command = Callable[..., None]
_PLAN_HELP = (
    "Use this plan, written by `mcudeploy plan -o`; `plan` and `tune` search on from it, unless --no-split."
)
_MOST_MEASURERS = 64


def model_argument(command: Command) -> Command:
    """Adds MODEL as `model: Path`."""
    return click.argument("model", type=InputFile())(command)


def board_option(required: bool) -> Callable[[Command], Command]:
    """Adds --board as `board: Board`, or None."""
    return _board_name(required, _load_board)


def _board_name(required: bool, load: Callable[..., Board | None]) -> Callable[[Command], Command]:
    return click.option(
        "--board",
        metavar="NAME",
        required=required,
        callback=load,
        help="Board or board family; see `mcudeploy boards`.",
    )


def _load_board(_: click.Context, __: click.Parameter, name: str | None) -> Board | None:
    from mcudeploy.boards.board import load_board

    return None if name is None else load_board(name)


def _load_attached(context: click.Context, _: click.Parameter, name: str) -> Board:
    """The board of that name; of a family's boards the attached one, or else the family's default."""
    from mcudeploy.boards.board import family
    from mcudeploy.targets.ports import list_serial_ports

    boards = family(name)
    if len(boards) == 1 or context.params["emulate"]:
        return boards[0]
    attached = {board for port in list_serial_ports(boards) for board in port.boards}
    return next((board for board in boards if board.name in attached), boards[0])


def float_io_option(command: Command) -> Command:
    """Adds --float-io as `float_io: bool`."""
    return click.option(
        "--float-io/--no-float-io",
        default=False,
        help="Keep the float inputs and outputs of a quantised model; else the caller converts.",
    )(command)


def planning_options(command: Command) -> Command:
    """Adds the options of the search, packed as `options: deploy.Options`."""

    @click.option("--plan", "plan_file", type=InputFile(), help=_PLAN_HELP)
    @click.option(
        "--max-overhead",
        metavar="PERCENT",
        type=Finite(min=0),
        default=5.0,
        show_default=True,
        help="How much slower than the unsplit plan a plan may be.",
    )
    @click.option(
        "--time-limit",
        metavar="SECONDS",
        type=Finite(min=0, min_open=True),
        default=60.0,
        show_default=True,
        help="How long planning may take on an ordinary PC. Work is counted, not timed: a busy machine takes "
        "longer and finds the same plan.",
    )
    @click.option("--ram-limit", type=Size(), help="Bytes that the arena may take, such as 96k, 64KiB or 1M.")
    @click.option(
        "--memory",
        "memory_limits",
        metavar="NAME=SIZE",
        type=Limit(),
        multiple=True,
        help="Bytes that the arena in this memory may take, 0 for none. Once for each memory.",
    )
    @click.option(
        "--split/--no-split", default=True, show_default=True, help="Cut operators into rows, or not."
    )
    @click.option(
        "--stream-input/--no-stream-input",
        default=False,
        help="The application delivers the input row by row while the model runs.",
    )
    @click.option(
        "--assign",
        metavar="UNIT=PATTERN[,PATTERN...]",
        multiple=True,
        help="Run operators of these names (globs) or kinds on this compute unit of the board; "
        "`auto`: by the board's rules. Several times for several units.",
    )
    @click.option(
        "--placement",
        type=click.Choice(["blocks", "tags"]),
        default="blocks",
        show_default=True,
        help="With --no-split: tensors lie where there is room, or share memory by their tags.",
    )
    @click.option(
        "--seed",
        metavar="N",
        type=click.IntRange(min=0),
        default=0,
        show_default=True,
        help="Start of every random choice.",
    )
    @float_io_option
    @functools.wraps(command)
    def packed(
        *args: Any,
        plan_file: Path | None,
        max_overhead: float,
        time_limit: float,
        ram_limit: int | None,
        memory_limits: tuple[tuple[str, int], ...],
        split: bool,
        stream_input: bool,
        assign: tuple[str, ...],
        placement: Literal["blocks", "tags"],
        seed: int,
        float_io: bool,
        **rest: Any,
    ) -> None:
        from mcudeploy.search.planner import Options

        memories = [name for name, _ in memory_limits]
        twice = next((name for index, name in enumerate(memories) if name in memories[:index]), None)
        if twice is not None:
            raise UsageError(f"--memory {twice} is given twice")
        if placement == "tags" and (split or plan_file is not None):
            raise UsageError("--placement tags places whole tensors anew: add --no-split, and give no --plan")
        options = Options(
            max_overhead=max_overhead,
            time_limit=time_limit,
            ram_limit=ram_limit,
            memory_limits=memory_limits,
            split=split,
            stream_input=stream_input,
            assign=assign,
            placement=placement,
            float_io=float_io,
            seed=seed,
            plan_file=plan_file,
        )
        command(*args, options=options, **rest)

    return packed


def plan_file_options(command: Command) -> Command:
    """Adds -o and --chart: where to write the plan that was found, and a picture of it."""
    destination = click.option(
        "-o",
        "--output",
        "destination",
        metavar="FILE",
        type=NewFile(),
        help="Write the plan, for --plan.",
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
    """Adds --force, and refuses to run where a file to write is one that is read, or is not ours.

    Belongs to every command with a `NewFile`.
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
    """What the user calls each parameter of this kind, and every path that it was given."""
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


_emulate_option = click.option(
    "--emulate/--no-emulate",
    default=False,
    is_eager=True,
    help="Run the board's QEMU machine instead of hardware; implied for boards that exist only there.",
)


def device_options(command: Command) -> Command:
    """Adds --board, --port and --emulate, packed as `target: Target`."""

    @_board_name(True, _load_attached)
    @click.option(
        "--port",
        metavar="PORT",
        help="Serial port of the board, or a URL that pyserial knows; found if not given.",
    )
    @_emulate_option
    @functools.wraps(command)
    def packed(*args: Any, board: Board, port: str | None, emulate: bool, **rest: Any) -> None:
        from mcudeploy.device.target import Target

        if port is not None and not _takes_port(board, emulate):
            port = None
        command(*args, target=Target(board, port, emulate), **rest)

    return packed


class _Several(click.Option):
    """May be given several times; `mcudeploy.toml` or a variable gives one."""

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """A tuple of what was given."""
        return super().type_cast_value(ctx, (value,) if isinstance(value, str) else value)


def devices_options(command: Command) -> Command:
    """Adds --board, --port (several times), --emulate and --measurers, packed as `targets`, one or more."""

    @_board_name(True, _load_attached)
    @click.option(
        "--port",
        "ports",
        metavar="PORT",
        cls=_Several,
        multiple=True,
        help="Serial port of a board, or a URL that pyserial knows; found if not given. "
        "Several times for several boards of a kind, which share the measuring.",
    )
    @_emulate_option
    @click.option(
        "--measurers",
        metavar="N",
        type=click.IntRange(1, _MOST_MEASURERS),
        help="How many boards measure at the same time: emulators, or as many boards as --port names.",
    )
    @functools.wraps(command)
    def packed(
        *args: Any, board: Board, ports: tuple[str, ...], emulate: bool, measurers: int | None, **rest: Any
    ) -> None:
        from mcudeploy.device.target import Target

        if ports and not _takes_port(board, emulate, "ports"):
            ports = ()
        if board.is_host or board.emulated_only or emulate:
            targets = (Target(board, None, emulate),) * (measurers or 1)
        else:
            _require_boards(ports, measurers)
            targets = tuple(Target(board, port) for port in ports or (None,))
        command(*args, targets=targets, **rest)

    return packed


def _require_boards(ports: tuple[str, ...], measurers: int | None) -> None:
    """A usage error for a port that is given twice, or for another number of measurers than of boards."""
    twice = next((port for index, port in enumerate(ports) if port in ports[:index]), None)
    if twice is not None:
        raise UsageError(f"--port {twice} is given twice: one board measures one tile at a time")
    boards = max(1, len(ports))
    source = get_current_context().get_parameter_source("measurers")
    if measurers not in (None, boards) and source is ParameterSource.COMMANDLINE:
        raise UsageError(
            f"--measurers {measurers} needs as many boards: give --port {measurers} times, or --emulate"
        )


def _takes_port(board: Board, emulate: bool, name: str = "port") -> bool:
    """Whether a port makes sense; a usage error for one on the command line that would have no effect.

    One from `mcudeploy.toml` or a variable describes the desk: it waits for the next run on hardware.
    """
    if not (emulate or board.is_host or board.emulated_only):
        return True
    source = get_current_context().get_parameter_source(name)
    if source is not ParameterSource.COMMANDLINE:
        return False
    where = "is this machine" if board.is_host else "runs in the emulator"
    raise UsageError(f"--port names a real board's port; {board.name} {where}")


def timing_option(command: Command) -> Command:
    """Adds --timing as `timing: str`."""
    return click.option(
        "--timing",
        type=click.Choice(["instructions", "cycles-model"]),
        default="instructions",
        show_default=True,
        help="What to count in the emulator: executed instructions, or cycles by a model of the core.",
    )(command)


def sample_options(command: Command) -> Command:
    """Adds --input and --expected as tuples of paths, one per input and output of the model."""
    given = click.option(
        "--input",
        "inputs",
        metavar="FILE.npy",
        type=InputFile(),
        multiple=True,
        help="Value of the next input, in the ONNX file's layout; more sets, more runs; drawn if none.",
    )
    expected = click.option(
        "--expected",
        metavar="FILE.npy",
        type=InputFile(),
        multiple=True,
        help="Value that the next model output must have; ONNX Runtime computes it if none is given.",
    )
    return given(expected(command))


def output_options(command: Command) -> Command:
    """Adds --json, --quiet and --traceback, packed as `output: Output`."""

    @click.option(
        "--json", "as_json", is_flag=True, help="Print one JSON object on stdout instead of tables."
    )
    @click.option("--quiet", is_flag=True, help="No tables, no progress: errors only.")
    @click.option(
        "--traceback", is_flag=True, expose_value=False, help="Show the Python traceback of an error."
    )
    @functools.wraps(command)
    def packed(*args: Any, as_json: bool, quiet: bool, **rest: Any) -> None:
        command(*args, output=Output(as_json, quiet), **rest)

    return packed
