"""mcud_sampler.c: the choice of a token, compared with softmax in numpy."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mcudeploy.common.resources import resource_dir
from mcudeploy.extensions.text.host_text import Sampler
from tests.linked import STRICT

SOURCE = resource_dir("firmware") / "text" / "mcud_sampler.c"
SCALE = 0.25


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    path: Path = tmp_path_factory.mktemp("sampler") / "sampler.so"
    checked = ["-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"]
    command = ["gcc", *STRICT, "-O1", "-shared", "-fPIC", *checked, SOURCE, "-lm", "-o", path]
    subprocess.run(command, check=True)
    loaded = ctypes.CDLL(str(path))
    loaded.mcud_sample_s8.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_float, ctypes.c_uint32]
    return loaded


def drawn(
    library: ctypes.CDLL, logits: NDArray[Any], count: int, temperature: float, k: int = 0, p: float = 1
) -> list[int]:
    sampler = Sampler(temperature, k, p, 0)
    library.mcud_sampler_seed(ctypes.byref(sampler), ctypes.c_uint64(7))
    values = np.ascontiguousarray(logits)
    if values.dtype == np.int8:
        return [
            library.mcud_sample_s8(ctypes.byref(sampler), values.ctypes.data, SCALE, len(values))
            for _ in range(count)
        ]
    data = values.ctypes.data_as(ctypes.c_void_p)
    return [library.mcud_sample_f32(ctypes.byref(sampler), data, len(values)) for _ in range(count)]


def probabilities(logits: NDArray[Any], temperature: float, k: int, p: float) -> NDArray[np.float64]:
    """Softmax over what top-k and then top-p leave."""
    weights = np.exp((logits.astype(np.float64) - logits.max()) / temperature)
    order = np.argsort(-weights, kind="stable")
    kept = order[: k or None]
    sums = np.cumsum(weights[kept]) / weights[kept].sum()
    kept = kept[: int(np.searchsorted(sums, p - 1e-6)) + 1]
    result = np.zeros(len(logits))
    result[kept] = weights[kept] / weights[kept].sum()
    return result


@pytest.mark.parametrize(
    ("temperature", "k", "p"),
    [
        (1.0, 0, 1.0),
        (0.7, 5, 1.0),
        (1.3, 0, 0.9),
        (2.0, 20, 0.5),
        (1.0, 1, 1.0),
        (1.0, 0, 0.0),
        (5.0, 0, 0.99),
    ],
)
def test_draws_have_the_probabilities_of_softmax(
    temperature: float, k: int, p: float, library: ctypes.CDLL
) -> None:
    logits = np.random.default_rng(3).normal(0, 2, 60).astype(np.float32)
    wanted, count = probabilities(logits, temperature, k, p), 4000
    shares = np.bincount(drawn(library, logits, count, temperature, k, p), minlength=60) / count
    assert not shares[wanted == 0].any()
    assert (np.abs(shares - wanted) <= 5 * np.sqrt(wanted * (1 - wanted) / count) + 1e-9).all()


def test_integers_are_chosen_as_the_numbers_they_stand_for(library: ctypes.CDLL) -> None:
    logits = np.random.default_rng(4).permutation(np.arange(-100, 100, 2)).astype(np.int8)
    floats = logits.astype(np.float32) * np.float32(SCALE)
    for k, p in ((0, 1.0), (9, 0.8), (0, 0.95)):
        assert drawn(library, logits, 200, 3.0, k, p) == drawn(library, floats, 200, 3.0, k, p)


def test_equal_logits_at_the_border_stay(library: ctypes.CDLL) -> None:
    logits = np.array([1, 2, 2, 2, 0], np.float32)
    assert set(drawn(library, logits, 200, 1.0, 2)) == {1, 2, 3}
    assert set(drawn(library, logits, 200, 1.0, 0, 0.2)) == {1, 2, 3}


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("nan")])
def test_without_a_temperature_the_first_greatest_is_chosen(temperature: float, library: ctypes.CDLL) -> None:
    assert drawn(library, np.array([-3, -1, -2, -1], np.float32), 1, temperature) == [1]
    assert drawn(library, np.array([-0.0, 0.0], np.float32), 1, temperature) == [0]
    assert drawn(library, np.array([-128, 127, 127], np.int8), 1, temperature) == [1]


def test_what_is_not_finite_is_never_drawn_by_chance(library: ctypes.CDLL) -> None:
    nan, inf = float("nan"), float("inf")
    assert set(drawn(library, np.array([nan, 1, -inf, 1.5, nan], np.float32), 200, 1.0)) == {1, 3}
    assert set(drawn(library, np.array([nan, 1, -inf, 1.5], np.float32), 200, 1.0, 3, 0.999)) == {1, 3}
    assert drawn(library, np.array([0, inf, nan], np.float32), 3, 1.0) == [1] * 3
    assert drawn(library, np.array([nan, nan], np.float32), 1, 1.0) == [0]
    assert drawn(library, np.array([-inf, -inf], np.float32), 1, 1.0, 1, 0.5) == [0]
