"""Every operator, int8 and float32: the translation and the kernels compute what LiteRT does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from evaluate import assert_same
from flat_cases import CASES
from flat_files import FlatFile, drawn, litert, translated

from mcudeploy.frontend.tflite.composed import ON_COMPLEX
from mcudeploy.frontend.tflite.translate import TRANSLATIONS


@pytest.mark.parametrize("name", CASES)
def test_an_operator_is_what_litert_computes(name: str, tmp_path: Path) -> None:
    case, file = CASES[name], FlatFile()
    inputs, outputs = case.make(file)
    path = file.save(tmp_path, inputs, outputs)
    values = [drawn(file, number) for number in inputs]
    names, results = ([file.tensors[it].name for it in each] for each in (inputs, outputs))
    computed = translated(path, names, results, values)
    for own, want in zip(computed, litert(path, values, reference=case.reference), strict=True):
        assert own.shape == want.shape and own.dtype == want.dtype
        assert np.ptp(want.astype(np.float64)) > 0
        distance = np.abs(own.astype(np.float64) - want.astype(np.float64))
        if own.dtype.kind in "iu":
            assert distance.max() <= case.lsb
            assert np.count_nonzero(distance) <= 0.1 * distance.size
        else:
            assert distance.max() <= (1e-5 if name != "QUANTIZE-float-borders" else 0.11) * np.abs(want).max()
    if case.op not in ("SVDF", "UNIDIRECTIONAL_SEQUENCE_LSTM"):  # their states are tested as programs
        assert_same(path, dict(zip(names, values, strict=True)))


def test_every_operator_has_a_case() -> None:
    assert {case.op for case in CASES.values()} == {*TRANSLATIONS, *ON_COMPLEX}
