"""Programs of operators that ONNX has in another form."""

from __future__ import annotations

from pathlib import Path

import flat_further_cases
import pytest
from flat_cases import CASES
from flat_files import FlatFile
from programs import HOST, QUICK

from tests import reports

NAMES = [name for name, case in CASES.items() if case.make.__module__ == flat_further_cases.__name__]


@pytest.mark.parametrize("name", NAMES)
def test_programs_are_verified(name: str, tmp_path: Path) -> None:
    file = FlatFile()
    path = file.save(tmp_path, *CASES[name].make(file))
    report = reports.run_model(path, HOST, QUICK, inputs=[], expected=[])
    assert report["verified"], report["reason"]
