"""The tag pass: on the hand-worked examples of docs/memories.md, and its invariants on random programs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from drawn import assigned, board, bounded
from hypothesis import given

from mcudeploy.boards.board import Board, Unit
from mcudeploy.ir.graph import Graph
from mcudeploy.ops.transfer import Copy
from mcudeploy.planner.cores.functions import Assignment, partition
from mcudeploy.planner.cores.routes import with_transfers
from mcudeploy.planner.published.tagform import (
    MODEL,
    Body,
    FunctionCall,
    Get,
    Op,
    Subgraph,
    Tagging,
    TagProgram,
    Tuple,
    Type,
    UnitTransfer,
    program_of,
)
from mcudeploy.planner.published.tags import assign_tags
from mcudeploy.planner.published.tagsizes import sizes

CORE = Unit(name="core")
ONE = board(CORE)


def int8(count: int) -> Type:
    return Type(count, "int8")


def op(name: str, reads: str, *results: Type | int, overwrites: tuple[int, ...] = ()) -> Op:
    kinds = tuple(int8(it) if isinstance(it, int) else it for it in results)
    return Op(name, tuple(reads.split()), kinds, overwrites)


def one_function(x: int, output: str, *nodes: Op | Tuple | Get) -> TagProgram:
    """x -> f -> output, all in function f."""
    inside = Subgraph("core", Body({"x": int8(x)}, nodes, (output,), {}))
    return TagProgram(
        {"f": inside}, Body({"x": int8(x)}, (FunctionCall(output, "f", ("x",)),), (output,), {})
    )


def three_functions(unit: str) -> TagProgram:
    """x -> f0 on core -> a -> f1 on another unit -> b -> f2 on core -> c; c may overwrite b."""
    kinds = {"a": Type(50, "float32"), "b": int8(50), "c": int8(50)}
    functions, calls, read = {}, [], "x"
    for number, (name, runs) in enumerate((("a", "core"), ("b", unit), ("c", "core"))):
        node = op(name, read, kinds[name], overwrites=(0,) if name == "c" else ())
        reads = {read: int8(50) if read == "x" else kinds[read]}
        functions[f"f{number}"] = Subgraph(runs, Body(reads, (node,), (name,), {}))
        calls.append(FunctionCall(name, f"f{number}", (read,)))
        read = name
    return TagProgram(functions, Body({"x": int8(50)}, tuple(calls), ("c",), {}))


LAST_READERS = one_function(
    64,
    "d",
    op("a", "x", 64),
    op("b", "a", 64, overwrites=(0,)),
    op("c", "b", 64),
    op("d", "c b", 64, overwrites=(0, 1)),
)
TUPLES = one_function(
    64,
    "q",
    op("s", "x", 32, 32),
    Get("l", "s", 0),
    Get("r", "s", 1),
    op("p", "l", 32),
    Tuple("t", ("p", "r")),
    op("q", "t", 64),
)
QUANTIZE = Op("q", ("c",), (int8(100),), (0,), quantizes=True)
FAKE = one_function(100, "d", op("c", "x", Type(100, "float32")), QUANTIZE, op("d", "q", 100))
SIZES = one_function(
    64,
    "y",
    op("a", "x", 100),
    op("b", "a", 40),
    op("c", "b", 30),
    op("d", "c", 400),
    op("e", "d", 7000),
    op("y", "e", 10),
)
CACHED = board(
    Unit(name="core", alignment=4, cached=("ram",)),
    Unit(name="npu", kind="accelerator", alignment=16, dtypes=("int8",)),
)
APART = board(
    Unit(name="core", alignment=4, memories=("sram",)),
    Unit(name="dsp", alignment=4, memories=("tcm",), dtypes=("int8",)),
    Unit(name="mover", alignment=4),
    memories=("sram", "tcm"),
)
EXAMPLES = {
    "last readers": (LAST_READERS, ONE, [64, 64, 64, 64]),
    "tuples": (TUPLES, ONE, [64, 64, 32, 32, 32]),
    "fake-quantised": (FAKE, ONE, [100, 100, 100]),
    "common memory": (three_functions("npu"), CACHED, [52, 64, 64]),
    "no common memory": (three_functions("dsp"), APART, [52, 52, 52, 52]),
    "sizes": (SIZES, ONE, [64, 10, 100, 400, 7000]),
}


def by_hand(title: str) -> list[str]:
    """The rows of a table of the page, with normalised blanks."""
    page = Path(__file__).parents[2].joinpath("docs/memories.md").read_text("utf-8")
    table = page.split(f"| {title} | tags | references |\n|---|---|---|\n")[1].split("\n\n")[0]
    return [re.sub(r"\s+", " ", line.strip("| ")) for line in table.splitlines()]


def rows(found: Tagging) -> Iterator[str]:
    for row in found.rows:
        node = f"{row.scope}: {row.node}" if row.scope else row.node
        tags = ", ".join(f"{way} {tag}" for way, tag in row.made)
        counts = ", ".join(f"{tag}: {count}" for tag, count in sorted(row.counts.items()))
        yield f"{node} | {tags} | {counts}" if tags else f"{node} | | {counts}"


@pytest.mark.parametrize("title", EXAMPLES)
def test_tables_worked_out_by_hand(title: str) -> None:
    program, target, tag_bytes = EXAMPLES[title]
    found = assign_tags(program, target)
    assert list(rows(found)) == by_hand(title)
    assert [tag.bytes for tag in found.tags] == tag_bytes
    assert found.bytes == sum(tag_bytes)


def test_steps_between_units() -> None:
    assert assign_tags(three_functions("npu"), CACHED).transfers == (
        UnitTransfer("clean", "a", "core"),
        UnitTransfer("invalidate", "b", "core"),
    )
    found = assign_tags(three_functions("dsp"), APART)
    assert found.transfers == (UnitTransfer("copy", "a", "mover"), UnitTransfer("copy", "b", "mover"))
    assert [tag.memories for tag in found.tags] == [("sram",), ("sram",), ("tcm",), ("tcm",)]


def test_the_type_is_what_the_reader_reads_and_the_alignment_that_of_all() -> None:
    found = sizes(three_functions("npu"), CACHED)
    for place in ((MODEL, ("a", 0)), ("f0", ("a", 0)), ("f1", ("a", 0))):
        assert (found[place].dtype, found[place].alignment, found[place].bytes) == ("int8", 16, 64)
    assert found["f2", ("c", 0)].bytes == 52


def test_a_value_that_is_also_read_as_it_is_stays_what_it_is() -> None:
    nodes = (op("c", "x", Type(100, "float32")), QUANTIZE, op("d", "q c", 100))
    found = sizes(one_function(100, "d", *nodes), ONE)
    assert (found["f", ("c", 0)].dtype, found["f", ("c", 0)].bytes) == ("float32", 400)


def test_two_readers_of_different_types() -> None:
    """It needs a conversion."""
    model = three_functions("npu")
    second = Subgraph("core", Body({"a": Type(50, "float32")}, (op("e", "a", 50),), ("e",), {}))
    calls = (*model.body.nodes, FunctionCall("e", "f3", ("a",)))
    program = TagProgram({**model.functions, "f3": second}, Body(model.body.inputs, calls, ("c", "e"), {}))
    with pytest.raises(ValueError, match="a is read as float32 and as int8"):
        sizes(program, CACHED)


def test_constants_stay() -> None:
    plain = one_function(8, "y", op("y", "x w", 8, overwrites=(0, 1)))
    body = replace(plain.functions["f"].body, constants={"w": int8(8)})
    found = assign_tags(replace(plain, functions={"f": Subgraph("core", body)}), ONE)
    assert [tag.count for tag in found.tags] == [1, 1, 1]
    assert len({found.places["f", (name, 0)] for name in "xwy"}) == 3


@given(assigned())
@bounded
def test_no_tag_is_taken_from_a_tensor_that_is_still_read(drawn: tuple[Graph, Board, Assignment]) -> None:
    """An independent walk: every tag records whose value it holds. Counts end at what stays,
    never negative.
    """
    graph, target, assignment = drawn
    graph, assignment = with_transfers(graph, target, assignment)
    functions = partition(graph, assignment)
    program = program_of(graph, target, functions)
    found = assign_tags(program, target)
    assert all(count > 0 for row in found.rows for count in row.counts.values())
    stays = [*program.body.inputs, *program.body.outputs]
    expected = {tag.number: 0 for tag in found.tags}
    for name in stays:
        expected[_tag(found, program, MODEL, name)] += 1
    assert {tag.number: tag.count for tag in found.tags} == expected
    holds = {_tag(found, program, MODEL, name): name for name in program.body.inputs}
    for call in (node for node in program.body.nodes if isinstance(node, FunctionCall)):
        function = program.functions[call.function]
        unit = target.unit(function.unit)
        for node in function.body.nodes:
            assert isinstance(node, Op)
            for name in node.inputs:
                assert holds[found.places[call.function, (name, 0)]] == name
            holds[found.places[call.function, (node.name, 0)]] = node.name
            tag = found.tags[found.places[call.function, (node.name, 0)]]
            assert tag.memories and set(tag.memories) <= set(target.reach(unit))
            assert tag.alignment % unit.alignment == 0 and tag.bytes % tag.alignment == 0
            assert tag.bytes >= node.results[0].elements * 4
    for name in stays:
        assert holds[_tag(found, program, MODEL, name)] == name


@given(assigned())
@bounded
def test_counts_end_at_what_stays_where_the_pass_has_to_copy(drawn: tuple[Graph, Board, Assignment]) -> None:
    graph, target, assignment = drawn
    program = program_of(graph, target, partition(graph, assignment))
    found = assign_tags(program, target)
    assert all(count > 0 for row in found.rows for count in row.counts.values())
    assert sum(tag.count for tag in found.tags) == len(program.body.inputs) + len(program.body.outputs)
    made, _ = with_transfers(graph, target, assignment)
    copies = sum(isinstance(it.op, Copy) for it in made.operators)
    views = any(it.op.is_view for it in graph.operators)  # each of them would be copied separately
    assert views or copies == sum(it.kind == "copy" for it in found.transfers)


def _tag(found: Tagging, program: TagProgram, scope: str, name: str) -> int:
    for call in program.body.nodes:
        if isinstance(call, Get) and call.name == name:
            return found.places[scope, (call.source, call.field)]
    return found.places[scope, (name, 0)]
