"""The assignment of operators to units, and the functions that follow."""

from __future__ import annotations

from itertools import combinations

import pytest
from drawn import SHAPE, assigned, board, bounded, graph_io
from hypothesis import given

from mcudeploy.boards.board import Board, Unit
from mcudeploy.common.errors import UsageError
from mcudeploy.ir.graph import DType, Graph, Operator, Tensor
from mcudeploy.ops.move.view import Reshape
from mcudeploy.ops.scalar.elementwise import Binary
from mcudeploy.ops.scalar.unary import Unary
from mcudeploy.planner.axes import convex
from mcudeploy.planner.cores.functions import Assignment, assign, partition, require_types

CORE = Unit(name="core")
NPU = Unit(name="npu", kind="accelerator", prefers=("Binary",))
BOARD = board(CORE, NPU)


def diamond() -> Graph:
    """x -> left, x -> right -> viewed (a view), left + viewed -> both."""
    names = ("x", "left", "right", "viewed", "both")
    return Graph(
        "diamond",
        {name: Tensor(name, SHAPE, DType.FLOAT32) for name in names},
        (
            Operator("sigmoid_left", Unary("sigmoid"), ("x",), "left"),
            Operator("tanh_right", Unary("tanh"), ("x",), "right"),
            Operator("view", Reshape(SHAPE), ("right",), "viewed"),
            Operator("add", Binary("add"), ("left", "viewed"), "both"),
        ),
        (graph_io("x", SHAPE),),
        (graph_io("both", SHAPE),),
    )


@pytest.mark.parametrize(
    ("rules", "elsewhere"),
    [
        ([], set()),
        (["npu=unary"], {"sigmoid_left", "tanh_right"}),
        (["npu=*_RIGHT, Binary"], {"tanh_right", "add"}),
        (["npu=sigmoid_left", "npu=add"], {"sigmoid_left", "add"}),
        (["npu=*", "core=tanh*"], {"sigmoid_left", "add"}),
        (["auto"], {"add"}),
        (["auto", "core=add", "npu=tanh_right"], {"tanh_right"}),
    ],
)
def test_rules(rules: list[str], elsewhere: set[str]) -> None:
    assert set(assign(diamond(), BOARD, rules).elsewhere) == elsewhere


@pytest.mark.parametrize(
    ("rule", "word"),
    [
        ("npu=add,conv_*", "'conv_\\*'"),
        ("npu=un", "'un'.*Binary, Unary"),
        ("npu=view", "'view'"),
        ("dsp=add", "'dsp'.*core, npu"),
        ("npu", "'npu'"),
        ("npu= ,", "assigns nothing"),
    ],
)
def test_a_rule_without_meaning_is_named(rule: str, word: str) -> None:
    with pytest.raises(UsageError, match=word):
        assign(diamond(), BOARD, [rule])


def test_a_unit_takes_only_its_types() -> None:
    """If the board's rules decide, such operators stay on the first unit."""
    narrow = board(CORE, NPU.model_copy(update={"dtypes": ("int8",)}))
    assert not assign(diamond(), narrow, ["auto"]).elsewhere
    with pytest.raises(UsageError, match=r"add \(Binary\) has float32, which unit npu .* takes int8"):
        require_types(diamond(), narrow, assign(diamond(), narrow, ["npu=add"]))


def test_views_follow_and_functions_go_in_order() -> None:
    functions = partition(diamond(), Assignment("core", {"tanh_right": "npu"}))
    assert [(it.unit, it.operators) for it in functions] == [
        ("npu", ("tanh_right", "view")),
        ("core", ("sigmoid_left", "add")),
    ]
    assert partition(diamond(), Assignment("core")) == ()
    assert Assignment.of(functions, "core").elsewhere == {"tanh_right": "npu", "view": "npu"}
    assert partition(diamond(), Assignment.of(functions, "core")) == functions


@given(assigned())
@bounded
def test_functions_cover_all_operators_once_and_are_convex_and_maximal(
    drawn: tuple[Graph, Board, Assignment],
) -> None:
    graph, _, assignment = drawn
    functions = partition(graph, assignment)
    if not assignment.elsewhere:
        assert functions == ()
        return
    positions = {operator.name: at for at, operator in enumerate(graph.operators)}
    groups = [[positions[name] for name in function.operators] for function in functions]
    assert sorted(at for group in groups for at in group) == list(range(len(graph.operators)))
    assert all(group == sorted(group) for group in groups)
    producers, done = graph.producers(), set[int]()
    for function, group in zip(functions, groups, strict=True):
        assert convex(graph, group)
        done |= set(group)
        for at in group:
            operator = graph.operators[at]
            assert operator.op.is_view or assignment.unit(operator.name) == function.unit
            assert {producers[name] for name in operator.inputs if name in producers} <= done
            if operator.op.is_view and operator.inputs[0] in producers:
                assert producers[operator.inputs[0]] in group
    for one, other in combinations(range(len(functions)), 2):
        if functions[one].unit == functions[other].unit:
            assert not _joinable(graph, groups, one, other)


def _joinable(graph: Graph, groups: list[list[int]], one: int, other: int) -> bool:
    """Whether the functions can still run in sequence with two of them merged, by trying."""
    left = [group for at, group in enumerate(groups) if at not in (one, other)]
    left.append(groups[one] + groups[other])
    producers, done = graph.producers(), set[int]()
    while left:
        for group in left:
            waits = {producers[n] for at in group for n in graph.operators[at].inputs if n in producers}
            if waits <= done | set(group):
                break
        else:
            return False
        left.remove(group)
        done |= set(group)
    return True
