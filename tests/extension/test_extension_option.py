"""`--extension` of commands that read models, and what `doctor` says of extensions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import mcudeploy
from mcudeploy import extension
from mcudeploy.cli.main import cli
from mcudeploy.common.errors import ModelError
from mcudeploy.extension import extension_files, extensions

Invoke = Callable[[str], Result]
_TRUSTING = "--extension spectral.py --trust-extension"


@pytest.fixture
def invoke(spectral: Path) -> Invoke:
    """Run a command line in the folder of the tutorial."""
    assert Path.cwd() == spectral
    return lambda line: CliRunner().invoke(cli, line.split())


def rows(result: Result) -> dict[str, dict[str, object]]:
    return {it["name"]: it for it in json.loads(result.stdout)["checks"]}


def test_the_first_command_asks_for_trust(invoke: Invoke) -> None:
    unsupported = invoke("check unknown.onnx --json")
    assert unsupported.exit_code == 4 and "docs/tutorials/operator.md, --extension" in unsupported.stdout
    refused = invoke("check unknown.onnx --extension spectral.py")
    assert refused.exit_code == 3 and "--trust-extension allows it once" in refused.stderr
    assert invoke(f"check unknown.onnx {_TRUSTING}").exit_code == 0
    assert invoke("check unknown.onnx --extension spectral.py").exit_code == 0
    assert all(it.name != "spectral" for it in extensions())


def test_a_file_of_settings_names_it(invoke: Invoke, spectral: Path) -> None:
    (spectral / "mcudeploy.toml").write_text('extension = ["spectral.py"]\n', "utf-8")
    assert invoke("check unknown.onnx").exit_code == 3  # a folder that was downloaded runs nothing
    assert invoke("check unknown.onnx --trust-extension").exit_code == 0
    assert invoke("check unknown.onnx").exit_code == 0
    (spectral / "mcudeploy.toml").write_text("trust-extension = true\n", "utf-8")
    assert invoke("check unknown.onnx").exit_code == 3


@pytest.mark.parametrize("name", ["check", "plan", "build", "init", "run", "measure", "tune", "fit", "flash"])
def test_commands_that_read_models_take_it(name: str) -> None:
    names = {option for parameter in cli.commands[name].params for option in parameter.opts}
    assert {"--extension", "--trust-extension"} <= names


def test_doctor_lists_extensions_with_what_they_add(invoke: Invoke, spectral: Path) -> None:
    listed = rows(invoke(f"doctor --board host --json {_TRUSTING}"))
    assert listed["extension audio"]["found"] == "built-in: rules, lowerings, translations, commands, options"
    additions = "lowerings, references, layouts, cases, kernels, costs"
    assert listed["extension spectral"]["found"] == f"{spectral / 'spectral.py'}: {additions}"
    assert listed["extension spectral"]["ok"] and "extensions together" not in listed


def test_doctor_names_a_text_that_cannot_be_imported(invoke: Invoke, spectral: Path) -> None:
    text = (spectral / "spectral.py").read_text("utf-8").replace('":LOWERINGS"', '":GONE"')
    (spectral / "spectral.py").write_text(text, "utf-8")
    row = rows(invoke(f"doctor --json {_TRUSTING}"))["extension spectral"]
    assert not row["ok"] and ":GONE of an extension cannot be imported" in str(row["found"])


def package(folder: Path, name: str, code: str) -> dict[str, str]:
    """Install a package with an extension in a folder; return the environment in which Python has it."""
    (folder / f"{name}.py").write_text(code, "utf-8")
    information = folder / f"{name}-1.0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", "utf-8")
    (information / "entry_points.txt").write_text(f"[mcudeploy]\n{name} = {name}:EXTENSION\n", "utf-8")
    return os.environ | {"PYTHONPATH": f"{folder}:{Path(mcudeploy.__file__).parents[1]}"}


def test_doctor_names_a_package_that_cannot_be_imported_while_others_fail(tmp_path: Path) -> None:
    environment = package(tmp_path, "broken", "raise RuntimeError('no such luck')\n")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-m", "mcudeploy", *arguments]
        return subprocess.run(line, env=environment, capture_output=True, text=True, check=False)

    assert (
        run("check", "net.onnx").stderr
        == "error: broken:EXTENSION of an extension cannot be imported: no such luck\n"
    )
    done = run("doctor", "--board", "host", "--json")
    (row,) = (it for it in json.loads(done.stdout)["checks"] if "broken" in it["name"])
    assert done.returncode == 1 and not row["ok"] and "no such luck" in row["found"]


def test_doctor_names_two_packages_with_one_operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two"):
        package(
            tmp_path,
            name,
            f"from mcudeploy.extension import Extension\nRULES = {{'org.example': {{'Same': print}}}}\n"
            f"EXTENSION = Extension('{name}', rules=':RULES')\n",
        )
    monkeypatch.syspath_prepend(str(tmp_path))
    extension._installed.cache_clear()
    try:
        listed = rows(CliRunner().invoke(cli, ["doctor", "--json"]))
    finally:
        extension._installed.cache_clear()
    assert listed["extension one"]["ok"] and listed["extension two"]["ok"]
    assert "org.example::Same, one and two: use one" in str(listed["extensions together"]["found"])


def test_a_model_that_cannot_be_calibrated_is_refused(spectral: Path) -> None:
    np.save("samples.npy", np.zeros((4, 1, 64, 100), np.float32))
    with (
        extension_files("spectral.py", trust=True),
        pytest.raises(ModelError, match=r"is org\.example::SpectralGate of an extension, which ONNX Runtime"),
    ):
        mcudeploy.quantize("unknown.onnx", Path("samples.npy"), Path("int8.onnx"))
    assert not Path("int8.onnx").exists()
