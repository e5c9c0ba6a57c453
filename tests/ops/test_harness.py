"""The harness itself: it passes a right kernel and catches each kind of wrong one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from bench import Machine, build_bench
from harness import check_graph, graph_of, run_graph

from mcudeploy.common.errors import ProtocolError
from mcudeploy.ir.graph import DType, Graph, Operator, Quantization, Shape, Tensor
from mcudeploy.ir.opdef import Axis, Index, KernelCall, LoopNest
from mcudeploy.ops.conv.conv import Conv2d


def _conv_graph() -> tuple[Graph, dict[str, np.ndarray]]:
    rng = np.random.default_rng(1)
    conv = Conv2d(out_channels=5, kernel_shape=(3, 3), stride=(2, 1), pads=(1, 1, 0, 1))
    out = conv.loops(((9, 7, 3),)).output_shape()
    x = Tensor("x", (9, 7, 3), DType.INT8, Quantization(0.05, 3))
    y = Tensor("y", out, DType.INT8, Quantization(0.4, -5))
    constants = {
        "weights": rng.integers(-127, 128, (5, 3, 3, 3)).astype(np.int8),
        "bias": rng.integers(-500, 500, 5).astype(np.int32),
        "weight_scale": rng.uniform(0.01, 0.02, 5).astype(np.float32),
    }
    return graph_of(conv, x, y, constants=constants), {
        "x": rng.integers(-128, 128, (9, 7, 3)).astype(np.int8)
    }


def test_convolution_in_pieces() -> None:
    graph, values = _conv_graph()
    differences = check_graph(graph, values)
    again = run_graph(graph, values, lambda operator, rows: 2, seed=7)
    assert differences["y"].tobytes() == again["y"].tobytes()
    assert len(np.unique(differences["y"])) > 10


_COPY = """
#include "mcud.h"
void mcud_{name}(const mcud_op *op, int32_t first_row, int32_t end_row)
{{
    const uint32_t count = op->in[0]->row_bytes;
    for (int32_t row = first_row; row < end_row; row++) {{
        const uint8_t *x = mcud_row(op->in[0], row);
        uint8_t *y = mcud_row(op->out, row);
        uint8_t *scratch = mcud_row(op->scratch, first_row);
        for (uint32_t i = 0; i < count; i++) {{
            y[i] = x[i];
        }}
        scratch[7] = 1;
        {fault}
    }}
}}
"""
_FAULTS = {
    "copy": ("", None),
    "write_behind": ("y[count] = 1;", ProtocolError),
    "write_before": ("y[-1] = 1;", (ProtocolError, AssertionError)),
    "write_input": ("((uint8_t *)mcud_row(op->in[0], row))[0] ^= 1;", AssertionError),
    "write_scratch": ("scratch[8] = 1;", (ProtocolError, AssertionError)),
    "read_next": ("if (row + 1 < (int32_t)op->rows) y[0] = *(uint8_t *)mcud_row(op->in[0], row + 1);",
                  (ProtocolError, AssertionError)),
    "by_piece": ("y[0] = (uint8_t)first_row;", AssertionError),
    "overflow": ("int32_t sum = INT32_MAX; sum += x[0]; y[1] = (uint8_t)(sum >> 3);", ProtocolError),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Copy:
    kernel_name: str
    kind: ClassVar[str] = "Copy"
    is_view: ClassVar[bool] = False
    accumulates: ClassVar[bool] = False

    def loops(self, inputs: tuple[Shape, ...]) -> LoopNest:
        ((rows, cols, channels),) = inputs
        access = (Index.of(row=1), Index.of(col=1), Index.of(ch=1))
        return LoopNest((Axis("row", rows), Axis("col", cols), Axis("ch", channels)), (access,), access)

    def kernel(self, operator: Operator, inputs: tuple[Tensor, ...], output: Tensor) -> KernelCall:
        return KernelCall(self.kernel_name, {}, scratch_bytes=8)

    def overwrites(self, inputs: tuple[Tensor, ...], output: Tensor) -> tuple[int, ...]:
        return ()


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    folder = tmp_path_factory.mktemp("faulty")
    for name, (fault, _) in _FAULTS.items():
        (folder / f"{name}.c").write_text(_COPY.format(name=name, fault=fault))
    (folder / "broken.c").write_text("void mcud_broken(const mcud_op *op, int32_t a, int32_t b)\n{ oops }\n")
    machine = Machine(build_bench(1 << 20, kernels=folder))
    yield machine
    machine.stop()


def _copy_graph(kernel: str) -> tuple[Graph, dict[str, np.ndarray]]:
    x = Tensor("x", (6, 2, 8), DType.INT8)
    y = Tensor("y", (6, 2, 8), DType.INT8)
    return graph_of(_Copy(kernel), x, y), {"x": np.arange(-48, 48, dtype=np.int8).reshape(x.shape)}


@pytest.mark.parametrize("name", _FAULTS)
def test_faults_are_caught(name: str, faulty: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.machine", lambda: faulty)
    graph, values = _copy_graph(name)
    expected = _FAULTS[name][1]
    if expected is None:
        assert check_graph(graph, values)["y"].tobytes() == values["x"].tobytes()
        return
    with pytest.raises(expected) as caught:
        check_graph(graph, values)
    if caught.type is ProtocolError:
        assert "use-after-poison" in str(caught.value) or "runtime error" in str(caught.value)


def test_a_kernel_that_does_not_compile_names_why(faulty: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.machine", lambda: faulty)
    graph, values = _copy_graph("broken")
    with pytest.raises(AssertionError, match="unknown type name"):
        check_graph(graph, values)
