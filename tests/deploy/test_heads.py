"""Classifiers that learn from examples on the device: as their reference, on this computer and on a board."""

from __future__ import annotations

import subprocess
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from models import fully_connected

from mcudeploy.boards.catalogue import load_board
from mcudeploy.codegen.program import Program
from mcudeploy.codegen.render import render_head_check
from mcudeploy.codegen.texts import FeatureStatistics
from mcudeploy.commands.commands import plan_model
from mcudeploy.common.errors import FitError, OutputsDifferError, UsageError
from mcudeploy.device.target import Target
from mcudeploy.device.transport import open_transport
from mcudeploy.execution.deployment import Deployment
from mcudeploy.extensions.evaluation.dataset import DataRequest
from mcudeploy.extensions.heads import head_kinds, head_statistics
from mcudeploy.extensions.heads.adapt import AdaptRequest, build_adaptable, features_model
from mcudeploy.extensions.heads.adapt_command import build_head
from mcudeploy.extensions.heads.head_kinds import HEADS, HeadSize, Prototypes, Ridge
from mcudeploy.extensions.heads.heads import HeadPart, head_fault, require_head, with_head
from mcudeploy.planner.model.model import read_model
from mcudeploy.planner.plan_options import Options
from mcudeploy.toolchain import Emulator, build_firmware
from mcudeploy.toolchain.stack import stack_bound
from tests.linked import SANITIZED, STRICT, linked

M4 = load_board("mps2-an386")
QUICK = Options(time_limit=0.5, name="m")


@pytest.fixture
def dense(tmp_path: Path) -> Path:
    return fully_connected(tmp_path / "dense.onnx", (24, 16, 8, 4), quantised=True)


PROTOTYPES, RIDGE = HeadPart("prototypes", 5), HeadPart("ridge", 5, 20)
MOVED = replace(PROTOTYPES, statistics=FeatureStatistics((3, -70, 10, 0.5), (40, 9, 0, 21)))


@pytest.fixture
def deployment(dense: Path) -> Deployment:
    return plan_model(dense, M4, QUICK)


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


def head_fault_on_board(deployment: Deployment, program: Program, seed: int) -> str:
    """The first difference between an emulated board and the reference; empty if there is none."""
    files = render_head_check(program, deployment.plan, deployment.source)
    firmware = build_firmware(M4, files, program.sources, emulate=True, measurer=False)
    with Emulator(M4, firmware.elf) as emulator, closing(open_transport(emulator.url)) as line:
        return head_fault(deployment, program, line, seed)


@pytest.mark.parametrize("head", [PROTOTYPES, RIDGE, MOVED], ids=["prototypes", "ridge", "statistics"])
def test_an_emulated_board_learns_what_the_reference_learns(head: HeadPart, deployment: Deployment) -> None:
    program = with_head(deployment, deployment.program, head)
    assert head_fault_on_board(deployment, program, seed=4) == ""


@pytest.mark.parametrize("seed", [0, 1])
def test_the_board_solves_for_twelve_classes_of_64_features(seed: int, tmp_path: Path) -> None:
    wide = plan_model(fully_connected(tmp_path / "wide.onnx", (24, 64), quantised=True), M4, QUICK)
    program = with_head(wide, wide.program, HeadPart("ridge", 12))
    assert program.head is not None and program.head.size_bytes == 5600
    require_head(wide, program, seed)
    assert head_fault_on_board(wide, program, seed) == ""


def test_a_head_that_differs_from_the_reference_is_not_written(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    prototypes = with_head(deployment, deployment.program, PROTOTYPES)
    ridge = with_head(deployment, deployment.program, RIDGE)
    require_head(deployment, prototypes, seed=2)
    require_head(deployment, ridge, seed=2)
    monkeypatch.setattr(head_statistics, "LEAST_INPUTS", 15)
    with pytest.raises(OutputsDifferError, match=r"run 14 moves feature \d to -?\d+, the reference to"):
        require_head(deployment, with_head(deployment, deployment.program, MOVED), seed=2)
    distance = head_kinds._squared_distance
    monkeypatch.setattr(head_kinds, "_squared_distance", lambda features, one: -distance(features, one))
    with pytest.raises(OutputsDifferError, match=r"run \d+ returns the label \d+, which is not"):
        require_head(deployment, prototypes, seed=2)
    monkeypatch.setattr(head_kinds, "_RIDGE_PENALTY", 0.11)
    with pytest.raises(OutputsDifferError, match=r"run \d+ has scores .*, the reference"):
        require_head(deployment, ridge, seed=2)
    monkeypatch.setattr(Ridge, "has_room", lambda self, label: True)
    with pytest.raises(OutputsDifferError, match=r"run \d+ returns 2 for an example, not 0"):
        require_head(deployment, with_head(deployment, deployment.program, HeadPart("ridge", 5, 4)), seed=2)


def test_ridge_separates_what_means_do_not() -> None:
    rng = np.random.default_rng(2)
    noise = rng.normal(size=(400, 16)) @ np.diag([60, *[4] * 15])
    labels = np.arange(400) % 2
    features = np.clip(noise + np.outer(labels, [0, *[6] * 15]), -128, 127).astype(np.int8)
    means, ridge = Prototypes(((), ())), Ridge(HeadSize(2, 16, 40))
    for each, label in zip(features[:40], labels, strict=False):
        means, ridge = means.enrol(each, int(label)), ridge.enrol(each, int(label))
    assert not ridge.has_room(0)
    rights = [
        (means.is_label(each, label), ridge.scores(each).argmax() == label)
        for each, label in zip(features[40:], labels[40:].tolist(), strict=True)
    ]
    by_means, by_ridge = np.mean(rights, axis=0)
    assert by_ridge > 0.99 and by_means < 0.9


@pytest.mark.parametrize("same", [False, True])
def test_ridge_is_least_squares_with_a_penalty(same: bool) -> None:
    rng = np.random.default_rng(5)
    examples = rng.integers(-128, 128, (1 if same else 9, 4)).astype(np.int8).repeat(9 if same else 1, axis=0)
    labels = [0, 1, 0, 3, 3, 1, 0, 1, 3]
    head = Ridge(HeadSize(4, 4, 9))
    assert head.scores(examples[0]).tolist() == [-np.inf] * 4
    for each, label in zip(examples, labels, strict=True):
        head = head.enrol(each, label)
    centred = examples - examples.mean(axis=0)
    penalty = 0.1 * np.mean(np.sum(centred**2, axis=1))
    query = rng.integers(-128, 128, 4).astype(np.int8)
    scores = head.scores(query)
    assert scores[2] == -np.inf
    for label in (0, 1, 3):
        target = np.array([float(it == label) for it in labels])
        wide = np.vstack([centred, np.sqrt(penalty) * np.eye(4)])
        weights = np.linalg.lstsq(wide, np.append(target - target.mean(), np.zeros(4)), rcond=None)[0]
        assert np.isclose(scores[label], (query - examples.mean(axis=0)) @ weights + target.mean())


def test_every_head_can_be_named() -> None:
    (option,) = (it for it in build_head.params if it.name == "head")
    assert option.to_info_dict()["type"]["choices"] == tuple(HEADS)
    with pytest.raises(UsageError, match="--head prototypes stores no examples: leave out --examples"):
        HeadPart("prototypes", 5, 10)
    with pytest.raises(UsageError, match="--head ridge stores at most 65535 examples, not 70000"):
        HeadPart("ridge", 5, 70_000)


_SLOTS = """
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
"""
"""The start of a program that has two slots for the parameters of a head."""
_MAIN = (
    "#include <math.h>"
    + _SLOTS
    + """
#include "mcud_parameter_table.h"

#if OF_EQUAL == 2
enum { FIRST_COUNT = M_CLASSES * (4 + 4 + 2 * 8) }; /* of ridge, after steps, biases and weights */

static void state_crc(uint8_t *blob)
{
    const uint32_t crc = mcud_parameters_crc(mcud_parameters_crc(0, blob, 28), blob + 32, M_HEAD_BYTES);
    for (uint32_t i = 0; i < 4; i++) {
        blob[28 + i] = (uint8_t)(crc >> (8 * i));
    }
}
#endif

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
    CHECK(m_enrol(two, 1) == MCUD_ENROLLED);
    for (uint32_t i = 0; i < MOST; i++) {
        CHECK(m_enrol(one, 3) == MCUD_ENROLLED);
    }
    CHECK(m_enrol(one, 3) == MCUD_ENROL_FULL && m_examples(3) == MOST && m_examples(1) == 1);
    CHECK(m_classify(one) == 3 && m_score(3) > m_score(1) && m_score(0) == -INFINITY);
    CHECK(m_classify(two) == 1 && m_score(1) > m_score(3) && m_score(M_CLASSES) == -INFINITY);
    CHECK(m_save_head(&storage) == MCUD_PARAMETERS_OK);
    m_reset_head();
    CHECK(m_examples(3) == 0 && m_classify(one) == M_CLASSES);
    CHECK(m_enrol(one, 0) == MCUD_ENROLLED && m_classify(two) == 0);
    for (uint32_t i = 0; i < 2; i++) {
        CHECK(m_enrol(one, 2) == MCUD_ENROLLED);
    }
    CHECK(m_classify(one) == OF_EQUAL);
    CHECK(m_score(2) - m_score(0) == (OF_EQUAL == 2 ? 2.0f / 3 - 1.0f / 3 : 0));
    CHECK(m_load_head(&storage) == MCUD_PARAMETERS_OK);
    CHECK(m_examples(0) == 0 && m_examples(3) == MOST);
    CHECK(m_classify(one) == 3 && m_classify(two) == 1);
#if OF_EQUAL == 2
    for (uint32_t at = FIRST_COUNT; at < FIRST_COUNT + 6; at += 2) { /* the counts, then a label */
        slots[0][32 + at] ^= 0x20;
        state_crc(slots[0]);
        CHECK(m_load_head(&storage) == MCUD_PARAMETERS_INVALID && m_examples(3) == MOST);
        slots[0][32 + at] ^= 0x20;
    }
    state_crc(slots[0]);
    CHECK(m_load_head(&storage) == MCUD_PARAMETERS_OK);
#endif
    slots[0][40] ^= 1;
    m_reset_head();
    CHECK(m_load_head(&storage) == MCUD_PARAMETERS_CORRUPT && m_examples(3) == 0);
    return 0;
}
"""
)


@pytest.mark.parametrize(
    ("features", "head", "values", "size", "scratch"),
    [
        ("conv_1", PROTOTYPES, ("-DMOST=127", "-DOF_EQUAL=0"), 96, 0),
        ("stored_1", RIDGE, ("-DMOST=19", "-DOF_EQUAL=2"), 352, 4 * (4 * 8 + 2 * 20 + 10)),
    ],
    ids=["prototypes", "ridge"],
)
def test_the_functions_of_a_library(
    features: str,
    head: HeadPart,
    values: tuple[str, str],
    size: int,
    scratch: int,
    dense: Path,
    deployment: Deployment,
    tmp_path: Path,
) -> None:
    """A table is whole blocks of 32 bytes. The arena of this model has no room for the scratch of `ridge`."""
    out = tmp_path / "lib"
    report = build_adaptable(dense, M4, QUICK, AdaptRequest(out, features, head))
    facts = {"kind": head.name, "classes": 5, "features": 8, "bytes": size + scratch}
    assert report["head"] == facts | {"examples": head.capacity or None, "statistics": False}
    assert report["verified"]
    stack = report["library_stack_bound_bytes"]
    assert f"#define M_STACK_BYTES {stack}u" in (out / "include" / "m.h").read_text()
    alone = stack_bound(deployment.build(Target(M4)))
    assert alone is not None and stack > alone.library_bytes  # it runs the model, and solves for weights
    program = linked(out, _MAIN, *SANITIZED, *values)
    assert subprocess.run([program], check=False).returncode == 0
    head = tmp_path / "head.o"
    arm = ["arm-none-eabi-gcc", *STRICT, "-mcpu=cortex-m4", "-mthumb", "-Os", f"-I{out / 'include'}", "-c"]
    subprocess.run([*arm, out / "src" / "m_head.c", "-o", head], check=True)
    sizes = subprocess.run(["arm-none-eabi-size", head], check=True, capture_output=True, text=True)
    _, data, bss, *_ = map(int, sizes.stdout.splitlines()[1].split()[:4])
    assert data == 0 and bss == size + scratch


_OBSERVING = (
    _SLOTS
    + """
static uint32_t is_moved(void)
{
    return memcmp(m_features(), m_output(), 3) != 0;
}

int main(void)
{
    const mcud_parameter_storage storage = {get, put, NULL, NULL};
    int8_t input[M_INPUT_COUNT];
    memset(input, 40, sizeof input);
    CHECK(m_enrol(input, 2) == MCUD_ENROLLED && !is_moved());
    for (uint32_t i = 1; i < MCUD_STATISTICS_LEAST; i++) {
        m_observe(input);
        CHECK(m_classify(input) == 2 && !is_moved() && m_observed() == i);
    }
    m_observe(input);
    CHECK(m_classify(input) == 2 && is_moved() && m_score(2) < 0);
    CHECK(m_save_head(&storage) == MCUD_PARAMETERS_OK);
    m_reset_statistics();
    CHECK(m_observed() == 0 && m_examples(2) == 1);
    CHECK(m_classify(input) == 2 && !is_moved() && m_score(2) == 0);
    CHECK(m_load_head(&storage) == MCUD_PARAMETERS_OK && m_observed() == MCUD_STATISTICS_LEAST);
    CHECK(m_classify(input) == 2 && is_moved());
    m_reset_head();
    CHECK(m_observed() == 0 && m_classify(input) == M_CLASSES);
    return 0;
}
"""
)


def test_a_head_of_few_features_and_their_statistics(tmp_path: Path) -> None:
    narrow = fully_connected(tmp_path / "narrow.onnx", (24, 3, 4), quantised=True)
    inputs = np.random.default_rng(0).integers(-128, 128, (40, 1, 24)).astype(np.int8)
    np.save(tmp_path / "training.npy", inputs)
    np.save(tmp_path / "few.npy", inputs[:15])

    def build(name: str) -> dict[str, Any]:
        data = DataRequest(tmp_path / name)
        request = AdaptRequest(tmp_path / "lib", "stored_0", PROTOTYPES, statistics=data)
        return build_adaptable(narrow, M4, QUICK, request)

    with pytest.raises(UsageError, match="has 15 samples; --statistics needs at least 16"):
        build("few.npy")
    report = build("training.npy")
    facts = {"kind": "prototypes", "classes": 5, "features": 3, "examples": None, "statistics": True}
    assert report["verified"] and report["head"] == facts | {"bytes": 128 + 3}
    program = linked(tmp_path / "lib", _OBSERVING, *SANITIZED)
    assert subprocess.run([program], check=False).returncode == 0


def test_a_node_of_the_file_names_its_last_operator(dense: Path, tmp_path: Path) -> None:
    (operator,) = (it for it in read_model(dense, QUICK, isa=M4.isa).graph.operators if it.name == "conv_1")
    models = []
    for number, name in enumerate(("conv_1", operator.onnx_nodes[-1])):
        (tmp_path / str(number)).mkdir()
        models.append(features_model(dense, M4, QUICK, name, tmp_path / str(number)).read_bytes())
    assert models[0] == models[1]


def test_models_and_names_that_heads_do_not_take(
    dense: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def build(path: Path, features: str = "conv_1", options: Options = QUICK) -> None:
        build_adaptable(path, M4, options, AdaptRequest(tmp_path / "lib", features, RIDGE))

    with pytest.raises(UsageError, match=r"has no such operator or tensor; its last tensors are .*stored_1"):
        build(dense, "conv_9")
    floats = fully_connected(tmp_path / "floats.onnx", (8, 6, 4), quantised=False)
    with (
        monkeypatch.context() as patched,
        pytest.raises(UsageError, match=r"takes up to 4096 int8 features, and .* of float32"),
    ):
        patched.setattr("mcudeploy.commands.build.plan_model", None)  # refused before planning
        build(floats, "relu_0")
    with pytest.raises(UsageError, match="leave out --stream-input"):
        build(dense, options=replace(QUICK, stream_input=True))
    with pytest.raises(FitError, match=r"the head needs [\d,]+ bytes"):
        deployment = plan_model(dense, load_board("microbit"), QUICK)
        with_head(deployment, deployment.program, HeadPart("ridge", 5, 5000))
    assert not (tmp_path / "lib").exists()
