"""mcud_ridge.c on examples that are hard to solve for, against its reference in float64."""

from __future__ import annotations

import ctypes
import subprocess

import numpy as np
import pytest

from mcudeploy.common.resources import resource_dir
from mcudeploy.extensions.heads.head_kinds import HEADS, HeadSize, Ridge

FOLDER = resource_dir("firmware") / "heads"
CHECKED = ["-fsanitize=undefined,float-divide-by-zero", "-fsanitize-undefined-trap-on-error", "-Werror"]


class Head(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("steps", "biases", "weights", "counts", "labels", "examples")),
        *((name, ctypes.c_uint32) for name in ("classes", "features", "capacity")),
    ]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    path = tmp_path_factory.mktemp("ridge") / "ridge.so"
    source = FOLDER / "mcud_ridge.c"
    subprocess.run(
        ["gcc", "-std=c99", "-O1", "-shared", "-fPIC", *CHECKED, source, "-lm", "-o", path], check=True
    )
    built = ctypes.CDLL(str(path))
    built.mcud_ridge_score.restype = ctypes.c_float
    return built


def examples_of(case: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    count, features = {"many": (300, 64), "wide": (20, 1000)}.get(case, (60, 64))
    examples = rng.integers(-128, 128, (count, features))
    if case == "equal but for one step":
        examples[:] = -100
        examples[3, 5] = -99
    elif case == "of three directions":
        examples = np.clip(rng.normal(0, 40, (count, 3)) @ rng.normal(0, 1, (3, features)), -128, 127).round()
    elif case == "one far off":
        examples[:, 1:] = -128
        examples[7] = 127
    return examples.astype(np.int8), rng.integers(0, 12, count)


@pytest.mark.parametrize(
    "case", ["random", "many", "wide", "equal but for one step", "of three directions", "one far off"]
)
def test_scores_are_those_of_the_reference(case: str, library: ctypes.CDLL) -> None:
    examples, labels = examples_of(case)
    size = HeadSize(13, examples.shape[1], len(examples))
    tables = {it.name: np.zeros(it.size_bytes, np.uint8) for it in HEADS["ridge"].members(size)}
    addresses = [tables[name].ctypes.data for name, _ in Head._fields_[:6]]
    head = Head(*addresses, size.classes, size.features, size.capacity)
    scratch = np.zeros(HEADS["ridge"].scratch_count(size), np.float32)
    for each, label in zip(examples, labels.tolist(), strict=True):
        assert library.mcud_ridge_enrol(ctypes.byref(head), each.ctypes.data_as(ctypes.c_void_p), label) == 0
    library.mcud_ridge_solve(ctypes.byref(head), scratch.ctypes.data_as(ctypes.c_void_p))
    reference = Ridge(size, tuple(examples), tuple(labels.tolist()))
    for query in examples[:20]:
        at = query.ctypes.data_as(ctypes.c_void_p)
        scores = [library.mcud_ridge_score(ctypes.byref(head), at, label) for label in range(size.classes)]
        assert scores[12] == -np.inf
        assert np.allclose(scores[:12], reference.scores(query)[:12], rtol=0, atol=reference.tolerance)
        assert reference.is_label(query, library.mcud_ridge_classify(ctypes.byref(head), at))
