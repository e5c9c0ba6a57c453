"""Models on a board with an Ethos-U, as users run them: verified, estimated, and what is refused."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest
from models import quantised_convolutions

from mcudeploy.boards.catalogue import load_board
from mcudeploy.boards.emulated import executing
from mcudeploy.commands import commands as api
from mcudeploy.common.errors import ConfigError
from mcudeploy.device.target import Target
from mcudeploy.extensions.ethos_u.encoded_weights import encoder
from mcudeploy.extensions.ethos_u.unit_offers import has_encoder
from mcudeploy.ir.clock import ESTIMATE_UNIT, manner_of
from mcudeploy.ir.isa import Isa
from mcudeploy.planner.model.model import load_model
from mcudeploy.planner.plan_options import Options
from mcudeploy.toolchain.project import assemble
from tests import reports

BOARD = load_board("mps3-an547-u55")
KERNEL = "conv2d_s8_npu"
needs_qemu = pytest.mark.skipif(
    shutil.which("qemu-system-arm") is None, reason="qemu-system-arm is not installed"
)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return quantised_convolutions(tmp_path / "small.onnx")


@pytest.fixture
def vela() -> None:
    pytest.importorskip("ethosu", reason="Vela is not installed: pip install ethos-u-vela")


@needs_qemu
@pytest.mark.usefixtures("vela")
@pytest.mark.parametrize("options", [Options(split=False), Options(time_limit=0.5, max_overhead=200.0)])
def test_a_run_is_verified_and_its_time_is_estimated(model: Path, options: Options) -> None:
    report = reports.run_model(model, Target(BOARD, emulate=True), options, inputs=[], expected=[])
    assert report["verified"]
    assert KERNEL in {it["kernel"] for it in report["operators"]}
    assert report["latency"]["unit"] == ESTIMATE_UNIT and manner_of(ESTIMATE_UNIT) == "estimated"
    assert report["latency"]["milliseconds_by"] == "estimate"
    parts = sum(it["ticks"] for it in report["operators"])
    assert report["latency"]["value"] == pytest.approx(parts, abs=len(report["operators"]))


@pytest.mark.usefixtures("vela")
def test_the_unit_computes_what_it_can_and_check_says_what_it_cannot(model: Path) -> None:
    calls = load_model(model, isa=BOARD.isa).calls.values()
    assert [it.kernel for it in calls].count(KERNEL) == 2
    report = reports.check_model(model, BOARD, Options())
    left = [it for it in report["notes"] if it.startswith("on the core:")]
    assert len(left) == len({it.kernel for it in calls} - {KERNEL})


@pytest.mark.usefixtures("vela")
@pytest.mark.parametrize("timing", ["traffic", "cycles-model"])
def test_timings_without_the_unit_are_refused(model: Path, timing: str) -> None:
    with pytest.raises(ConfigError, match=f"--timing {timing} .* the ethos-u55 of {BOARD.name} is estimated"):
        api.measure_model(model, Target(BOARD, emulate=True), Options(split=False), timing=timing)  # type: ignore[arg-type]


@pytest.mark.usefixtures("vela")
def test_searches_by_what_the_core_executes_are_refused(model: Path) -> None:
    target = Target(BOARD, emulate=True)
    with pytest.raises(ConfigError, match=r"--objective instructions .* is estimated: leave it out"):
        api.measure_model(model, target, Options(objective="instructions"))
    with pytest.raises(ConfigError, match=r"tune .* is estimated: use `mcudeploy run`"):
        reports.tune_model(model, [target], Options(time_limit=0.5, split=False))


@pytest.mark.usefixtures("vela")
def test_constants_that_an_application_replaces_stay_on_the_core(model: Path) -> None:
    found = load_model(model, isa=BOARD.isa)
    name = next(name for name, call in found.calls.items() if call.kernel == KERNEL)
    assert KERNEL not in {it.kernel for it in found.with_replaceable([name]).variants[name]}


def test_without_vela_the_error_names_the_package(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ethosu", None)
    with pytest.raises(ConfigError, match="Vela, which is not installed: pip install ethos-u-vela"):
        load_model(model, isa=Isa.U55_256)


def test_a_vela_that_cannot_be_imported_counts_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ethosu", ModuleType("ethosu"))  # without its compiled encoder
    monkeypatch.delitem(sys.modules, "ethosu.mlw_codec", raising=False)
    assert not has_encoder()
    with pytest.raises(ConfigError, match=r"cannot be imported \(cannot import name 'mlw_codec'"):
        encoder()


def test_a_board_without_the_unit_is_emulated_without_it() -> None:
    assert [it.name for it in executing(load_board("mps3-an547"))] == ["mps3-an547"]
    assert [it.name for it in executing(BOARD)] == [BOARD.name]


def test_a_unit_is_beside_one_core_with_vectors_of_arm() -> None:
    facts = BOARD.model_dump(by_alias=True, exclude_unset=True)
    with pytest.raises(ValueError, match="one core with vectors"):
        type(BOARD).model_validate({**facts, "vectors": False})


@pytest.mark.parametrize("base", [0, 0x48102001, 0x48102800])
def test_registers_of_a_unit_begin_at_a_page(base: int) -> None:
    facts = BOARD.model_dump(by_alias=True, exclude_unset=True)
    with pytest.raises(ValueError, match=r"npu\.base\n"):
        type(BOARD).model_validate({**facts, "npu": {**facts["npu"], "base": base}})


@pytest.mark.parametrize("base", [None, 0x48102000])
def test_a_unit_of_a_chip_has_the_driver_and_others_the_model(base: int | None) -> None:
    assert BOARD.npu is not None
    board = BOARD.model_copy(update={"npu": BOARD.npu.model_copy(update={"base": base})})
    files = assemble(board, {}, [KERNEL], emulate=True).files
    assert ("src/hal/ethos_u/ethos_u_driver.c" in files) == (base is not None)
    assert ("src/hal/ethos_u/ethos_u_model.c" in files) == (base is None)
    assert ("#define MCUD_NPU_BASE 0x48102000u" in files["include/mcud_board.h"]) == (base is not None)
    assert "include/mcud_cache.h" in files and "include/mcud_npu.h" in files
