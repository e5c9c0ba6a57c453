"""Memory tags: which tensors of a program share memory, by reference counts, on several compute units.

A tag has a number, a reference count, the bytes that its tensor needs and its size. A tuple owns the tags of
its fields; an extracted field is the tag itself. Inputs, constants and outputs have one reference more than
their readers, so they stay. Each read by an operator or a call is one reference; after the last one, the tag
is free.

The model's level comes first: inputs and outputs of functions. Within a call follows the function's level:
its inputs are the caller's tags, which the call holds until it ends. The operators' level is last. A tensor
takes over the tag of an input that its operator is the last to read and may overwrite, if the units that use
it reach that memory, and size and alignment match. Otherwise it requests a tag: the smallest free one of
`need` to 16 * `need` bytes, else the largest of at least `need` / 16, enlarged, else a new one. The tag lies
in memories that all units that use it reach.

If two units reach no memory in common, a unit that reaches both copies, and there are two tags.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from math import lcm

from mcudeploy.boards.board import Board
from mcudeploy.planner.cores.reach import Meeting, common, is_cached, meet
from mcudeploy.planner.place.placement_problem import align_up
from mcudeploy.planner.published.tagform import (
    MODEL,
    Body,
    FunctionCall,
    Op,
    Origin,
    Place,
    Row,
    Subgraph,
    Tag,
    Tagging,
    TagProgram,
    UnitTransfer,
    origins,
    result_counts,
)
from mcudeploy.planner.published.tagsizes import TensorSize, sizes

_REACH = 16
"""The maximum ratio between the size of a reused free tag and the need, in both directions."""


def assign_tags(program: TagProgram, board: Board, alignment: int = 1) -> Tagging:
    """Assign the tags of a program on a board; `alignment` in bytes is what the model itself requires.

    Raises FitError for a tensor between two units if no unit reaches memories of both, ValueError for one
    that two units read as different types.
    """
    return _TagWalk(program, board, sizes(program, board, alignment)).tagged()


@dataclass(slots=True)
class _Tag:
    number: int
    bytes: int
    alignment: int
    memories: tuple[str, ...]
    count: int = 0


@dataclass(slots=True)
class _Pool:
    """All tags. One with a count of 0 is free."""

    tags: list[_Tag] = field(default_factory=list)

    def request(self, size: TensorSize, memories: tuple[str, ...]) -> tuple[str, _Tag]:
        """Return how a tag was obtained, and the tag; its count is still 0."""
        free = [tag for tag in self.tags if not tag.count and not set(tag.memories).isdisjoint(memories)]
        need = size.bytes
        large = [tag for tag in free if need <= tag.bytes <= _REACH * need]
        small = [tag for tag in free if need <= _REACH * tag.bytes and tag.bytes < need]
        if large:
            way, tag = "free", min(large, key=lambda tag: tag.bytes)
        elif small:
            way, tag = "grown", max(small, key=lambda tag: tag.bytes)
        else:
            way, tag = "new", _Tag(len(self.tags), 0, 1, memories)
            self.tags.append(tag)
        tag.memories = tuple(name for name in tag.memories if name in memories)
        tag.alignment = lcm(tag.alignment, size.alignment)
        tag.bytes = align_up(max(tag.bytes, need), tag.alignment)
        return way, tag

    def counts(self) -> dict[int, int]:
        """Return the reference counts of all tags in use."""
        return {tag.number: tag.count for tag in self.tags if tag.count}


class _Level:
    """A body during the walk: the tags of its tensors, and their reference counts."""

    def __init__(self, scope: str, body: Body, results: Mapping[str, int]) -> None:
        self.scope, self.body = scope, body
        self.values = origins(body, results)
        self.tags: dict[Origin, _Tag] = {}
        self.outputs = [origin for name in body.outputs for origin in self.values[name]]
        nodes = (node for node in body.nodes if isinstance(node, Op | FunctionCall))
        self.reads = Counter(origin for node in nodes for origin in self.read_by(node))

    def read_by(self, node: Op | FunctionCall) -> list[Origin]:
        """Return the tensors that a node reads, one for each reference; of a tuple those of its fields."""
        return [origin for name in node.inputs for origin in self.values[name]]

    def references(self, origin: Origin) -> int:
        """Return the reads of a tensor, plus one for each time that it is an output."""
        return self.reads[origin] + self.outputs.count(origin)


class _TagWalk:
    """The walk through all levels."""

    def __init__(self, program: TagProgram, board: Board, sizes: Mapping[Place, TensorSize]) -> None:
        self._program, self._board, self._sizes = program, board, sizes
        self._level = _Level(MODEL, program.body, result_counts(program))
        self._home = board.units[0].name
        self._pool = _Pool()
        self._places: dict[Place, int] = {}
        self._rows: list[Row] = []
        self._transfers: list[UnitTransfer] = []
        self._copies: dict[tuple[Origin, str], _Tag] = {}
        self._users = self._all_users()
        self._meetings = {
            origin: meet(board, origin[0], maker, readers) for origin, (maker, readers) in self._users.items()
        }

    def tagged(self) -> Tagging:
        """Return the result of the walk."""
        body = self._program.body
        for name in (*body.inputs, *body.constants):
            self._input(self._level, (name, 0), self._meetings[name, 0].memories)
            self._written((name, 0), self._home)
        for node in body.nodes:
            if isinstance(node, FunctionCall):
                self._call(node)
        for origin in dict.fromkeys(self._level.outputs):
            self._for_unit(origin, self._home)
        tags = tuple(Tag(**asdict(tag)) for tag in self._pool.tags)
        return Tagging(tags, self._places, tuple(self._rows), tuple(self._transfers))

    def _all_users(self) -> dict[Origin, tuple[str, list[str]]]:
        """Return, for each of the model's tensors, the unit that writes it and those that refer to it."""
        level = self._level
        found: dict[Origin, tuple[str, list[str]]] = {
            (name, 0): (self._home, []) for name in (*level.body.inputs, *level.body.constants)
        }
        for node in level.body.nodes:
            if isinstance(node, FunctionCall):
                unit = self._program.functions[node.function].unit
                for origin in level.read_by(node):
                    found[origin][1].append(unit)
                found |= {origin: (unit, []) for origin in level.values[node.name]}
        for origin in level.outputs:
            found[origin][1].append(self._home)
        return found

    def _references(self, origin: Origin) -> int:
        """Return the references to a tensor where it is written; each other unit counts once, by the copy."""
        far = self._meetings[origin].copiers
        return sum(unit not in far for unit in self._users[origin][1]) + len(far)

    def _input(self, level: _Level, origin: Origin, memories: tuple[str, ...]) -> None:
        """Add an input of the model or a constant, with an additional reference."""
        way, tag = self._pool.request(self._sizes[level.scope, origin], memories)
        tag.count += 1 + (self._references(origin) if level is self._level else level.references(origin))
        self._bind(level, origin, tag)
        self._row(level.scope, origin[0], [(way, tag)])

    def _call(self, node: FunctionCall) -> None:
        function, level = self._program.functions[node.function], self._level
        arguments = [self._for_unit(origin, function.unit) for origin in level.read_by(node)]
        made = []
        for number, origin in enumerate(level.values[node.name]):
            size, memories = self._sizes[MODEL, origin], self._meetings[origin].memories
            may = _overwritable(function.body, number)
            found = _taken_over(
                arguments, [at for at in may if arguments.count(arguments[at]) == 1], size, memories
            )
            way, tag = found or self._pool.request(size, memories)
            tag.count += self._references(origin)
            self._hold(level, origin, tag)
            made.append((way, tag))
        self._row(MODEL, node.name, made)
        self._run(node.function, function, arguments, [tag for _, tag in made])
        for tag in (*arguments, *(tag for _, tag in made)):
            tag.count -= 1
        self._row(MODEL, f"end of {node.name}", [])
        for origin in level.values[node.name]:
            self._written(origin, function.unit)

    def _run(self, name: str, function: Subgraph, arguments: list[_Tag], results: list[_Tag]) -> None:
        """Run the operators of a function, whose inputs and outputs have the tags of the call."""
        level, memories = _Level(name, function.body, {}), common(self._board, [function.unit])
        for parameter, tag in zip(function.body.inputs, arguments, strict=True):
            tag.count += level.references((parameter, 0))
            self._bind(level, (parameter, 0), tag)
        for constant in function.body.constants:
            self._input(level, (constant, 0), memories)
        for origin, tag in zip(level.outputs, results, strict=True):
            tag.count += level.references(origin)
            self._bind(level, origin, tag)
        for node in function.body.nodes:
            if isinstance(node, Op):
                self._operator(level, node, memories)
        for tag in results:
            tag.count -= 1

    def _operator(self, level: _Level, node: Op, memories: tuple[str, ...]) -> None:
        read = [level.tags[origin] for origin in level.read_by(node)]
        slots = [len(level.values[name]) for name in node.inputs]
        may = [sum(slots[:at]) for at in node.overwrites if slots[at] == 1]
        made = []
        for origin in level.values[node.name]:
            if origin in level.tags:
                way, tag = "output", level.tags[origin]
                tag.count += 1
            else:
                size = self._sizes[level.scope, origin]
                way, tag = _taken_over(read, may, size, memories) or self._pool.request(size, memories)
                tag.count += level.references(origin)
                self._hold(level, origin, tag)
            made.append((way, tag))
        for tag in (*read, *(tag for _, tag in made)):
            tag.count -= 1
        self._row(level.scope, node.name, made)

    def _for_unit(self, origin: Origin, unit: str) -> _Tag:
        """Return the tag in which a unit finds a tensor of the model, after a copy if necessary."""
        meeting = self._meetings[origin]
        if unit not in meeting.copiers:
            self._see(origin, unit, meeting)
            return self._level.tags[origin]
        if (origin, unit) not in self._copies:
            copier, memories = meeting.copiers[unit], common(self._board, [meeting.copiers[unit], unit])
            self._see(origin, copier, meeting)
            way, tag = self._pool.request(self._sizes[MODEL, origin], memories)
            tag.count += self._users[origin][1].count(unit)
            self._copies[origin, unit] = tag
            self._places[f"@{unit}", origin] = tag.number
            self._level.tags[origin].count -= 1
            self._transfers.append(UnitTransfer("copy", self._name(origin), copier))
            self._care("clean", origin, copier, memories)
            if unit != copier:
                self._care("invalidate", origin, unit, memories)
            self._row(MODEL, f"copy of {origin[0]} for {unit}", [(way, tag)])
        return self._copies[origin, unit]

    def _written(self, origin: Origin, unit: str) -> None:
        if len(self._meetings[origin].units) > 1:
            self._care("clean", origin, unit, self._meetings[origin].memories)

    def _see(self, origin: Origin, unit: str, meeting: Meeting) -> None:
        if unit != meeting.units[0]:
            self._care("invalidate", origin, unit, meeting.memories)

    def _care(self, kind: str, origin: Origin, unit: str, memories: tuple[str, ...]) -> None:
        step = UnitTransfer(kind, self._name(origin), unit)
        if is_cached(self._board, unit, memories) and step not in self._transfers:
            self._transfers.append(step)

    def _name(self, origin: Origin) -> str:
        """Return the name of a tensor; one of several results of a call has a number."""
        name, number = origin
        return name if len(self._level.values[name]) == 1 else f"{name}.{number}"

    def _hold(self, level: _Level, origin: Origin, tag: _Tag) -> None:
        """Hold a new tensor at least until the node that writes it ends."""
        tag.count += 1
        self._bind(level, origin, tag)

    def _bind(self, level: _Level, origin: Origin, tag: _Tag) -> None:
        level.tags[origin] = tag
        self._places[level.scope, origin] = tag.number

    def _row(self, scope: str, node: str, made: Iterable[tuple[str, _Tag]]) -> None:
        ways = tuple((way, tag.number) for way, tag in made)
        self._rows.append(Row(scope, node, ways, self._pool.counts()))


def _taken_over(
    read: list[_Tag], may: Iterable[int], size: TensorSize, memories: tuple[str, ...]
) -> tuple[str, _Tag] | None:
    """Return the tag of an input, by position in `read`, that the result takes over; None if there is none.

    All remaining references to it are these reads, and each of them may be overwritten.
    """
    allowed = list(may)
    for at in allowed:
        tag = read[at]
        places = [other for other, one in enumerate(read) if one is tag]
        fits = size.bytes <= tag.bytes and tag.alignment % size.alignment == 0
        reached = tuple(name for name in tag.memories if name in memories)
        if reached and fits and tag.count == len(places) and set(places) <= set(allowed):
            tag.memories = reached
            return "shared", tag
    return None


def _overwritable(body: Body, output: int) -> Iterator[int]:
    """Yield inputs of a function, by position, that an output's operator reads last and may overwrite."""
    level = _Level("", body, {})
    makers = [at for at, node in enumerate(body.nodes) if node.name == level.outputs[output][0]]
    for position, parameter in enumerate(body.inputs):
        origin = (parameter, 0)
        readers = [
            (at, node)
            for at, node in enumerate(body.nodes)
            if isinstance(node, Op | FunctionCall) and origin in level.read_by(node)
        ]
        if origin in level.outputs or not readers or readers[-1][0] not in makers:
            continue
        last = readers[-1][1]
        slots = [at for at, name in enumerate(last.inputs) if origin in level.values[name]]
        if isinstance(last, Op) and set(slots) <= set(last.overwrites):
            yield position
