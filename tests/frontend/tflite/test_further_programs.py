"""Programs of single operators, and of forms of networks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from flat_cases import CASES, window
from flat_files import VALID, FlatFile, drawn, litert, translated

from mcudeploy.frontend.load import load
from tests import reports
from tests.weekly import sample

WHOLE = {
    "MIRROR_PAD-int8-reflect",
    "SPACE_TO_BATCH_ND-int8-dilation",
    "GATHER-float-computed",
    "FLOOR_DIV-int32 by 3",
}


@pytest.mark.parametrize("name", sample(CASES, WHOLE))
def test_programs_are_verified(name: str, tmp_path: Path) -> None:
    file = FlatFile()
    path = file.save(tmp_path, *CASES[name].make(file))
    reports.verified(path)


def test_an_output_that_stands_twice_is_there_once(tmp_path: Path) -> None:
    """As Keras writes a layer that returns its state; LiteRT has it twice."""
    f = FlatFile()
    x, y, z = f.add(1, 6), f.add(1, 6), f.add(1, 6)
    f.operator("ABS", [x], y)
    f.operator("NEG", [x], z)
    path = f.save(tmp_path, [x], [y, y, z])
    graph = load(path)
    assert [io.name for io in graph.outputs] == ["t1", "t2"]
    assert "output 't1' is listed several times in the file, and once in the program" in graph.notes
    report = reports.verified(path)
    assert report["litert"]["runs"] == 1


def test_a_dilated_convolution_may_compute_its_padding_from_the_shape(tmp_path: Path) -> None:
    """As TensorFlow writes `dilation_rate` if a size is open: it becomes one convolution."""
    f = FlatFile()
    integers = {"kind": "INT32"}
    masks = dict.fromkeys(("BeginMask", "EndMask", "EllipsisMask", "NewAxisMask", "ShrinkAxisMask"), 0)
    x, block, base = f.add(1, 11, 12, 4), f.constant([2, 2]), f.constant([2, 2])
    f.operator("SHAPE", [x], sizes := f.add(4, **integers), OutType=2)
    limits = [f.constant([at]) for at in (1, 3, 1)]
    f.operator("STRIDED_SLICE", [sizes, *limits], image := f.add(2, **integers), **masks)
    f.operator("FLOOR_MOD", [image, block], odd := f.add(2, **integers))
    f.operator("ADD", [base, odd], end := f.add(2, **integers))
    f.operator("PACK", [base, end], pads := f.add(2, 2, **integers), Axis=1, ValuesCount=2)
    f.operator("PACK", [f.constant([0, 0]), odd], crops := f.add(2, 2, **integers), Axis=1, ValuesCount=2)
    f.operator("SPACE_TO_BATCH_ND", [x, block, pads], batch := f.add(4, 8, 8, 4))
    kernel = [f.floats(5, 3, 3, 4), f.floats(5)]
    f.operator("CONV_2D", [batch, *kernel], parts := f.add(4, 6, 6, 5), **window(VALID, 1))
    f.operator("BATCH_TO_SPACE_ND", [parts, block, crops], y := f.add(1, 11, 12, 5))
    path = f.save(tmp_path, [x], [y])
    assert [operator.op.kind for operator in load(path).operators] == ["Conv2d"]
    value = drawn(f, x)
    (computed,), (wanted,) = translated(path, ["t0"], [f.tensors[y].name], [value]), litert(path, [value])
    np.testing.assert_allclose(computed, wanted, atol=1e-4)
