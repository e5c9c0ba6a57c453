"""Comparison of a machine with the reference, operator by operator and end to end.

`difference.py` defines the tolerances.

A tie is an element whose value before rounding, in the reference itself, lies within 1e-4 LSB of the middle
between two int8 values. There the reference's float32 noise decides, and both neighbours are right. Means of
int8 values are such ties by construction: one in n for n values of equal scale.

Other roundings of the program add to the 1e-4 LSB: of a convolution's bias to units of its accumulator, of a
sum's multipliers, and of a result that is rounded twice. A concatenation of rounded values has their ties.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mcudeploy.common.text import agree, count_text
from mcudeploy.frontend.expose import Rounded
from mcudeploy.ir.graph import DType, Graph, Tensor
from mcudeploy.ir.plan import Entry, Plan, Run, Step
from mcudeploy.ops.host_io import to_device
from mcudeploy.tiling.blocks import BlockId, TiledGraph
from mcudeploy.tiling.locations import BlockTable, Locations
from mcudeploy.verify.difference import Difference, difference, least_tolerance, operator_passes

Array = NDArray[Any]

TIE_LSB = 1e-4


class Machine(Protocol):
    """A machine that holds arenas and runs a tape: a board, an emulator, a process."""

    def write(self, memory: int, offset: int, data: bytes) -> None:
        """Put bytes at `offset` of arena `memory`."""

    def read(self, memory: int, offset: int, count: int) -> bytes:
        """Return `count` bytes at `offset` of arena `memory`."""

    def run(self, first: int, count: int) -> int:
        """Run entries of the tape; return their ticks."""


Place = tuple[int, int]
"""The number of an arena, and an offset in it."""


@dataclass(frozen=True, slots=True)
class Storage:
    """Places of the blocks of a plan's tensors in a machine's arenas; times are steps of the schedule."""

    plan: Plan
    tiled: TiledGraph
    where: Locations

    @classmethod
    def of(cls, plan: Plan) -> Storage:
        """Return the storage of a plan."""
        return cls(plan, TiledGraph.of(plan), Locations.of(plan.layout))

    def place_of(self, block_id: BlockId, time: int) -> Place:
        """Return the place of a block at the step that writes it; for time -1, where the application does."""
        residence = self.where.destination(block_id, time)
        return self._place(residence.memory, block_id, residence.offset)

    def read_at(self, block_ids: Sequence[BlockId], time: int) -> list[Place]:
        """Return the places of the blocks of one tensor at the step that reads them."""
        if not block_ids:
            return []
        name = block_ids[0][0]
        memory = self.where.read(name, [block for _, block in block_ids], time)
        places = ((one, self.where.offset(BlockTable(name, memory), one[1], time)) for one in block_ids)
        return [self._place(memory, block_id, offset) for block_id, offset in places]

    def _place(self, memory: str, block_id: BlockId, offset: int) -> Place:
        """Return the address of the first row that a block has; its memory may begin before that."""
        name, block = block_id
        lacks = self.tiled.block_interval(*block_id).lo - self.tiled.tensor_block_rows(name).start(block)
        row_bytes = self.plan.graph.tensors[name].row_bytes
        return sorted(self.plan.layout.arenas).index(memory), offset + lacks * row_bytes

    def span(self, block_id: BlockId) -> slice:
        """Return the bytes of a block among those of its tensor."""
        rows = self.tiled.block_interval(*block_id)
        row_bytes = self.plan.graph.tensors[block_id[0]].row_bytes
        return slice(rows.lo * row_bytes, rows.hi * row_bytes)

    def get(self, machine: Machine, block_id: BlockId, place: Place) -> bytes:
        """Read one block."""
        span = self.span(block_id)
        return machine.read(*place, span.stop - span.start)

    def blocks(self, tensor: str) -> list[BlockId]:
        """Return all blocks of the tensor that owns a tensor's memory."""
        root = self.tiled.flow.roots[tensor]
        return [(root, block) for block in range(self.tiled.block_count(root))]

    def completed_block(self, step: Step) -> BlockId | None:
        """Return the block that is complete after a step; None before the last step of an accumulation."""
        operator = self.plan.graph.operators[step.operator]
        if not operator.op.accumulates:
            return operator.output, step.block
        last = step.block == self.tiled.step_counts[step.operator] - 1
        return (operator.output, 0) if last else None

    def put_tensor(self, machine: Machine, tensor: str, value: Array) -> None:
        """Write a whole tensor before all steps, where the application writes it."""
        stored = value.tobytes()
        for block_id in self.blocks(tensor):
            machine.write(*self.place_of(block_id, -1), stored[self.span(block_id)])

    def get_tensor(self, machine: Machine, tensor: str) -> Array:
        """Read a whole tensor after the last step, in stored shape; a state where the next run reads it."""
        blocks, end = self.blocks(tensor), max(len(self.plan.schedule.steps) - 1, 0)
        states, roots = self.plan.graph.states, self.tiled.flow.roots
        home = next((roots[it.tensor] for it in states if roots[it.after.tensor] == blocks[0][0]), None)
        places = self.read_at(blocks, end) if home is None else [self.place_of((home, 0), -1)]
        data = b"".join(self.get(machine, *each) for each in zip(blocks, places, strict=True))
        return as_array(data, self.plan.graph.tensors[tensor])


def as_array(data: bytes, tensor: Tensor) -> Array:
    """Return stored bytes as an array of the tensor's shape."""
    return np.frombuffer(data, tensor.dtype.value).reshape(tensor.shape)


def stored_references(graph: Graph, values: Mapping[str, Array]) -> dict[str, Array]:
    """Return the reference's values in stored form, by tensor name, for every tensor that has one."""
    return {
        name: to_device(io, graph.tensors[io.tensor], values[io.name])
        for name, io in graph.references.items()
    }


def stored_ties(
    graph: Graph, values: Mapping[str, Array], quantizers: Mapping[str, Rounded]
) -> dict[str, Array]:
    """Return masks of the reference's ties in stored form, by tensor name, for every quantised tensor.

    `quantizers` maps an ONNX tensor to the float tensors that a QuantizeLinear rounds.
    """
    ties: dict[str, Array] = {}
    producers = {operator.output: operator for operator in graph.operators}
    for name, io in graph.references.items():
        quantization = graph.tensors[io.tensor].quantization
        if quantization is None or io.name not in quantizers:
            continue
        rounded = quantizers[io.name]
        floats = np.concatenate([np.atleast_1d(values[name]) for name in rounded.floats], rounded.axis)
        steps = floats.astype(np.float64).ravel() / quantization.scale
        tensor = graph.tensors[io.tensor]
        window = np.full(tensor.elements, TIE_LSB)
        if io.tensor in producers:
            producer = producers[io.tensor]
            error = producer.op.rounding_error(producer, graph.input_tensors(producer), tensor)
            window += np.resize(error, tensor.elements)
        with np.errstate(invalid="ignore"):  # infinity is not a tie
            gap = np.abs(steps - np.floor(steps) - 0.5)
            ties[name] = (io.stored(gap) < window).reshape(tensor.shape)
    return ties


def run_once(
    machine: Machine, storage: Storage, inputs: Mapping[str, Array], steps: Sequence[int] = ()
) -> int:
    """Write the inputs (stored form, by tensor name), run the tape, and return the ticks; `steps` as in
    `fed_runs`.
    """
    return sum(machine.run(first, count) for first, count in fed_runs(machine, storage, inputs, steps))


def fed_runs(
    machine: Machine, storage: Storage, inputs: Mapping[str, Array], steps: Sequence[int] = ()
) -> Iterator[tuple[int, int]]:
    """Yield runs (first entry, count) that cover the tape, each when its input rows are present.

    It first writes resident inputs and the given states, and rows of a streamed input before the step that
    would request them. `steps`: for a program with joined steps, the step for each entry, and the end.
    """
    graph = storage.plan.graph
    state_tensors = {state.tensor for state in graph.states} - set(inputs)
    for io in (io for io in graph.resident_inputs() if io.tensor not in state_tensors):
        storage.put_tensor(machine, io.tensor, inputs[io.tensor])
    feeds = {
        first: (time, (graph.operators[entry.operator].output, entry.block))
        for first, time, entry in entries(storage.plan)
        if isinstance(entry, Run) and not graph.operators[entry.operator].inputs
    }
    bounds = [0, *(first for first in feeds if first > 0), len(storage.plan.tape)]
    for first, end in pairwise(bounds):
        if first in feeds:
            time, block_id = feeds[first]
            data = inputs[block_id[0]].tobytes()[storage.span(block_id)]
            machine.write(*storage.place_of(block_id, time), data)
        begin, count = (steps[first], steps[end] - steps[first]) if steps else (first, end - first)
        yield begin, count


def entries(plan: Plan) -> Iterator[tuple[int, int, Entry]]:
    """Yield the entries of the tape, each with its index and the step that contains or follows it."""
    time = 0
    for place, entry in enumerate(plan.tape):
        yield place, time, entry
        time += isinstance(entry, Run)


def check_operators(
    machine: Machine,
    storage: Storage,
    fed: Mapping[str, Array],
    references: Mapping[str, Array],
    ties: Mapping[str, Array],
) -> dict[str, Difference]:
    """Run the tape step by step, each step reading the given inputs; return the difference of each operator.

    `fed`, `references` and `ties` are stored values and masks by tensor name. Operators whose output has no
    reference run, but are not judged.
    """
    graph, tiled = storage.plan.graph, storage.tiled
    stored = {tiled.flow.roots[name]: value.tobytes() for name, value in fed.items()}
    result: dict[str, Difference] = {}
    begun: set[int] = set()
    for place, time, entry in entries(storage.plan):
        if not isinstance(entry, Run):
            machine.run(place, 1)
            continue
        step = storage.plan.schedule.steps[time]
        operator = graph.operators[step.operator]
        if not operator.inputs:
            continue
        overwritten = tiled.flow.overwrites[step.operator] if operator.op.accumulates else ()
        for operand, blocks in enumerate(tiled.blocks_read(step)):
            if operand in overwritten:  # only the first step reads the input, the others their own results
                if step.operator in begun:
                    continue
                begun |= {step.operator} if blocks else set()
            for block_id, at in zip(blocks, storage.read_at(blocks, time), strict=True):
                if block_id[0] in stored:
                    machine.write(*at, stored[block_id[0]][storage.span(block_id)])
        machine.run(place, 1)
        expected, block = references.get(operator.output), storage.completed_block(step)
        if expected is None or block is None:
            continue
        rows = tiled.block_interval(*block)
        data = storage.get(machine, block, storage.place_of(block, time))
        computed = np.frombuffer(data, graph.tensors[operator.output].dtype.value)
        mask = ties.get(operator.output)
        diff = difference(
            computed,
            expected[rows.lo : rows.hi],
            None if mask is None else mask[rows.lo : rows.hi],
            least_tolerance(graph.references.get(operator.output), graph.tensors[operator.output].dtype),
        )
        result[operator.name] = result[operator.name].merge(diff) if operator.name in result else diff
    return result


def check_by_reference(
    machine: Machine,
    storage: Storage,
    inputs: Mapping[str, Array],
    references: Mapping[str, Array],
    ties: Mapping[str, Array],
) -> dict[str, Difference]:
    """Check each operator on the reference's own inputs, see `check_operators`.

    For an input without a reference it reads the machine's own values. They may differ in the last bit from
    the reference's, so that a comparison with an equal value turns out differently. An operator that reads
    such an input, and fails, is judged on the machine's inputs alone.
    """
    graph, roots = storage.plan.graph, storage.tiled.flow.roots
    checks = check_operators(machine, storage, {**inputs, **references}, references, ties)
    known = {roots[name] for name in (*inputs, *references)}
    mixed = [
        operator.name
        for operator in graph.operators
        if operator.name in checks
        and not operator_passes(checks[operator.name], graph.tensors[operator.output].dtype)
        and not known.issuperset(roots[name] for name in operator.inputs)
    ]
    if mixed:
        own = check_operators(machine, storage, inputs, references, ties)
        checks.update((name, own[name]) for name in mixed)
    return checks


def run_with_ties_as_reference(
    machine: Machine,
    storage: Storage,
    inputs: Mapping[str, Array],
    references: Mapping[str, Array],
    ties: Mapping[str, Array],
) -> int:
    """Run the tape on its own values, and give elements at ties the reference's value; return their number.

    An element is changed only if it is off by one at a tie. Any remaining difference from the reference is
    not due to ties.
    """
    graph, tiled = storage.plan.graph, storage.tiled
    replaced = 0
    runs = fed_runs(machine, storage, inputs)
    places = (place for first, count in runs for place in range(first, first + count))
    for place, (_, time, entry) in zip(places, entries(storage.plan), strict=True):
        machine.run(place, 1)
        if not isinstance(entry, Run):
            continue
        step = storage.plan.schedule.steps[time]
        output, block = graph.operators[step.operator].output, storage.completed_block(step)
        if output not in ties or block is None:
            continue
        rows = tiled.block_interval(*block)
        expected, mask = references[output][rows.lo : rows.hi], ties[output][rows.lo : rows.hi]
        at = storage.place_of(block, time)
        computed = np.frombuffer(storage.get(machine, block, at), np.int8).reshape(expected.shape)
        off = mask & (np.abs(computed.astype(np.int16) - expected) == 1)
        if off.any():
            replaced += int(off.sum())
            machine.write(*at, np.where(off, expected, computed).tobytes())
    return replaced


def merge_all(tables: Iterable[Mapping[str, Difference]]) -> dict[str, Difference]:
    """Combine the differences of several samples."""
    result: dict[str, Difference] = {}
    for table in tables:
        for name, diff in table.items():
            result[name] = result[name].merge(diff) if name in result else diff
    return result


def diverging(graph: Graph, differences: Mapping[str, Difference]) -> Sequence[str]:
    """Return a line for each failed operator, in execution order: its name, values and mismatches."""
    lines = []
    for operator in graph.operators:
        diff, dtype = differences.get(operator.name), graph.tensors[operator.output].dtype
        if diff is None or operator_passes(diff, dtype):
            continue
        allowed = f"; allowed: {diff.tolerance}" if dtype is DType.FLOAT32 else ""
        lines.append(
            f"{operator.name} ({operator.op.kind}): element {diff.where} is {diff.found:g}, the reference "
            f"has {diff.expected:g}; {diff.mismatches} of {count_text(diff.elements, 'element')} "
            f"{agree(diff.mismatches, 'differs', 'differ')}, "
            f"{diff.ties} of them at ties{allowed}"
        )
    return lines
