"""The text of docs/coverage.md, from the scores that `onnx_score.py` collects."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

SUBSET = "subset"
COLUMNS = "as they come | integers constant | parameters constant"

HEAD = """# Coverage of ONNX's node tests

For users with an ONNX model: how many of ONNX's own tests pass, by operator.
Made by `python benchmarks/onnx_score.py`. The script plans, builds and runs the {number:,} node tests of
onnx {version}, in their opset, on the board `host` through
[mcudeploy.onnx_backend](../mcudeploy/onnx_backend.py). ONNX's own runner compares the outputs with the
expected ones, within its tolerances or within 2^-23 of the largest value. float32 rounds to that precision,
and some expected zeros are no more exact. [operators.md](operators.md) lists the restrictions of operators.
To run your model in the same way, use `onnx_backend.prepare(onnx.load("model.onnx")).run([image])`, after
`from mcudeploy import onnx_backend`.

**The subset** contains the tests of one node, without the `_expanded` ones, whose first input is float32,
int8 or uint8, and whose other inputs and outputs are of these types or int32, int64 and bool. Tests outside
it have *several nodes* (functions that ONNX writes out), *other types* (float16, float64, int16, strings,
...), *integers or truth values first*, *no input*, or *values that are not tensors*.

A test feeds every input when the model runs, including shapes, axes and weights. In a model for a
microcontroller these are initializers. A refused test of the subset is therefore tried again in two other
forms. The columns count the tests that pass

- *as they come*: unchanged;
- *integers constant*: unchanged, or with int32, int64 and bool inputs after the first as initializers, with
  the test's values;
- *parameters constant*: in these forms, or with all inputs after the first as initializers.

*refused*: refused in every form, with the reason, before anything is built. *wrong*: any result other than
the expected values or a refusal.
"""

OTHERS = """## Other tools

The table lists figures that others publish. Their suites differ from this one in number and form,
and nothing was measured here.

| tool | figure | source |
|---|---|---|
"""

_EMX = "[github.com/emmtrix/emx-onnx-cgen](https://github.com/emmtrix/emx-onnx-cgen)"
_SCOREBOARD = "https://www.emmtrix.com/news/emx-onnx-cgen-on-the-onnx-backend-scoreboard.html"
_ONNX2C = "[github.com/kraiskil/onnx2c](https://github.com/kraiskil/onnx2c)"
PEERS = (
    (
        "emx-onnx-cgen",
        "1,914 of 1,914 models of the backend tests of onnx 1.22.0, all element types",
        f"`ONNX_SUPPORT.md` of {_EMX}, undated, read in November 2026",
    ),
    (
        "emx-onnx-cgen",
        "about 98 % of the tests of ONNX's backend scoreboard",
        f"[emmtrix.com]({_SCOREBOARD}), 26 March 2026",
    ),
    (
        "onnx2c",
        'no count of tests; 91 of 166 operators "at least partially implemented"',
        f"`README.md` of {_ONNX2C}, undated, read in November 2026",
    ),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a test in one form: `kind` is passed, refused, wrong or failed; `why` if not passed.

    `op` is the operator that was refused, "" if it is the whole model.
    """

    kind: str
    why: str = ""
    op: str = ""


@dataclass(frozen=True, slots=True)
class Score:
    """A test, and its outcome in each form that was tried, up to the first in which it passes."""

    name: str
    op: str
    group: str
    forms: tuple[Outcome, ...]

    @property
    def last(self) -> Outcome:
        """The outcome that counts."""
        return self.forms[-1]

    @property
    def bad(self) -> bool:
        """Whether the outcome is a defect."""
        return self.last.kind not in ("passed", "refused")


def text(scores: Sequence[Score], version: str) -> str:
    """Return the whole file."""
    lines = [HEAD.format(number=len(scores), version=version), *_totals(scores)]
    lines += ["", "## By operator", "", *_by_operator(scores)]
    bad = [score for score in scores if score.bad]
    if bad:
        lines += ["", "## Wrong", "", "| test | found |", "|---|---|"]
        lines += [f"| {score.name} | {_cell(score.last.why)} |" for score in bad]
    lines += ["", "## Refusals in the subset", "", *_refusals(scores), "", OTHERS.rstrip()]
    lines += [f"| {' | '.join(row)} |" for row in PEERS]
    return "\n".join(lines) + "\n"


def counts(scores: Iterable[Score]) -> tuple[int, int, int, int, int, int]:
    """Return tests; those that pass in the first form, in the first two, in any; refused; wrong."""
    listed = list(scores)
    passed = Counter(len(score.forms) for score in listed if score.last.kind == "passed")
    refused = sum(score.last.kind == "refused" for score in listed)
    bad = sum(score.bad for score in listed)
    return len(listed), passed[1], passed[1] + passed[2], passed.total(), refused, bad


def _totals(scores: Sequence[Score]) -> Iterator[str]:
    yield "## Totals"
    yield ""
    yield f"| group | tests | {COLUMNS} | refused | wrong |"
    yield "|---|---|---|---|---|---|---|"
    groups = defaultdict(list)
    for score in scores:
        groups[score.group].append(score)
    for name in sorted(groups, key=lambda name: (name != SUBSET, -len(groups[name]), name)):
        number, first, second, third, refused, bad = counts(groups[name])
        if name == SUBSET:
            shares = (f"{each} ({100 * each / number:.1f} %)" for each in (first, second, third))
            yield f"| **{name}** | {number} | {' | '.join(shares)} | {refused} | {bad} |"
        else:
            yield f"| {name} | {number} | {first} | | | {refused} | {bad} |"
    number, first, second, third, refused, bad = counts(scores)
    yield f"| all | {number} | {first} | {second} | {third} | {refused} | {bad} |"


def _by_operator(scores: Sequence[Score]) -> Iterator[str]:
    yield "*others*: tests outside of the subset that pass, as they come, of those that there are."
    yield ""
    yield f"| operator | tests | {COLUMNS} | refused | wrong | others |"
    yield "|---|---|---|---|---|---|---|---|"
    operators = defaultdict(list)
    for score in scores:
        operators[score.op].append(score)
    for op in sorted(operators, key=str.lower):
        inside = counts(score for score in operators[op] if score.group == SUBSET)
        others = counts(score for score in operators[op] if score.group != SUBSET)
        wrong = inside[5] + others[5]
        share = f"{others[3]} of {others[0]}" if others[0] else ""
        yield f"| {op} | {' | '.join(map(str, inside[:5]))} | {wrong} | {share} |"


def _refusals(scores: Sequence[Score]) -> Iterator[str]:
    yield "The first reason of each test, in the last form. Names and numbers are left out."
    yield ""
    yield "| tests | reason | operators |"
    yield "|---|---|---|"
    causes: dict[str, Counter[str]] = defaultdict(Counter)
    for score in scores:
        if score.group == SUBSET and score.last.kind == "refused":
            causes[_cause(score.last.why)][score.op] += 1
    for cause, operators in sorted(causes.items(), key=lambda item: (-item[1].total(), item[0])):
        listed = ", ".join(
            op if number == 1 else f"{op} ({number})" for op, number in sorted(operators.items(), key=_first)
        )
        yield f"| {operators.total()} | {_cell(cause)} | {listed} |"


def _first(item: tuple[str, int]) -> tuple[int, str]:
    return -item[1], item[0].lower()


def _cause(reason: str) -> str:
    """Return a reason without the parts that differ from model to model."""
    short = re.sub(r"'[^']*'|#\d+", "…", reason)
    short = re.sub(r"\[[-\d, ]*\]", "[…]", short)
    return re.sub(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w-])", "n", short)


def _cell(reason: str) -> str:
    line = " ".join(reason.split())
    return re.sub(r"([|<>*_`\\])", r"\\\1", line if len(line) <= 160 else f"{line[:159]}…")
