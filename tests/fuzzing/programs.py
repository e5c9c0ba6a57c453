"""Generated C of many plans in one executable under sanitizers, and the process that runs them.

`threads`: under the sanitizer of threads, or else under those of addresses and of undefined behaviour.
"""

from __future__ import annotations

import select
import struct
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

from mcudeploy.codegen.kernelfiles import MOVE, START, UNIT_SUFFIX
from mcudeploy.codegen.program import make_program
from mcudeploy.codegen.render import Source, Types, render, render_model
from mcudeploy.common.resources import resource_dir
from mcudeploy.planner.tape.plan_view import PlanView
from mcudeploy.toolchain.firmware_build import SANITIZE_FLAGS
from mcudeploy.toolchain.project import SoftEngine, engine_defines

sys.path.insert(0, str(Path(__file__).parents[1] / "ops"))

from bench import Compiler

from fuzzing.plans import OFFSET_UNIT, JudgedPlan

_REQUEST = struct.Struct("<4I")
_RUNNER = Path(__file__).with_name("runner.c")
_TABLE_BITS = 32
"""Kernels are compiled once, for tables of any size."""
_PATIENCE_S = 20.0
_ENVIRONMENT = {
    "ASAN_OPTIONS": "detect_leaks=0",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "TSAN_OPTIONS": "halt_on_error=1",
}
_THREAD_FLAGS = ("-fsanitize=thread", "-fno-omit-frame-pointer")
_YIELDS = Path(__file__).with_name("yields.c")
_WRAPPED = "-Wl,--wrap=mcud_core_start,--wrap=mcud_core_wake"
"""Of the threads that are cores, so that they lose time at random."""


class BuildError(Exception):
    """Generated C that the compiler refuses, or warns of."""


class RunError(Exception):
    """The process ended or hung: the sanitizer's words, as far as there are any."""


@dataclass(frozen=True, slots=True)
class Written:
    """A program on disk, and its name."""

    source: Path
    symbol: str

    def object(self, *, soft: bool, threads: bool) -> Path:
        """Compiler options; `soft`: for engines in software."""
        return self.source.with_suffix(f"{'.soft' if soft else ''}{'.threads' if threads else ''}.o")


def write(made: JudgedPlan, prefix: str, folder: Path) -> Written:
    """The generated C of a plan, as one source; of a unit with its joined steps after those of the plan."""
    program = make_program(PlanView(made.plan, made.model.calls), prefix, made.board, "both")
    program = replace(program, offset_bits=_TABLE_BITS, code_bits=_TABLE_BITS)
    files = render_model(program, made.plan, Source(made.model.path.name, made.model.sha256))
    home = folder / prefix
    home.mkdir(parents=True)
    for name, text in files.items():
        # Other cores may still read the source of a transfer when it ends: nothing may overwrite it.
        kept = text.replace(" | MCUD_ENDS_SOURCE", "") if made.plan.lanes else text
        (home / name).write_text(kept, "utf-8")
    source = home / "program.c"
    source.write_text(f'#include "{prefix}_weights.c"\n#include "{prefix}.c"\n', "utf-8")
    return Written(source, program.symbol)


def compile_program(written: Written, *, soft: bool = False, threads: bool = False) -> None:
    """The object beside the source. Raises BuildError if the compiler refuses it, or warns."""
    source, target = written.source, written.object(soft=soft, threads=threads)
    base = _compiler("start" if soft else None, threads).base
    command = [*base, "-O0", f"-I{source.parent}", "-c", str(source), "-o", str(target)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise BuildError(result.stderr[:2000])


def compile_programs(written: Sequence[Written], *, soft: bool = False, threads: bool = False) -> None:
    """Compile several at a time."""
    _compiler("start" if soft else None, threads)  # once, not by each thread
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(partial(compile_program, soft=soft, threads=threads), written))


def link(
    written: Sequence[Written],
    folder: Path,
    engine: SoftEngine | None = None,
    *,
    threads: bool = False,
    streams: bool = False,
) -> Path:
    """One executable with these programs, which are compiled, and all kernels. Transfers are done by engines
    in software (of programs that are compiled for them), or else by the core. `streams`: the kernels of a
    unit beside the core, and its functional model.
    """
    firmware = resource_dir("firmware")
    others = [firmware / "hal" / name for name in ("one_unit.c", "host/threads.c")]
    if streams:
        others += [it for it in (firmware / "hal" / "ethos_u").glob("*.c") if "driver" not in it.stem]
    kernels = [
        path for path in _compiler(None, threads).kernels if streams or not path.stem.endswith(UNIT_SUFFIX)
    ]
    sources = [*kernels, *others, _RUNNER, _YIELDS]
    moving = [path for path in sources if engine is not None and path.stem in (MOVE, START)]
    moving += [firmware / "hal" / "dma_soft.c"] if engine is not None else []
    fixed = _all_compiled([path for path in sources if path not in moving], _compiler(None, threads))
    fixed += _all_compiled(moving, _compiler(engine, threads))
    table = Written(folder / "table.c", "")
    table.source.write_text(_table(written), "utf-8")
    soft = engine is not None
    compile_program(table, soft=soft, threads=threads)
    objects = [*fixed, *(each.object(soft=soft, threads=threads) for each in (table, *written))]
    path = folder / f"programs_{engine or 'core'}{'_threads' if threads else ''}"
    command = ["gcc", *_flags(threads), _WRAPPED, "-no-pie", *map(str, objects), "-lm", "-o", str(path)]
    subprocess.run(command, check=True)
    return path


def _all_compiled(sources: Sequence[Path], compiler: Compiler) -> list[Path]:
    compiled = compiler.all_compiled({path: path.read_text("utf-8") for path in sources}).values()
    refused = [each for each in compiled if isinstance(each, str)]
    if refused:
        raise BuildError(refused[0])
    return [each for each in compiled if isinstance(each, Path)]


@cache
def _compiler(engine: SoftEngine | None, threads: bool) -> Compiler:
    config = render("config.h.j2", config=Types(OFFSET_UNIT, _TABLE_BITS, _TABLE_BITS))
    defines = (f"-D{name}={value}" for name, value in engine_defines(engine).items())
    return Compiler.of((*_flags(threads), *defines), config)


def _flags(threads: bool) -> tuple[str, ...]:
    return _THREAD_FLAGS if threads else SANITIZE_FLAGS


def _table(written: Sequence[Written]) -> str:
    declared = "\n".join(f"extern const mcud_model {each.symbol};" for each in written)
    listed = ", ".join(f"&{each.symbol}" for each in written)
    return (
        f'#include "mcud.h"\n{declared}\nextern const mcud_model *const programs[];\n'
        f"const mcud_model *const programs[] = {{{listed}}};\n"
    )


class Runner:
    """The process, as a machine for verification. Use as a context manager.

    `seed`: cores lose time at random; none with 0. Every method raises RunError if the process ends or hangs.
    """

    def __init__(self, executable: Path) -> None:
        self._process = subprocess.Popen(
            [executable],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_ENVIRONMENT,
            bufsize=0,
        )
        self._waiting: list[bytes] = []
        self.seed = 0

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def select(self, program: int, seed: int) -> None:
        """Go on with this program; its arenas hold noise then."""
        self._ask("S", program, seed, 0)

    def write(self, memory: int, offset: int, data: bytes) -> None:
        """Put bytes at `offset` of arena `memory`."""
        self._ask("W", memory, offset, len(data))
        self._waiting.append(bytes(data))

    def read(self, memory: int, offset: int, count: int) -> bytes:
        """`count` bytes at `offset` of arena `memory`."""
        self._ask("R", memory, offset, count)
        return self._answer(count)

    def run(self, first: int, count: int) -> int:
        """Run entries of the tape; no ticks are counted."""
        self._ask("G", first, self.seed, count)
        self._answer(1)
        return 0

    def _ask(self, kind: str, first: int, second: int, count: int) -> None:
        self._waiting.append(_REQUEST.pack(ord(kind), first, second, count))

    def _answer(self, count: int) -> bytes:
        assert self._process.stdin is not None and self._process.stdout is not None
        data, self._waiting = b"".join(self._waiting), []
        try:
            view = memoryview(data)
            while view:
                view = view[self._process.stdin.write(view) :]
        except BrokenPipeError:
            raise self._fault() from None
        answer = b""
        while len(answer) < count:
            if not select.select([self._process.stdout], [], [], _PATIENCE_S)[0]:
                raise RunError(f"the program does not end within {_PATIENCE_S:.0f} s")
            part = self._process.stdout.read(count - len(answer))
            if not part:
                raise self._fault()
            answer += part
        return answer

    def _fault(self) -> RunError:
        assert self._process.stderr is not None
        words = self._process.stderr.read().decode("utf-8", "replace")
        self._process.wait()
        return RunError(words[:3000] or f"the process ended with {self._process.returncode}")
