#!/usr/bin/env python3
"""A second checker of a plan and of the C tables made from it. It needs Python 3.10, and nothing beside it.

    python3 -I check_plan.py plan.json lib/

Beside plan.json lie network.json (the operators, and the rows that each of their rows reads) and board.json
(memories, units, engines). The checker reads the tables of the program below lib/ and runs its schedule on
arenas whose bytes record which block they hold. It checks every read and write at the addresses that the C
code computes. It shares no code with the planner, its checker or the code generator.

Prints what it checked and exits 0, or prints the first fault and exits 1; exits 2 for unreadable files.
"""

import json
import re
import sys
from array import array
from collections import Counter
from math import lcm
from pathlib import Path
from typing import Any, NamedTuple

WHOLE = 2**32 - 1  # MCUD_WHOLE of the C tables: a tensor in one piece
GRAIN = 8  # the size of an arena is a multiple of this many bytes
CPU = "cpu"  # the engine of copies that the first unit executes itself
ELEMENT_BYTES = {"s8": 1, "s16": 2, "f32": 4}  # by the part of a kernel's name
FLYING = -(2**30)  # a value below this marks the target of an unfinished transfer


class FaultError(Exception):
    """A plan or a table that would compute garbage."""


def require(condition: object, text: str) -> None:
    """Raise FaultError unless the condition holds."""
    if not condition:
        raise FaultError(text)


def matched(pattern: str, text: str) -> re.Match[str]:
    """The match of a pattern with a whole text of the C tables."""
    match = re.fullmatch(pattern, text)
    if match is None:
        raise FaultError(f"the C tables have {text!r} where {pattern} belongs")
    return match


def number(text: str) -> int:
    """The value of an integer of the C tables."""
    return int(matched(r"\(?(-?\d+)[uUlL]*\)?", text)[1])


class Initialiser:
    """The initialiser of a C definition: `values` in sequence, `fields` by designator. Leaves are texts."""

    def __init__(self, tokens: list[str], at: int = 1) -> None:
        self.values, self.fields = list[Any](), dict[str, Any]()
        while tokens[at] != "}":
            designated = tokens[at] == "." and tokens[at + 2] == "="
            name, at = (tokens[at + 1], at + 3) if designated else ("", at)
            if tokens[at] == "{":
                value: Any = Initialiser(tokens, at + 1)
                at = value.end
            else:
                begin = at
                while tokens[at] not in (",", "}"):
                    at += 1
                value = "".join(tokens[begin:at])
            if name:
                self.fields[name] = value
            else:
                self.values.append(value)
            at += tokens[at] == ","
        self.end = at + 1

    def number(self, name: str, absent: int = 0) -> int:
        """The integer of a field; `absent` if there is no such field."""
        return number(self.fields.get(name, str(absent)))


class Record(NamedTuple):
    """A `mcud_tensor`: the address of each row of a tensor, or of each step's scratch."""

    memory: str
    shift: int
    offsets: list[int]
    row_bytes: int
    block_rows: int
    lead: int

    def address(self, row: int) -> int:
        """The byte of the arena at which a row begins, as mcud_row() computes it."""
        block, inside = divmod(row + self.lead, self.block_rows)
        require(block < len(self.offsets), f"row {row} is beyond the offsets of its record")
        return self.shift + self.offsets[block] + inside * self.row_bytes


class Tables:
    """The tables of a generated program, by their names in C."""

    def __init__(self, folder: Path) -> None:
        texts = {path: path.read_text("utf-8", "replace") for path in sorted(folder.rglob("*.[ch]"))}
        programs = [text for text in texts.values() if "const mcud_op operators[] = {" in text]
        require(len(programs) == 1, f"{folder} has {len(programs)} programs, not one")
        self.source = re.sub(r"/\*.*?\*/", " ", programs[0], flags=re.S)
        require("#" not in self.source.partition("\n}")[2], "the preprocessor changes the C tables")
        arena = r"static union \{\s*uint8_t bytes\[(\d+)\];\s*uint64_t align;\s*\} arena_(\w+)([^;]*);"
        self.arenas = {memory: (int(size), text) for size, memory, text in re.findall(arena, self.source)}
        macro = r"^ *# *define +(MCUD_ALIGN|\w+_STEPS) +(.*)$"
        defines = set(re.findall(macro, "\n".join(texts.values()), re.M))
        macros = {name: number(text) for name, text in defines}
        require(len(macros) == len(defines), "a macro has two values")
        definition = r"^(?:static )?(?:const )?(\w+(?: \*const)?) (\w+)(?:\[\])? = (\{.*?\});$"
        matches = re.findall(definition, self.source, re.M | re.S)
        self.objects = {name: Initialiser(re.findall(r"\w+|\S", text)) for _, name, text in matches}
        offsets = [number(text) * macros["MCUD_ALIGN"] for text in self.table("offsets").values]
        self.records: dict[str, Record] = {}
        for name, it in ((name, self.objects[name]) for kind, name, _ in matches if kind == "mcud_tensor"):
            base = matched(r"arena_(\w+)\.bytes(?:\+(\d+))?", it.values[0])
            first = int(matched(r"&offsets\[(\d+)\]", it.values[1])[1])
            rows = WHOLE if it.fields["block_rows"] == "MCUD_WHOLE" else it.number("block_rows")
            size, lead = it.number("row_bytes"), it.number("lead")
            self.records[name] = Record(base[1], int(base[2] or 0), offsets[first:], size, rows, lead)
        [model] = [self.objects[name] for kind, name, _ in matches if kind == "mcud_model"]
        self.operators: list[Initialiser] = self.table(model.fields["ops"]).values
        self.schedule: list[tuple[int, int]] = []
        bits = model.number("block_bits")
        for text in self.table(model.fields["schedule"]).values:
            operator, shift, block = map(int, matched(r"(\d+)u<<(\d+)\|(\d+)u", text).groups())
            require(shift == bits and block < 2**bits, f"the code {text} does not fit {bits} bits")
            self.schedule.append((operator, block))
        calls = [(int(it), 0) for it in re.findall(r"mcud_run_whole\(&operators\[(\d+)\]\);", self.source)]
        whole = all(it.number("block_rows") >= it.number("rows") for it in self.operators)
        has_calls = bool(calls) or "MCUD_CALLS" in self.source
        require(not has_calls or (whole and calls == self.schedule), "calls differ from the schedule")
        steps = macros[model.fields["steps"]]
        require(steps == len(self.schedule), f"the schedule has {len(self.schedule)} codes for {steps} steps")

    def table(self, pointer: str) -> Initialiser:
        """The definition that a pointer names."""
        name = pointer.removeprefix("&")
        require(name in self.objects, f"the program has no {name}")
        return self.objects[name]

    def record(self, pointer: str) -> Record:
        """The record that a pointer names."""
        require(pointer[1:] in self.records, f"there is no record {pointer}")
        return self.records[pointer[1:]]

    def inputs(self, operator: Initialiser) -> list[Record]:
        """The records that an operator reads."""
        name = operator.fields["in"]
        return [] if name == "0" else [self.record(each) for each in self.table(name).values]

    def called(self, operator: Initialiser, unit: int) -> Initialiser:
        """The operator that a unit executes; the record of the first unit hands it over to the others."""
        if not unit:
            return operator
        params = self.table(operator.fields["params"])
        handed = operator.fields["kernel"] == "mcud_on_unit" and params.number("unit") == unit
        require(handed, f"a record does not hand its operator over to unit {unit}")
        inner = self.table(params.values[0])
        same = {**inner.fields, "kernel": "", "params": ""} == {**operator.fields, "kernel": "", "params": ""}
        require(same, "a record differs from the one that it hands over")
        return inner


class Place(NamedTuple):
    """Where a block resides in steps [begin, end)."""

    begin: int
    end: int
    memory: str
    offset: int

    def overlaps(self, size: int, other: "Place", other_size: int) -> bool:
        """Whether two places share a byte."""
        apart = self.offset >= other.offset + other_size or other.offset >= self.offset + size
        return self.memory == other.memory and not apart


Used = tuple[Place, int]  # a place that a step uses, and its bytes


class Operator:
    """An operator, cut in blocks of rows of its output, or of its input if it accumulates."""

    def __init__(self, facts: dict[str, Any], rows: int, block_rows: int, lead: int) -> None:
        self.name, self.inputs, self.output = facts["name"], facts["inputs"], facts["output"]
        self.accumulates, self.is_view = facts["accumulates"], facts["view"]
        self.state, self.work = facts["state"], facts["scratch"] + facts["state"]
        self.facts, self.rows, self.block_rows, self.lead = facts, rows, block_rows, lead
        self.count = -(-(rows + lead) // block_rows)

    def interval(self, block: int) -> tuple[int, int]:
        """The rows of a step."""
        first = block * self.block_rows - self.lead
        return max(0, first), min(self.rows, first + self.block_rows)

    def reads(self, operand: int, first: int, end: int) -> tuple[int, int]:
        """The rows of an operand that rows [first, end) need."""
        spans = self.facts["reads"][operand][first:end]
        return min(lo for lo, _ in spans), max(hi for _, hi in spans)


class Plan:
    """The plan of plan.json, for the network and the board beside it."""

    def __init__(self, plan: dict[str, Any], network: dict[str, Any], board: dict[str, Any]) -> None:
        require(plan["format"] == 10, f"the plan's format is {plan['format']}, not 10")
        require(plan["board"] == board["name"], "the plan is for another board")
        for key in ("model_sha256", "streamed", "accumulating", "hop", "functions", "kernels"):
            require(plan.get(key) == network.get(key), f"{key} differs in plan.json and network.json")
        require(not plan["lanes"], "the plan has tapes of several cores, which this checker does not read")
        self.network, self.board, self.tensors = network, board, network["tensors"]
        self.steps, self.transfers, self.arenas = plan["steps"], plan["transfers"], plan["arenas"]
        self.functions, self.splits = plan["functions"], plan["splits"]
        sizes, leads = plan["block_rows"], plan.get("leads", {})
        require({it["name"] for it in network["operators"]} == {*sizes, *leads}, "block_rows has other names")
        self.roots = {name: name for name in self.tensors}
        self.operators: list[Operator] = []
        maker_of: dict[str, Operator] = {}
        for facts in network["operators"]:
            rows = self.tensors[facts["inputs"][0] if facts["accumulates"] else facts["output"]]["rows"]
            size, lead = sizes[facts["name"]], leads.get(facts["name"], 0)
            require(1 <= size <= rows and 0 <= lead < size, f"{facts['name']} has blocks of {size} rows")
            self.operators.append(Operator(facts, rows, size, lead))
            maker_of[facts["output"]] = self.operators[-1]
            if facts["view"]:
                self.roots[facts["output"]] = self.roots[facts["inputs"][0]]
        self.blocks, self.scratch = (
            {name: [[Place(*it) for it in block] for block in blocks] for name, blocks in plan[key].items()}
            for key in ("blocks", "scratch")
        )
        require(set(self.blocks) == set(self.roots.values()), "blocks lists other tensors than own memory")
        self.cut = {root: self._cut(root, maker_of.get(root)) for root in self.blocks}
        """The rows of a block of each tensor that owns memory, and the rows that its first block lacks."""
        fed = {it.output for it in self.operators if not it.inputs}
        self.resident = [name for name in network["inputs"] if name not in fed]
        self.outputs = [self.roots[name] for name in network["outputs"]]
        self.alignments: dict[str, int] = {}  # of the address of each arena
        units = [it["name"] for it in board["units"]]
        self.unit_of = {name: units.index(it["unit"]) for it in self.functions for name in it["operators"]}

    def _cut(self, root: str, maker: Operator | None) -> tuple[int, int]:
        rows = self.tensors[root]["rows"]
        if maker is None:
            return (1 if len(self.blocks[root]) > 1 else rows), 0
        return (rows, 0) if maker.accumulates or maker.block_rows >= rows else (maker.block_rows, maker.lead)

    def start(self, root: str, block: int) -> int:
        """The row at a block's address; negative where the first block lacks rows."""
        return block * self.cut[root][0] - self.cut[root][1]

    def size(self, root: str, block: int) -> int:
        """The bytes of a block."""
        tensor = self.tensors[root]
        return int(min(self.cut[root][0], tensor["rows"] - self.start(root, block)) * tensor["row_bytes"])

    def way(self, transfer: list[Any]) -> tuple[Place, Place]:
        """The source and the target of a transfer."""
        _, tensor, block, source, target, _ = transfer
        return self.blocks[tensor][block][source], self.blocks[tensor][block][target]

    def tape(self) -> list[tuple[str, int]]:
        """Entries of the program: the number of a step to run, of a transfer to begin or to wait for."""
        entries: list[tuple[str, int]] = []
        flying, upcoming = list[int](), 0

        def wait(time: int) -> None:
            due = {self.transfers[at][0]: at for at in flying if self.transfers[at][5] <= time}
            entries.extend(("wait", at) for at in due.values())
            flying[:] = [at for at in flying if at > due.get(self.transfers[at][0], -1)]

        for time in range(len(self.steps)):
            wait(time)
            while upcoming < len(self.transfers) and self.way(self.transfers[upcoming])[1].begin <= time:
                flying.extend([upcoming] if self.transfers[upcoming][0] != CPU else [])
                entries.append(("move", upcoming))
                upcoming += 1
                wait(time)
            entries.append(("run", time))
        require(upcoming == len(self.transfers) and not flying, "a transfer ends after the last step")
        return entries


def check_structure(plan: Plan) -> None:
    """Check the plan's tables against the network and the board."""
    cut = {(it.name, it.block_rows) for it in plan.operators if it.count > 1 and not it.is_view}
    stated = [(name, it["rows"]) for it in plan.splits for name in it["operators"]]
    require(len(stated) == len(cut) and set(stated) == cut, "splits are not those of block_rows")
    for it in plan.operators:
        fixed = it.accumulates or it.is_view or it.output in plan.outputs or it.block_rows >= it.rows
        require(not (fixed and it.lead), f"{it.name} has a lead of {it.lead}")
    work = {it.name: it.work for it in plan.operators}
    places: list[tuple[str, list[Place], int]] = []
    for root, blocks in plan.blocks.items():
        count = -(-(plan.tensors[root]["rows"] + plan.cut[root][1]) // plan.cut[root][0])
        require(len(blocks) == count, f"{root} has {len(blocks)} blocks, not {count}")
        places += [(f"block {at} of {root}", it, plan.size(root, at)) for at, it in enumerate(blocks)]
    for name, steps in plan.scratch.items():
        require(work.get(name), f"{name} needs no scratch")
        require(len({it.memory for step in steps for it in step}) == 1, f"scratch of {name} is spread")
        places += [(f"scratch {at} of {name}", it, work[name]) for at, it in enumerate(steps)]
    ends: dict[str, int] = {}
    for what, block, size in places:
        last, last_in = 0, dict[str, int]()
        for place in block:
            in_order = max(last, last_in.get(place.memory, 0)) <= place.begin <= place.end <= len(plan.steps)
            require(in_order and place.offset >= 0, f"{what} resides at {block}")
            last, last_in[place.memory] = place.begin, place.end
            ends[place.memory] = max(ends.get(place.memory, 0), place.offset + size)
    rooms = {it["name"]: it["room"] for it in plan.board["memories"]}
    for memory, size in plan.arenas.items():
        require(size == -(-ends.get(memory, -1) // GRAIN) * GRAIN, f"the arena in {memory} has {size} bytes")
        require(size <= rooms.get(memory, -1), f"the board has no room for {size} bytes in {memory}")
    require(set(ends) == set(plan.arenas), "a block resides where the plan has no arena")
    check_alignments(plan)
    check_borders(plan)
    check_transfers(plan)


def check_alignments(plan: Plan) -> None:
    """Check that units reach the blocks that they touch, and that blocks are aligned for both."""
    first = plan.board["units"][0]
    unit_of = {name: plan.board["units"][at] for name, at in plan.unit_of.items()}
    users: dict[str, list[dict[str, Any]]] = {name: [] for name in plan.blocks}
    for root in (*plan.network["inputs"], *plan.outputs):
        users[plan.roots[root]].append(first)
    for operator in plan.operators:
        for name in () if operator.is_view else (operator.output, *operator.inputs):
            users[plan.roots[name]].append(unit_of.get(operator.name, first))
    active = [first, *(it for it in unit_of.values() if it is not first)]
    alignments = {}
    for memory in plan.board["memories"]:
        seen = {it["name"]: it for it in active if not it["memories"] or memory["name"] in it["memories"]}
        lines = [it["cache_line"] for it in seen.values() if memory["name"] in it["cached"]]
        alignments[memory["name"]] = lcm(memory["alignment"], *(lines if len(seen) > 1 else ()))

    def check(what: str, it: Place, using: list[dict[str, Any]], listed: bool) -> None:
        missing = [unit["name"] for unit in using if unit["memories"] and it.memory not in unit["memories"]]
        require(not missing, f"{what} lies in {it.memory}, which {missing} does not reach")
        alignment = lcm(alignments[it.memory], *(unit["alignment"] for unit in using))
        require(not listed or it.offset % alignment == 0, f"{what} at {it.offset} is not aligned")
        plan.alignments[it.memory] = lcm(plan.alignments.get(it.memory, 1), alignment)

    moved = {(tensor, block, at) for _, tensor, block, *ends, _ in plan.transfers for at in ends}
    for root, blocks in plan.blocks.items():
        for memory in {it.memory for block in blocks for it in block}:
            offsets = [{it.offset for it in block if it.memory == memory} for block in blocks]
            pitch = plan.size(root, 0)  # of a tensor in one piece C has the first offset only
            whole = all(it == {min(offsets[0], default=0) + at * pitch} for at, it in enumerate(offsets))
            for index, block in enumerate(blocks):
                for at, it in enumerate(block):
                    if it.memory == memory:
                        listed = not whole or index == 0 or (root, index, at) in moved
                        check(f"block {index} of {root}", it, users[root], listed)
    for name, steps in plan.scratch.items():
        for it in (it for step in steps for it in step):
            check(f"scratch of {name}", it, [unit_of.get(name, first)], listed=True)


def check_borders(plan: Plan) -> None:
    """Check that inputs and outputs are contiguous and stay, and states are where the next run reads them."""
    for root in (*plan.resident, *plan.outputs):
        blocks = plan.blocks[root]
        require(all(blocks), f"a block of {root} resides nowhere")
        for at, block in enumerate(blocks):
            home = block[0]
            end = home.memory, home.offset + plan.size(root, at)
            following = blocks[at + 1][0] if at + 1 < len(blocks) else Place(0, 0, *end)
            require(end == (following.memory, following.offset), f"{root} is not contiguous")
            copied = root in plan.resident  # rows of an input may be copied to other memories
            moves = any(it[2:] != home[2:] for it in block if not copied or it.memory == home.memory)
            fixed = root in plan.outputs or len(blocks) > 1
            require(not (fixed and moves), f"{root} moves, and the application knows its place")
    for state in plan.network["states"]:
        before, after = (plan.blocks[plan.roots[state[key]]][0][0] for key in ("before", "after"))
        require(before[2:] == after[2:], f"state {state['before']} is not where the next run reads it")


def check_transfers(plan: Plan) -> None:
    """Check that transfers are in order, and join two places that their engine reaches."""
    latest, reached = 0, plan.board["units"][0]["memories"]
    engines = {**plan.board["engines"], CPU: reached or list(plan.arenas)}
    for engine, tensor, block, source, target, end in plan.transfers:
        what, blocks = f"the transfer of block {block} of {tensor}", plan.blocks.get(tensor, [])
        require(block < len(blocks), f"{what}: there is no such block")
        require(max(source, target) < len(blocks[block]) and target > 0, f"{what}: there is no such place")
        old, new = blocks[block][source], blocks[block][target]
        require(latest <= new.begin <= end < len(plan.steps), f"{what} is out of order")
        require(old.begin <= new.begin and end <= min(old.end, new.end), f"{what}: its source ends before it")
        require(old[2:] != new[2:] and (engine != CPU or end == new.begin), f"{what} is not a transfer")
        require({old.memory, new.memory} <= {*engines.get(engine, ())}, f"{what}: {engine} does not reach it")
        latest = new.begin


class Run:
    """A run of the program's schedule on bytes that record which computation of which block they hold."""

    def __init__(self, plan: Plan, tables: Tables) -> None:
        sizes = {memory: size for memory, (size, _) in tables.arenas.items()}
        other = "the arenas in C are not those of the plan"
        require(sizes.keys() == plan.arenas.keys(), other)
        for memory, (size, text) in tables.arenas.items():
            section = "" if memory == plan.board["memories"][0]["name"] else rf" MCUD_MEMORY\({memory}\)"
            aligned = re.fullmatch(section + r"(?: MCUD_ALIGNED\((\d+)\))?", text)
            grain = int(aligned[1] or GRAIN) if aligned else 0
            fits = grain > 0 and grain % plan.alignments[memory] == 0
            require(fits, f"the arena in {memory} is declared as{text}")
            require(0 <= size - plan.arenas[memory] < grain, other)  # whole lines of a data cache
        self.plan, self.tables, self.time, self.reads, self.writes = plan, tables, 0, 0, 0
        self.cells = {memory: array("i", [0]) * size for memory, size in sizes.items()}
        self.current: dict[tuple[str, int], int] = {}
        self.needed: dict[tuple[str, int], list[list[int]]] = {}
        self.ran: Counter[tuple[int, int]] = Counter()
        self.begun: dict[str, list[int]] = {engine: [] for engine in plan.board["engines"]}
        self.flying: dict[int, int] = {}
        self.states = {name for it in plan.network["states"] for name in (it["before"], *it["through"])}

    def check(self) -> None:
        """Run all entries of the tape."""
        plan, tape = self.plan, self.plan.tape()
        require(len(tape) == len(self.tables.schedule), f"C has another number of entries than {len(tape)}")
        for root in plan.resident:
            for block, places in enumerate(plan.blocks[root]):
                require(places[0].begin == 0, f"block {block} of input {root} is not there at the start")
                self.write(root, block, places[0])
        for (kind, what), (record, block) in zip(tape, self.tables.schedule, strict=True):
            entry = self.tables.operators[record]
            if kind == "run":
                unit = plan.unit_of.get(plan.operators[plan.steps[what][0]].name, 0)
                self.step(plan.steps[what], block, self.tables.called(entry, unit))
                self.time += 1
            elif kind == "move":
                self.move(what, block, entry)
            else:
                self.wait(what, block, entry)
        self.end()

    def whole(self, root: str, block: int, it: Place) -> bool:
        """Whether a place holds the last contents of a block."""
        return self.holds(it, self.plan.size(root, block), self.current.get((root, block), -1))

    def holds(self, it: Place, size: int, value: int) -> bool:
        """Whether all bytes at a place have this value."""
        return self.cells[it.memory][it.offset : it.offset + size] == array("i", [value]) * size

    def fill(self, it: Place, size: int, value: int) -> None:
        """Set all bytes at a place."""
        self.cells[it.memory][it.offset : it.offset + size] = array("i", [value]) * size

    def write(self, root: str, block: int, it: Place) -> None:
        """Write a block: its earlier copies elsewhere become stale."""
        self.writes += 1
        self.current[root, block] = self.writes
        self.fill(it, self.plan.size(root, block), self.writes)
        self.needed.setdefault((root, block), []).append([self.time, self.time + 1])

    def place(self, root: str, block: int, record: Record, rows: range, where: str) -> Place:
        """The place of a block at which the record in C has all these rows."""
        tensor = self.plan.tensors[root]
        require(record.row_bytes == tensor["row_bytes"], f"{where}: rows of {root} have other bytes in C")
        start = self.plan.start(root, block)
        homes = {record.address(row) - (row - start) * record.row_bytes for row in rows}
        for it in self.plan.blocks[root][block]:
            if it.begin <= self.time < it.end and it.memory == record.memory and homes == {it.offset}:
                return it
        raise FaultError(f"{where}: block {block} of {root} is not at {homes} in {record.memory}, as in C")

    def step(self, step: list[int], block: int, entry: Initialiser) -> None:
        """Run a step of an operator at the addresses of its record in C."""
        plan = self.plan
        operator, pair = plan.operators[step[0]], (step[0], step[1])
        where = f"step {self.time} ({operator.name}, block {step[1]})"
        require(block == step[1] < operator.count and not operator.is_view, f"{where}: C runs block {block}")
        kernel = "mcud_" + operator.facts["kernel"].split(":")[0]
        require(entry.fields["kernel"] == kernel, f"{where} calls {entry.fields['kernel']}, not {kernel}")
        own = f"&p_{operator.name}" if f"p_{operator.name}" in self.tables.objects else "0"
        require(entry.fields["params"] == own, f"{where}: C has the parameters {entry.fields['params']}")
        in_blocks = (entry.number("rows"), entry.number("block_rows"))
        require(in_blocks == (operator.rows, operator.block_rows), f"{where}: C has other rows")
        out, records = self.tables.record(entry.fields["out"]), self.tables.inputs(entry)
        require(out.lead == operator.lead, f"{where}: C has a lead of {out.lead}")
        require(len(records) == len(operator.inputs), f"{where}: C reads {len(records)} tensors")
        follows = not self.ran[pair] and (block == 0 or self.ran[step[0], block - 1])
        require(follows or not operator.accumulates, f"{where} is out of order")
        if block == 0:
            check_window(plan, operator, self.tables, entry)
        once = not operator.inputs or self.states & set(operator.inputs)
        require(not (once and self.ran[pair]), f"{where} takes an input or goes on with a state again")
        later = any(self.ran[step[0], other] for other in range(block + 1, operator.count))
        require(bool(operator.inputs) or not later, f"{where} takes rows of an input after later ones")
        first, end = operator.interval(block)
        target, used, output_block = None, list[Used](), 0 if operator.accumulates else block
        if not operator.accumulates or end == operator.rows:
            total = plan.tensors[operator.output]["rows"]
            written = range(total) if operator.accumulates else range(first, end)
            target = self.place(operator.output, output_block, out, written, where)
            used.append((target, plan.size(operator.output, output_block)))
        for operand, (name, record) in enumerate(zip(operator.inputs, records, strict=True)):
            root, rows = plan.roots[name], operator.reads(operand, first, end)
            same_rows = operand in operator.facts["overwrites"] and plan.cut[root][1] == operator.lead
            for it, size in self.read(name, record, rows, where):
                in_place = same_rows and target is not None and (it[2:], size) == (target[2:], used[0][1])
                clear = target is None or in_place or not it.overlaps(size, *used[0])
                require(clear, f"{where}: the output overlaps input {root}")
                used.append((it, size))
        if operator.work:
            self.work(operator, block, entry, used, where)
        self.ran[pair] += 1
        if target is not None:
            self.write(operator.output, output_block, target)

    def read(self, name: str, record: Record, rows: tuple[int, int], where: str) -> list[Used]:
        """The places of the blocks that hold rows of a tensor; each is intact where C reads it."""
        plan, root, places = self.plan, self.plan.roots[name], list[Used]()
        if rows[0] >= rows[1]:
            return places
        tensor = plan.tensors[name]
        if tensor["rows"] != plan.tensors[root]["rows"]:
            piece = len(plan.blocks[root]) == 1 and record.block_rows >= tensor["rows"]
            same = record.row_bytes == tensor["row_bytes"]
            require(piece and same, f"{where} looks at {root} as {name}, which has other blocks or rows")
            record, rows = record._replace(row_bytes=plan.tensors[root]["row_bytes"]), (0, 1)
        size, lead = plan.cut[root]
        for block in range((rows[0] + lead) // size, (rows[1] - 1 + lead) // size + 1):
            start = plan.start(root, block)
            here = range(max(rows[0], start), min(rows[1], start + size))
            it = self.place(root, block, record, here, where)
            require(self.whole(root, block, it), f"{where} reads block {block} of {root}, which is not there")
            self.needed[root, block][-1][1] = self.time + 1
            self.reads += 1
            places.append((it, plan.size(root, block)))
        return places

    def work(self, operator: Operator, block: int, entry: Initialiser, used: list[Used], where: str) -> None:
        """Use the scratch of a step, apart from all that it reads and writes, or the operator's state."""
        name, at = operator.name, 0 if operator.state else block
        places = self.plan.scratch.get(name, [])
        require(at < len(places) and entry.fields["scratch"] != "0", f"{where} has no scratch")
        record = self.tables.record(entry.fields["scratch"])
        here = [it for it in places[at] if it.begin <= self.time < it.end]
        address = record.address(operator.interval(block)[0])
        same = [(it.memory, it.offset, 0) for it in here] == [(record.memory, address, record.row_bytes)]
        require(same, f"{where}: C has the scratch at {address} in {record.memory}")
        clear = not any(here[0].overlaps(operator.work, *other) for other in used)
        require(clear, f"{where}: its scratch overlaps what it reads or writes")
        value = -1 - list(self.plan.scratch).index(name)
        spans = self.needed.setdefault((f"scratch of {name}", at), [])
        if operator.state and block:
            require(self.holds(here[0], operator.work, value), f"{where}: its state is overwritten")
            spans[-1][1] = self.time + 1
        else:
            spans.append([self.time, self.time + 1])
        self.fill(here[0], operator.work, value)

    def move(self, at: int, index: int, entry: Initialiser) -> None:
        """Copy a block, or begin its transfer by an engine."""
        plan, (engine, root, block, *_) = self.plan, self.plan.transfers[at]
        old, new = plan.way(plan.transfers[at])
        where, size = f"transfer {at} (block {block} of {root})", plan.size(root, block)
        kernel = "mcud_move_blocks" if engine == CPU else "mcud_start_transfers"
        params = self.engine(entry, index, kernel, engine)
        sizes = self.tables.table(params.values[0]).values
        moved = number(sizes[index].split("|")[0]) if index < len(sizes) else -1
        require(moved == size, f"{where}: C moves {moved} bytes")
        records = self.tables.inputs(entry)[0], self.tables.record(entry.fields["out"])
        for it, record in zip((old, new), records, strict=True):
            there = record.memory, record.address(index)
            require(there == it[2:] and not record.lead, f"{where}: C has {there}, the plan {it}")
        version = self.current.get((root, block), -1)
        require(self.holds(old, size, version), f"{where}: its source is not there")
        clear = not old.overlaps(size, new, size) or (engine == CPU and old.end <= self.time)
        require(clear, f"{where} goes over a place where the block stays")
        self.needed[root, block][-1][1] = max(self.needed[root, block][-1][1], self.time)
        if engine == CPU and old.end <= self.time:
            self.fill(old, size, 0)
        self.fill(new, size, version if engine == CPU else FLYING - at)
        if engine != CPU:
            self.begun[engine].append(at)
            self.flying[at] = version

    def engine(self, entry: Initialiser, index: int, kernel: str, engine: str) -> Initialiser:
        """The parameters in C of a transfer by an engine or of a wait, which is row `index` of its record."""
        require(entry.fields["kernel"] == kernel, f"C calls {entry.fields['kernel']}, not {kernel}")
        one = entry.number("block_rows") == 1 and index < entry.number("rows")
        require(one, f"C does not run row {index} of {kernel}")
        params = self.tables.table(entry.fields["params"])
        right = engine == CPU or params.number("engine") == list(self.plan.board["engines"]).index(engine)
        require(right, f"C does not use {engine}")
        return params

    def wait(self, at: int, index: int, entry: Initialiser) -> None:
        """End a transfer and the earlier ones of its engine; their places must be untouched until then."""
        plan, engine = self.plan, self.plan.transfers[at][0]
        params = self.engine(entry, index, "mcud_await_transfers", engine)
        pending = self.tables.table(params.values[0]).values
        later = sum(it > at for it in self.begun[engine])
        enough = index < len(pending) and number(pending[index]) <= later
        require(enough, f"the wait for transfer {at} leaves more than {later} unfinished")
        for each in [it for it in self.begun[engine] if it <= at and it in self.flying]:
            _, root, block, *_ = plan.transfers[each]
            old, new = plan.way(plan.transfers[each])
            size, version = plan.size(root, block), self.flying.pop(each)
            intact = self.current[root, block] == version and self.holds(old, size, version)
            require(intact, f"transfer {each}: its source changes in flight")
            require(self.holds(new, size, FLYING - each), f"transfer {each}: its target changes in flight")
            self.fill(new, size, version)

    def end(self) -> None:
        """Check the outputs, the functions that return them, and that no block resides longer than needed."""
        plan, steps = self.plan, len(self.plan.steps)
        for root in plan.outputs:
            begin = min(spans[0][0] for (name, _), spans in self.needed.items() if name == root)
            for block, places in enumerate(plan.blocks[root]):
                last = [it for it in places if it.end == steps and it[2:] == places[0][2:]]
                there = any(self.whole(root, block, it) for it in last)
                require(there, f"block {block} of output {root} is not there at the end")
                self.needed[root, block][-1][1] = steps
                self.needed[root, block][0][0] = begin  # its blocks lie in sequence, from the first on
        body = r"\*(\w+)\(void\)\s*\{\s*(?:const )?void \*at = arena_(\w+)\.bytes \+ (\d+);\s*return at;\s*\}"
        stated = {name: (memory, int(at)) for name, memory, at in re.findall(body, self.tables.source)}
        homes = {at: plan.blocks[plan.roots[it]][0][0][2:] for at, it in plan.network["functions_of"].items()}
        require(stated == homes, f"the functions in C return {stated}, not {homes}")
        tables = {**plan.blocks, **{f"scratch of {name}": steps for name, steps in plan.scratch.items()}}
        for name, blocks in tables.items():
            for block, places in enumerate(blocks):
                lives, needed = joined(it[:2] for it in places), joined(self.needed.get((name, block), ()))
                require(lives == needed, f"block {block} of {name} resides at {lives}, needed at {needed}")


def check_window(plan: Plan, operator: Operator, tables: Tables, entry: Initialiser) -> None:
    """Check the rows that network.json states against the sizes and the window in the kernel's parameters."""
    kernel, params = entry.fields["kernel"], tables.objects.get(entry.fields["params"][1:])
    if params is None or operator.accumulates or not re.match("mcud_(dw)?conv|mcud_...pool", kernel):
        return
    total, fixed = plan.tensors[operator.inputs[0]]["rows"], re.search(r"dwconv2d_s8_rows|_w\dx4", kernel)
    dims, window = params.fields.get("dims"), params.fields.get("window", params)
    rows = dims.number("input_rows") if dims and "input_rows" in dims.fields else total
    require(rows == total, f"{operator.name} has {rows} rows of input in C, not {total}")
    for side, name in (("input", operator.inputs[0]), ("output", operator.output)):
        if dims and f"{side}_cols" in dims.fields and not re.search("gradient|indices|taps", kernel):
            channels = dims.number(f"{side}_channels", dims.number("channels"))
            size = dims.number(f"{side}_cols") * channels * ELEMENT_BYTES[kernel.split("_")[2]]
            right = size == plan.tensors[name]["row_bytes"]
            require(right, f"{operator.name}: rows of {side} have {size} bytes in C")
    if not fixed and "stride_rows" not in window.fields:
        return
    taps = window.number("kernel_rows") or params.number("kernel_rows") or (3 if fixed else 1)
    reach = (taps - 1) * window.number("dilation_rows", 1) + 1
    for row in range(operator.rows):
        begin = row * window.number("stride_rows", 1) - window.number("pad_top")
        needed, stated = (max(0, begin), min(total, begin + reach)), operator.reads(0, row, row + 1)
        same = needed[0] >= needed[1] or needed == stated
        require(same, f"{operator.name}: row {row} reads {needed} in C, not {stated}")


def joined(spans: Any) -> list[list[int]]:
    """Ranges of steps; ranges that touch or overlap become one."""
    ranges: list[list[int]] = []
    for lo, hi in sorted(map(list, spans)):
        if ranges and lo <= ranges[-1][1]:
            ranges[-1][1] = max(ranges[-1][1], hi)
        elif lo < hi:
            ranges.append([lo, hi])
    return ranges


def main(arguments: list[str]) -> int:
    """Run the command line."""
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    path, folder = map(Path, arguments)
    try:
        texts = [path.with_name(it).read_text("utf-8") for it in (path.name, "network.json", "board.json")]
        require(not re.search(r"[\[,:]\s*-", texts[0]), "the plan has a negative number")
        plan, tables = Plan(*map(json.loads, texts)), Tables(folder)
        check_structure(plan)
        run = Run(plan, tables)
        run.check()
    except FaultError as fault:
        print(f"refused: {fault}")
        return 1
    except Exception as error:
        print(f"refused: a file is not as mcudeploy writes it: {type(error).__name__}: {error}")
        return 2
    entries = len(tables.schedule)
    print(f"accepted: {entries} entries of the schedule, {run.reads} reads of blocks, all in place")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
