"""`mcudeploy.cost`: bytes, time and violation of models under search."""

from __future__ import annotations

import pickle
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from dataclasses import FrozenInstanceError
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import onnx
import pytest
from models import fully_connected

import mcudeploy as md
from mcudeploy.planner.tape.footprint import weights_bytes

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "vww" / "model.onnx"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fully_connected(tmp_path_factory.mktemp("cost") / "net.onnx", (8, 6, 4), quantised=False)


def test_the_figures_are_those_of_the_unsplit_plan(model: Path) -> None:
    for path in (model, EXAMPLE):
        cost, plan = md.cost(path, "stm32f405"), md.plan(path, "stm32f405", split=False)
        report, weights = plan.report, weights_bytes(plan.deployment.model.calls)
        assert cost.arena_bytes == report["arena_bytes"]
        assert cost.flash_bytes == weights + report["tables_bytes"]
        assert (cost.ticks, cost.unit) == (report["estimated_latency"]["value"], "cycles (model)")
        assert cost.milliseconds == pytest.approx(report["estimated_latency"]["milliseconds"], 1e-3)


def test_models_from_files_and_from_memory_cost_the_same(model: Path) -> None:
    sources = (str(model), model.read_bytes(), onnx.load(model))
    assert {md.cost(source, "microbit") for source in sources} == {md.cost(model, "microbit")}


def test_a_model_fits_if_and_only_if_nothing_is_violated() -> None:
    free = md.cost(EXAMPLE, "stm32f405")
    assert free.fits and free.violation == 0
    used = {"arena": free.arena_bytes, "ram": free.ram_bytes, "flash": free.flash_bytes}
    used["latency_ms"] = free.milliseconds
    for name, value in used.items():
        assert md.cost(EXAMPLE, "stm32f405", {name: value}) == free
        assert md.cost(EXAMPLE, "stm32f405", {name: value / 2}).violation == pytest.approx(1)
    several = [md.cost(EXAMPLE, "stm32f405", {"ram": ram, "flash": "16k"}) for ram in ("40k", "30k", 1)]
    assert all(one.violation < other.violation for one, other in pairwise(several))
    assert not any(it.fits for it in several)
    assert md.cost(EXAMPLE, "stm32f405", {"ram": "58k"}).violation == 0


def test_the_memory_of_a_board_counts_without_a_budget() -> None:
    small, large = md.cost(EXAMPLE, "microbit"), md.cost(EXAMPLE, "rp2040")
    assert not small.fits and 1 < small.violation < 10 and large.fits
    assert md.cost(EXAMPLE, "microbit", {"arena": small.arena_bytes}).violation == small.violation
    weights = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[1,1000] x) => (float[1,200] y) { y = MatMul(x, w) }'
    )
    weights.graph.initializer.append(onnx.helper.make_tensor("w", 1, [1000, 200], [0.5] * 200_000))
    assert md.cost(weights, "microbit").violation == pytest.approx(800_000 / 2**18 - 1, rel=0.01)


def test_costs_and_the_function_are_values(model: Path) -> None:
    cost = md.cost(model, "host")
    assert cost.milliseconds is None and pickle.loads(pickle.dumps(cost)) == cost
    with pytest.raises(FrozenInstanceError):
        cost.fits = False  # type: ignore[misc]
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert pool.submit(md.cost, model.read_bytes(), "host").result() == cost


def test_no_file_is_left(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCUDEPLOY_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    md.cost(model.read_bytes(), "stm32f405")
    with pytest.raises(md.ModelError):
        md.cost(b"no model", "stm32f405")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("wrong", "error", "text"),
    [
        ({"model": b"no model"}, md.ModelError, "^the model is not an ONNX file"),
        ({"model": b""}, md.ModelError, "^the model is empty"),
        ({"model": "."}, md.ModelError, "is not a file"),
        ({"model": 3}, md.UsageError, "not int"),
        ({"board": "nonsuch"}, md.BoardNotFoundError, "no board 'nonsuch'"),
        ({"budget": {"ram": -1}}, md.UsageError, "greater than 0"),
        ({"budget": {"flash": "-3k"}}, md.UsageError, "'-3k' is not a size"),
        ({"budget": {"latency_ms": float("inf")}}, md.UsageError, "finite"),
        ({"budget": {"latency_ms": float("nan")}}, md.UsageError, "finite"),
        ({"budget": {"ram": float("inf")}}, md.UsageError, "finite"),
        ({"budget": {"arena": 0}}, md.UsageError, "greater than 0"),
        ({"budget": {"ram": True}}, md.UsageError, "not a bool"),
        ({"budget": []}, md.UsageError, "must be a mapping"),
        ({"ram_limit": "20k"}, TypeError, "no option ram_limit; it has budget, sample, shapes"),
        ({"time_limit": 1}, TypeError, "no option time_limit"),
        ({"budget": {"rom": 1}}, md.UsageError, "any of arena, ram, flash, latency_ms"),
        ({"board": "host", "budget": {"latency_ms": 1}}, md.UsageError, "needs a board"),
        ({"sample": (1,)}, md.UsageError, "is for torch modules"),
    ],
)
def test_wrong_arguments(model: Path, wrong: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        md.cost(**{"model": model, "board": "stm32f405", **wrong})


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "huge.onnx").open("wb") as stream:
        stream.truncate(2**31)
    with pytest.raises(md.ModelError, match="2048 MiB; the limit is"):
        md.cost(tmp_path / "huge.onnx", "stm32f405")


class Module:
    """Stands in for `torch.nn.Module`; torch is not installed for tests."""

    training = True

    def eval(self) -> Module:
        self.training = False
        return self


def test_a_torch_module_is_exported(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def export(module: Module, sample: tuple[Any, ...], **_: Any) -> Any:
        assert not module.training
        if sample == ("wrong",):
            raise RuntimeError("shapes differ\nand more")
        if sample == ("other",):
            return None
        return SimpleNamespace(model_proto=onnx.load(model))

    fake = SimpleNamespace(nn=SimpleNamespace(Module=Module), onnx=SimpleNamespace(export=export))
    monkeypatch.setitem(sys.modules, "torch", fake)
    module = Module()
    assert md.cost(module, "host", sample=("x",)) == md.cost(model, "host") and module.training
    with pytest.raises(md.ModelError, match=r"^torch cannot export Module: RuntimeError: shapes differ$"):
        md.cost(module, "host", sample=("wrong",))
    with pytest.raises(md.ModelError, match=r"^torch cannot export Module: AttributeError"):
        md.cost(module, "host", sample=("other",))
    with pytest.raises(md.UsageError, match="add sample="):
        md.cost(module, "host")
