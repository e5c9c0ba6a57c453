"""Comments of the generated tables: the kind and shapes of an operator; the operators and rows of steps."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from mcudeploy.codegen.texts import OperatorText
from mcudeploy.common.text import count_text
from mcudeploy.ir.graph import Graph, Operator, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.plan import Entry, Run, Transfer, Wait
from mcudeploy.planner.tape.tape import Tape

_CODES_PER_LINE = 6
LINE_WIDTH = 110
_INPUTS_SHOWN = 4


@dataclass(frozen=True, slots=True)
class ScheduleRun:
    """Consecutive steps of the schedule, and the lines of the comment that says what they compute."""

    comment: list[str]
    lines: list[str]


def shape_text(tensor: Tensor) -> str:
    """Return a shape as C declares it: [48][48][8]."""
    return "".join(f"[{size}]" for size in tensor.shape)


def operator_text(graph: Graph, operator: Operator) -> str:
    """Return an operator as a comment names it: "conv_1, depthwise 3x3, [48][48][8] -> [48][48][8]"."""
    sources = graph.input_tensors(operator)
    label = operator.op.label(tuple(tensor.shape for tensor in sources))
    shapes = [shape_text(tensor) for tensor in sources]
    if len(shapes) > _INPUTS_SHOWN:
        shapes = [*shapes[:_INPUTS_SHOWN], f"{len(shapes) - _INPUTS_SHOWN} more"]
    ends = [", ".join(shapes)] * bool(shapes) + [shape_text(graph.tensors[operator.output])]
    return f"{operator.name}, {label}, {' -> '.join(ends)}"


def schedule_runs(tape: Tape, records: Sequence[OperatorText]) -> list[ScheduleRun]:
    """Return the codes of a schedule, divided into runs with a comment each.

    A sweep of an operator makes its blocks in ascending order. Sweeps that interleave are one run, and so are
    neighbouring runs of the same operators.
    """
    entries = tape.plan.tape
    ends = _sweep_ends(entries)
    runs: list[Interval] = []
    start = reach = 0
    for at, entry in enumerate(entries):
        if isinstance(entry, Run):
            reach = max(reach, ends[at])
            if reach == at:
                runs.append(Interval(start, at + 1))
                start = at + 1
    if runs:  # waits after the last step
        runs[-1] = Interval(runs[-1].lo, len(entries))
    same = groupby(runs, lambda run: frozenset(it.operator for it in _steps(entries, run)))
    merged = [[*group] for _, group in same]
    return [_run_text(tape, records, entries[group[0].lo : group[-1].hi], group[0].lo) for group in merged]


def _sweep_ends(entries: Sequence[Entry]) -> dict[int, int]:
    """Map the position of each step on the tape to that of the last step of its operator's sweep."""
    ends: dict[int, int] = {}
    later: dict[int, tuple[int, int]] = {}
    for at, entry in reversed([*enumerate(entries)]):
        if isinstance(entry, Run):
            block, end = later.get(entry.operator, (0, at))
            ends[at] = end if entry.block < block else at
            later[entry.operator] = entry.block, ends[at]
    return ends


def _steps(entries: Sequence[Entry], run: Interval) -> Iterator[Run]:
    return (entry for entry in entries[run.lo : run.hi] if isinstance(entry, Run))


def _run_text(
    tape: Tape, records: Sequence[OperatorText], entries: Sequence[Entry], first: int
) -> ScheduleRun:
    """Return the run of these entries of the tape; `first` is the position of the first one."""
    rows: dict[str, Interval] = {}
    codes = []
    for at, entry in enumerate(entries, first):
        record, block = tape.record_of(at)
        codes.append(f"{record}u << {tape.block_bits} | {block}u")
        if isinstance(entry, Run):
            it = records[record]
            part = it.block_rows.interval(block, it.rows)
            rows[it.name] = rows.get(it.name, part).hull(part)
    counts = {noun: sum(isinstance(it, kind) for it in entries) for noun, kind in _OTHERS.items()}
    phrases = [*_rows_texts(rows), *(count_text(count, noun) for noun, count in counts.items() if count)]
    steps = f"step {first}" if len(codes) == 1 else f"steps {first}..{first + len(codes) - 1}"
    starts = range(0, len(codes), _CODES_PER_LINE)
    return ScheduleRun(
        textwrap.wrap(f"{steps}: {'; '.join(phrases)}", LINE_WIDTH),
        [", ".join(codes[start : start + _CODES_PER_LINE]) for start in starts],
    )


_OTHERS: Mapping[str, type[Entry]] = {"move": Transfer, "wait": Wait}


def _rows_texts(rows: Mapping[str, Interval]) -> Iterator[str]:
    """Yield operators with their rows, equal ones together: "conv_1, conv_2, rows 0..47"."""
    for part, names in groupby(rows, lambda name: rows[name]):
        shown = f"row {part.lo}" if len(part) == 1 else f"rows {part.lo}..{part.hi - 1}"
        yield f"{', '.join(names)}, {shown}"
