"""Kernels of the unit with a unit that records: their words for any places of rows."""

from __future__ import annotations

import ctypes
import struct
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mcudeploy.common.resources import resource_dir
from mcudeploy.extensions.ethos_u.registers import Stream, decode
from mcudeploy.ir.graph import Tensor
from mcudeploy.ir.opdef import CallTable, KernelCall

KERNELS = ("conv2d_s8_npu", "copy_s8_npu", "elementwise_s8_npu")
_SOURCE = """
#include <string.h>
#include "mcud.h"
#include "mcud_npu.h"
uint32_t recorded[4096], used;
uint8_t core_rows[64];
const uint8_t *bases[64][8];
int32_t runs;
int32_t mcud_npu_run(const uint32_t *words, uint32_t count, const mcud_npu_regions *regions)
{
    memcpy(recorded + used, words, count * sizeof *words);
    used += count;
    memcpy(bases[runs++], regions->base, sizeof regions->base);
    return 0;
}
static void core(const mcud_op *op, int32_t first, int32_t end)
{
    (void)op;
    memset(core_rows + first, 1, (size_t)(end - first));
}
const mcud_stage_call stages[1] = {{core, 0}};
"""
_STOP = 0xFFFF0000


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("memory", ctypes.c_void_p),
        ("offsets", ctypes.c_void_p),
        ("row_bytes", ctypes.c_uint32),
        ("block_rows", ctypes.c_uint32),
        ("lead", ctypes.c_uint32),
    )


class _Op(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("kernel", "params", "input", "output", "scratch")),
        ("rows", ctypes.c_uint32),
        ("block_rows", ctypes.c_uint32),
    )


@dataclass(frozen=True)
class Rows:
    """A tensor, and the offset of each row."""

    tensor: Tensor
    offsets: Sequence[int]


def recording(folder: Path) -> ctypes.CDLL:
    """Build the kernels of the unit with the recorder."""
    (folder / "recorder.c").write_text(_SOURCE)
    config = "typedef uint32_t mcud_offset, mcud_code;\n#define MCUD_ALIGN 1\n#define MCUD_FUSES_F32 1\n"
    (folder / "mcud_config.h").write_text(f"#include <stdint.h>\n{config}")
    firmware = resource_dir("firmware")
    includes = [f"-I{path}" for path in (folder, firmware / "include", firmware / "kernels" / "npu")]
    sources = [folder / "recorder.c", *(firmware / "kernels" / "npu" / f"{name}.c" for name in KERNELS)]
    path = folder / "kernel.so"
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", *includes, *sources, "-o", path], check=True)
    return ctypes.CDLL(str(path))


def made(
    kernels: ctypes.CDLL, call: KernelCall, inputs: Sequence[Rows], output: Rows
) -> list[int | list[int]]:
    """Return what the C kernel does for all rows: the rows of the core, then words by run.

    Addresses of regions in the arena are those of the arena.
    """
    number = ctypes.c_uint32.in_dll
    number(kernels, "used").value = number(kernels, "runs").value = 0
    core_rows = (ctypes.c_uint8 * 64).in_dll(kernels, "core_rows")
    ctypes.memset(core_rows, 0, 64)
    stages = ctypes.addressof(ctypes.c_char.in_dll(kernels, "stages"))
    kept, content = [], b""
    for value in call.params.values():
        if isinstance(value, int):
            content += struct.pack("=i", value)
        elif isinstance(value, np.ndarray):
            kept.append(np.ascontiguousarray(value))
            content += struct.pack("P", kept[-1].ctypes.data)
        else:
            content += struct.pack("P", stages if isinstance(value, CallTable) else 0)
    params = ctypes.create_string_buffer(content, len(content))
    memory = ctypes.addressof(ctypes.create_string_buffer(1)) & ~15
    tables = [np.array(it.offsets, np.uint32) for it in (*inputs, output)]
    tensors = [
        _Tensor(memory, table.ctypes.data, it.tensor.row_bytes, 1, 0)
        for table, it in zip(tables, (*inputs, output), strict=True)
    ]
    sources = (ctypes.c_void_p * len(inputs))(*(ctypes.addressof(it) for it in tensors[:-1]))
    places = (ctypes.addressof(it) for it in (params, sources, tensors[-1]))
    op = _Op(None, *places, None, output.tensor.shape[0], 1)
    getattr(kernels, f"mcud_{call.kernel}")(ctypes.byref(op), 0, output.tensor.shape[0])
    words = list((ctypes.c_uint32 * 4096).in_dll(kernels, "recorded")[: number(kernels, "used").value])
    found: list[int | list[int]] = [row for row in range(64) if core_rows[row]]
    for run in range(number(kernels, "runs").value):
        bases = ((ctypes.c_void_p * 8) * 64).in_dll(kernels, "bases")[run]
        end = words.index(_STOP) + 1
        found.append(_moved(words[:end], [0 if it is None else it - memory for it in bases]))
        words = words[end:]
    return found


def _moved(words: list[int], bases: Sequence[int]) -> list[int]:
    """The words with addresses of the arena instead of those in their regions."""
    stream, commands = Stream(), list(decode(words))
    regions = {it.name: it.value for it in commands}
    places = ("BASE0",) if "OFM_BASE2" in regions else ("BASE0", "BASE2")  # elementwise ones have one run
    for it in commands:
        name, _, register = it.name.partition("_")
        region = regions.get(f"{name}_REGION", 0)
        if it.operates:
            stream.operate(it.name, it.value)
        elif register in places and region:
            stream.set(**{it.name: it.value + bases[region]})
        else:
            stream.set(**{it.name: it.value})
    return stream.words
