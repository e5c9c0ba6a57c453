"""Command streams that Arm's Vela writes for small networks, and the functional model that runs them.

As a program, which has Vela or TFLite Micro in a process without other libraries:
`vela FOLDER ACCELERATOR MODEL...`, with more pairs if need be, or `micro SEED MODEL...` with the inputs in
inputs.npz beside the model.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

SOURCES = Path(__file__).resolve().parents[2] / "firmware" / "hal" / "ethos_u"
INCLUDE = f"-I{SOURCES.parents[1] / 'include'}"
ACCELERATORS = ("ethos-u55-32", "ethos-u55-64", "ethos-u55-128", "ethos-u55-256", "ethos-u65-256")
Array = NDArray[Any]
_END_OF_ACTIONS = 2
_ADDITIONAL_BYTES = 16
"""Feature maps of bricks may end later than their tensor."""


class Regions(ctypes.Structure):
    """`mcud_npu_regions` of mcud_npu.h."""

    _fields_ = [
        ("base", ctypes.c_void_p * 8),
        ("size_bytes", ctypes.c_uint32 * 8),
        ("writable", ctypes.c_uint8),
        ("has_payload", ctypes.c_uint8),
    ]

    def give(self, number: int, memory: Array, *, writable: bool = True) -> None:
        """Makes an array a region."""
        self.base[number], self.size_bytes[number] = memory.ctypes.data, memory.nbytes
        self.writable |= int(writable) << number


@dataclass(frozen=True)
class VelaStream:
    """A network that Vela has compiled, from the file of its raw format."""

    path: Path

    @cached_property
    def file(self) -> dict[str, Array]:
        """The arrays of the file; its names of tensors are pickled."""
        with np.load(self.path, allow_pickle=True) as arrays:
            return {name: arrays[name] for name in arrays.files if "quantization" not in name}

    @cached_property
    def words(self) -> Array:
        """The commands after the actions of Arm's driver."""
        words = np.frombuffer(self.file["cmd_data"].tobytes(), "<u4")
        at = 1
        while (action := int(words[at]) & 0xFF) != _END_OF_ACTIONS:
            at += 3 if action == 1 else 1
        return np.ascontiguousarray(words[at + 1 :])

    @property
    def constants(self) -> Array:
        """Weights, scales and tables; numpy has dropped zeros at their end."""
        return np.frombuffer(self.file["weight_data"].tobytes() + bytes(64), np.uint8).copy()

    def run(
        self, model: ctypes.CDLL, inputs: Sequence[Array], words: Array | None = None
    ) -> tuple[int, list[bytes]]:
        """The model's code and the bytes of the outputs."""
        commands = self.words if words is None else words
        size = int(self.file["scratch_size"]) + _ADDITIONAL_BYTES
        arena, fast = np.zeros(size, np.uint8), np.zeros(1 << 20, np.uint8)
        constants = self.constants
        for value, offset in zip(inputs, self.file["input_offset"], strict=True):
            data = np.frombuffer(value.tobytes(), np.uint8)
            arena[offset : offset + data.size] = data
        regions = Regions()
        regions.give(0, constants, writable=False)
        regions.give(1, arena)
        regions.give(2, fast if self.file["scratch_fast_size"] else arena)
        code = model.mcud_npu_run(
            commands.ctypes.data_as(ctypes.c_void_p), len(commands), ctypes.byref(regions)
        )
        shapes = zip(self.file["output_shape"], self.file["output_elem_size"], strict=True)
        sizes = [int(np.prod(shape)) * int(size) for shape, size in shapes]
        offsets = self.file["output_offset"]
        return code, [arena[at : at + size].tobytes() for at, size in zip(offsets, sizes, strict=True)]


def model_sources() -> list[Path]:
    """The files of the functional model."""
    return sorted(it for it in SOURCES.glob("*.c") if "driver" not in it.stem)


def model_library(folder: Path, macs: int, *options: str) -> ctypes.CDLL:
    """The functional model of a unit with `macs` multipliers."""
    path = folder / f"model{macs}.so"
    flags = [
        "-std=c99",
        "-O2",
        "-shared",
        "-fPIC",
        "-Wall",
        "-Wextra",
        "-Wpedantic",
        "-Wconversion",
        "-Werror",
    ]
    checked = ["-fsanitize=undefined", "-fno-sanitize-recover=all", f"-DMCUD_NPU_MACS={macs}"]
    subprocess.run(["gcc", *flags, *checked, INCLUDE, *options, *model_sources(), "-o", path], check=True)
    return ctypes.CDLL(str(path))


def macs_of(accelerator: str) -> int:
    """The multipliers of an accelerator, which end its name."""
    return int(accelerator.rsplit("-", 1)[1])


def compiled(jobs: Sequence[tuple[str, Path]], folder: Path) -> list[VelaStream]:
    """The streams that Vela writes for accelerators and models; skips the test without Vela."""
    if find_spec("ethosu") is None:
        pytest.skip("ethos-u-vela is not installed")
    _run("vela", folder, *(argument for job in jobs for argument in job))
    return [VelaStream(folder / unit / it.parent.name / f"{it.stem}_vela.npz") for unit, it in jobs]


def micro_outputs(models: Sequence[Path], inputs: Sequence[Sequence[Array]]) -> list[Array]:
    """TFLite Micro's first outputs of one inference of each; skips the test without it."""
    if find_spec("tflite_micro") is None:
        pytest.skip("tflite-micro is not installed")
    for path, values in zip(models, inputs, strict=True):
        np.savez(path.with_name("inputs.npz"), *values)
    _run("micro", "0", *models)
    return [read_arrays(path.with_name("output.npz"))[0] for path in models]


def drawn_by_micro(model: Path, seed: int) -> tuple[list[Array], Array]:
    """Random inputs for a file, over their whole range, and TFLite Micro's first output of them."""
    inputs, output = (model.with_name(name) for name in ("inputs.npz", "output.npz"))
    inputs.unlink(missing_ok=True)
    _run("micro", str(seed), model)
    return read_arrays(inputs), read_arrays(output)[0]


def read_arrays(path: Path) -> list[Array]:
    """The arrays of a file of numpy, in order."""
    with np.load(path) as arrays:
        return [arrays[name] for name in arrays.files]


def _run(*arguments: str | Path) -> None:
    command = [sys.executable, __file__, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]


def _vela(folder: str, *jobs: str) -> None:
    from ethosu.vela.vela import main  # noqa: PLC0415

    fixed = ["--optimise", "Size", "--output-format", "raw"]
    for unit, model in zip(jobs[::2], jobs[1::2], strict=True):
        made = Path(folder) / unit / Path(model).parent.name
        with contextlib.redirect_stdout(io.StringIO()):
            main([model, "--accelerator-config", unit, *fixed, "--output-dir", str(made)])


def _micro(seed: str, *models: str) -> None:
    from tflite_micro.python.tflite_micro import runtime  # noqa: PLC0415

    random = np.random.default_rng(int(seed))
    for path in map(Path, models):
        interpreter = runtime.Interpreter.from_file(str(path), arena_size=1 << 22)
        if not (given := path.with_name("inputs.npz")).exists():
            np.savez(given, *_drawn(interpreter, random))
        for number, value in enumerate(read_arrays(given)):
            interpreter.set_input(value, number)
        interpreter.invoke()
        np.savez(path.with_name("output.npz"), interpreter.get_output(0))


def _drawn(interpreter: Any, random: np.random.Generator) -> Iterator[Array]:
    with contextlib.suppress(IndexError):  # the interpreter does not say how many it has
        for number in range(100):
            facts = interpreter.get_input_details(number)
            limits = np.iinfo(facts["dtype"])
            yield random.integers(limits.min, limits.max + 1, facts["shape"]).astype(facts["dtype"])


if __name__ == "__main__":
    {"vela": _vela, "micro": _micro}[sys.argv[1]](*sys.argv[2:])
