"""The tag pass: on the hand-worked examples of TAGS.md, and its invariants on random programs."""

from __future__ import annotations

from pathlib import Path

import pytest
from drawn import assigned, board, bounded
from hypothesis import given

from mcudeploy.boards.board import Board, Unit
from mcudeploy.ir.graph import Graph
from mcudeploy.planner.cores.functions import Assignment, partition
from mcudeploy.planner.cores.routes import with_transfers
from mcudeploy.planner.published.tags import TagFunction, TagOperator, TagProgram, assign_tags, program_of

ONE = board(Unit(name="core"))
NPU = Unit(name="npu", kind="accelerator", alignment=16)
TWO = board(Unit(name="core", alignment=4), NPU)


def chain(*operators: TagOperator, units: tuple[str, ...] = ("core",), **sizes: int) -> TagProgram:
    """x -> operators -> the last output; all on one unit, or one operator on each."""
    last = operators[-1].output
    if len(units) == 1:
        functions: tuple[TagFunction, ...] = (TagFunction("core", operators, ("x",), (last,)),)
    else:
        functions = tuple(
            TagFunction(unit, (it,), it.inputs, (it.output,))
            for unit, it in zip(units, operators, strict=True)
        )
    return TagProgram(functions, ("x",), (last,), sizes)


def op(name: str, reads: str, overwrites: tuple[int, ...] = ()) -> TagOperator:
    return TagOperator(name, tuple(reads), overwrites)


LAST_READERS = chain(
    op("a", "x"), op("b", "a", (0,)), op("c", "b"), op("d", "cb", (0, 1)), **dict.fromkeys("xabcd", 64)
)
COMMON = chain(
    op("a", "x"),
    op("b", "a"),
    op("c", "b", (0,)),
    units=("core", "npu", "core"),
    **dict.fromkeys("xabc", 50),
)
SIZES = chain(
    *(op(name, read) for read, name in zip("xabcde", "abcdey", strict=True)),
    **dict(zip("xabcdey", (64, 100, 40, 30, 400, 7000, 10), strict=True)),
)
EXAMPLES = {"last readers": (LAST_READERS, ONE), "common memory": (COMMON, TWO), "sizes": (SIZES, ONE)}


@pytest.mark.parametrize("title", EXAMPLES)
def test_tables_worked_out_by_hand(title: str) -> None:
    page = Path(__file__).with_name("TAGS.md").read_text("utf-8")
    table = page.split(f"| {title} | tag | its bytes |\n|---|---|---|\n")[1].split("\n\n")[0]
    rows = [f"| {name} | {tag.number} | {tag.bytes} |" for name, tag in assign_tags(*EXAMPLES[title]).items()]
    assert rows == table.strip().splitlines()


@given(assigned())
@bounded
def test_no_tag_is_taken_from_a_tensor_that_is_still_read(drawn: tuple[Graph, Board, Assignment]) -> None:
    """An independent walk: every tag records whose value it holds. Counts end at what stays."""
    graph, target, assignment = drawn
    graph, assignment = with_transfers(graph, target, assignment)
    program = program_of(graph, target, partition(graph, assignment))
    tags = assign_tags(program, target)
    stays = [tags[name].number for name in (*program.inputs, *program.outputs)]
    assert all(tag.count == stays.count(tag.number) for tag in tags.values())
    holds = {tags[name].number: name for name in program.inputs}
    for function in program.functions:
        unit = target.unit(function.unit)
        for operator in function.operators:
            assert all(holds[tags[name].number] == name for name in operator.inputs)
            tag = tags[operator.output]
            holds[tag.number] = operator.output
            assert tag.memories and set(tag.memories) <= set(target.reach(unit))
            assert tag.alignment % unit.alignment == 0 and tag.bytes % tag.alignment == 0
            assert tag.bytes >= program.sizes[operator.output]
    assert all(holds[tags[name].number] == name for name in (*program.inputs, *program.outputs))
