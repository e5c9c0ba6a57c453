"""Streams by Arm's core driver, here a stand-in: its payload, its regions, and what it answers."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Sequence

import numpy as np
import pytest
from vela_streams import INCLUDE, SOURCES, Array, Regions, model_sources

DONE, UNSUPPORTED, FAULT, NO_UNIT, TOO_LONG = 0, 2, 7, 8, 10
BYTES = 200
COPY = [0x130, 0x4030, 0, 0x131 | 1 << 16, 0x4031, 0, 0x4032, BYTES, 0x10, 0xFFFF_0000]
HEADER = """
#include <stddef.h>
#include <stdint.h>
struct ethosu_driver { uint64_t fast_memory; int reserved; int absent; uint32_t misplaced; };
struct ethosu_driver *ethosu_reserve_driver(void);
void ethosu_release_driver(struct ethosu_driver *unit);
int ethosu_invoke_v3(struct ethosu_driver *unit, const void *payload, const int size, uint64_t *const bases,
                     const size_t *sizes, const int count, void *user);
"""
DRIVER = """
#include "ethosu_driver.h"
#include "mcud_npu.h"
struct ethosu_driver the_unit;
int32_t run_in_model(const uint32_t *words, uint32_t count, const mcud_npu_regions *regions);
struct ethosu_driver *ethosu_reserve_driver(void)
{
    the_unit.reserved += 1;
    return the_unit.absent ? NULL : &the_unit;
}
void ethosu_release_driver(struct ethosu_driver *unit) { unit->reserved -= 1; }
int ethosu_invoke_v3(struct ethosu_driver *unit, const void *payload, const int size, uint64_t *const bases,
                     const size_t *sizes, const int count, void *user)
{
    const uint32_t *words = payload;
    const uint32_t *end = words + size / 4;
    mcud_npu_regions regions = {.writable = 2};
    const int copied = (uintptr_t)words % 32u == 0u && bases[7] == (uintptr_t)words && sizes[7] % 32u == 0u &&
                       sizes[7] >= (size_t)size;
    unit->misplaced = user != NULL || (!copied && (bases[7] != 0u || sizes[7] != 0u));
    for (int i = 0; i < count; i++) {
        regions.base[i] = (const uint8_t *)(uintptr_t)bases[i];
        regions.size_bytes[i] = (uint32_t)sizes[i];
    }
    if (*words++ != 0x31504F43u) {
        return -1;
    }
    while (words < end && (*words & 0xFFu) == 5u) {
        words++;
    }
    const uint32_t length = *words >> 16;
    if ((*words++ & 0xFFu) != 2u || words + length != end || (uintptr_t)words % 16u != 0u) {
        return -1;
    }
    return run_in_model(words, length, &regions) == 0 ? 0 : -1;
}
"""


class Unit(ctypes.Structure):
    """`struct ethosu_driver` of the stand-in."""

    _fields_ = [
        ("fast_memory", ctypes.c_uint64),
        *((name, ctypes.c_int) for name in ("reserved", "absent", "misplaced")),
    ]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("core_driver")
    (folder / "ethosu_driver.h").write_text(HEADER)
    (folder / "driver.c").write_text(DRIVER)
    flags = [
        "-std=c99",
        "-O1",
        "-fPIC",
        "-fsanitize=undefined",
        "-fno-sanitize-recover=all",
        "-Werror",
        "-Wall",
    ]
    gcc = ["gcc", *flags, INCLUDE, f"-I{folder}"]
    renamed = [
        *gcc,
        "-r",
        "-nostdlib",
        "-Dmcud_npu_run=run_in_model",
        *model_sources(),
        "-o",
        folder / "model.o",
    ]
    subprocess.run(renamed, check=True)
    own = [SOURCES / "ethos_u_driver_core.c", folder / "driver.c", folder / "model.o"]
    more = ["-Wextra", "-Wconversion", "-shared", "-DMCUD_NPU_STREAM_WORDS=64", "-o", folder / "driver.so"]
    subprocess.run([*gcc, *own, *more], check=True)
    return ctypes.CDLL(str(folder / "driver.so"))


@pytest.fixture
def unit(library: ctypes.CDLL) -> Unit:
    it = Unit.in_dll(library, "the_unit")
    it.fast_memory = it.reserved = it.absent = 0
    return it


def _run(
    library: ctypes.CDLL, words: list[int], third: Array | None = None, header: Sequence[int] = ()
) -> tuple[int, bool]:
    """The code, and whether the bytes have been copied. `header`: of a payload in flash."""
    source, target = np.arange(BYTES, dtype=np.uint8), np.zeros(BYTES, np.uint8)
    regions = Regions()
    for number, memory in enumerate((source, target, third)):
        if memory is not None:
            regions.give(number, memory)
    regions.has_payload = bool(header)
    room = np.zeros(len(header) + len(words) + 4, np.uint32)
    commands = room[-room.ctypes.data % 16 // 4 :]
    commands[: len(header) + len(words)] = [*header, *words]
    address = ctypes.c_void_p(commands.ctypes.data + 4 * len(header))
    return int(library.mcud_npu_run(address, len(words), ctypes.byref(regions))), bool(
        (source == target).all()
    )


def test_a_stream_is_the_payload_of_a_driver_that_is_released(library: ctypes.CDLL, unit: Unit) -> None:
    for length in (len(COPY), 63, 64):
        words = [*[0x012] * (length - len(COPY)), *COPY]
        assert _run(library, words) == (DONE, True)
        assert not unit.reserved and not unit.misplaced


def test_a_payload_in_flash_is_not_copied(library: ctypes.CDLL, unit: Unit) -> None:
    words = [*[0x012] * 140, *COPY]  # more than there is room for
    words += [0] * (-len(words) % 4)
    assert _run(library, words, header=[0x31504F43, 5, 5, 2 | len(words) << 16]) == (DONE, True)
    assert not unit.reserved and not unit.misplaced


def test_what_the_driver_cannot_run(library: ctypes.CDLL, unit: Unit) -> None:
    assert _run(library, [*[0x012] * 64, *COPY]) == (TOO_LONG, False)
    assert _run(library, COPY[:-1]) == (FAULT, True)
    unit.fast_memory = 0x1000
    assert _run(library, COPY) == (DONE, True)
    assert _run(library, COPY, np.zeros(64, np.uint8)) == (UNSUPPORTED, False)
    assert not unit.reserved
    unit.absent = 1
    assert _run(library, COPY) == (NO_UNIT, False)
