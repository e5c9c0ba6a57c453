"""Classifiers that learn from examples on the device: as their reference, on this computer and on a board."""

from __future__ import annotations

import subprocess
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from models import fully_connected

from mcudeploy.boards.board import load_board
from mcudeploy.codegen.program import Program
from mcudeploy.codegen.render import render_head_check
from mcudeploy.commands import heads
from mcudeploy.commands.adapt import build_adaptable
from mcudeploy.commands.commands import plan_model
from mcudeploy.commands.heads import Prototypes, head_bytes, head_fault, require_head, with_head
from mcudeploy.common.errors import FitError, OutputsDifferError, UsageError
from mcudeploy.device.transport import open_transport
from mcudeploy.execution.deployment import Deployment
from mcudeploy.planner.plan_options import Options
from mcudeploy.toolchain import Emulator, build_firmware

M4 = load_board("mps2-an386")
QUICK = Options(time_limit=0.5, name="m")
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wcast-align=strict", "-Werror"]
CHECKED = ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


@pytest.fixture
def dense(tmp_path: Path) -> Path:
    return fully_connected(tmp_path / "dense.onnx", (24, 16, 8, 4), quantised=True)


@pytest.fixture
def made(dense: Path) -> tuple[Deployment, Program]:
    found = plan_model(dense, M4, QUICK)
    return found, with_head(found, found.program, 5)


def test_prototypes_find_the_nearest_mean() -> None:
    rng = np.random.default_rng(1)
    centres = rng.integers(-90, 90, (6, 32))
    near = lambda label: (centres[label] + rng.integers(-30, 31, 32)).astype(np.int8)  # noqa: E731
    head = Prototypes(((),) * 6)
    assert head.classify(near(0)) == 6
    for label in (0, 1, 3, 4, 5):
        for _ in range(5):
            head = head.enrol(near(label), label)
    assert [head.classify(near(label)) for label in (0, 1, 3, 4, 5)] == [0, 1, 3, 4, 5]
    assert head.classify(near(2)) != 2


def test_an_emulated_board_learns_what_the_reference_learns(made: tuple[Deployment, Program]) -> None:
    files = render_head_check(made[1], made[0].plan, made[0].source)
    firmware = build_firmware(M4, files, made[1].sources, emulate=True, measurer=False)
    with Emulator(M4, firmware.elf) as emulator, closing(open_transport(emulator.url)) as line:
        assert head_fault(*made, line, seed=4) == ""


def test_a_head_that_differs_from_the_reference_is_not_written(
    made: tuple[Deployment, Program], monkeypatch: pytest.MonkeyPatch
) -> None:
    require_head(*made, seed=2)
    distance = heads._distance
    monkeypatch.setattr(heads, "_distance", lambda features, examples: -distance(features, examples))
    with pytest.raises(OutputsDifferError, match=r"run \d+ returns \d+, the reference \d+"):
        require_head(*made, seed=2)


_MAIN = """
#include <stdlib.h>
#include <string.h>

#include "m_head.h"

static uint8_t slots[2][32 + M_HEAD_BYTES];

static uint32_t get(void *user, uint32_t slot, uint32_t offset, void *to, uint32_t bytes)
{
    (void)user;
    memcpy(to, slots[slot] + offset, bytes);
    return 0;
}

static uint32_t put(void *user, uint32_t slot, uint32_t offset, const void *from, uint32_t bytes)
{
    (void)user;
    memcpy(slots[slot] + offset, from, bytes);
    return 0;
}

#define CHECK(what) do { if (!(what)) { return __LINE__ % 250; } } while (0)

int main(void)
{
    const mcud_parameter_storage storage = {get, put, NULL, NULL};
    int8_t one[M_INPUT_COUNT];
    int8_t two[M_INPUT_COUNT];
    memset(one, 40, sizeof one);
    memset(two, -40, sizeof two);
    CHECK(m_classify(one) == M_CLASSES);
    CHECK(m_load_head(&storage) == MCUD_PARAMETERS_ABSENT);
    CHECK(m_enrol(one, M_CLASSES) == MCUD_ENROL_UNKNOWN && m_examples(M_CLASSES) == 0);
    for (uint32_t i = 0; i < MCUD_ENROL_MOST; i++) {
        CHECK(m_enrol(one, 3) == MCUD_ENROLLED);
    }
    CHECK(m_enrol(one, 3) == MCUD_ENROL_FULL && m_examples(3) == MCUD_ENROL_MOST);
    CHECK(m_enrol(two, 1) == MCUD_ENROLLED);
    CHECK(m_classify(one) == 3 && m_classify(two) == 1);
    CHECK(m_save_head(&storage) == MCUD_PARAMETERS_OK);
    m_reset_head();
    CHECK(m_examples(3) == 0 && m_classify(one) == M_CLASSES);
    CHECK(m_enrol(one, 0) == MCUD_ENROLLED && m_classify(two) == 0);
    CHECK(m_load_head(&storage) == MCUD_PARAMETERS_OK);
    CHECK(m_examples(0) == 0 && m_examples(3) == MCUD_ENROL_MOST);
    CHECK(m_classify(one) == 3 && m_classify(two) == 1);
    slots[0][40] ^= 1;
    m_reset_head();
    CHECK(m_load_head(&storage) == MCUD_PARAMETERS_CORRUPT && m_examples(3) == 0);
    return 0;
}
"""


@pytest.mark.parametrize("features", ["conv_1", "stored_1"], ids=["operator", "tensor"])
def test_the_functions_of_a_library(features: str, dense: Path, tmp_path: Path) -> None:
    out = tmp_path / "lib"
    report = build_adaptable(dense, M4, QUICK, out, features=features, classes=5, library_only=True)
    size = head_bytes(5, 8)
    assert report["head"] == {"kind": "prototypes", "classes": 5, "features": 8, "bytes": size}
    assert report["verified"] and size == 96  # 80, in whole blocks of 32
    (tmp_path / "main.c").write_text(_MAIN)
    program = tmp_path / "program"
    sources = [*sorted((out / "src").glob("*.c")), tmp_path / "main.c"]
    include = [f"-I{out / name}" for name in ("include", "src")]
    subprocess.run(["gcc", *STRICT, *CHECKED, *include, *sources, "-lm", "-o", program], check=True)
    assert subprocess.run([program], check=False).returncode == 0
    head = out / "src" / "m_head.c"
    arm = ["arm-none-eabi-gcc", *STRICT, "-mcpu=cortex-m4", "-mthumb", "-Os", *include, "-c", head, "-o"]
    subprocess.run([*arm, tmp_path / "head.o"], check=True)
    sizes = subprocess.run(
        ["arm-none-eabi-size", tmp_path / "head.o"], check=True, capture_output=True, text=True
    )
    _, data, bss, *_ = map(int, sizes.stdout.splitlines()[1].split()[:4])
    assert data == 0 and bss == size


def test_a_head_of_few_features_counts_its_examples(tmp_path: Path) -> None:
    narrow = fully_connected(tmp_path / "narrow.onnx", (24, 3, 4), quantised=True)
    report = build_adaptable(narrow, M4, QUICK, tmp_path / "lib", features="stored_0", classes=5)
    assert report["verified"] and report["head"]["features"] == 3
    assert report["head"]["bytes"] == head_bytes(5, 3) == head_bytes(5, 7) == 96


def test_models_and_names_that_heads_do_not_take(dense: Path, tmp_path: Path) -> None:
    def build(path: Path, features: str = "conv_1", classes: int = 4, options: Options = QUICK) -> None:
        build_adaptable(path, M4, options, tmp_path / "lib", features=features, classes=classes)

    with pytest.raises(UsageError, match=r"has no such operator or tensor; its last tensors are .*stored_1"):
        build(dense, "conv_9")
    floats = fully_connected(tmp_path / "floats.onnx", (8, 6, 4), quantised=False)
    with pytest.raises(UsageError, match=r"takes up to 4096 int8 features, and .* of float32"):
        build(floats, "relu_0")
    with pytest.raises(UsageError, match="leave out --stream-input"):
        build(dense, options=replace(QUICK, stream_input=True))
    with pytest.raises(FitError, match=r"the head needs [\d,]+ bytes"):
        made = plan_model(dense, load_board("microbit"), QUICK)
        with_head(made, made.program, 5000)
    assert not (tmp_path / "lib").exists()
