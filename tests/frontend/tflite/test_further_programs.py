"""Programs of operators that ONNX has in another form."""

from __future__ import annotations

from pathlib import Path

import flat_further_cases
import pytest
from flat_cases import CASES
from flat_files import FlatFile
from programs import HOST, QUICK

from mcudeploy.frontend import load
from tests import reports

NAMES = [name for name, case in CASES.items() if case.make.__module__ == flat_further_cases.__name__]


@pytest.mark.parametrize("name", NAMES)
def test_programs_are_verified(name: str, tmp_path: Path) -> None:
    file = FlatFile()
    path = file.save(tmp_path, *CASES[name].make(file))
    report = reports.run_model(path, HOST, QUICK, inputs=[], expected=[])
    assert report["verified"], report["reason"]


def test_an_output_that_stands_twice_is_there_once(tmp_path: Path) -> None:
    """As Keras writes a layer that returns its state; LiteRT has it twice."""
    f = FlatFile()
    x, y, z = f.add(1, 6), f.add(1, 6), f.add(1, 6)
    f.operator("ABS", [x], y)
    f.operator("NEG", [x], z)
    path = f.save(tmp_path, [x], [y, y, z])
    graph = load(path)
    assert [border.name for border in graph.outputs] == ["t1", "t2"]
    assert "output 't1' stands several times in the file, and once in the program" in graph.notes
    report = reports.run_model(path, HOST, QUICK, inputs=[], expected=[])
    assert report["verified"], report["reason"]
    assert report["litert"]["runs"] == 1
