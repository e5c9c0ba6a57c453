"""The options of reading and planning: one table for the command line, settings and Python keywords."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, lcm
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from mcudeploy.common.sizes import (
    parse_alignment,
    parse_constant,
    parse_cores,
    parse_limit,
    parse_shape,
    parse_size,
    parse_state,
)

if TYPE_CHECKING:
    from mcudeploy.boards.board import Board
    from mcudeploy.costs.estimate import TimeUnit
    from mcudeploy.ops.requantize import Rounding

Placement = Literal["blocks", "tags"]
Optimize = Literal["speed", "balanced", "size"]
Kind = Callable[[str], Any] | tuple[str, ...]
"""The allowed texts of a value, or the function that parses it; Path is a file to read."""


@dataclass(frozen=True, slots=True)
class OptionSpec:
    """An option as users see it: the field of `Options` it sets, its long name and its Python keyword."""

    field: str
    kind: Kind
    help: str
    metavar: str | None = None
    named: str = ""
    """The long name if it is not the field's."""
    keyword_named: str = ""
    """The keyword if it is not the long name."""
    least: float | None = None
    above: bool = False
    """Whether a value must exceed `least`."""

    @property
    def flag(self) -> str:
        return (self.named or self.field).replace("_", "-")

    @property
    def keyword(self) -> str:
        return self.keyword_named or self.flag.replace("-", "_")


class Tradeoff(NamedTuple):
    """The worth of time, both in percent: the slowdown that less RAM may cost, and the share of the program
    that 1 % of the time is worth in flash.
    """

    max_overhead: float
    flash_percent: float


TRADEOFFS: dict[Optimize, Tradeoff] = {
    "speed": Tradeoff(1.0, inf),
    "balanced": Tradeoff(5.0, 5.0),
    "size": Tradeoff(25.0, 1.0),
}


Loading = Literal["engine", "core", "never"]
"""Who loads constants from flash: an engine, or else the core as well, or nobody."""


@dataclass(frozen=True, slots=True)
class Options:
    """The user's choices: the values of `OPTIONS`, and `name`, the prefix of names in C.

    `plan_file` replaces the search; with `resume` the search begins there. `order_file` states the order of
    the operators, and the plan is uncut.
    """

    plan_file: Path | None = None
    order_file: Path | None = None
    optimize: Optimize = "balanced"
    max_overhead: float | None = None
    """None for that of `optimize`."""
    time_limit: float = 60.0
    ram_limit: int | None = None
    flash_limit: int | None = None
    memory_limits: tuple[tuple[str, int], ...] = ()
    dma_io: bool = True
    io_align: int = 1
    load_constants: Loading = "engine"
    split: bool = True
    stream_input: bool = False
    whole_inputs: tuple[str, ...] = ()
    """The names of inputs that `stream_input` leaves whole in memory, as the target of a training step."""
    assign: tuple[str, ...] = ()
    placement: Placement = "blocks"
    cores: int | None = None
    """0 for all cores of the board; None for the number of a stored plan, or else one."""
    objective: TimeUnit | None = None
    """None for `Options.unit_on`."""
    seed: int = 0
    float_io: bool = False
    keep_constant: bool = False
    shapes: tuple[tuple[str, tuple[int, ...]], ...] = ()
    constants: tuple[tuple[str, float], ...] = ()
    states: tuple[tuple[str, str], ...] = ()
    int8_caches: tuple[str, ...] = ()
    stateful: bool = False
    rounding: Rounding | None = None
    """None for that of the file's format, if all its operators have it."""
    hop: int | None = None
    replaceable: tuple[str, ...] = ()
    parameters_in: Literal["ram", "flash"] = "ram"
    fresh: bool = False
    """Search, even if an earlier search with the same choices has left its plans."""
    name: str | None = None
    resume: bool = False

    @property
    def overhead_limit(self) -> float:
        """The maximum slowdown of a plan against the unsplit plan, in percent."""
        return TRADEOFFS[self.optimize].max_overhead if self.max_overhead is None else self.max_overhead

    @property
    def flash_percent(self) -> float:
        """The share of the program that 1 % of time is worth in flash, in percent."""
        return TRADEOFFS[self.optimize].flash_percent

    def limited(self, board: Board) -> Board:
        """Return the board with the memories that arenas, inputs and outputs may use."""
        board = self.aligned(board if self.dma_io else board.with_dma_everywhere())
        return board.limited(dict(self.memory_limits), self.flash_limit)

    def aligned(self, board: Board) -> Board:
        """Return the board with the least alignment of inputs, outputs and states."""
        return board.model_copy(update={"io_align": lcm(board.io_align, self.io_align)})

    @property
    def states_plan(self) -> bool:
        """Whether a file of the user states the plan, or the order of its operators."""
        return self.plan_file is not None or self.order_file is not None

    def unit_on(self, board: Board, cores: int | None = None) -> TimeUnit:
        """Return the unit of times on a board; `cores`: those of a stored plan.

        By default it is modelled cycles if one core with a cycle model runs the plan.
        """
        if self.objective is not None:
            return self.objective
        from mcudeploy.costs.estimate import has_cycles  # noqa: PLC0415 - it loads numpy

        if cores is None:
            cores = board.cores if self.cores == 0 else self.cores or 1
        return "cycles" if cores == 1 and has_cycles(board.core) else "instructions"


OPTIONS = (
    OptionSpec(
        "plan_file",
        Path,
        "Use this plan, written by `mcudeploy plan -o`. `plan` and `tune` continue the search from it, "
        "unless --no-split is given.",
        named="plan",
    ),
    OptionSpec(
        "order_file",
        Path,
        "Run the operators, uncut, in this order, written by `mcudeploy graph order -o`; the planner places "
        "the tensors.",
        named="order",
    ),
    OptionSpec(
        "optimize",
        ("speed", "balanced", "size"),
        "The worth of time. `balanced`: less RAM may take 5 % more time, and 1 % of the time is worth 5 % of "
        "the program in flash. `size`: 25 % and 1 %. `speed`: 1 %, and the fastest kernels that fit.",
    ),
    OptionSpec(
        "max_overhead",
        float,
        "Maximum slowdown of a plan against the unsplit plan, in percent.  [default: by --optimize]",
        metavar="PERCENT",
        least=0,
    ),
    OptionSpec(
        "time_limit",
        float,
        "Time limit for planning on an ordinary PC. Work is counted, not timed: a busy machine takes longer "
        "and finds the same plan.",
        metavar="SECONDS",
        least=0,
        above=True,
    ),
    OptionSpec(
        "ram_limit",
        parse_size,
        "Bytes that the arena may take, such as 96k, 64KiB or 1M. The search then takes the fastest plan "
        "that fits, not the smallest.",
    ),
    OptionSpec(
        "flash_limit",
        parse_size,
        "Bytes of flash that code, weights and tables may take; kernels with larger constants are faster.  "
        "[default: the board's flash]",
    ),
    OptionSpec(
        "memory_limits",
        parse_limit,
        "Maximum arena size in this memory, 0 for none. Once for each memory.",
        metavar="NAME=SIZE",
        named="memory",
    ),
    OptionSpec("dma_io", bool, "Keep inputs and outputs in memories that the common DMA controllers reach."),
    OptionSpec(
        "io_align",
        parse_alignment,
        "Align inputs, outputs and states to this many bytes; with a data cache, at least to its lines.",
        metavar="BYTES",
    ),
    OptionSpec(
        "load_constants",
        ("engine", "core", "never"),
        "Load constants from slow flash into free bytes of the arena before they are used, if that saves "
        "time: by an engine that reads flash, or else by the core as well.",
    ),
    OptionSpec("split", bool, "Cut operators into rows."),
    OptionSpec(
        "stream_input",
        bool,
        "The application delivers the input row by row while the model runs.",
    ),
    OptionSpec(
        "assign",
        str,
        "Run operators with these names (globs; also of ONNX nodes) or of these kinds on this compute unit "
        "of the board; `auto` follows the board's rules. Several times for several units.",
        metavar="UNIT=PATTERN[,PATTERN...]",
    ),
    OptionSpec(
        "placement",
        ("blocks", "tags"),
        "With --no-split: place tensors at free offsets, or let those with one memory tag share memory.",
    ),
    OptionSpec(
        "cores",
        parse_cores,
        "Number of the board's cores that run the model together, each a part of every step; `auto` uses all "
        "cores.  [default: 1]",
        metavar="N|auto",
        named="parallel",
    ),
    OptionSpec(
        "objective",
        ("instructions", "cycles"),
        "Metric to optimise by estimates and on emulated boards: modelled cycles or executed instructions. "
        "Hardware always uses measured cycles.  [default: cycles if one core with a cycle model runs a plan]",
    ),
    OptionSpec("seed", int, "Seed of every random choice.", metavar="N", least=0),
    OptionSpec(
        "float_io",
        bool,
        "Keep the float inputs and outputs of a quantised model; by default the caller converts.",
    ),
    OptionSpec(
        "keep_constant",
        bool,
        "Keep constant and unused channels instead of removing them.",
        named="keep-constant-channels",
    ),
    OptionSpec(
        "shapes",
        parse_shape,
        "Shape of an input that has open dimensions, or replaces the file's shape. Once for each input.",
        metavar="NAME=SIZE,SIZE,...",
        named="shape",
        keyword_named="shapes",
    ),
    OptionSpec(
        "constants",
        parse_constant,
        "Take this number for every element of an input of an ONNX file, such as sr=16000; the input is then "
        "a constant. Once for each input.",
        metavar="INPUT=NUMBER",
        named="bind",
    ),
    OptionSpec(
        "states",
        parse_state,
        "Keep this output of an ONNX file for the next run, which reads it as this input, zero at first. "
        "Once for each input, or with a * in both names for all that differ in one text.",
        metavar="OUTPUT=INPUT",
        named="state",
    ),
    OptionSpec(
        "int8_caches",
        str,
        "Keep the rows of these states of --state as int8, with a scale for each row: caches that only "
        "attention reads. Names of inputs, or globs such as '*'.",
        metavar="INPUT[,INPUT...]",
        named="int8_cache",
    ),
    OptionSpec(
        "stateful",
        bool,
        "Keep the states of LSTM, GRU and RNN between runs: each run continues from the previous one.",
    ),
    OptionSpec(
        "rounding",
        ("once", "tflite"),
        "Rounding of int8 results: once, or twice as TFLite's reference kernels do.  "
        "[default: tflite for a .tflite file if all its operators have it]",
    ),
    OptionSpec(
        "hop",
        int,
        "Take this number of new rows in each run, and compute only the rows that change. The window moves "
        "along the first spatial axis of the input.",
        metavar="ROWS",
        least=1,
    ),
    OptionSpec(
        "replaceable",
        str,
        "Let the application replace the constants of these operators, its parameters; see --parameters-in. "
        "Names are those of `run`, or of ONNX nodes. Implies --keep-constant-channels; in RAM, takes the "
        "kernels with the smallest constants.",
        metavar="OPERATOR[,OPERATOR...]",
    ),
    OptionSpec(
        "parameters_in",
        ("ram", "flash"),
        "Place of the parameters of --replaceable: copied to RAM, or in flash, where kernels read the "
        "application's blob.",
    ),
    OptionSpec(
        "fresh", bool, "Search again, even if an earlier search with the same choices has left its plans."
    ),
)
"""Every field that an option sets."""
READING = (
    *("float_io", "keep_constant", "shapes", "constants", "states", "int8_caches", "stateful"),
    *("rounding", "hop"),
)
"""The fields that decide how a model is read."""
