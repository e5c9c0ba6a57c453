"""Licences of generated libraries: a line in each file, a text, the origin, and a bill of materials."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from models import fully_connected

from mcudeploy import __version__
from mcudeploy.boards.catalogue import load_board
from mcudeploy.codegen.exporters import KINDS, Kind
from mcudeploy.common.errors import UsageError
from mcudeploy.extensions.audio.wake_word import WakeWord, WakeWords
from mcudeploy.planner.plan_options import Options
from tests import reports

BOARD = load_board("mps2-an386")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fully_connected(tmp_path_factory.mktemp("licences") / "dense.onnx", (40, 6, 1), quantised=True)


def built(model: Path, out: Path, kind: Kind | None = None, *, sbom: bool = False) -> dict[str, str]:
    options = Options(time_limit=0.5)
    parts, models = [], [model]
    asked: dict[str, Any] = {"library_only": True, "kind": kind, "sbom": sbom}
    if kind == "esphome":
        parts = [WakeWords("word", (WakeWord("a word", 0.5, 2, hop=8),))]
        models, asked["arena"] = [model.with_stem("front"), model], "shared"
        models[0].write_bytes(model.read_bytes())
    reports.build_models(models, BOARD, options, out, parts=parts, **asked)
    return {path.relative_to(out).as_posix(): path.read_text() for path in out.rglob("*") if path.is_file()}


@pytest.mark.parametrize("kind", [None, *KINDS])
def test_every_file_has_a_licence_and_the_library_its_text_and_origin(
    model: Path, kind: Kind | None, tmp_path: Path
) -> None:
    files = built(model, tmp_path, kind)
    for name, text in files.items():
        if not name.endswith(".json") and name != "LICENSE":
            owner = name.endswith(("_weights.c", "_weights.h", "_selftest.c"))
            identifier = "LicenseRef-Model-Owner" if owner else "Apache-2.0"
            assert f"SPDX-License-Identifier: {identifier}" in text.splitlines()[0], name
    assert "Apache License" in files["LICENSE"] and "belong to the owner of the model" in files["LICENSE"]
    digest = hashlib.sha256(model.read_bytes()).hexdigest()
    for origin in ("dense.onnx", digest, f"mcudeploy {__version__}"):
        assert origin in files["README.md"], origin
    sources = {Path(name).stem for name in files if name.endswith(".c")}
    match = re.search(r"with its kernels (.*)\.\n", files["README.md"])
    assert match and set(match[1].split(", ")) <= sources
    for name, line in (
        ("library.json", '"license": "Apache-2.0"'),
        ("library.properties", "\nlicense=Apache-2.0\n"),
        ("Cargo.toml", '\nlicense = "Apache-2.0"\n'),
        ("idf_component.yml", '\nlicense: "Apache-2.0"\n'),
    ):
        assert line in files.get(name, line), name


def test_a_project_s_files_have_a_licence_too(model: Path, tmp_path: Path) -> None:
    reports.init_project(model, BOARD, Options(time_limit=0.5), tmp_path, emulate=True)
    files = (path for path in tmp_path.rglob("*") if path.is_file() and path.suffix not in {".json", ".onnx"})
    for path in files:
        assert path.name == "LICENSE" or "SPDX-License-Identifier: " in path.read_text().splitlines()[0], path


def require_cyclonedx(bill: dict[str, Any]) -> None:
    """CycloneDX 1.5's requirements for the objects of a bill, and for their values."""
    assert bill["bomFormat"] == "CycloneDX" and bill["specVersion"] == "1.5" and bill["version"] >= 1
    assert bill["serialNumber"].startswith("urn:uuid:") and len(bill["serialNumber"]) == 45
    assert bill.keys() <= {
        *("bomFormat", "specVersion", "serialNumber", "version", "metadata", "components", "dependencies")
    }
    assert bill["metadata"].keys() <= {"timestamp", "tools", "component"}
    components = [bill["metadata"]["component"], *bill["components"]]
    for each in [*components, *bill["metadata"]["tools"]["components"]]:
        assert each["type"] in {"application", "library", "file", "machine-learning-model"} and each["name"]
        assert each.keys() <= {"type", "bom-ref", "name", "version", "hashes", "licenses"}
        for digest in each.get("hashes", ()):
            assert digest["alg"] == "SHA-256" and len(bytes.fromhex(digest["content"])) == 32
        for choice in each.get("licenses", ()):
            assert choice["license"].keys() in ({"id"}, {"name"})
    references = [each["bom-ref"] for each in components]
    assert len(set(references)) == len(references)
    for edge in bill["dependencies"]:
        assert {edge["ref"], *edge["dependsOn"]} <= set(references)


def test_a_bill_of_materials_lists_all_files_and_is_the_same_each_time(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    first = built(model, tmp_path / "first", "cmake", sbom=True)
    assert first == built(model, tmp_path / "second", "cmake", sbom=True)
    bill = json.loads(first["sbom.cdx.json"])
    require_cyclonedx(bill)
    hashes = {each["name"]: each["hashes"][0]["content"] for each in bill["components"] if "hashes" in each}
    assert hashes.pop("dense.onnx") == hashlib.sha256(model.read_bytes()).hexdigest()
    written = {name: text for name, text in first.items() if name not in {"sbom.cdx.json", "mcudeploy.json"}}
    assert hashes == {name: hashlib.sha256(text.encode()).hexdigest() for name, text in written.items()}
    assert "timestamp" not in bill["metadata"]
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    dated = json.loads(built(model, tmp_path / "third", "cmake", sbom=True)["sbom.cdx.json"])
    assert dated["metadata"]["timestamp"] == "2023-11-14T22:13:20Z"
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "soon")
    with pytest.raises(UsageError, match="SOURCE_DATE_EPOCH is 'soon'"):
        built(model, tmp_path / "fourth", sbom=True)
