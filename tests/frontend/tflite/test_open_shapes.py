"""Files whose inner shapes were open when they were converted, and convolutions in batches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from evaluate import kinds
from flat_cases import CASES
from flat_files import NONE, FlatFile, litert
from programs import results

from mcudeploy.frontend.load import load
from mcudeploy.planner.plan_options import Options
from tests import reports


def test_shapes_that_the_file_left_open_follow_from_the_inputs(tmp_path: Path) -> None:
    """The converter writes 1 for each open size, so that the stated shapes do not fit."""
    f = FlatFile()
    x, other = f.add(1, 4, 3, 6), f.add(1, 2, 3, 6)
    stale = {"signature": (1, -1, 6)}
    f.operator("RESHAPE", [x, f.constant([1, -1, 6])], a := f.add(1, 1, 6, **stale))
    f.operator("RESHAPE", [other, f.constant([1, -1, 6])], b := f.add(1, 1, 6, **stale))
    f.operator("CONCATENATION", [a, b], c := f.add(1, 1, 6, **stale), Axis=1, FusedActivationFunction=NONE)
    limits = (f.constant(each) for each in ([0, 0, 2], [1, 0, 3], [1, 1, 1]))
    masks = {"BeginMask": 2, "EndMask": 2, "EllipsisMask": 0, "NewAxisMask": 0, "ShrinkAxisMask": 4}
    y = f.add(1, 1, signature=(1, -1))
    f.operator("STRIDED_SLICE", [c, *limits], y, **masks)
    path = f.save(tmp_path, [x, other], [y])
    assert load(path).outputs[0].shape == (1, 18)
    reports.verified(path)


def test_a_dilated_convolution_is_one_operator(tmp_path: Path) -> None:
    file = FlatFile(random=np.random.default_rng(2))
    graph = load(file.save(tmp_path, *CASES["SPACE_TO_BATCH_ND-int8-dilation"].make(file)))
    assert kinds(graph) == {"Conv2d": 1}
    (conv,) = graph.operators
    assert conv.op.dilation == (5, 4)
    assert conv.op.pads == (4, 4, 5, 4)


def test_an_output_that_is_a_constant_of_the_file(tmp_path: Path) -> None:
    f = FlatFile()
    x, kept = f.add(1, 4), f.constant(np.arange(6).reshape(2, 3), np.float32)
    f.operator("ADD", [x, x], y := f.add(1, 4), FusedActivationFunction=NONE)
    path = f.save(tmp_path, [x], [y, kept])
    reports.verified(path)
    assert [output.shape for output in load(path).outputs] == [(1, 4), (2, 3)]


def test_check_takes_the_shapes_of_the_user(tmp_path: Path) -> None:
    f = FlatFile()
    x, y = f.add(1, 3, name="x", signature=(-1, -1)), f.add(1, 3, signature=(-1, -1))
    f.operator("ADD", [x, f.constant(np.float32(2), np.float32)], y, FusedActivationFunction=NONE)
    path = f.save(tmp_path, [x], [y])
    report = reports.check_model(path, None, Options(shapes=(("x", (4, 5)),)))
    assert report["supported"]
    assert report["parameters"] == 1


def test_an_open_size_that_fits_no_operator(tmp_path: Path) -> None:
    """FILL makes four rows, and the file says one: nothing refuses that before shapes are inferred."""
    f = FlatFile()
    x, rows = f.add(4, 3), f.add(1, 3, signature=(-1, 3))
    f.operator("FILL", [f.constant([4, 3]), f.constant(np.float32(2), np.float32)], rows)
    f.operator("ADD", [x, rows], y := f.add(4, 3), FusedActivationFunction=NONE)
    reports.verified(f.save(tmp_path, [x], [y]))


@pytest.mark.parametrize(
    ("options", "limits", "shape"),
    [
        ({"NewAxisMask": 1}, (1, 2), (1, 2)),
        ({"ShrinkAxisMask": 1}, (-1, 0), ()),
        ({"ShrinkAxisMask": 1, "BeginMask": 1}, (1, 2), ()),
        ({"NewAxisMask": 1, "ShrinkAxisMask": 1}, (1, 2), (1, 2)),
        ({"Offset": True}, (1, 1), (1,)),
    ],
    ids=str,
)
def test_a_slice_of_a_shape(
    options: dict[str, int], limits: tuple[int, int], shape: tuple[int, ...], tmp_path: Path
) -> None:
    f = FlatFile()
    x, sizes, part = f.add(1, 5), f.add(2, kind="INT32"), f.add(*shape, kind="INT32")
    real, total, y = f.add(*shape), f.add(), f.add(*shape)
    f.operator("SHAPE", [x], sizes, OutType=2)
    masks = {f"{name}Mask": 0 for name in ("Begin", "End", "Ellipsis", "NewAxis", "ShrinkAxis")}
    f.operator(
        "STRIDED_SLICE", [sizes, *(f.constant([each]) for each in (*limits, 1))], part, **masks | options
    )
    f.operator("CAST", [part], real)
    f.operator("SUM", [x, f.constant([0, 1])], total, KeepDims=False)
    f.operator("ADD", [real, total], y, FusedActivationFunction=NONE)
    path = f.save(tmp_path, [x], [y])
    drawn = np.random.default_rng(4).normal(0, 1, (3, 1, 5)).astype(np.float32)
    wanted = np.array([litert(path, [each])[0] for each in drawn])
    assert np.allclose(results(path, drawn), wanted, rtol=1e-5, atol=1e-6)
