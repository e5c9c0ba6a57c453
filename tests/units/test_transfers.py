"""Copies and cache maintenance: every unit reads what was written, on a model of stale caches."""

from __future__ import annotations

import pytest
from drawn import SHAPE, assigned, board, bounded, graph_io
from hypothesis import given

from mcudeploy.boards.board import Board, Unit
from mcudeploy.common.errors import FitError
from mcudeploy.ir.graph import DType, Graph, Operator, Tensor
from mcudeploy.ops.move.transfer import Clean, Copy, Invalidate
from mcudeploy.ops.scalar.unary import Unary
from mcudeploy.planner.cores.functions import Assignment, partition
from mcudeploy.planner.cores.requirements import needs
from mcudeploy.planner.cores.routes import with_transfers
from mcudeploy.tiling.dataflow import Dataflow

STALE = "stale"


def chain() -> Graph:
    """x -> a -> b -> c."""
    return Graph(
        "chain",
        {name: Tensor(name, SHAPE, DType.FLOAT32) for name in "xabc"},
        tuple(Operator(f"make_{t}", Unary("tanh"), (s,), t) for s, t in ("xa", "ab", "bc")),
        (graph_io("x", SHAPE),),
        (graph_io("c", SHAPE),),
    )


def operations(graph: Graph) -> list[tuple[str, str, str]]:
    return [(it.op.kind, it.inputs[0], it.output) for it in graph.operators]


def test_one_memory_and_no_cache_needs_nothing() -> None:
    pair = board(Unit(name="core"), Unit(name="npu", alignment=16))
    graph, assignment = with_transfers(chain(), pair, Assignment("core", {"make_b": "npu"}))
    assert operations(graph) == [("Unary", "x", "a"), ("Unary", "a", "b"), ("Unary", "b", "c")]
    assert assignment.elsewhere == {"make_b": "npu"}


def test_units_without_a_memory_in_common_get_a_copy_each_way() -> None:
    pair = board(
        Unit(name="core", memories=("ram",)),
        Unit(name="npu", memories=("ram", "own")),
        Unit(name="dsp", memories=("own",)),
        memories=("ram", "own"),
    )
    graph, assignment = with_transfers(chain(), pair, Assignment("core", {"make_b": "dsp"}))
    assert operations(graph) == [
        ("Unary", "x", "a"),
        ("Copy", "a", "a_dsp"),
        ("Unary", "a_dsp", "b"),
        ("Copy", "b", "b_core"),
        ("Unary", "b_core", "c"),
    ]
    assert assignment.elsewhere == {"make_b": "dsp", "copy_a_dsp": "npu", "copy_b_core": "npu"}
    tensors = needs(graph, pair, partition(graph, assignment)).tensors
    assert {name: tensors[name].memories for name in ("a", "a_dsp", "b", "b_core")} == {
        "a": ("ram",),
        "a_dsp": ("own",),
        "b": ("own",),
        "b_core": ("ram",),
    }


def test_nobody_who_could_copy() -> None:
    units = Unit(name="core", memories=("ram",)), Unit(name="dsp", memories=("own",))
    separate = board(*units, memories=("ram", "own"))
    with pytest.raises(FitError, match=r"a goes between .* core \(ram\), dsp \(own\)"):
        with_transfers(chain(), separate, Assignment("core", {"make_b": "dsp"}))


def test_a_cache_is_cleaned_by_who_wrote_and_invalidated_by_who_reads() -> None:
    pair = board(Unit(name="core", cached=("ram",)), Unit(name="npu"))
    graph, assignment = with_transfers(chain(), pair, Assignment("core", {"make_b": "npu"}))
    assert operations(graph) == [
        ("Reshape", "x", "x_piece"),
        ("Reshape", "x_piece", "x_whole"),
        ("Unary", "x_whole", "a_raw"),
        ("Clean", "a_raw", "a"),
        ("Unary", "a", "b"),
        ("Invalidate", "b", "b_core"),
        ("Unary", "b_core", "c"),
    ]
    assert assignment.elsewhere == {"make_b": "npu"}


def test_rows_of_an_input_get_lines_of_their_own_before_a_cache_reads_them() -> None:
    pair = board(Unit(name="core"), Unit(name="npu", cached=("ram",)))
    graph, _ = with_transfers(chain(), pair, Assignment("core", {"make_a": "npu"}))
    assert operations(graph)[:5] == [
        ("Reshape", "x_raw", "x_raw_piece"),
        ("Reshape", "x_raw_piece", "x_raw_whole"),  # rows share cache lines, so all stay alive together
        ("Clean", "x_raw_whole", "x"),
        ("Invalidate", "x", "x_npu"),
        ("Unary", "x_npu", "a_raw"),
    ]
    assert graph.inputs[0].tensor == "x_raw"


def test_everything_in_a_shared_memory_begins_at_a_line_of_its_cache() -> None:
    units = Unit(name="core", alignment=8, cached=("ram",)), Unit(name="npu", memories=("ram",))
    pair = board(*units, memories=("ram", "own"))
    graph, assignment = with_transfers(chain(), pair, Assignment("core", {"make_b": "npu"}))
    requirements = needs(graph, pair, partition(graph, assignment))
    assert {need.alignment for need in (*requirements.tensors.values(), *requirements.work.values())} == {32}
    assert {need.alignment for need in needs(chain(), pair).tensors.values()} == {8}


@given(assigned())
@bounded
def test_everybody_reads_what_was_written(drawn: tuple[Graph, Board, Assignment]) -> None:
    """By tensor: a unit reads the content of its cache, which is stale until it writes or invalidates."""
    given_graph, drawn_board, given_assignment = drawn
    graph, assignment = with_transfers(given_graph, drawn_board, given_assignment)
    tensors = needs(
        graph, drawn_board, partition(graph, assignment)
    ).tensors  # raises where none is in common
    roots = Dataflow.of(graph).roots
    memory: dict[str, object] = {}
    caches: dict[tuple[str, str], object] = {}
    true: dict[str, object] = {}

    def cached(unit: str, tensor: str) -> bool:
        seen = set(drawn_board.unit(unit).cached)
        return not seen.isdisjoint(tensors[roots[tensor]].memories)

    def write(unit: str, tensor: str, value: object) -> None:
        if cached(unit, tensor):
            caches[unit, roots[tensor]] = value
        else:
            memory[roots[tensor]] = value

    def read(unit: str, tensor: str) -> object:
        if cached(unit, tensor):
            return caches.get((unit, roots[tensor]), STALE)
        return memory.get(roots[tensor], STALE)

    first = drawn_board.units[0].name
    for it in graph.inputs:
        write(first, it.tensor, it.name)
    for operator in graph.operators:
        if operator.op.is_view:
            continue
        unit = assignment.unit(operator.name)
        if isinstance(operator.op, Invalidate):
            caches[unit, roots[operator.inputs[0]]] = memory.get(roots[operator.inputs[0]], STALE)
        values = tuple(read(unit, name) for name in operator.inputs)
        moved = isinstance(operator.op, Copy | Clean | Invalidate)
        write(unit, operator.output, values[0] if moved else (operator.name, *values))
        if isinstance(operator.op, Clean):
            memory[roots[operator.output]] = read(unit, operator.output)
    for it in given_graph.inputs:
        true[it.tensor] = it.name
    for operator in given_graph.operators:
        values = tuple(true[name] for name in operator.inputs)
        true[operator.output] = values[0] if operator.op.is_view else (operator.name, *values)
    for was, it in zip(given_graph.outputs, graph.outputs, strict=True):
        assert read(first, it.tensor) == true[was.tensor]
