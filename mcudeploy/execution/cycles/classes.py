"""Kinds of instructions: the rows of the histogram, and of the cost tables."""

from __future__ import annotations

import re
from enum import StrEnum

from mcudeploy.toolchain.disassembly import CONDITION, Instruction, spelled


class Kind(StrEnum):
    """Kinds of instructions of Armv7E-M with floating point, and of Armv8.1-M with vectors."""

    ALU = "arithmetic and logic"
    EXTEND = "extend and pack"
    SATURATE = "saturate and SIMD"
    MULTIPLY = "multiply"
    MULTIPLY_DSP = "multiply, DSP"
    DIVIDE = "divide"
    LOAD = "load"
    LOAD_MANY = "load, several registers"
    STORE = "store"
    STORE_MANY = "store, several registers"
    BRANCH = "branch"
    BRANCH_TABLE = "branch by table"
    IT = "if-then"
    FLOAT_LOAD = "float load"
    FLOAT_STORE = "float store"
    FLOAT_ARITHMETIC = "float add, multiply, convert"
    FLOAT_MAC = "float multiply-add"
    FLOAT_DIVIDE = "float divide, square root"
    FLOAT_MOVE = "float move, compare"
    VECTOR_LOAD = "vector load"
    VECTOR_STORE = "vector store"
    VECTOR_MULTIPLY = "vector multiply"
    VECTOR = "vector, other"
    LOOP_END = "end of a loop"
    SYSTEM = "system"


_SPELLINGS: tuple[tuple[Kind, re.Pattern[str]], ...] = tuple(
    (kind, spelled(stem))
    for kind, stem in (
        (Kind.BRANCH, r"b|bl|bx|blx|cbn?z"),
        (Kind.BRANCH_TABLE, r"tb[bh]"),
        (Kind.IT, r"it[te]{0,3}"),
        (Kind.LOOP_END, r"letp|le"),
        (Kind.LOAD, r"ldr(?:s?[bh])?t?|ldrex[bh]?"),
        (Kind.LOAD_MANY, r"ldrd|ldm(?:ia|db|fd|ea)?|pop"),
        (Kind.STORE, r"str[bh]?t?|strex[bh]?"),
        (Kind.STORE_MANY, r"strd|stm(?:ia|db|fd|ea)?|push"),
        (Kind.DIVIDE, r"[us]div"),
        (Kind.MULTIPLY, r"muls?|mla|mls|[us]mull|[us]mlal|umaal"),
        (Kind.MULTIPLY_DSP, r"sml[as]\w+|smul[btw]\w+|smm\w+|smu[as]dx?"),
        (Kind.EXTEND, r"[su]xta?[bh](?:16)?|pkh(?:bt|tb)"),
        (Kind.SATURATE, r"[us]sat(?:16)?|qd?(?:add|sub)|(?:u?[qh]|sh|[us]|q)(?:add|sub)(?:8|16)|"
                        r"(?:u?[qh]|sh|[us]|q)(?:asx|sax)|sel|usada?8"),
        (Kind.FLOAT_LOAD, r"vldr|vldm(?:ia|db)?|vpop"),
        (Kind.FLOAT_STORE, r"vstr|vstm(?:ia|db)?|vpush"),
        (Kind.FLOAT_MAC, r"vml[as]|vnml[as]|vfn?m[as]"),
        (Kind.FLOAT_DIVIDE, r"vdiv|vsqrt"),
        (Kind.FLOAT_ARITHMETIC, r"vadd|vsub|vn?mul|vcvt[abmnprt]?|vmaxnm|vminnm|vrint\w"),
        (Kind.FLOAT_MOVE, r"vmov|vabs|vneg|vcmpe?|vmrs|vmsr|vsel\w\w"),
        (Kind.SYSTEM, r"mrs|msr|cpsi[de]|d[ms]b|isb|wf[ie]|sev|svc|bkpt|nop|clrex|udf"),
    )
)  # fmt: skip
_VECTOR_KINDS = (
    (Kind.VECTOR_LOAD, re.compile(r"vld\w+")),
    (Kind.VECTOR_STORE, re.compile(r"vst\w+")),
    (Kind.VECTOR_MULTIPLY, re.compile(r"v\w*mul\w*|vml[as]\w*|vfm\w+|vq?r?dml\w+")),
)
_CONDITIONAL = re.compile(rf"cbn?z|(?:b|bl|bx|blx|ldr|ldm\w*|pop|mov|add){CONDITION}")


def classify(instruction: Instruction) -> Kind:
    """Return the kind of an instruction; by default arithmetic or logic."""
    mnemonic = instruction.mnemonic
    if instruction.is_vector:
        return next((kind for kind, spelling in _VECTOR_KINDS if spelling.fullmatch(mnemonic)), Kind.VECTOR)
    kind = next((kind for kind, spelling in _SPELLINGS if spelling.fullmatch(mnemonic)), Kind.ALU)
    moves_pc = kind is Kind.ALU and "r15" in instruction.results
    return Kind.BRANCH if moves_pc else kind


def may_pass(instruction: Instruction) -> bool:
    """Whether a jump may be skipped: by its condition, or by a preceding if-then."""
    return _CONDITIONAL.fullmatch(instruction.mnemonic) is not None
