"""The core without extensions: a copy whose folder mcudeploy/extensions is gone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from models import fully_connected

import mcudeploy

ROOT = Path(mcudeploy.__file__).parent
_IMPORT_ALL = """
import importlib, pkgutil, json
import mcudeploy
faults = {}
for it in pkgutil.walk_packages(mcudeploy.__path__, "mcudeploy.", onerror=lambda name: None):
    try:
        if not it.name.endswith("__main__"):
            importlib.import_module(it.name)
    except ImportError as fault:
        faults[it.name] = str(fault)
print(json.dumps(faults))
"""


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("core")
    shutil.copytree(ROOT, folder / "mcudeploy", ignore=lambda at, _: _gone(at))  # with what is compiled
    if not (ROOT / "_data").exists():
        for name in ("firmware", "templates", "boards", "LICENSE"):
            (folder / name).symlink_to(ROOT.parent / name)
    return folder


def _gone(at: str) -> tuple[str, ...]:
    return ("extensions",) if Path(at) == ROOT else ()


def run(core: Path, *arguments: str) -> str:
    """The output of Python with this copy of mcudeploy."""
    environment = os.environ | {"PYTHONPATH": str(core), "MCUDEPLOY_CACHE_DIR": str(core / "cache")}
    command = [sys.executable, *arguments]
    done = subprocess.run(
        command, cwd=core, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_module_of_the_core_can_be_imported(core: Path) -> None:
    faults = json.loads(run(core, "-c", _IMPORT_ALL))
    assert faults == {}


def test_the_core_checks_plans_builds_and_verifies(core: Path) -> None:
    model = fully_connected(core / "net.onnx", (8, 6, 4), quantised=False)
    command = ("-m", "mcudeploy")
    assert json.loads(run(core, *command, "check", str(model), "--json"))["supported"]
    planned = ("plan", str(model), "--board", "stm32f405", "--time-limit", "1", "--json")
    assert json.loads(run(core, *command, *planned))["arena_bytes"] > 0
    built = ("build", str(model), "--board", "host", "--time-limit", "1", "-o", str(core / "lib"), "--json")
    assert json.loads(run(core, *command, *built))["verified"]
    assert "train" not in run(core, *command, "--help")
    checks = json.loads(run(core, *command, "doctor", "--json"))["checks"]
    assert not [it for it in checks if it["name"].startswith("extension")]
