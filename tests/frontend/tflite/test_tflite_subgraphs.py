"""IF and WHILE of .tflite files, beside LiteRT."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from evaluate import kinds
from flat_files import NONE, FlatFile, litert
from programs import results

from mcudeploy.common.errors import ModelError
from mcudeploy.frontend.load import load
from tests import reports
from tests.networks.refusals import problems_of
from tests.weekly import sample

X = np.random.default_rng(3).normal(0, 1, (8, 1, 6)).astype(np.float32)


def scaled(factor: float, *, wide: bool = False) -> tuple[FlatFile, list[int], list[int]]:
    """A branch that multiplies its input, or concatenates it with itself."""
    f = FlatFile()
    x = f.add(1, 6)
    if wide:
        y = f.add(1, 12)
        f.operator("CONCATENATION", [x, x], y, Axis=1, FusedActivationFunction=NONE)
        return f, [x], [y]
    times = f.constant(np.float32(factor), np.float32)
    return f, [x], [f.operator("MUL", [x, times], f.add(1, 6), FusedActivationFunction=NONE)]


def same() -> tuple[FlatFile, list[int], list[int]]:
    """A branch that returns its input."""
    f = FlatFile()
    x = f.add(1, 6)
    return f, [x], [x]


def chosen(first: tuple[FlatFile, list[int], list[int]], folder: Path, known: int | None = None) -> Path:
    """A choice by the sum of the input, or by a constant, between `first` and the input itself."""
    f = FlatFile()
    x, y = f.add(1, 6), f.add(1, 6)
    f.operator("SUM", [x, f.constant([0, 1])], total := f.add(), KeepDims=False)
    zero = f.constant(np.float32(0), np.float32)
    condition = f.add(kind="BOOL")
    if known is None:
        f.operator("GREATER", [total, zero], condition)
    else:
        f.operator("LESS", [f.constant(known), f.constant(1)], condition)
    numbers = [f.body(*each) for each in (first, same())]
    f.operator("IF", [condition, x], y, ThenSubgraphIndex=numbers[0], ElseSubgraphIndex=numbers[1])
    return f.save(folder, [x], [y])


def loop(folder: Path, rounds: int | None, counted: bool = True) -> Path:
    """A sum that grows by the input, and doubles, in each round; `rounds` is None for a computed number."""
    f = FlatFile()
    x, start = f.add(1, 6), f.constant(np.zeros((1, 6)), np.float32)
    limit = f.add(kind="INT32") if rounds is None else f.constant(rounds)
    if rounds is None:
        f.operator("ARG_MAX", [x, f.constant(1)], at := f.add(1, kind="INT32"), OutputType=2)
        f.operator("RESHAPE", [at, f.constant(np.zeros(0, np.int32))], limit)
    condition, body = FlatFile(), FlatFile()
    given = [
        condition.add(kind="INT32"),
        condition.add(1, 6),
        condition.add(1, 6),
        condition.add(kind="INT32"),
    ]
    holds = condition.operator("LESS", [given[0], given[3]], condition.add(kind="BOOL"))
    count, total, term, most = (
        body.add(kind="INT32"), body.add(1, 6), body.add(1, 6), body.add(kind="INT32")
    )  # fmt: skip
    one, two = body.constant(1), body.constant(np.float32(2), np.float32)
    plain = {"FusedActivationFunction": NONE}
    further = body.operator("ADD", [count, one], body.add(kind="INT32"), **plain)
    grown = body.operator("ADD", [total, term], body.add(1, 6), **plain)
    doubled = body.operator("MUL", [grown, two], body.add(1, 6), **plain)
    numbers = (
        f.body(condition, given, [holds]),
        f.body(body, [count, total, term, most], [further, doubled, term, most]),
    )
    outputs = [f.add(kind="INT32"), f.add(1, 6), f.add(1, 6), f.add(kind="INT32")]
    inputs = [f.constant(0), start, x, limit]
    f.operator("WHILE", inputs, outputs, CondSubgraphIndex=numbers[0], BodySubgraphIndex=numbers[1])
    if not counted:
        return f.save(folder, [x], [outputs[1]])
    y = f.add(1, 6)
    f.operator("TANH", [outputs[1]], y)
    return f.save(folder, [x], [y])


def listed(folder: Path) -> Path:
    """A recurrent sum over 4 rows, each of which replaces a row of a list, whose length is open."""
    f = FlatFile()
    x, zero = f.add(4, 1, 6), f.constant(np.float32(0), np.float32)
    rows = f.add(1, 1, 6, signature=(-1, 1, 6))
    f.operator("FILL", [f.constant([4, 1, 6]), zero], rows)
    condition, body = FlatFile(), FlatFile()
    count = condition.add(kind="INT32")
    others = [condition.add(*shape) for shape in ((1, 1, 6), (1, 6), (4, 1, 6))]
    holds = condition.operator("LESS", [count, condition.constant(4)], condition.add(kind="BOOL"))
    at, kept, total, source = body.add(kind="INT32"), body.add(1, 1, 6), body.add(1, 6), body.add(4, 1, 6)
    one, none = body.constant([1]), body.constant([0, 0, 0])
    plain = {"FusedActivationFunction": NONE}
    following = body.operator("ADD", [at, body.constant(1)], body.add(kind="INT32"), **plain)
    row = body.operator("GATHER", [source, at], body.add(1, 6), Axis=0, BatchDims=0)
    grown = body.operator("ADD", [total, row], body.add(1, 6), **plain)
    bent = body.operator("TANH", [grown], body.add(1, 6))
    first, last = (
        body.operator("RESHAPE", [number, one], body.add(1, kind="INT32")) for number in (at, following)
    )
    sizes = body.operator(
        "CONCATENATION", [first, body.constant([-1, -1])], body.add(3, kind="INT32"), Axis=0, **plain
    )
    begins = body.operator(
        "CONCATENATION", [last, body.constant([0, 0])], body.add(3, kind="INT32"), Axis=0, **plain
    )
    before = body.operator("SLICE", [kept, none, sizes], body.add(1, 1, 6))
    after = body.operator("SLICE", [kept, begins, body.constant([-1, -1, -1])], body.add(1, 1, 6))
    entry = body.operator("EXPAND_DIMS", [bent, body.constant(0)], body.add(1, 1, 6))
    result = body.operator("CONCATENATION", [before, entry, after], body.add(1, 1, 6), Axis=0, **plain)
    numbers = (
        f.body(condition, [count, *others], [holds]),
        f.body(body, [at, kept, total, source], [following, result, bent, source]),
    )
    start = f.constant(np.zeros((1, 6)), np.float32)
    outputs = [f.add(kind="INT32"), f.add(1, 1, 6), f.add(1, 6), f.add(4, 1, 6)]
    names = dict(zip(("CondSubgraphIndex", "BodySubgraphIndex"), numbers, strict=True))
    f.operator("WHILE", [f.constant(0), rows, start, x], outputs, **names)
    limits = [f.constant(each) for each in ([-2, 0, 0], [0, -1, -1], [1, 1, 1])]
    masks = {"BeginMask": 6, "EndMask": 6, "EllipsisMask": 0, "NewAxisMask": 0, "ShrinkAxisMask": 1}
    f.operator("STRIDED_SLICE", [outputs[1], *limits], y := f.add(1, 6), **masks)
    f.operator("ADD", [y, outputs[2]], z := f.add(1, 6), **plain)
    return f.save(folder, [x], [z])


def test_rows_of_a_list(tmp_path: Path) -> None:
    """The list never exists: a row that is read is the tensor that was put there."""
    path = listed(tmp_path)
    drawn = np.random.default_rng(5).normal(0, 1, (5, 4, 1, 6)).astype(np.float32)
    wanted = []
    for x in drawn:
        totals = [np.zeros((1, 6), np.float32)]
        for row in x:
            totals.append(np.tanh(totals[-1] + row))
        wanted.append(totals[3] + totals[4])
    assert np.allclose(results(path, drawn), wanted, rtol=1e-5, atol=1e-6)
    assert set(kinds(load(path))) <= {"Binary", "Gather", "GatherRows", "Slice", "Take", "Unary"}


def check(path: Path) -> None:
    """The program has LiteRT's outputs, and is verified."""
    wanted = np.array([litert(path, [x])[0] for x in X])
    assert np.allclose(results(path, X), wanted, rtol=1e-5, atol=1e-6)
    reports.verified(path)


def test_a_computed_choice(tmp_path: Path) -> None:
    path = chosen(scaled(-3), tmp_path)
    assert len({x.sum() > 0 for x in X}) == 2
    (note,) = load(path).notes
    assert "both branches run" in note
    check(path)


@pytest.mark.parametrize("known", [0, 1])
def test_a_constant_choice(known: int, tmp_path: Path) -> None:
    path = chosen(scaled(-3), tmp_path, known)
    assert not load(path).notes
    check(path)


@pytest.mark.parametrize("rounds", sample([5, 0, 1], 2))
@pytest.mark.parametrize("counted", [False, True])
def test_a_loop(rounds: int, counted: bool, tmp_path: Path) -> None:
    path = loop(tmp_path, rounds, counted)
    if rounds:
        check(path)
    else:
        with pytest.raises(ModelError, match="the model is constant"):
            load(path)


def test_loops_and_branches_that_a_run_decides(tmp_path: Path) -> None:
    for op in ("WHILE", "IF"):
        path = loop(tmp_path, None) if op == "WHILE" else chosen(scaled(1, wide=True), tmp_path)
        (problem,) = problems_of(path)
        assert problem.node.endswith(op)
        assert "known in a run only" in problem.reason


def test_an_endless_loop(tmp_path: Path) -> None:
    """A body without operators reaches no limit of operators."""
    f, condition = FlatFile(), FlatFile()
    x, y = f.add(1, 6), f.add(1, 6)
    given, true = condition.add(1, 6), condition.constant(np.bool_(True), np.bool_)
    numbers = f.body(condition, [given], [true]), f.body(*same())
    f.operator("WHILE", [x], y, CondSubgraphIndex=numbers[0], BodySubgraphIndex=numbers[1])
    assert "known in a run only" in problems_of(f.save(tmp_path, [x], [y]))[0].reason


def test_a_composite_is_its_decomposition(tmp_path: Path) -> None:
    f = FlatFile()
    x, between, y = f.add(1, 6), f.add(1, 6), f.add(1, 6)
    number = f.body(*scaled(3))
    for source, result in ((x, between), (between, y)):
        options = {"Name": "test.scaled", "Version": 1, "DecompositionSubgraphIndex": number}
        options["CompositeAttributes"] = b""
        f.operator("STABLEHLO_COMPOSITE", [source], result, **options)
    path = f.save(tmp_path, [x], [y])
    check(path)
    assert np.allclose(litert(path, [X[0]])[0], 9 * X[0])


def test_a_variable_beside_a_choice(tmp_path: Path) -> None:
    """VAR_HANDLE, which has no input, stays as it is."""
    f = FlatFile()
    x, kept, total, y = (f.add(1, 6) for _ in range(4))
    variable, true = f.variable("total"), f.constant(np.bool_(True), np.bool_)
    f.operator("READ_VARIABLE", [variable], kept)
    f.operator("ADD", [x, kept], total, FusedActivationFunction=NONE)
    f.operator("ASSIGN_VARIABLE", [variable, total], [])
    number = f.body(*scaled(-3))
    f.operator("IF", [true, total], y, ThenSubgraphIndex=number, ElseSubgraphIndex=number)
    wanted = -3 * np.cumsum(X, axis=0)
    assert np.allclose(results(f.save(tmp_path, [x], [y]), X), wanted, rtol=1e-5, atol=1e-6)


def test_a_state_in_a_branch(tmp_path: Path) -> None:
    """A branch that is not taken must keep its state, although both branches would run."""
    branch = FlatFile()
    x, y, state = branch.add(1, 6), branch.add(1, 6), branch.add(1, 18, variable=True)
    features, times = (branch.constant(np.ones((6, size)), np.float32) for size in (6, 3))
    inputs = [x, features, times, -1, state]
    branch.operator("SVDF", inputs, y, Rank=1, AsymmetricQuantizeInputs=False, FusedActivationFunction=NONE)
    assert "keeps a state" in problems_of(chosen((branch, [x], [y]), tmp_path))[0].reason
