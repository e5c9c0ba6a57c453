"""Joins of branches, and the longest path from each branch to its join.

A region is what the program may execute from a branch on to its join, the first instruction that all paths
pass. Its cost is that of its longest path, with all functions it calls; a region with a loop has none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

from mcudeploy.extensions.bounds.branch_paths import Differing, differing_at, loop_tails
from mcudeploy.extensions.bounds.effects import (
    CALLER_SAVED,
    Effects,
    Location,
    MemoryAccess,
    effects_of,
    locations,
)
from mcudeploy.toolchain.disassembly import Functions, Instruction, spelled

EXIT = 0
"""The join of a branch whose paths meet after its function has returned."""
_TARGET = re.compile(r"(?:^|,)\s*([0-9a-f]+)(?:\s|$)")
_BX = spelled("bx")
_SWITCH = "__gnu_thumb1_case"
"""Functions of libgcc that jump by a table after their call (Armv6-M); they return to no fixed location."""

Weight = Callable[[Instruction], float]


@dataclass(frozen=True, slots=True)
class BranchRegion:
    """The instructions between a branch and its join, which the branch decides."""

    join: int
    other_join: int
    """The join of paths that leave a loop, 0 without a loop. The end of a path decides between both joins."""
    longest: int
    """The instructions of the longest path, without the branch and the join."""
    longest_cycles: float
    """The most cycles of a path, with the branch and the join."""
    writes: int
    """Locations that a path may change."""
    stores: bool
    """Whether a path stores through a pointer."""
    slots: int
    """The words above the stack pointer that a path may write, as bits."""


@dataclass(frozen=True, slots=True)
class PathCosts:
    """The longest path of a stretch of a program, by instructions and by cycles; the effects of all paths."""

    instructions: int = 0
    cycles: float = 0.0
    writes: int = 0
    stores: bool = False
    slots: int = 0
    moves_stack: bool = False


class NoRegionError(Exception):
    """A branch decides a loop, or calls a function that has no longest path; the text is the reason."""


class ControlFlow:
    """The functions of a program as graphs of instructions; `weight`: the most cycles of an instruction."""

    def __init__(self, instructions: Mapping[int, Instruction], functions: Functions, weight: Weight) -> None:
        self._functions = functions
        self._weight = weight
        self._body = {address: it for address, it in instructions.items() if it.mnemonic}
        self.effects = {address: effects_of(it) for address, it in self._body.items()}
        self._switches = {it.address for it in functions.all if it.name.startswith(_SWITCH)}
        self._calls: dict[int, PathCosts] = {}
        self._open: set[int] = set()
        self._graphs: dict[int, FunctionGraph] = {}

    def branches(self) -> Iterable[int]:
        """Yield the instructions whose successor depends on a location."""
        return (address for address, it in self.effects.items() if it is not None and it.control)

    def calls(self, address: int) -> bool:
        """Whether an instruction calls a function that returns to the next one."""
        it = self._body[address]
        if it.mnemonic == "blx":
            return True
        return it.mnemonic == "bl" and address in self._graph_of(address).calls

    def region(self, branch: int) -> BranchRegion:
        """Return the region of a branch. Raises NoRegionError."""
        graph = self._graph_of(branch)
        if len(graph.following[branch]) == 1:
            raise NoRegionError("it jumps through a pointer")
        join = graph.joins.get(branch)
        if join is None:
            raise NoRegionError("no path out of it is known")
        try:
            costs = self._longest(graph, graph.following[branch], (join,))
        except NoRegionError:
            if join == EXIT:
                raise
            return self._loop_region(graph, branch, join)
        cycles = self._weight(self._body[branch]) + costs.cycles
        if join == EXIT:
            return BranchRegion(EXIT, 0, costs.instructions, cycles, CALLER_SAVED, costs.stores, 0)
        if costs.moves_stack:
            raise NoRegionError("one of its paths moves the stack pointer")
        cycles += self._weight(self._body[join])
        body = self._body_of(graph)
        differing = differing_at(join, graph.following[branch], body, graph.following)
        differing = differing or Differing(costs.writes, costs.slots)
        locations, slots = differing.locations, differing.slots
        return BranchRegion(join, 0, costs.instructions, cycles, locations, costs.stores, slots)

    def _loop_region(self, graph: FunctionGraph, branch: int, out: int) -> BranchRegion:
        """Return the region of a branch with separate loop ends. Raises NoRegionError for other loops."""
        starts = graph.following[branch]
        tails = loop_tails(starts, out, self._body_of(graph), graph.following)
        if tails is None:
            raise NoRegionError("it decides how often a loop runs")
        costs = self._longest(graph, starts, (tails.again, out))
        if costs.moves_stack:
            raise NoRegionError("one of its paths moves the stack pointer")
        ends = (self._weight(self._body[address]) for address in (tails.again, out))
        cycles = self._weight(self._body[branch]) + costs.cycles + max(ends)
        differing, longest = tails.differing, costs.instructions
        locations, slots = differing.locations, differing.slots
        return BranchRegion(tails.again, out, longest, cycles, locations, costs.stores, slots)

    def _body_of(self, graph: FunctionGraph) -> dict[int, tuple[Instruction, Effects | None]]:
        return {address: (self._body[address], self.effects[address]) for address in graph.following}

    def longest_call(self, start: int) -> PathCosts:
        """Return the costs of a call of the function at an address. Raises NoRegionError."""
        if start in self._open:
            raise NoRegionError(f"{self._functions.at(start)} calls itself")
        if start not in self._calls:
            self._open.add(start)
            try:
                costs = self._longest(self._graph_of(start), (start,), (EXIT,))
            finally:
                self._open.discard(start)
            self._calls[start] = PathCosts(costs.instructions, costs.cycles, CALLER_SAVED, costs.stores)
        return self._calls[start]

    def _graph_of(self, address: int) -> FunctionGraph:
        start = self._functions.start_of(address)
        if start not in self._graphs:
            self._graphs[start] = FunctionGraph(self._bodies[start], self.effects, self._switches)
        return self._graphs[start]

    @cached_property
    def _bodies(self) -> dict[int, dict[int, Instruction]]:
        bodies: dict[int, dict[int, Instruction]] = {}
        for address in sorted(self._body):
            bodies.setdefault(self._functions.start_of(address), {})[address] = self._body[address]
        return bodies

    def _longest(self, graph: FunctionGraph, starts: Sequence[int], ends: Sequence[int]) -> PathCosts:
        """Return the costs of the longest path from `starts` to `ends`. Raises NoRegionError for a loop."""
        order = graph.order(starts, ends)
        instructions: dict[int, int] = dict.fromkeys(ends, 0)
        cycles: dict[int, float] = dict.fromkeys(ends, 0.0)
        writes, slots, stores, moves = 0, 0, False, False
        for address in order:
            costs = self._costs_of(graph, address)
            following = graph.following[address]
            instructions[address] = costs.instructions + max(instructions[it] for it in following)
            cycles[address] = costs.cycles + max(cycles[it] for it in following)
            writes, slots = writes | costs.writes, slots | costs.slots
            stores, moves = stores or costs.stores, moves or costs.moves_stack
        return PathCosts(
            max(instructions[it] for it in starts),
            max(cycles[it] for it in starts),
            writes,
            stores,
            slots,
            moves,
        )

    def _costs_of(self, graph: FunctionGraph, address: int) -> PathCosts:
        """Return the costs of one instruction, with those of a function that it calls."""
        it, effects = self._body[address], self.effects[address]
        if effects is None:
            raise NoRegionError(f"the effects of {it.mnemonic} are unknown")
        stores = effects.access is MemoryAccess.STORE
        in_frame = bool(effects.address & locations([Location.SP])) and effects.stack.slots is not None
        costs = PathCosts(
            1,
            self._weight(it),
            effects.writes | effects.partial | effects.updates,
            stores and not in_frame,
            (effects.stack.slots or 0) if stores else 0,
            effects.stack.moves,
        )
        callee = graph.calls.get(address)
        if callee is None:
            if it.mnemonic == "blx":
                raise NoRegionError("it calls a function through a pointer")
            return costs
        called = self.longest_call(callee)
        return PathCosts(
            1 + called.instructions,
            costs.cycles + called.cycles,
            costs.writes | called.writes,
            costs.stores or called.stores,
            costs.slots,
            costs.moves_stack,
        )


class FunctionGraph:
    """The instructions of one function: for each address, those that may be next.

    A jump to another function counts as a call of it, then the exit. `calls`: the function that an
    instruction calls. `joins`: the first instruction that all paths from an instruction pass.
    """

    def __init__(
        self,
        body: Mapping[int, Instruction],
        effects: Mapping[int, Effects | None],
        switches: Set[int],
    ) -> None:
        self.calls: dict[int, int] = {}
        self.following: dict[int, tuple[int, ...]] = {}
        self._switches = switches
        self._known = effects
        for address, it in body.items():
            self.following[address] = self._following(it, effects[address], body)
        self.joins = _joins(self.following)

    def order(self, starts: Sequence[int], ends: Sequence[int]) -> list[int]:
        """Return the instructions on paths from `starts` to before `ends`, each after all that follow it.

        Raises NoRegionError for a loop.
        """
        done: set[int] = set(ends)
        entered: set[int] = set()
        order: list[int] = []
        for start in starts:
            stack = [(start, iter(self.following[start]))] if start not in done else []
            entered.update(it for it, _ in stack)
            while stack:
                address, rest = stack[-1]
                following = next((it for it in rest if it not in done), None)
                if following is None:
                    stack.pop()
                    done.add(address)
                    order.append(address)
                elif following in entered or following == EXIT:
                    raise NoRegionError("it decides how often a loop runs")
                else:
                    entered.add(following)
                    stack.append((following, iter(self.following[following])))
        return order

    def _following(
        self, it: Instruction, effects: Effects | None, body: Mapping[int, Instruction]
    ) -> tuple[int, ...]:
        """Return the instructions that may be next after one, and note a function that it calls."""
        following = it.address + it.size
        stem = it.mnemonic
        after = (following,) if following in body else (EXIT,)
        jumps_away = effects is None or stem in ("b", "bl", "blx") or _returns(it, effects)
        if following not in body and following in self._known and not jumps_away:
            self.calls[it.address] = following  # it runs on into the next function
        if effects is None:
            return after
        if stem in ("tbb", "tbh"):  # the table is not read: any instruction may be next
            return tuple(body)
        if _returns(it, effects):
            skipped = bool(effects.partial or effects.control & ~locations([Location.PC, *range(15)]))
            return (EXIT, *after) if skipped else (EXIT,)
        jumps = stem in ("b", "bl", "blx", "cbz", "cbnz", "le", "letp", "wls", "wlstp") or (
            stem.startswith("b") and bool(effects.control)
        )
        match = _TARGET.search(it.operands) if jumps else None
        if match is None:
            return after
        target = int(match[1], 16)
        if stem in ("bl", "blx"):
            if target in self._switches:
                return tuple(body)
            self.calls[it.address] = target
            return after
        inside = target in body
        if not inside:
            self.calls[it.address] = target
        landing = target if inside else EXIT
        return (landing,) if stem == "b" else (landing, *after)


def _returns(it: Instruction, effects: Effects) -> bool:
    """Whether an instruction leaves its function by a register, or by a value that it loads."""
    moved = (effects.writes | effects.partial) & locations([Location.PC])
    return bool(moved) or _BX.fullmatch(it.mnemonic) is not None


def _joins(following: Mapping[int, tuple[int, ...]]) -> dict[int, int]:
    """Return the immediate postdominator of each instruction (Cooper, Harvey and Kennedy 2001)."""
    before: dict[int, list[int]] = {}
    for address, nexts in following.items():
        for it in nexts:
            before.setdefault(it, []).append(address)
    order = _postorder(before)
    rank = {address: number for number, address in enumerate(order)}
    joins = {EXIT: EXIT}
    changed = True
    while changed:
        changed = False
        for address in reversed(order[:-1]):
            known = [it for it in following[address] if it in joins]
            new = known[0]
            for it in known[1:]:
                new = _meet(new, it, joins, rank)
            changed |= joins.get(address) != new
            joins[address] = new
    del joins[EXIT]
    return joins


def _postorder(before: Mapping[int, Sequence[int]]) -> list[int]:
    """Return the instructions from which the exit is reached, in postorder of the reversed graph."""
    order: list[int] = []
    entered = {EXIT}
    stack = [(EXIT, iter(before.get(EXIT, ())))]
    while stack:
        address, rest = stack[-1]
        earlier = next((it for it in rest if it not in entered), None)
        if earlier is None:
            stack.pop()
            order.append(address)
        else:
            entered.add(earlier)
            stack.append((earlier, iter(before.get(earlier, ()))))
    return order


def _meet(one: int, other: int, joins: Mapping[int, int], rank: Mapping[int, int]) -> int:
    """Return the first instruction that the paths from both instructions pass."""
    while one != other:
        while rank[one] < rank[other]:
            one = joins[one]
        while rank[other] < rank[one]:
            other = joins[other]
    return one
