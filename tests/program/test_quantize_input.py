"""The generated quantiser of inputs rounds as to_device does, bit for bit."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from test_golden import SOURCE, planned

from mcudeploy.boards.catalogue import load_board
from mcudeploy.codegen.program import make_program
from mcudeploy.codegen.render import render_model
from mcudeploy.ir.graph import DType, GraphIO, Quantization, Tensor
from mcudeploy.ops.host_io import to_device
from mcudeploy.planner.tape.plan_view import PlanView
from tests.linked import STRICT

COUNTING = """#include <stdio.h>
#include "residual.h"
static float real[4096];
static int8_t values[4096];
int main(void)
{
    const uint32_t count = (uint32_t)fread(real, sizeof *real, 4096, stdin);
    printf("%u", (unsigned)residual_quantize_input_values(real, values, count));
    for (uint32_t i = 0; i < count; i++) {
        if (values[i] != residual_quantize_input(real[i])) {
            return 1;
        }
    }
    return 0;
}
"""

MAIN = """#include <stdio.h>
#include "residual.h"
int main(void)
{
    float value;
    while (fread(&value, sizeof value, 1, stdin) == 1) {
        putchar(residual_quantize_input(value) + 128);
    }
    return 0;
}
"""


@pytest.mark.parametrize("scale", [0.25, 0.5, 1.0, 1 / 255, 0.0173])
@pytest.mark.parametrize("zero_point", [-128, -3, 0, 4, 127])
def test_ties_and_their_neighbours(scale: float, zero_point: int, tmp_path: Path) -> None:
    meaning = Quantization(float(np.float32(scale)), zero_point)
    limits = np.array([1e38, -1e38, np.inf, -np.inf, 0.0, -0.0], np.float32)
    values = np.concatenate([_ties(meaning), limits])
    assert np.array_equal(_generated(meaning, values, ["-O1"], tmp_path), _wanted(meaning, values))


def test_ties_where_the_compiler_may_reorder(tmp_path: Path) -> None:
    meaning = Quantization(0.5, -3)  # its reciprocal is exact
    values = _ties(meaning)
    computed = _generated(meaning, values, ["-O2", "-ffast-math"], tmp_path)
    assert np.array_equal(computed, _wanted(meaning, values))


def test_values_are_clipped_from_half_a_step_outside_of_the_range(tmp_path: Path) -> None:
    meaning = Quantization(0.5, -3)
    steps = np.array([-125.5, -125.0, 0.0, 130.0, 130.5, -125.75, 130.75, 1e30, -np.inf, np.nan], np.float32)
    run = _run(meaning, 0.5 * steps, ["-O1"], tmp_path, main=COUNTING)
    assert int(run) == 5


def _ties(meaning: Quantization) -> NDArray[np.float32]:
    ties = (np.arange(-600, 600) / 2 * meaning.scale).astype(np.float32)
    below, above = (np.nextafter(ties, np.float32(end)) for end in (-1e30, 1e30))
    return np.concatenate([ties, below, above])


def _wanted(meaning: Quantization, values: NDArray[np.float32]) -> NDArray[np.generic]:
    io = GraphIO("t", "x", values.shape, "float32", np.arange(values.size, dtype=np.int32))
    return to_device(io, Tensor("t", (1, 1, values.size), DType.INT8, meaning), values).reshape(-1)


def _generated(
    meaning: Quantization, values: NDArray[np.float32], flags: list[str], folder: Path
) -> NDArray[np.int8]:
    output = _run(meaning, values, flags, folder)
    return (np.frombuffer(output, np.uint8).astype(np.int16) - 128).astype(np.int8)


def _run(
    meaning: Quantization, values: NDArray[np.float32], flags: list[str], folder: Path, main: str = MAIN
) -> bytes:
    program, plan = planned(8)
    graph = plan.graph
    name = graph.inputs[0].tensor
    tensors = dict(graph.tensors) | {name: replace(graph.tensors[name], quantization=meaning)}
    plan = replace(plan, graph=replace(graph, tensors=tensors))
    calls = {o.name: o.op.kernel(o, graph.input_tensors(o), graph.tensors[o.output]) for o in graph.operators}
    again = make_program(PlanView(plan, calls), program.prefix, load_board("mps2-an386"))
    header = render_model(again, plan, SOURCE)["residual.h"]
    (folder / "residual.h").write_text(header, "utf-8")
    (folder / "main.c").write_text(main, "utf-8")
    binary = folder / "main"
    subprocess.run(["gcc", *STRICT, *flags, "-I", folder, folder / "main.c", "-o", binary], check=True)
    return subprocess.run([binary], input=values.tobytes(), capture_output=True, check=True).stdout
