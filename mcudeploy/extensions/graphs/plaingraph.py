"""Plain dependency graphs, such as training steps with forward, backward and update, as scheduling problems.

A file is JSON, plain or gzip. `nodes` have id, op, inputs and outputs (tensor ids), and optionally name,
view, phase and flops. `tensors` have bytes and, for a view, alias_of. `outputs` are tensors that stay.
`inplace_updates` are pairs [old, new] of tensors: the new one overwrites the old one. In pairs of
`inplace_candidates`, it may do so if no later node reads the old one. The order of the nodes is valid.

Parameters and buffers of the model lie outside the planned memory. Inputs that are read are live from the
start. A view shares its base's memory and costs nothing; an update comes after all reads.
"""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, ValidationInfo

from mcudeploy.common.errors import ModelError
from mcudeploy.common.files import read_limited
from mcudeploy.planner.order.order_problem import InPlace, OrderProblem, StepBuffer

MAX_FILE_BYTES = 32 * 2**20
_PERSISTENT = frozenset({"param", "buffer"})
_INPUT = "input"
_GZIP_MAGIC = b"\x1f\x8b"


def _number(value: object, info: ValidationInfo) -> object:
    """Return the number of the tensor with this id, if the id is a text."""
    numbers: dict[object, int] = info.context or {}
    if isinstance(value, str) and value not in numbers:
        raise ValueError(f"tensor {value!r} does not exist")
    return numbers[value] if isinstance(value, str) else value


Number = Annotated[int, Field(ge=0, strict=True)]
Id = Annotated[Number, BeforeValidator(_number)]
"""The number of a tensor; in a file also its id."""
_Name = Annotated[str, Field(min_length=1)]
_MOST_BYTES = 2**62
Bytes = Annotated[int, Field(ge=0, le=_MOST_BYTES, strict=True)]


class PlainNode(BaseModel):
    """An operator; `view`: it computes nothing, its outputs are parts of its input's memory."""

    model_config = ConfigDict(frozen=True)
    id: Number | _Name
    name: str = ""
    op: str
    inputs: tuple[Id, ...]
    outputs: tuple[Id, ...]
    view: bool = False
    phase: str = ""
    flops: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0


class PlainTensor(BaseModel):
    """A tensor and its bytes. `id`: a text, or its number. `alias_of`: the tensor whose memory it shares."""

    model_config = ConfigDict(frozen=True)
    id: Number | _Name | None = None
    bytes: Bytes
    alias_of: Id | None = None


class _GraphFile(BaseModel):
    name: str = ""
    nodes: tuple[PlainNode, ...]
    tensors: tuple[PlainTensor, ...]
    outputs: tuple[Id, ...] = ()
    inplace_updates: tuple[tuple[Id, Id], ...] = ()
    inplace_candidates: tuple[tuple[Id, Id], ...] = ()

    def label(self, tensor: int) -> str:
        """Return the text for a tensor in messages."""
        name = self.tensors[tensor].id
        return name if isinstance(name, str) else f"tensor {tensor}"


@dataclass(frozen=True, eq=False)
class PlainGraph:
    """A graph as read: nodes in a valid order, and the scheduling problem of those that compute.

    `steps[i]` is the index in `nodes` of the problem's step i. All other nodes cost nothing. `updates` are
    steps that only update weights. `needs` are the predecessors of each node. `tensor_names`, `tensor_bytes`
    and `roots` have for each tensor its name, its size and the tensor whose memory it shares. `persistent`
    roots are parameters, which lie outside the planned memory; `inputs` are roots that are live from the
    start, `kept` those that are live until the end.
    """

    name: str
    nodes: tuple[PlainNode, ...]
    problem: OrderProblem
    steps: tuple[int, ...]
    updates: tuple[int, ...]
    needs: tuple[tuple[int, ...], ...]
    tensor_names: tuple[str, ...]
    tensor_bytes: tuple[int, ...]
    roots: tuple[int, ...]
    persistent: frozenset[int]
    inputs: frozenset[int]
    kept: frozenset[int]

    def node_order(self, order: Sequence[int]) -> tuple[int | str, ...]:
        """Return ids of all nodes for an order of the steps; free nodes come as early as possible."""
        waiting = [len(needed) for needed in self.needs]
        after: list[list[int]] = [[] for _ in self.nodes]
        for place, needed in enumerate(self.needs):
            for other in needed:
                after[other].append(place)
        steps = set(self.steps)
        positions: list[int | str] = []

        def run(first: int) -> None:
            pending = [first]
            while pending:
                place = pending.pop()
                positions.append(self.nodes[place].id)
                for other in after[place]:
                    waiting[other] -= 1
                    if not waiting[other] and other not in steps:
                        pending.append(other)

        for place, needed in enumerate(self.needs):
            if not needed and place not in steps:
                run(place)
        for step in order:
            run(self.steps[step])
        return tuple(positions)


def load_plain_graph(path: Path) -> PlainGraph:
    """Read a graph. Raises ModelError that names the fault of the file."""
    content = _json(path)
    try:
        return graph_of(content, path.name.removesuffix(".gz").removesuffix(".json"))
    except ModelError as fault:
        raise ModelError(f"{path} is not a dependency graph: {fault}") from fault


def graph_of(content: object, default_name: str = "graph") -> PlainGraph:
    """Return the graph described by the JSON of a file. Raises ModelError that names its fault."""
    try:
        file = _GraphFile.model_validate(content, context=_numbers(content))
    except ValidationError as fault:
        first = fault.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise ModelError(f"{where}: {first['msg']}") from fault
    return _graph(file, default_name)


def _numbers(content: object) -> dict[object, int]:
    """Return the numbers of tensors by id, for ids that are texts. Raises ModelError for an id of two."""
    numbers: dict[object, int] = {}
    tensors = content.get("tensors") if isinstance(content, dict) else None
    for number, listed in enumerate(tensors if isinstance(tensors, list) else ()):
        name = listed.get("id") if isinstance(listed, dict) else None
        if isinstance(name, str) and numbers.setdefault(name, number) != number:
            raise ModelError(f"tensors {numbers[name]} and {number} have the same id {name!r}")
    return numbers


def _json(path: Path) -> object:
    try:
        packed = read_limited(path, MAX_FILE_BYTES)
        if packed.startswith(_GZIP_MAGIC):
            with gzip.open(io.BytesIO(packed)) as stream:
                packed = stream.read(MAX_FILE_BYTES + 1)
    except (OSError, EOFError, zlib.error) as fault:
        raise ModelError(f"{path} cannot be read: {getattr(fault, 'strerror', None) or fault}") from fault
    if len(packed) > MAX_FILE_BYTES:
        raise ModelError(f"{path} has more than {MAX_FILE_BYTES // 2**20} MiB of JSON, the limit")
    try:
        return json.loads(packed)
    except (ValueError, RecursionError) as fault:
        raise ModelError(f"{path} is not JSON: {fault}") from fault


@dataclass(frozen=True, slots=True)
class _Owners:
    """For each tensor, the owner of its memory: by views alone (`base`), or by views and updates (`root`)."""

    base: tuple[int, ...]
    root: tuple[int, ...]


def _graph(file: _GraphFile, default_name: str) -> PlainGraph:
    """Return the graph of a file: only nodes that compute are steps of its order."""
    producer = _producers(file)
    memory = _memory(file, producer)
    needs = _needs(file, producer, memory)
    computing = tuple(
        place
        for place, node in enumerate(file.nodes)
        if not (node.op in _PERSISTENT or node.op == _INPUT or _is_free_view(node, memory))
    )
    step_of = {place: step for step, place in enumerate(computing)}
    before: list[tuple[int, ...]] = []
    reached: list[frozenset[int]] = []  # per node the steps before it, with only free nodes in between
    for place, needed in enumerate(needs):
        steps = frozenset().union(
            *(frozenset((step_of[other],)) if other in step_of else reached[other] for other in needed)
        )
        reached.append(steps)
        if place in step_of:
            before.append(tuple(sorted(steps)))
    buffers = _buffers(file, memory, producer, step_of)
    problem = OrderProblem(
        tuple(before), tuple(buffers.values()), _in_place(file, memory, producer, (step_of, [*buffers]))
    )
    updates = _updates(file, memory, problem, step_of)
    op_of = {root: file.nodes[producer[root]].op for root in memory.root}
    return PlainGraph(
        file.name or default_name,
        file.nodes,
        problem,
        computing,
        updates,
        needs,
        tuple(map(file.label, range(len(file.tensors)))),
        tuple(tensor.bytes for tensor in file.tensors),
        memory.root,
        frozenset(root for root, op in op_of.items() if op in _PERSISTENT),
        frozenset(root for root, op in op_of.items() if op == _INPUT),
        frozenset(memory.root[tensor] for tensor in file.outputs),
    )


def _producers(file: _GraphFile) -> list[int]:
    """Return the index of each tensor's producer; checks ids, and that the order is valid."""
    if sum(listed.bytes for listed in file.tensors) > _MOST_BYTES:
        raise ModelError("its tensors have more than 2^62 bytes together")
    producers = [-1] * len(file.tensors)
    seen: set[int | str] = set()
    for number, listed in enumerate(file.tensors):
        if isinstance(listed.id, int) and listed.id != number:
            raise ModelError(f"tensor {number} has id {listed.id}; ids count from 0 in the order of the file")
    for place, node in enumerate(file.nodes):
        title = f"node {node.id} ({node.name or node.op})"
        if node.id in seen:
            raise ModelError(f"{title}: another node has this id")
        seen.add(node.id)
        for tensor in (*node.inputs, *node.outputs):
            if tensor >= len(producers):
                raise ModelError(f"{title}: tensor {tensor} does not exist, there are {len(producers)}")
        for tensor in node.inputs:
            if producers[tensor] < 0:
                raise ModelError(f"{title}: reads {file.label(tensor)}, which no node before it makes")
        for tensor in node.outputs:
            if producers[tensor] >= 0:
                raise ModelError(f"{title}: makes {file.label(tensor)}, which another node makes too")
            producers[tensor] = place
    orphan = next((tensor for tensor, place in enumerate(producers) if place < 0), None)
    if orphan is not None:
        raise ModelError(f"no node makes {file.label(orphan)}")
    return producers


def _memory(file: _GraphFile, producer: list[int]) -> _Owners:
    """Return the tensors in whose memory each tensor is; checks views and in-place updates."""
    count = len(file.tensors)
    pairs = (*file.inplace_updates, *file.inplace_candidates)
    for tensor in (*file.outputs, *(one for pair in pairs for one in pair)):
        if tensor >= count:
            raise ModelError(f"tensor {tensor} of the outputs or updates does not exist, there are {count}")
    target = {number: t.alias_of for number, t in enumerate(file.tensors) if t.alias_of is not None}
    base = _follow(target, count, "alias_of")
    for number, other in target.items():
        if file.tensors[base[number]].bytes == 0 < file.tensors[number].bytes:
            raise ModelError(f"tensor {number} is a view of tensor {other}, which has no bytes")
        if producer[other] > producer[number]:
            raise ModelError(f"tensor {number} is a view of tensor {other}, which is made after it")
    overwritten: dict[int, int] = {}
    for old, new in file.inplace_updates:
        if file.tensors[new].bytes > file.tensors[base[old]].bytes:
            raise ModelError(
                f"in-place update: tensor {new} is larger than tensor {old}, which it overwrites"
            )
        if base[new] in overwritten:
            raise ModelError(f"in-place update: tensor {new} overwrites two tensors")
        if base[new] != base[old]:
            overwritten[base[new]] = base[old]
    merged = _follow(overwritten, count, "in-place update")
    return _Owners(tuple(base), tuple(merged[each] for each in base))


def _follow(target: dict[int, int], count: int, label: str) -> list[int]:
    """Return the end of each number's chain of targets."""
    ends: list[int] = []
    for number in range(count):
        end, passed = number, 0
        while end in target:
            end, passed = target[end], passed + 1
            if end >= count:
                raise ModelError(f"{label}: tensor {end} does not exist, there are {count}")
            if passed > len(target):
                raise ModelError(f"{label}: tensor {number} leads back to itself")
        ends.append(end)
    return ends


def _is_free_view(node: PlainNode, memory: _Owners) -> bool:
    """Return whether a node is a view of one memory, which costs nothing right after its producer."""
    return node.view and len({memory.root[tensor] for tensor in (*node.inputs, *node.outputs)}) == 1


def _needs(file: _GraphFile, producer: list[int], memory: _Owners) -> tuple[tuple[int, ...], ...]:
    """Return, for each node, its predecessors: producers of its inputs, and readers of what it overwrites."""
    needs = [{producer[tensor] for tensor in node.inputs} for node in file.nodes]
    readers: dict[int, list[int]] = {}
    for place, node in enumerate(file.nodes):
        for tensor in {memory.base[tensor] for tensor in node.inputs}:
            readers.setdefault(tensor, []).append(place)
        for tensor in {memory.base[tensor] for tensor in node.outputs}:
            needs[place].add(producer[tensor])
        needs[place].discard(place)
    for old, new in file.inplace_updates:
        writer = producer[memory.base[new]]
        for place in readers.get(memory.base[old], ()):
            if place == writer:
                continue
            if place > writer:
                node = file.nodes[place]
                raise ModelError(
                    f"in-place update: node {node.id} ({node.name or node.op}) reads tensor {old} after node "
                    f"{file.nodes[writer].id} has overwritten it"
                )
            needs[writer].add(place)
    return tuple(tuple(sorted(needed)) for needed in needs)


def _buffers(
    file: _GraphFile, memory: _Owners, producer: list[int], step_of: dict[int, int]
) -> dict[int, StepBuffer]:
    """Return, by root, a buffer for each memory that counts, with all steps that read or write it."""
    touched: dict[int, set[int]] = {}
    for place, node in enumerate(file.nodes):
        for tensor in (*node.inputs, *node.outputs):
            steps = touched.setdefault(memory.root[tensor], set())
            if place in step_of:
                steps.add(step_of[place])
    result_roots = {memory.root[tensor] for tensor in file.outputs}
    return {
        root: StepBuffer(
            file.tensors[root].bytes,
            tuple(sorted(steps)),
            file.nodes[producer[root]].op == _INPUT,
            root in result_roots,
        )
        for root, steps in touched.items()
        if file.nodes[producer[root]].op not in _PERSISTENT
        and file.tensors[root].bytes
        and (steps or root in result_roots)
    }


def _in_place(
    file: _GraphFile, memory: _Owners, producer: list[int], counted: tuple[dict[int, int], list[int]]
) -> tuple[InPlace, ...]:
    """Return the in-place candidates; `counted`: the steps by node, and the roots that have buffers."""
    step_of, roots = counted
    in_place = []
    for old, new in file.inplace_candidates:
        node = file.nodes[producer[new]]
        if memory.root[old] not in {memory.root[tensor] for tensor in node.inputs}:
            raise ModelError(
                f"in-place candidate: node {node.id} ({node.name or node.op}) does not read {file.label(old)}"
            )
        pair = (memory.root[old], memory.root[new])
        if producer[new] in step_of and all(root in roots for root in pair):
            in_place.append(InPlace(step_of[producer[new]], *map(roots.index, pair)))
    return tuple(in_place)


def _updates(
    file: _GraphFile, memory: _Owners, problem: OrderProblem, step_of: dict[int, int]
) -> tuple[int, ...]:
    """Return the steps that update weights: those of phase `update`, and those that write a weight in place.

    Predecessors that only they need belong to them, if these convert one gradient to another of equal size.
    """
    updates = {step for place, step in step_of.items() if file.nodes[place].phase == "update"}
    producers = {tensor: step for place, step in step_of.items() for tensor in file.nodes[place].outputs}
    updates |= {producers[new] for _, new in file.inplace_updates if new in producers}

    def size(tensors: tuple[int, ...]) -> int:
        return sum(file.tensors[root].bytes for root in {memory.root[tensor] for tensor in tensors})

    for place, step in reversed(step_of.items()):
        node, after = file.nodes[place], problem.after[step]
        converts = len(problem.before[step]) == 1 and size(node.inputs) == size(node.outputs)
        if converts and after and all(other in updates for other in after):
            updates.add(step)
    return tuple(sorted(updates))
