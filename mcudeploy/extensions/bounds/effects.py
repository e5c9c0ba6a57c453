"""The locations that an instruction of an Armv6-M to Armv8.1-M core reads, writes, and decides by.

A location is a core register, a single floating-point register, or a part of the status. The table states at
least what an instruction reads and writes. The effects of an instruction without an entry are unknown, and a
program that executes it has no bound.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import IntEnum

from mcudeploy.toolchain.disassembly import CONDITION, Instruction


class Location(IntEnum):
    """The number of a location; r0 to r15 are 0 to 15, s0 to s31 are 16 to 47."""

    SP = 13
    LR = 14
    PC = 15
    S0 = 16
    ZERO_SIGN = 48
    CARRY_OVERFLOW = 49
    GREATER_EQUAL = 50
    FLOAT_STATUS = 51
    PREDICATE = 52


class MemoryAccess(IntEnum):
    """How an instruction uses memory."""

    NONE = 0
    LOAD = 1
    STORE = 2


class StackMove(IntEnum):
    """How the stack pointer after an instruction is known."""

    NOTHING = 0
    BY_ACCESS = 1
    """It is the first address that the instruction accesses, plus a difference."""
    BY_NUMBER = 2
    """It has moved by a number of bytes."""
    UNKNOWN = 3


@dataclass(frozen=True, slots=True)
class StackEffect:
    """The stack pointer after an instruction: a kind and its bytes.

    `moves`: whether it changes. `slots`: the words that the instruction accesses, as bits: bit i is the word
    4 * i bytes above the stack pointer; None beyond 64 words.
    """

    kind: StackMove = StackMove.NOTHING
    difference: int = 0
    moves: bool = False
    slots: int | None = 0


@dataclass(frozen=True, slots=True)
class Effects:
    """Sets of locations, each as the bits of a number."""

    reads: int = 0
    """Locations whose values decide the results; for a store, those that it stores."""
    writes: int = 0
    """Results that replace a value."""
    partial: int = 0
    """Results that depend on the old value, too."""
    address: int = 0
    """Locations that form an address."""
    updates: int = 0
    """The base of an address that is written back."""
    control: int = 0
    """Locations that decide the next instruction."""
    access: MemoryAccess = MemoryAccess.NONE
    moved: tuple[int, ...] = ()
    """Core registers that a load or store moves, in the order of their addresses."""
    bytes_listed: int = 0
    """The bytes of all registers in a list."""
    whole_words: bool = True
    """Whether it moves no parts of words."""
    divides: bool = False
    stack: StackEffect = StackEffect()


def locations(names: Iterable[str | Location | int]) -> int:
    """Return a set of locations from register names such as r3 and s17, or their numbers."""
    bits = 0
    for name in names:
        number = name if isinstance(name, int) else int(name[1:]) + (0 if name[0] == "r" else Location.S0)
        bits |= 1 << number
    return bits


CALLER_SAVED = locations([*range(4), 12, 14, *range(Location.S0, Location.S0 + 16), *range(48, 53)])
"""Locations whose values a called function may leave changed."""
_SP = locations([Location.SP])
_FRAME = re.compile(r"\[sp(?:, #(-?\d+))?\](!?)")
_STATUS = locations([Location.ZERO_SIGN, Location.CARRY_OVERFLOW])
_CONDITION_LOCATIONS = {
    **dict.fromkeys(("eq", "ne", "mi", "pl"), locations([Location.ZERO_SIGN])),
    **dict.fromkeys(("cs", "hs", "cc", "lo", "vs", "vc"), locations([Location.CARRY_OVERFLOW])),
}
_WITH_FLAGS = frozenset(["adds", "subs", "rsbs", "adcs", "sbcs", "negs"])
_LOGIC_FLAGS = frozenset(
    ["movs", "mvns", "ands", "orrs", "orns", "eors", "bics", "lsls", "lsrs", "asrs", "rors", "rrxs", "muls"]
)
_COMPARE = frozenset(["cmp", "cmn", "tst", "teq"])
_ALONE = frozenset(
    (
        "mov mvn movw sxtb sxth sxtb16 uxtb uxth uxtb16 clz rev rev16 revsh rbit adr ubfx sbfx ssat usat "
        "ssat16 usat16 neg negs movs mvns"
    ).split()
)
"""Instructions that do not read their result in the form with two operands."""
_GENERAL = frozenset(
    (
        "add addw adc sub subw sbc rsb and orr orn eor bic lsl lsr asr ror rrx mul sdiv udiv mla mls pkhbt "
        "pkhtb qadd qsub qdadd qdsub sel usad8 usada8"
    ).split()
)
_PARALLEL = re.compile(r"(?:u?[qh]|sh|[us])(?:add|sub)(?:8|16)|(?:u?[qh]|sh|[us])(?:asx|sax)")
_MULTIPLY = re.compile(
    r"sml[as][bt][bt]|smla[dw]\w?|smlsdx?|smmla?r?|smmlsr?|smmulr?|smul[bt][bt]|smulw[bt]|smu[as]dx?"
)
_EXTEND_ADD = re.compile(r"[su]xta(?:b|h|b16)")
_LONG = re.compile(r"[us]mull|[us]mlal|umaal|smlal[bt][bt]|smlaldx?|smlsldx?")
_KEEP = frozenset(["movt", "bfi", "bfc"])
"""Instructions that keep a part of their result."""
_SELECT = re.compile(r"cs(?:el|inc|inv|neg|et|etm)|cin[cv]|cneg")
_LONG_SHIFT = re.compile(r"asrl|lsll|lsrl|[us]q(?:r)?sh[lr]l|[us]rshrl")
_LOAD = re.compile(r"ldr(?:s?[bh])?t?|ldrex[bh]?")
_STORE = re.compile(r"str[bh]?t?")
_SYSTEM = frozenset(["nop", "dsb", "dmb", "isb", "cpsid", "cpsie", "wfi", "wfe", "sev", "it"]) | {
    f"i{'t' + rest}"
    for rest in ("t", "e", "tt", "te", "et", "ee", *(a + b + c for a in "te" for b in "te" for c in "te"))
}
_FLOAT_ALONE = re.compile(
    r"vmov|vabs|vneg|vsqrt|vcvt[abmnprt]?|vrint[amnprxz]|vadd|vsub|vn?mul|vdiv|vmaxnm|vminnm"
)
"""Floating-point instructions that do not read their result."""
_FLOAT_JOINED = re.compile(r"vn?ml[as]|vfn?m[as]|vmovx|vins")
"""Floating-point instructions whose result depends on its old value."""
_CONDITIONAL = re.compile(rf"(\w+?)({CONDITION})")
_NUMBERS = {"sb": 9, "sl": 10, "fp": 11, "ip": 12, "sp": 13, "lr": 14, "pc": 15}


def effects_of(instruction: Instruction) -> Effects | None:
    """Return the effects of an instruction; None for one that the table lacks."""
    if instruction.is_vector:
        return _vector(instruction)
    plain = _plain(instruction.mnemonic, instruction)
    if plain is not None:
        return plain
    conditional = _CONDITIONAL.fullmatch(instruction.mnemonic)
    if conditional is None:
        return None
    stem, condition = conditional.groups()
    if stem == "b":
        return Effects(control=condition_locations(condition))
    plain = _plain(stem, instruction)
    return None if plain is None else _conditional(plain, condition_locations(condition))


def condition_locations(condition: str) -> int:
    """Return the parts of the status that a condition reads."""
    return _CONDITION_LOCATIONS.get(condition, _STATUS)


def _conditional(plain: Effects, status: int) -> Effects:
    """Return the effects of an instruction that an if-then may skip."""
    control = plain.control | status if plain.control or plain.writes & locations([Location.PC]) else 0
    return replace(
        plain, reads=plain.reads | status, writes=0, partial=plain.partial | plain.writes, control=control
    )


def _plain(mnemonic: str, it: Instruction) -> Effects | None:
    operands = _operands(it.operands)
    for kind in (_branches, _memory, _arithmetic, _floats):
        effects = kind(mnemonic, operands)
        if effects is not None:
            return effects
    return Effects() if mnemonic in _SYSTEM else None


def _operands(text: str) -> list[str]:
    """Return the operands: a bracket or a list in braces is one of them."""
    parts = re.findall(r"(?:\{[^}]*\}|\[[^\]]*\]|[^,\[{])+", text)
    return [part.strip() for part in parts if part.strip()]


def _registers(*operands: str) -> int:
    """Return the locations of all registers that operands name."""
    bits = 0
    for first, last in re.findall(r"\b([rsdq]\d+)-([rsdq]\d+)\b", ",".join(operands)):
        bits |= _wide(first[0], range(int(first[1:]), int(last[1:]) + 1))
    for name in re.findall(r"\b(?:[rsdq]\d+|sb|sl|fp|ip|sp|lr|pc)\b", ",".join(operands)):
        number = _NUMBERS.get(name)
        bits |= 1 << number if number is not None else _wide(name[0], (int(name[1:]),))
    return bits


def _wide(kind: str, numbers: Iterable[int]) -> int:
    if kind == "r":
        return locations(numbers)
    singles = {"s": 1, "d": 2, "q": 4}[kind]
    return locations(Location.S0 + singles * number + part for number in numbers for part in range(singles))


def _branches(mnemonic: str, operands: list[str]) -> Effects | None:
    match mnemonic:
        case "b" | "bl":
            return Effects(writes=locations([Location.LR]) if mnemonic == "bl" else 0)
        case "bx" | "blx":
            written = locations([Location.LR]) if mnemonic == "blx" else 0
            return Effects(writes=written, control=_registers(*operands))
        case "cbz" | "cbnz":
            return Effects(control=_registers(operands[0]))
        case "tbb" | "tbh":
            address = _registers(*operands)
            return Effects(address=address, control=address, access=MemoryAccess.LOAD)
        case "le" | "letp":
            counter = _registers(operands[0]) if len(operands) > 1 else 0
            return Effects(reads=counter, writes=counter, control=counter)
        case "wls" | "dls" | "wlstp" | "dlstp":
            counter = _registers(operands[1])
            return Effects(
                reads=counter,
                writes=locations([Location.LR]),
                control=counter if mnemonic.startswith("w") else 0,
            )
        case "lctp":
            return Effects()
    return None


def _memory(mnemonic: str, operands: list[str]) -> Effects | None:
    if mnemonic in ("push", "vpush", "pop", "vpop"):
        return _several(mnemonic.endswith("push"), "sp!", operands[0])
    if re.fullmatch(r"v?(?:ldm|stm)(?:ia|db|fd|ea)?", mnemonic):
        return _several("stm" in mnemonic, operands[0], operands[1])
    loads = _LOAD.fullmatch(mnemonic) or mnemonic == "vldr"
    stores = _STORE.fullmatch(mnemonic) or mnemonic == "vstr"
    if mnemonic in ("ldrd", "strd"):
        return _access(mnemonic == "strd", operands[:2], operands[2:])
    if loads or stores:
        effects = _access(bool(stores), operands[:1], operands[1:])
        return replace(effects, whole_words=mnemonic in ("ldr", "str"))
    return None


def _access(stores: bool, values: list[str], rest: list[str]) -> Effects:
    address = _registers(*rest)
    base = _registers(re.split(r"[\[,\]]", rest[0])[1]) if rest[0].startswith("[") else 0
    written_back = rest[0].endswith("!") or len(rest) > 1
    moved = _registers(*values)
    effects = Effects(
        address=address,
        updates=base if written_back else 0,
        access=MemoryAccess.STORE if stores else MemoryAccess.LOAD,
        moved=tuple(number for value in values for number in _core(_registers(value))),
        stack=_frame_access(rest, 4 * moved.bit_count()) if base == _SP else StackEffect(),
    )
    if stores:
        return replace(effects, reads=moved)
    return replace(effects, writes=moved, control=_loaded_pc(moved))


def _frame_access(rest: list[str], size: int) -> StackEffect:
    """Return the stack pointer after an access of at most `size` bytes at [sp, #n], [sp, #n]! or [sp], #n."""
    inside = _FRAME.fullmatch(rest[0])
    if inside is None or len(rest) > 2:
        return StackEffect(StackMove.UNKNOWN, moves=True) if "!" in rest[0] else StackEffect(slots=None)
    offset = int(inside[1] or 0)
    if inside[2]:
        return StackEffect(StackMove.BY_ACCESS, 0, moves=True)
    if len(rest) == 2:
        return StackEffect(StackMove.BY_ACCESS, int(rest[1].lstrip("#")), moves=True)
    slots = range(offset // 4, -(-(offset + size) // 4))
    bits = sum(1 << slot for slot in slots) if offset >= 0 and slots.stop <= 64 else None
    return StackEffect(StackMove.BY_ACCESS, -offset, slots=bits)


def _several(stores: bool, base: str, listed: str) -> Effects:
    moved, address = _registers(listed), _registers(base)
    stack = StackEffect()
    if address == _SP and base.endswith("!"):
        stack = StackEffect(StackMove.BY_ACCESS, 0 if stores else 4 * moved.bit_count(), moves=True)
    elif address == _SP:
        slots = (1 << moved.bit_count()) - 1
        stack = StackEffect(StackMove.BY_ACCESS, 0, slots=slots)
    effects = Effects(
        address=address,
        updates=address if base.endswith("!") else 0,
        access=MemoryAccess.STORE if stores else MemoryAccess.LOAD,
        moved=tuple(_core(moved)),
        bytes_listed=4 * moved.bit_count(),
        stack=stack,
    )
    if stores:
        return replace(effects, reads=moved)
    return replace(effects, writes=moved, control=_loaded_pc(moved))


def _loaded_pc(moved: int) -> int:
    return moved & locations([Location.PC])


def _core(bits: int) -> list[int]:
    return [number for number in range(16) if bits >> number & 1]


def _arithmetic(mnemonic: str, operands: list[str]) -> Effects | None:
    if mnemonic in _COMPARE:
        logic = mnemonic in ("tst", "teq")
        return _with_status(Effects(reads=_registers(*operands)), logic=logic)
    if mnemonic == "mrs":
        return Effects(reads=_STATUS | locations([Location.GREATER_EQUAL]), writes=_registers(operands[0]))
    if mnemonic == "msr":
        return Effects(reads=_registers(operands[1]), partial=_STATUS | locations([Location.GREATER_EQUAL]))
    if _LONG.fullmatch(mnemonic):
        results = _registers(*operands[:2])
        accumulates = 0 if mnemonic in ("smull", "umull") else results
        return Effects(reads=_registers(*operands[2:]) | accumulates, writes=results)
    if _LONG_SHIFT.fullmatch(mnemonic):
        return Effects(reads=_registers(*operands), writes=_registers(*operands[:2]))
    if _SELECT.fullmatch(mnemonic):
        status = condition_locations(operands[-1])
        return Effects(reads=_registers(*operands[1:]) | status, writes=_registers(operands[0]))
    if not (
        mnemonic in _ALONE | _GENERAL | _KEEP | _WITH_FLAGS | _LOGIC_FLAGS
        or any(it.fullmatch(mnemonic) for it in (_PARALLEL, _MULTIPLY, _EXTEND_ADD))
    ):
        return None
    results, sources = _registers(operands[0]), _registers(*operands[1:])
    if mnemonic in _KEEP or (len(operands) == 2 and mnemonic not in _ALONE):
        sources |= results
    if mnemonic.startswith(("adc", "sbc", "rrx")):
        sources |= locations([Location.CARRY_OVERFLOW])
    if mnemonic == "sel":
        sources |= locations([Location.GREATER_EQUAL])
    if _PARALLEL.fullmatch(mnemonic) and mnemonic[0] in "su" and not mnemonic.startswith(("sh", "uh", "uq")):
        results |= locations([Location.GREATER_EQUAL])
    control = sources if results & locations([Location.PC]) else 0
    effects = Effects(
        reads=sources,
        writes=results,
        control=control,
        divides=mnemonic in ("sdiv", "udiv"),
        stack=_moved_stack(mnemonic, operands) if results & _SP else StackEffect(),
    )
    if mnemonic in _WITH_FLAGS | _LOGIC_FLAGS:
        return _with_status(effects, logic=mnemonic in _LOGIC_FLAGS)
    return effects


def _moved_stack(mnemonic: str, operands: list[str]) -> StackEffect:
    """Return the stack pointer after an instruction that writes it."""
    number = re.fullmatch(r"#(\d+)", operands[-1])
    if number is None or mnemonic not in ("add", "addw", "sub", "subw") or operands[-2] != "sp":
        return StackEffect(StackMove.UNKNOWN, moves=True)
    sign = 1 if mnemonic.startswith("add") else -1
    return StackEffect(StackMove.BY_NUMBER, sign * int(number[1]), moves=True)


def _with_status(effects: Effects, *, logic: bool) -> Effects:
    """Return the effects of an instruction that sets the status; a logical one may keep a part of it."""
    written = locations([Location.ZERO_SIGN]) if logic else _STATUS
    joined = locations([Location.CARRY_OVERFLOW]) if logic else 0
    return replace(effects, writes=effects.writes | written, partial=effects.partial | joined)


def _floats(mnemonic: str, operands: list[str]) -> Effects | None:
    if mnemonic in ("vcmp", "vcmpe"):
        return Effects(reads=_registers(*operands), writes=locations([Location.FLOAT_STATUS]))
    if mnemonic == "vmrs":
        source = locations([Location.FLOAT_STATUS, Location.PREDICATE])
        return Effects(reads=source, writes=_STATUS if "APSR" in operands[0] else _registers(operands[0]))
    if mnemonic == "vmsr":
        return Effects(
            reads=_registers(operands[1]), writes=locations([Location.FLOAT_STATUS, Location.PREDICATE])
        )
    if mnemonic.startswith("vsel"):
        status = condition_locations(mnemonic[4:6])
        return Effects(reads=_registers(*operands[1:]) | status, writes=_registers(operands[0]))
    joined = _FLOAT_JOINED.fullmatch(mnemonic) is not None
    if not joined and _FLOAT_ALONE.fullmatch(mnemonic) is None:
        return None
    moves_pair = mnemonic == "vmov" and len(operands) == 3
    count = 2 if moves_pair and not operands[0].startswith("d") else 1
    if mnemonic == "vmov" and len(operands) == 4:
        count = 2  # two core registers and two singles, in either direction
    results, sources = _registers(*operands[:count]), _registers(*operands[count:])
    joined |= "[" in operands[0]  # a part of a double register
    divides = mnemonic in ("vdiv", "vsqrt")
    if joined:
        return Effects(reads=sources, partial=results, divides=divides)
    return Effects(reads=sources, writes=results, divides=divides)


_VECTOR_COUNTS = re.compile(r"v(?:i|d)w?dup[te]?")
"""Vector instructions that also count in a core register."""
_VECTOR_PAIR = re.compile(
    r"vr?ml[as]l?dava?h?x?[te]?|vaddlva?[te]?|vr?mlsldava?h?x?[te]?|vrmlaldavha?x?[te]?"
)
"""Vector instructions with a sum in two core registers."""


def _vector(it: Instruction) -> Effects:
    """Return the effects of a vector instruction: it may keep a part of its result, by its predicate."""
    operands, mnemonic = _operands(it.operands), it.mnemonic
    predicate = locations([Location.PREDICATE])
    if mnemonic.startswith("vctp"):
        return Effects(reads=_registers(*operands) | predicate, writes=predicate)
    if mnemonic.startswith(("vpst", "vpnot")):
        return Effects(reads=predicate, writes=predicate)
    if mnemonic.startswith(("vcmp", "vpt")):
        return Effects(reads=_registers(*operands) | predicate, writes=predicate)
    if mnemonic.startswith(("vld", "vst")):
        stores = mnemonic.startswith("vst")
        effects = _access(stores, operands[:1], operands[1:])
        effects = replace(effects, moved=(), reads=effects.reads | predicate)
        return effects if stores else replace(effects, reads=predicate)
    if _VECTOR_COUNTS.fullmatch(mnemonic):
        counter = _registers(operands[1])
        return Effects(reads=_registers(*operands[1:]) | predicate, writes=_registers(operands[0]) | counter)
    if mnemonic.startswith("vshlc"):
        results = _registers(*operands[:2])
        return Effects(reads=results | predicate, writes=results)
    pair = _VECTOR_PAIR.fullmatch(mnemonic) or (
        mnemonic == "vmov" and len(operands) == 4 and operands[0][0] != "q"
    )
    results, sources = _registers(*operands[: 2 if pair else 1]), _registers(*operands)
    if mnemonic.startswith("vdup") or (mnemonic == "vmov" and not _registers(*operands[1:])):
        return Effects(reads=_registers(*operands[1:]) | predicate, writes=results)
    return Effects(reads=sources | predicate, writes=results)
