"""The tokenizer and the sampler of a device in C, compiled for this computer."""

from __future__ import annotations

import ctypes
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from mcudeploy.common.errors import BuildError, UsageError
from mcudeploy.common.resources import resource_dir
from mcudeploy.common.system.host_tools import install_command
from mcudeploy.extensions.text.tokenizer_file import Tokenizer
from mcudeploy.extensions.text.tokenizer_tables import render_tokenizer
from mcudeploy.toolchain.firmware_build import COMPILER_PACKAGES, find_compiler, run_logged

_FLAGS = ("-std=c99", "-O2", "-fPIC", "-shared")


class Sampler(ctypes.Structure):
    """`mcud_sampler`."""

    _fields_ = (
        ("temperature", ctypes.c_float),
        ("top_k", ctypes.c_uint32),
        ("top_p", ctypes.c_float),
        ("state", ctypes.c_uint64),
    )


@dataclass(frozen=True, slots=True, eq=False)
class HostText:
    """Encodes text, and chooses tokens by logits."""

    library: ctypes.CDLL
    tokens: int

    def encode(self, text: bytes) -> list[int]:
        """Return the ids of a text. Raises UsageError if it is not UTF-8."""
        ids = (ctypes.c_uint32 * (8 * len(text) + 64))()  # more than mcud_encode() needs for any text
        tables = ctypes.byref(ctypes.c_char.in_dll(self.library, "tokenizer"))
        count = self.library.mcud_encode(
            tables, text, ctypes.c_uint32(len(text)), ids, ctypes.c_uint32(len(ids))
        )
        if count < 0:
            raise UsageError("the prompt is not UTF-8")
        return list(ids[:count])

    def sample(self, sampler: Sampler, logits: NDArray[Any], scale: float | None) -> int:
        """Return the next token by logits in stored form; `scale`: that of int8 logits, None for float32."""
        values, count = logits.tobytes(), ctypes.c_uint32(self.tokens)
        if scale is None:
            return int(self.library.mcud_sample_f32(ctypes.byref(sampler), values, count))
        return int(self.library.mcud_sample_s8(ctypes.byref(sampler), values, ctypes.c_float(scale), count))

    def sampler(self, temperature: float, top_k: int, top_p: float, seed: int) -> Sampler:
        """Return a sampler whose draws begin at the seed."""
        sampler = Sampler(temperature, top_k, top_p)
        self.library.mcud_sampler_seed(ctypes.byref(sampler), ctypes.c_uint64(seed))
        return sampler


def host_text(tokenizer: Tokenizer) -> HostText:
    """Compile a tokenizer and the sampler. Raises BuildError without a C compiler."""
    compiler = find_compiler("host")
    if compiler is None:
        raise BuildError(
            "the tokenizer is compiled for this computer, which has no C compiler: "
            f"{install_command(COMPILER_PACKAGES['host'])}"
        )
    firmware = resource_dir("firmware") / "text"
    with tempfile.TemporaryDirectory(prefix="mcudeploy-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        tables = render_tokenizer(tokenizer, "tokenizer")
        (folder / "tables.c").write_text(tables, "utf-8", newline="\n")
        library = folder / "text.so"
        sources = [folder / "tables.c", *sorted(firmware.glob("*.c"))]
        line = [compiler, *_FLAGS, "-I", firmware, *sources, "-lm", "-o", library]
        status, log = run_logged([str(it) for it in line], None, folder)
        if status:
            raise BuildError(f"the tokenizer does not compile:\n{log.strip()}")
        return HostText(ctypes.CDLL(str(library)), len(tokenizer.pieces))
