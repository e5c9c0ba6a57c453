"""An upper bound of a firmware's stack, from GCC's call graph and the linked program.

Frames and calls of compiled sources come from `-fcallgraph-info=su`; those of C library functions from
their instructions. The tape calls kernels through pointers: any linked kernel may be the target. Functions
of the application (feeds, hooks) and its interrupts are not part of the bound.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache as memoize
from pathlib import Path

from mcudeploy.codegen.kernelfiles import ON_UNIT, PARAMETERS, UNIT_SUFFIX
from mcudeploy.common.errors import BuildError
from mcudeploy.ops.move.constant_pieces import STREAM
from mcudeploy.toolchain.firmware import CALLS_NAME, Firmware
from mcudeploy.toolchain.stack_frames import LibraryFunctions

_LOG = logging.getLogger(__name__)
INDIRECT = "__indirect_call"
"""GCC's name for the unknown target of a call through a pointer."""
_NODE = re.compile(
    r'^node: \{ title: "([^"]*)" label: "[^"]*?\\n([^"]*):\d+:\d+\\n(\d+) bytes \(([^)]*)\)', re.M
)
_EDGE = re.compile(r'^edge: \{ sourcename: "([^"]*)" targetname: "([^"]*)"', re.M)
_TAPE = re.compile(r"mcud_step|mcud_run(_whole)?(_o\d+_c\d+_a\d+)?")
_CORES = re.compile(r"mcud_run_cores(_o\d+_c\d+_a\d+)?")
_CALLING = ("fused_rows", STREAM, UNIT_SUFFIX)
"""Ends of the names of kernels that call other kernels."""
_LANE = "mcud_core_run"
INTERRUPT_HANDLERS = ("uart_interrupt", "core_timer_interrupt", "dma_interrupt", "trap_entry")
"""Functions of the firmware that only an interrupt calls."""
_ENTRY_BYTES = {"arm-none-eabi": 108, "riscv64-unknown-elf": 0}
"""Bytes that the core pushes for an interrupt at most; on Arm 8 words, 18 of the FPU, 1 for alignment."""
_UNPAINTED_BYTES = 64  # FRAME_MARGIN of firmware/measurer/timing.c


@dataclass(frozen=True, slots=True)
class StackBound:
    """Upper bounds of the stack in bytes.

    program: the firmware with the measurer, from the top of the stack, as `stack_bytes` of a run counts.
    library: any function of the generated header, from the stack pointer of its caller on.
    interrupt: bytes that one interrupt of the firmware adds at any time; not part of the others.
    """

    program_bytes: int
    library_bytes: int
    interrupt_bytes: int


@dataclass(frozen=True, slots=True)
class CompiledFunction:
    """A function as GCC compiled it: bytes of its frame, its calls, its source file."""

    frame_bytes: int
    calls: frozenset[str]
    source: Path


def stack_bound(firmware: Firmware) -> StackBound | None:
    """Return the bound of a firmware with the measurer; None for the host, whose C library is not in it.

    Also None, with a warning, if the functions of a toolchain allow no bound.
    """
    return _bound_or_warning(firmware.elf, firmware.board.toolchain)


@memoize
def _bound_or_warning(elf: Path, toolchain: str) -> StackBound | None:
    listing = elf.with_name(CALLS_NAME)
    if not listing.is_file():
        return None
    try:
        return bound_of(read_calls(listing.read_text("utf-8")), LibraryFunctions(elf, toolchain), toolchain)
    except BuildError as error:
        _LOG.warning("warning: %s", error)
        return None


def bound_of(
    compiled: Mapping[str, CompiledFunction], others: LibraryFunctions, toolchain: str
) -> StackBound:
    """Return the bound of a program with the measurer; `others` are its functions without a source.

    Raises BuildError for recursion, for an indirect call outside the tape, and for a function without source
    whose frame cannot be read.
    """
    _require_calls(compiled, "stack_paint")
    depths = Depths(compiled, others)
    painted = depths.above("stack_paint") + compiled["stack_paint"].frame_bytes + _UNPAINTED_BYTES
    return StackBound(
        max(depths.above("timing_run") + depths.of("timing_run"), painted),
        max(map(depths.of, _library(compiled))),
        _ENTRY_BYTES[toolchain] + max(map(depths.of, INTERRUPT_HANDLERS)),
    )


def library_bytes(firmware: Firmware) -> int | None:
    """Return the bound of a library in a firmware whose main() is generated; None as in `stack_bound`."""
    listing = firmware.elf.with_name(CALLS_NAME)
    if not listing.is_file():
        return None
    try:
        compiled = read_calls(listing.read_text("utf-8"))
        _require_calls(compiled, "main")
        depths = Depths(compiled, LibraryFunctions(firmware.elf, firmware.board.toolchain))
        main = compiled["main"].source
        return max(depths.of(it) for it in _library(compiled) if compiled[it].source != main)
    except BuildError as error:
        _LOG.warning("warning: %s", error)
        return None


def _require_calls(compiled: Mapping[str, CompiledFunction], name: str) -> None:
    """Raise BuildError if the compiler left no call graph of the program that has this function."""
    if name not in compiled or not any(_library(compiled)):
        raise BuildError(
            "no bound for the stack: the call graphs (.ci) of the compiler are missing, though it was called "
            "with -fcallgraph-info=su. Does a wrapper of it, such as a compiler cache, drop them?"
        )


def _library(compiled: Mapping[str, CompiledFunction]) -> Iterator[str]:
    """Yield the functions of a library that an application may call, and the functions that these call."""
    for name, function in compiled.items():
        if function.source.parent.name == "generated" or _TAPE.fullmatch(name) or _CORES.fullmatch(name):
            yield name


def read_calls(text: str) -> dict[str, CompiledFunction]:
    """Return the functions of the VCG graphs that GCC writes, by title; static ones start with their file.

    A weak function and its replacement both count. Raises BuildError for a frame that grows at run time.
    """
    calls: dict[str, set[str]] = {}
    for caller, callee in _EDGE.findall(text):
        calls.setdefault(caller, set()).add(callee)
    compiled: dict[str, CompiledFunction] = {}
    for title, source, frame, kind in _NODE.findall(text):
        if kind == "dynamic":
            raise BuildError(f"no bound for the stack: the frame of {_plain(title)} grows at run time")
        known = compiled[title].frame_bytes if title in compiled else 0
        callees = frozenset(calls.get(title, ()))
        compiled[title] = CompiledFunction(max(known, int(frame)), callees, Path(source))
    return compiled


class Depths:
    """The bytes of stack below and above functions of one program."""

    def __init__(self, compiled: Mapping[str, CompiledFunction], library: LibraryFunctions) -> None:
        self._compiled = compiled
        self._library = library
        self._known: dict[str, int] = {}
        self._open: list[str] = []

    def of(self, name: str) -> int:
        """Return the bytes that a call of a function needs, with calls below. BuildError for recursion."""
        if name in self._open:
            circle = " -> ".join(map(_plain, [*self._open[self._open.index(name) :], name]))
            raise BuildError(f"no bound for the stack: {circle} is a recursion")
        if name not in self._known:
            self._open.append(name)
            frame, callees = self._function(name)
            self._known[name] = frame + max(map(self.of, callees), default=0)
            self._open.pop()
        return self._known[name]

    def above(self, name: str) -> int:
        """Return the frames of the deepest chain of direct callers of a compiled function."""
        callers = [it for it, function in self._compiled.items() if name in function.calls]
        return max((self._compiled[it].frame_bytes + self.above(it) for it in callers), default=0)

    def _function(self, name: str) -> tuple[int, Iterable[str]]:
        function = self._compiled.get(name)
        if function is None:
            return self._library.frame(name)
        if not function.calls and not function.frame_bytes:  # GCC does not see pushes of assembler
            return self._library.pushed(_plain(name)), ()
        if INDIRECT not in function.calls:
            return function.frame_bytes, function.calls
        return function.frame_bytes, (function.calls - {INDIRECT}) | self._pointed_to(name)

    def _pointed_to(self, caller: str) -> set[str]:
        """Return the possible targets of the pointers that a function calls."""
        kernels = {
            title
            for title, function in self._compiled.items()
            if function.source.parent.name == "kernels" and title == f"mcud_{function.source.stem}"
        }
        if _TAPE.fullmatch(caller) or _plain(caller) == _LANE:
            return kernels
        if caller == "timing_run":
            return {title for title in self._compiled if _CORES.fullmatch(title)}
        if caller == "mcud_unit_run":  # it passes on kernels, and is never passed on itself
            return kernels - {f"mcud_{ON_UNIT}"}
        if self._compiled[caller].source.stem.endswith(_CALLING):  # and no kernel calls these
            return {it for it in kernels if not it.endswith((ON_UNIT, *_CALLING))}
        if caller == "mcud_feed":
            return {title for title in self._compiled if title.endswith(":feed_rows")}
        if caller == "rp2_start_boot_loader":  # the boot ROM restarts the chip
            return set()
        if self._compiled[caller].source.stem == "integer_binary":  # it has a table of functions
            own = {it for it, compiled in self._compiled.items() if compiled.source.stem == "integer_binary"}
            return {it for it in own if ":" in it and INDIRECT not in self._compiled[it].calls}
        source = self._compiled[caller].source
        if source.parent.name == "generated" or source.stem == PARAMETERS:
            return set()  # the application's feed, hook or storage
        raise BuildError(
            f"no bound for the stack: the targets of {_plain(caller)}'s calls by pointer are unknown"
        )


def _plain(title: str) -> str:
    return title.rpartition(":")[2]
