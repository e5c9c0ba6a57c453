"""The core asks extensions what they add: those of mcudeploy, and those of installed packages."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

import mcudeploy
from mcudeploy import extension
from mcudeploy.boards.catalogue import load_board
from mcudeploy.cli.main import cli
from mcudeploy.commands.build import build_models, named_part
from mcudeploy.commands.commands import plan_model
from mcudeploy.common.errors import ModelError, UsageError
from mcudeploy.execution.parts import BuildRequest, Library, LibraryPart
from mcudeploy.extension import _BY_DOMAIN, Extension, added, added_for, extensions, value_of
from mcudeploy.extensions import installed
from mcudeploy.frontend.load import load
from mcudeploy.ops.scalar.unary import Unary
from mcudeploy.planner.plan_options import Options
from mcudeploy.report import as_json

SHAPE = (1, 4)
FOREIGN = ("references", "cases", "kernels", "costs", "home")
"""Fields that extensions of mcudeploy do not fill."""


@pytest.fixture(autouse=True)
def _asked_again() -> Iterator[None]:
    """Ask again before and after each test: the answers are cached."""
    extension._installed.cache_clear()
    yield
    extension._installed.cache_clear()


def model_of(folder: Path, *nodes: onnx.NodeProto, domain: str) -> Path:
    """A model from x and y to z."""
    x, y, z = (helper.make_tensor_value_info(name, TensorProto.FLOAT, SHAPE) for name in "xyz")
    graph = helper.make_graph(nodes, "net", [x, y] if "y" in nodes[0].input else [x], [z])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(domain, 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    onnx.save(model, path := folder / "net.onnx")
    return path


def scaler(folder: Path) -> Path:
    node = helper.make_node("Scaler", ["x"], ["z"], "scaler", domain="ai.onnx.ml", offset=[1.0], scale=[2.0])
    return model_of(folder, node, domain="ai.onnx.ml")


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    """Install a package that has an entry point of the group mcudeploy."""
    package = folder / "example-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: example\nVersion: 1.0\n", "utf-8")
    (package / "entry_points.txt").write_text(f"[mcudeploy]\nexample = {value}\n", "utf-8")
    monkeypatch.syspath_prepend(str(folder))


def test_every_text_of_a_built_in_extension_names_a_value() -> None:
    names = [it.name for it in installed.EXTENSIONS]
    assert extensions()[: len(names)] == installed.EXTENSIONS and names == sorted(names)
    for field in (it.name for it in fields(Extension) if it.default == "" and it.name not in FOREIGN):
        assert list(added(field)), f"no extension adds {field}"


def test_domains_in_files_do_not_follow_the_folders() -> None:
    domains = {domain for it in installed.EXTENSIONS for domain in it.domains}
    assert domains == {"", "CUSTOM", "INT16", "ai.onnx.ml", "mcudeploy.training", "tflite"}


def test_domains_of_the_tables_of_a_built_in_extension_are_those_that_it_states() -> None:
    for it in installed.EXTENSIONS:
        texts = [text for field in _BY_DOMAIN if (text := getattr(it, field))]
        assert {domain for text in texts for domain in value_of(text)} == set(it.domains), it.name


def test_a_model_imports_the_tables_of_its_domains_alone(tmp_path: Path) -> None:
    path = model_of(tmp_path, helper.make_node("Relu", ["x"], ["z"]), domain="ai.onnx.ml")
    tables = ("training_nodes", "learned_rules", "int16_nodes")
    code = (
        "import sys; from pathlib import Path; from mcudeploy.frontend.load import load;"
        f"load(Path({str(path)!r})); sys.exit(any(name.endswith({tables}) for name in sys.modules))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_without_an_extension_its_operators_are_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = scaler(tmp_path)
    assert [it.op.kind for it in load(path).operators]
    monkeypatch.setattr(installed, "EXTENSIONS", ())
    extension._installed.cache_clear()
    with pytest.raises(ModelError) as caught:
        load(path)
    (problem,) = caught.value.problems
    assert (problem.node, problem.op) == ("scaler", "ai.onnx.ml::Scaler")
    assert problem.reason == "this operator is not supported"


def test_a_package_adds_operators_of_its_own_domain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, "scaled_sum:EXTENSION")
    nodes = (
        helper.make_node("ScaledSum", ["x", "y"], ["s"], "sum", domain="org.example", factor=0.5),
        helper.make_node("Magnitude", ["s"], ["z"], "size", domain="org.example"),
    )
    path = model_of(tmp_path, *nodes, domain="org.example")
    graph = load(path)
    assert [it.op.kind for it in graph.operators] == ["Binary", "Binary", "Unary"]
    assert graph.outputs[0].shape == SHAPE
    deployment = plan_model(path, load_board("stm32f405"), Options(time_limit=0.5))
    assert deployment.plan.layout.arena_bytes >= 16


def test_a_package_joins_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = (helper.make_node("Mul", ["x", "x"], ["s"]), helper.make_node("Sqrt", ["s"], ["z"]))
    path = model_of(tmp_path, *nodes, domain="org.example")
    assert len(load(path).operators) == 2
    install(tmp_path, monkeypatch, "scaled_sum:EXTENSION")
    extension._installed.cache_clear()
    (operator,) = load(path).operators
    assert operator.op == Unary("abs")


def test_functions_of_python_come_and_go_with_their_extension(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installed, "EXTENSIONS", ())
    install(tmp_path, monkeypatch, "scaled_sum:EXTENSION")
    extension._installed.cache_clear()
    assert mcudeploy.magnitudes([3, -4]) == [3, 4]  # type: ignore[attr-defined]
    assert "magnitudes" in dir(mcudeploy) and "plan" in dir(mcudeploy) and "train" not in dir(mcudeploy)
    with pytest.raises(AttributeError, match="no attribute 'train'"):
        mcudeploy.train  # noqa: B018


def test_a_function_that_stands_twice_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    twice = Extension("twice", functions=("mcudeploy.commands.python:plan",))
    monkeypatch.setattr(installed, "EXTENSIONS", (twice,))
    with pytest.raises(UsageError, match=r"second mcudeploy\.plan: uninstall the package of twice"):
        dir(mcudeploy)


def test_a_domain_states_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, "scaled_sum:EXTENSION")
    path = model_of(
        tmp_path, helper.make_node("Phase", ["x"], ["z"], domain="org.example"), domain="org.example"
    )
    with pytest.raises(ModelError, match="ScaledSum and Magnitude are the operators of this domain"):
        load(path)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("no_such_module:EXTENSION", "no_such_module:EXTENSION of an extension cannot be imported"),
        ("scaled_sum:MISSING", "scaled_sum:MISSING of an extension cannot be imported"),
        ("scaled_sum:NAMELESS", "is not a name for an extension: use letters"),
        ("scaled_sum:DOMAIN", "entry point 'example' is scaled_sum:DOMAIN, which is not an Extension"),
    ],
)
def test_a_broken_package_is_named(
    value: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, value)
    with pytest.raises(UsageError, match=why):
        load(scaler(tmp_path))


def test_an_operator_has_one_extension(monkeypatch: pytest.MonkeyPatch) -> None:
    again = Extension("again", rules="mcudeploy.extensions.audio.signal_rules:RULES")
    monkeypatch.setattr(installed, "EXTENSIONS", (*installed.EXTENSIONS, again))
    with pytest.raises(UsageError, match=r"add rules of ai\.onnx::BlackmanWindow, audio and again: use one"):
        added_for("rules", "")


def test_an_extension_has_a_name_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "EXTENSIONS", 2 * installed.EXTENSIONS)
    first = installed.EXTENSIONS[0].name
    with pytest.raises(UsageError, match=f"two extensions are called {first}: use one of them"):
        extensions()


def test_every_command_is_imported_by_its_name() -> None:
    assert all(command.name == name for name, command in cli.commands.items())
    assert {"check", "train", "evaluate"} <= set(cli.commands) and len(cli.commands) == len(set(cli.commands))


def test_a_command_that_stands_twice_is_one_error(tmp_path: Path) -> None:
    """The fault of an installed package ends a command with one line, not a traceback."""
    (tmp_path / "twice.py").write_text(
        "from mcudeploy.extension import Extension\n"
        'EXTENSION = Extension("twice", commands=("mcudeploy.cli.fit_command:fit",))\n'
    )
    package = tmp_path / "twice-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: twice\nVersion: 1.0\n", "utf-8")
    (package / "entry_points.txt").write_text("[mcudeploy]\ntwice = twice:EXTENSION\n", "utf-8")
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}:{Path(mcudeploy.__file__).parents[1]}"}
    line = [sys.executable, "-m", "mcudeploy", "--help"]
    done = subprocess.run(line, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: an extension adds a second command fit: uninstall its package\n"


class Notice(LibraryPart):
    """A part with a file, a fact, and a limit of samples."""

    samples = 3

    def files(self, library: Library) -> Mapping[str, str]:
        return {"NOTICE": f"{library.name} for {library.board.name}"}

    def facts(self) -> Mapping[str, str]:
        return {"notice": "NOTICE"}


def test_a_part_adds_files_and_facts_to_a_library(tmp_path: Path) -> None:
    model = model_of(tmp_path, helper.make_node("Add", ["x", "y"], ["z"], "add"), domain="org.example")
    library = tmp_path / "library"
    request = BuildRequest(
        [model], load_board("host"), Options(time_limit=0.5), library, library_only=True, parts=[Notice()]
    )
    built = build_models(request)
    assert (library / "NOTICE").read_text("utf-8") == "net for host"
    assert as_json(built)["notice"] == "NOTICE" and as_json(built)["dossier"] is None
    assert built.models[0].verdict is not None and len(built.models[0].verdict.host) == Notice.samples


def test_without_extensions_a_plain_library_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "EXTENSIONS", ())
    model = model_of(tmp_path, helper.make_node("Add", ["x", "y"], ["z"], "add"), domain="org.example")
    request = BuildRequest([model], load_board("host"), Options(time_limit=0.5), tmp_path / "library")
    files = as_json(build_models(request))["files"]
    assert str(tmp_path / "library" / "include" / "net.h") in files
    with pytest.raises(UsageError, match="no extension adds bounds to libraries: there are none"):
        named_part("bounds")
    with pytest.raises(UsageError, match="libraries for esphome come from an extension"):
        build_models(replace(request, directory=tmp_path / "esphome", kind="esphome"))
