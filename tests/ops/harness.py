"""The harness every operator passes through: the C kernels against the definition and against ONNX Runtime.

A step of an operator runs in the host firmware (ASan, UBSan) by CALL. The rows of each tensor lie in blocks
scattered over an arena of random bytes, with gaps. All but the rows the loop nest declares, the rows to be
made and the scratch is poisoned while the kernel runs, and must be unchanged afterwards. Typical use:

    check_graph(graph, {"x": array})              # whole, in pieces, in place: the same bits
    check_against_onnx(model, {"x": array})       # the same, and every tensor against ONNX Runtime
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
from bench import machine
from numpy.typing import NDArray

from mcudeploy.device.session import Session
from mcudeploy.device.tile import Tile, TileTensor, pack
from mcudeploy.frontend.load import load
from mcudeploy.ir.block_rows import BlockRows
from mcudeploy.ir.graph import DType, Graph, GraphIO, Operator, Tensor
from mcudeploy.ir.interval import Interval
from mcudeploy.ir.isa import Isa
from mcudeploy.ir.opdef import OperatorDef
from mcudeploy.ops.host_io import from_device, to_device
from mcudeploy.verify.reference import Reference

Array = NDArray[Any]
Cut = Callable[[Operator, int], int]
"""Rows of a block, for an operator whose output has `rows` rows."""

_GAP = 64


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes of the arena that one step may touch."""

    rows: Interval
    reads: tuple[tuple[Interval, bytes], ...]
    write: Interval
    scratch: Interval
    state: bytes = b""
    """Initial content of the scratch, if an operator accumulates; otherwise it is random."""


def run_operator(
    graph: Graph,
    operator: Operator,
    values: Mapping[str, Array],
    block_rows: int | BlockRows | None = None,
    *,
    seed: int = 0,
    blocks: Iterable[int] | None = None,
    in_place: int | None = None,
    variant: int = 0,
) -> Array:
    """The output of one operator, computed in blocks of `block_rows` rows (a single block by default).

    `values` has its inputs, in stored layout and type. `blocks`: only these; rows of others stay zero.
    `in_place`: this input shares the output's memory. Inputs are in one block if the output is, otherwise in
    blocks of random height and lead. `variant`: index of the kernel among all with the same result. Raises
    AssertionError for writes outside, ProtocolError with the sanitizer's report for bad accesses.
    """
    rng = np.random.default_rng(seed)
    output = graph.tensors[operator.output]
    rows = output.shape[0]
    size = _size(rows, block_rows)
    usual = operator.op.kernel(operator, graph.input_tensors(operator), output)
    call = (usual, *usual.others)[variant]
    cuts = {name: _drawn(graph.tensors[name].shape[0], rng, block_rows) for name in operator.inputs}
    if in_place is not None:
        cuts[operator.inputs[in_place]] = size
    count = size.count(rows)
    sizes = {
        **_block_bytes(graph, cuts),
        **{("", block): call.scratch_bytes for block in range(count) if call.scratch_bytes},
    }
    if in_place is None:
        sizes |= {(operator.output, block): _bytes(output, size, block) for block in range(count)}
    offsets, used = scatter(sizes, rng)
    if in_place is not None:
        host = operator.inputs[in_place]
        offsets |= {(operator.output, block): offsets[host, block] for block in range(count)}
    tensors = {name: _placed(offsets, name, graph.tensors[name].row_bytes, cut) for name, cut in cuts.items()}
    plan = _placed(offsets, operator.output, output.row_bytes, size)
    scratch = _placed(offsets, "", 0, size) if call.scratch_bytes else None
    tile = Tile(call, tuple(tensors[name] for name in operator.inputs), plan, scratch, rows, size)
    result = np.zeros(output.shape, output.dtype.value)
    with _loaded(tile, used, operator.name) as (session, op_offset):
        for block in range(count) if blocks is None else blocks:
            part = size.interval(block, rows)
            start = scratch.offsets[block] if scratch is not None else 0
            piece = Piece(
                part,
                tuple(_reads(graph, operator, values, part, tensors)),
                spans(plan, part)[0][0],
                Interval(start, start + call.scratch_bytes),
            )
            after = run_piece(session, piece, op_offset, rng.bytes(used), operator.name)
            data = after[piece.write.lo : piece.write.hi].tobytes()
            shape = (len(part), *output.shape[1:])
            result[part.lo : part.hi] = np.frombuffer(data, output.dtype.value).reshape(shape)
    return result


@contextmanager
def _loaded(tile: Tile, used: int, name: str) -> Iterator[tuple[Session, int]]:
    """A session with a tile after `used` bytes of arena, and the offset of its operator record.

    Raises AssertionError at the end if its record or its constants changed.
    """
    device = machine()
    image = pack(tile, device.kernels(tile.call.kernel), device.session.info, at=-(-used // 8) * 8 + 8)
    try:
        device.session.write(0, image.at, image.data)
        yield device.session, image.op_offset
        record = device.session.read(0, image.at, len(image.data))
        assert record == image.data, f"{name} wrote into its operator record or constants"
    except BaseException:
        device.stop()
        raise


def run_accumulating(
    graph: Graph,
    operator: Operator,
    values: Mapping[str, Array],
    steps: list[Interval],
    *,
    height: int = 0,
    seed: int = 0,
    in_place: int | None = None,
    isa: Isa = Isa.ANY,
) -> Array:
    """The output of an operator that accumulates, in steps of these rows; inputs are in blocks of `height`
    rows, or whole.

    Between the steps only the state stays, and with parameter `in_place` of the kernel the output: all other
    bytes of the arena are replaced by random ones. Else only the last step touches the output. `in_place`:
    this input shares the output's memory.
    """
    rng = np.random.default_rng(seed)
    output = graph.tensors[operator.output]
    inputs = {name: graph.tensors[name] for name in operator.inputs}
    rows = inputs[operator.inputs[0]].shape[0]
    call = operator.op.kernel(operator, tuple(inputs.values()), output).variants(isa)[0]
    grows = call.params.get("in_place") == 1
    cuts = {name: BlockRows(min(height, it.shape[0]) or it.shape[0]) for name, it in inputs.items()}
    sizes = _block_bytes(graph, cuts)
    made_name = operator.output if in_place is None else operator.inputs[in_place]
    work = call.state_bytes or call.scratch_bytes
    sizes |= {(made_name, 0): output.size_bytes, **({("", 0): work} if work else {})}
    offsets, used = scatter(sizes, rng)
    tensors = {name: _placed(offsets, name, it.row_bytes, cuts[name]) for name, it in inputs.items()}
    output_tensor = TileTensor((offsets[made_name, 0],), output.row_bytes, BlockRows(1))
    place = Interval(output_tensor.offsets[0], output_tensor.offsets[0] + output.size_bytes)
    scratch = Interval(offsets["", 0], offsets["", 0] + work) if work else Interval(0, 0)
    scratch_tile = TileTensor((scratch.lo,), 0, BlockRows(rows)) if work else None
    most = BlockRows(max(map(len, steps)))
    tile = Tile(
        call, tuple(tensors[name] for name in operator.inputs), output_tensor, scratch_tile, rows, most
    )
    nest, after = graph.loops(operator), np.zeros(used, np.uint8)
    with _loaded(tile, used, operator.name) as (session, op_offset):
        for step in steps:
            reads = []
            for operand, name in enumerate(operator.inputs):
                needed = nest.rows_taken(operand, step, inputs[name].shape[0])
                grown = grows and operand == in_place and step.lo > 0
                reads += [
                    (
                        span,
                        after[place.lo : place.hi].tobytes()
                        if grown
                        else values[name][part.lo : part.hi].tobytes(),
                    )
                    for span, part in spans(tensors[name], needed)
                ]
            state = after[scratch.lo : scratch.hi].tobytes() if call.state_bytes and step.lo > 0 else b""
            written = place if grows or step.hi == rows else Interval(place.lo, place.lo)
            piece = Piece(step, tuple(reads), written, scratch, state)
            after = run_piece(session, piece, op_offset, rng.bytes(used), operator.name)
    return np.frombuffer(after[place.lo : place.hi].tobytes(), output.dtype.value).reshape(output.shape)


def _size(rows: int, block_rows: int | BlockRows | None) -> BlockRows:
    """The blocks of an output; a whole one has no lead."""
    if block_rows is None:
        return BlockRows(rows)
    size = block_rows if isinstance(block_rows, BlockRows) else BlockRows(block_rows)
    return size if size.rows < rows else BlockRows(rows)


def _drawn(rows: int, rng: np.random.Generator, block_rows: int | BlockRows | None) -> BlockRows:
    """The blocks of an input: one if the output is, otherwise of random height and lead."""
    if block_rows is None:
        return BlockRows(rows)
    height = int(rng.integers(1, rows + 1))
    return _size(rows, BlockRows(height, int(rng.integers(0, height))))


def _block_bytes(graph: Graph, cuts: Mapping[str, BlockRows]) -> dict[tuple[str, int], int]:
    """The size of each block of the inputs, by tensor and block."""
    return {
        (name, block): _bytes(graph.tensors[name], cut, block)
        for name, cut in cuts.items()
        for block in range(cut.count(graph.tensors[name].shape[0]))
    }


def _placed(offsets: Mapping[tuple[str, int], int], name: str, row_bytes: int, cut: BlockRows) -> TileTensor:
    mine = sorted((block, offset) for (owner, block), offset in offsets.items() if owner == name)
    return TileTensor(tuple(offset for _, offset in mine), row_bytes, cut)


def _bytes(tensor: Tensor, size: BlockRows, block: int) -> int:
    return size.rows_held(block, tensor.shape[0]) * tensor.row_bytes


def scatter(
    sizes: Mapping[tuple[str, int], int], rng: np.random.Generator
) -> tuple[dict[tuple[str, int], int], int]:
    """Offsets in random order with gaps, aligned to 4; and the number of bytes they span."""
    offsets, end = {}, 0
    for position in rng.permutation(len(sizes)):
        key = list(sizes)[position]
        end += _GAP + 4 * int(rng.integers(0, 4))
        offsets[key] = end
        end += -(-sizes[key] // 4) * 4
    return offsets, end + _GAP


def _reads(
    graph: Graph,
    operator: Operator,
    values: Mapping[str, Array],
    rows: Interval,
    tensors: Mapping[str, TileTensor],
) -> list[tuple[Interval, bytes]]:
    """Addresses and content of the input rows that output rows `rows` need."""
    nest = graph.loops(operator)
    reads = []
    for operand, name in enumerate(operator.inputs):
        tensor = graph.tensors[name]
        stored = np.ascontiguousarray(values[name])
        assert stored.shape == tensor.shape and stored.dtype == np.dtype(tensor.dtype.value), name
        needed = nest.rows_read(operand, rows, tensor.shape[0])
        for span, part in spans(tensors[name], needed):
            reads.append((span, stored[part.lo : part.hi].tobytes()))
    return reads


def spans(tensor: TileTensor, rows: Interval) -> list[tuple[Interval, Interval]]:
    """The bytes of rows of a tensor, and which rows they are, block by block."""
    runs = []
    size = tensor.block_rows
    for block in size.blocks(rows) if len(rows) else ():
        first = size.start(block)
        part = rows.clip(max(0, first), size.start(block + 1))
        start = tensor.offsets[block] + (part.lo - first) * tensor.row_bytes
        runs.append((Interval(start, start + len(part) * tensor.row_bytes), part))
    return runs


def run_piece(session: Session, piece: Piece, op_offset: int, garbage: bytes, name: str) -> Array:
    """The arena's bytes after a step; before it they are `garbage` except for the bytes that the step may
    read.

    Raises AssertionError if it wrote elsewhere, ProtocolError for bad accesses.
    """
    before = np.frombuffer(garbage, np.uint8).copy()
    for span, data in piece.reads:
        before[span.lo : span.hi] = np.frombuffer(data, np.uint8)
    before[piece.scratch.lo : piece.scratch.lo + len(piece.state)] = np.frombuffer(piece.state, np.uint8)
    session.write(0, 0, before.tobytes())
    session.guard(0, 0, len(before), True)
    for span in (*(span for span, _ in piece.reads), piece.write, piece.scratch):
        if len(span):
            session.guard(0, span.lo, len(span), False)
    session.call(0, op_offset, piece.rows.lo, piece.rows.hi)
    session.guard(0, 0, len(before), False)
    after = np.frombuffer(session.read(0, 0, len(before)), np.uint8)
    changed = before != after
    for span in (piece.write, piece.scratch):
        changed[span.lo : span.hi] = False
    where = np.flatnonzero(changed)
    assert where.size == 0, f"{name} rows {piece.rows} wrote outside its output at bytes {where[:8]}"
    return after


def graph_of(op: OperatorDef, *tensors: Tensor, constants: Mapping[str, Array] | None = None) -> Graph:
    """A graph of one operator; its output is the last tensor, and its inputs are the others."""
    names = tuple(tensor.name for tensor in tensors)
    return linked([Operator("op", op, names[:-1], names[-1], constants or {})], tensors, len(names) - 1)


def linked(operators: Sequence[Operator], tensors: Sequence[Tensor], inputs: int = 1) -> Graph:
    """A graph of operators; the first `inputs` tensors are its inputs, and the last one is its output."""
    ios = [
        GraphIO(it.name, it.name, it.shape, it.dtype.value, np.arange(it.elements, dtype=np.int32))
        for it in tensors
    ]
    named = {it.name: it for it in tensors}
    return Graph("g", named, tuple(operators), tuple(ios[:inputs]), (ios[-1],))


def run_graph(
    graph: Graph, values: Mapping[str, Array], cut: Cut | list[int] | None = None, *, seed: int = 0
) -> dict[str, Array]:
    """Every tensor's value (stored layout and type), inputs included, for graph inputs `values`.

    `cut` gives the block rows of each operator: a function, or one number for each operator of the graph.
    """
    known = dict(values)
    for position, operator in enumerate(graph.operators):
        shape = graph.tensors[operator.output].shape
        if operator.op.is_view:
            known[operator.output] = np.ascontiguousarray(known[operator.inputs[0]]).reshape(shape)
            continue
        height = cut[position] if isinstance(cut, list) else cut(operator, shape[0]) if cut else None
        known[operator.output] = run_operator(graph, operator, known, height, seed=seed + position)
    return known


def check_graph(graph: Graph, values: Mapping[str, Array], *, seed: int = 0) -> dict[str, Array]:
    """Check that every operator has the same bits in pieces, in place and whole. Returns all tensors."""
    known = dict(values)
    for position, operator in enumerate(graph.operators):
        if operator.op.is_view:
            shape = graph.tensors[operator.output].shape
            known[operator.output] = known[operator.inputs[0]].reshape(shape)
            continue
        known[operator.output] = check_operator(graph, operator, known, seed=seed + position)
    return known


def outputs_of(graph: Graph, inputs: Mapping[str, Array], *, pieces: bool = True) -> dict[str, Array]:
    """The outputs by name, in the model's form, as `check_graph` computes them, or whole; states are
    initial.
    """
    values = {
        io.tensor: to_device(io, graph.tensors[io.tensor], inputs[io.name]) for io in graph.own_inputs()
    }
    computed = (check_graph if pieces else run_graph)(
        graph, values | {state.tensor: state.initial for state in graph.states}
    )
    return {it.name: from_device(it, graph.tensors[it.tensor], computed[it.tensor]) for it in graph.outputs}


def check_operator(
    graph: Graph, operator: Operator, values: Mapping[str, Array], *, seed: int = 0, blocks: int = 6
) -> Array:
    """Check one operator as `check_graph` does; of each cut at most `blocks` blocks are run. Returns the
    output.
    """
    rng = np.random.default_rng(seed)
    output = graph.tensors[operator.output]
    rows = output.shape[0]
    if operator.op.accumulates:
        return _check_accumulating(graph, operator, values, seed=seed)
    whole = run_operator(graph, operator, values, seed=seed)
    others = operator.op.kernel(operator, graph.input_tensors(operator), output).others
    for number, other in enumerate(others, 1):
        _same_by_other(graph, operator, values, whole, seed=seed, variant=number, name=other.variant)
    for height in sorted({1, 2, int(rng.integers(1, rows + 1))}):
        if height >= rows:
            continue
        size = BlockRows(height, int(rng.integers(0, height)))
        count = size.count(rows)
        inner = rng.permutation(np.arange(1, count - 1))[: blocks - 2]
        some = sorted({0, count - 1, *map(int, inner)})
        _same(graph, operator, values, whole, size=size, seed=seed, blocks=some)
    for operand in operator.op.overwrites(graph.input_tensors(operator), output):
        for height in {1, rows}:
            ends = sorted({0, -(-rows // height) - 1})
            size = BlockRows(height)
            _same(graph, operator, values, whole, size=size, seed=seed + 1, blocks=ends, in_place=operand)
    return whole


def _check_accumulating(graph: Graph, operator: Operator, values: Mapping[str, Array], *, seed: int) -> Array:
    """Check that an operator has the same bits in one step, row by row, in two steps, and in place."""
    inputs, output = graph.input_tensors(operator), graph.tensors[operator.output]
    overwritten = operator.op.overwrites(inputs, output)
    rows = inputs[0].shape[0]
    grows = operator.op.kernel(operator, inputs, output).params.get("in_place") == 1
    places = [*([] if grows else [None]), *overwritten]
    whole = run_accumulating(graph, operator, values, [Interval(0, rows)], seed=seed, in_place=places[0])
    middle = rows // 2
    halves = [Interval(0, middle), Interval(middle, rows)] if middle else [Interval(0, rows)]
    single = [Interval(row, row + 1) for row in range(rows)]
    for place in places:
        for steps, height in ((single, 1), (halves, 2), (single, 0)):
            part = run_accumulating(
                graph, operator, values, steps, height=height, seed=seed + 1, in_place=place
            )
            equal = part.tobytes() == whole.tobytes()
            assert equal, f"{operator.op.kind} differs in {len(steps)} steps, in place of {place}"
    return whole


def _same_by_other(
    graph: Graph,
    operator: Operator,
    values: Mapping[str, Array],
    whole: Array,
    *,
    seed: int,
    variant: int,
    name: str,
) -> None:
    for height in {1, len(whole)}:
        last = -(-len(whole) // height) - 1
        blocks = sorted({0, last // 2, last})
        part = run_operator(graph, operator, values, height, seed=seed, blocks=blocks, variant=variant)
        for block in blocks:
            span = slice(block * height, (block + 1) * height)
            equal = part[span].tobytes() == whole[span].tobytes()
            what = f"{operator.name} ({operator.op.kind})"
            assert equal, f"{what} differs by {name}: block {block} of {height} rows"


def _same(
    graph: Graph,
    operator: Operator,
    values: Mapping[str, Array],
    whole: Array,
    *,
    size: BlockRows,
    seed: int,
    blocks: list[int],
    in_place: int | None = None,
) -> None:
    part = run_operator(graph, operator, values, size, seed=seed, blocks=blocks, in_place=in_place)
    for block in blocks:
        rows = size.interval(block, len(whole))
        equal = part[rows.lo : rows.hi].tobytes() == whole[rows.lo : rows.hi].tobytes()
        how = "in pieces" if in_place is None else f"in place of input {in_place}"
        assert equal, f"{operator.name} ({operator.op.kind}) differs {how}: block {block} of {size}"


def check_against_onnx(
    model: onnx.ModelProto,
    inputs: Mapping[str, Array],
    *,
    float_tolerance: float = 1e-4,
    max_lsb: int = 1,
    equal_share: float = 0.995,
    few: int = 1,
    seed: int = 0,
    pieces: bool = True,
) -> Graph:
    """Load a model, run it operator by operator as `check_graph`, and compare every tensor with ONNX Runtime.

    Each operator gets the reference's own inputs if the ONNX model has them. float32: within
    `float_tolerance` of the reference's range; int8: no element more than `max_lsb` off, and equal in a share
    of `equal_share`, or in all but `few` elements. Returns the graph.
    """
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        onnx.save(model, path)
        graph = load(path)
        ios = {io.name: io for io in (*graph.references.values(), *graph.outputs)}
        reference = Reference(path, list(ios)).run(inputs)
    known: dict[str, Array] = {
        io.tensor: to_device(io, graph.tensors[io.tensor], inputs[io.name]) for io in graph.inputs
    }
    for position, operator in enumerate(graph.operators):
        output = graph.tensors[operator.output]
        if operator.op.is_view:
            computed = np.ascontiguousarray(known[operator.inputs[0]]).reshape(output.shape)
        elif pieces:
            computed = check_operator(graph, operator, known, seed=seed + position)
        else:
            computed = run_operator(graph, operator, known, seed=seed + position)
        known[operator.output] = computed
        io = graph.references.get(operator.output)
        if io is None:
            io = next((out for out in graph.outputs if out.tensor == operator.output), None)
        if io is not None:
            wanted = to_device(io, output, reference[io.name])
            near = _Limits(float_tolerance, max_lsb, equal_share, few)
            _near(operator, computed, wanted, near)
            known[operator.output] = wanted
    return graph


@dataclass(frozen=True, slots=True)
class _Limits:
    float_tolerance: float
    max_lsb: int
    equal_share: float
    few: int


def _near(operator: Operator, computed: Array, wanted: Array, limits: _Limits) -> None:
    what = f"{operator.name} ({operator.op.kind})"
    assert computed.shape == wanted.shape and computed.dtype == wanted.dtype, what
    if computed.dtype == np.dtype(DType.FLOAT32.value):
        finite = np.abs(wanted[np.isfinite(wanted)])
        limit = limits.float_tolerance * (float(finite.max()) if finite.size else 1.0)
        np.testing.assert_allclose(computed, wanted, rtol=0, atol=limit, err_msg=what)
        return
    gap = np.abs(computed.astype(np.int32) - wanted.astype(np.int32))
    differ = int((gap > 0).sum())
    allowed = max(limits.few, (1 - limits.equal_share) * gap.size)
    if int(gap.max(initial=0)) > limits.max_lsb or differ > allowed:
        at = np.unravel_index(int(gap.argmax()), gap.shape)
        raise AssertionError(
            f"{what}: {differ} of {gap.size} elements differ from ONNX Runtime, the worst by {gap.max()} "
            f"LSB: {computed[at]} instead of {wanted[at]} at {tuple(map(int, at))}"
        )
