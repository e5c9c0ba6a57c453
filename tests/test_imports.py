"""Imports go one way: no cycle between modules, none between packages, and few modules on top."""

from __future__ import annotations

import ast
import re
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path

import pytest

import mcudeploy

ROOT = Path(mcudeploy.__file__).parent
MODULES = {
    ".".join(("mcudeploy", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in ROOT.rglob("*.py")
}


FROM_THE_CORE, FROM_OTHERS = 0, 18
"""The most imports of a module of an extension by the core, and by other extensions."""


def imports(path: Path) -> set[str]:
    """The modules of the package that a file imports, in functions and for types too."""
    tree = ast.parse(path.read_text("utf-8"))
    names = [
        f"{node.module}.{name.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module is not None
        for name in node.names
    ]
    return {name if name in MODULES else name.rpartition(".")[0] for name in names} & set(MODULES)


IMPORTS = {name: imports(path) - {name} for name, path in MODULES.items()}


def cycle(graph: dict[str, set[str]]) -> str:
    """A cycle as text, "" if there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return ", ".join(f"{after} imports {before}" for before, after in pairwise(error.args[1]))
    return ""


def package(module: str) -> str:
    """The folder or the module right under mcudeploy, or under its extensions."""
    return ".".join(module.split(".")[: 3 if is_extension(module) else 2])


def is_extension(module: str) -> bool:
    return module.startswith("mcudeploy.extensions.")


def asked_classes(path: Path) -> set[str]:
    """The classes that a file asks for by isinstance or a pattern."""
    nodes: list[ast.AST] = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
            nodes += ast.walk(node.args[1])
        elif isinstance(node, ast.MatchClass):
            nodes.append(node.cls)
    return {node.id for node in nodes if isinstance(node, ast.Name)}


def asked_texts(path: Path) -> set[str]:
    """The texts of a file that reads the kind of operators."""
    nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
    if not any(isinstance(node, ast.Attribute) and ast.unparse(node).endswith(".op.kind") for node in nodes):
        return set()
    return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def test_operators_answer_for_themselves() -> None:
    declared = re.compile(r"^class (\w+)\(.*\n(?:(?!class ).*\n)*?    kind: ClassVar", re.MULTILINE)
    families = {
        name
        for module, path in MODULES.items()
        if module.startswith(("mcudeploy.ops.", "mcudeploy.extensions."))
        for name in declared.findall(path.read_text("utf-8"))
    }
    assert {"Conv2d", "Reshape", "Unary"} <= families
    above = ("mcudeploy.ops.", "mcudeploy.frontend.lower.", "mcudeploy.extensions.")
    asking = {
        module.removeprefix("mcudeploy.")
        for module, path in MODULES.items()
        if not module.startswith(above) and (asked_classes(path) | asked_texts(path)) & families
    }
    assert asking == set()


def test_modules_have_no_cycle() -> None:
    assert len(IMPORTS) > 100 and any(IMPORTS.values())
    assert cycle(IMPORTS) == ""


def test_packages_have_no_cycle() -> None:
    packages: dict[str, set[str]] = {}
    for name, imported in IMPORTS.items():
        down = (package(one) for one in imported if is_extension(name) or not is_extension(one))
        packages.setdefault(package(name), set()).update(down)
    assert cycle({name: imported - {name} for name, imported in packages.items()}) == ""


def folders(top: str) -> dict[str, set[str]]:
    """By folder or module right under the package `top`, those of the package that it imports."""
    result: dict[str, set[str]] = {}
    inside = f"mcudeploy.{top}."
    for name, imported in IMPORTS.items():
        if name.startswith(inside):
            own = name.split(".")[2]
            others = {each.split(".")[2] for each in imported if each.startswith(inside)}
            result.setdefault(own, set()).update(others - {own})
    return result


@pytest.mark.parametrize("top", ["frontend", "planner"])
def test_folders_have_no_cycle(top: str) -> None:
    graph = folders(top)
    assert any(graph.values())
    if top == "planner":  # published tags are placed by place/tagged, which place/solve imports
        graph["place"].remove("published")
    assert cycle(graph) == ""


@pytest.mark.parametrize("folder", ["lower", "decompose", "passes", "tflite"])
def test_folders_of_the_frontend_import_onnx_alone(folder: str) -> None:
    assert folders("frontend")[folder] == {"onnx"}
    assert folders("frontend")["onnx"] == set()


ORDER = (
    "cli onnx_backend", "commands", "report", "execution", "device", "toolchain", "codegen",
    "planner verify", "checker costs frontend", "boards ops tiling", "ir common",
)  # fmt: skip
"""The table of docs/design.md, from the top to the bottom."""


def test_imports_go_down_the_table_of_the_docs() -> None:
    level = {f"mcudeploy.{name}": at for at, row in enumerate(ORDER) for name in row.split()}
    below = [
        (level[package(name)], level[package(one)], name, one)
        for name, imported in IMPORTS.items()
        for one in imported
        if package(name) in level and package(one) in level
    ]
    assert len(below) > 500
    assert [(name, one) for high, low, name, one in below if low < high] == []


def test_the_core_imports_few_modules_of_extensions() -> None:
    """The number falls as extensions state what they add, and the core asks them."""
    pairs = {(name, one) for name, imported in IMPORTS.items() for one in imported if is_extension(one)}
    assert sum(not is_extension(name) for name, _ in pairs) <= FROM_THE_CORE
    assert sum(is_extension(name) and package(name) != package(one) for name, one in pairs) <= FROM_OTHERS


def test_a_cycle_is_found() -> None:
    assert cycle({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}).count("imports") == 3


def test_few_modules_stand_on_top() -> None:
    assert sum(path.parent == ROOT for path in MODULES.values()) <= 4


def test_names_stand_once() -> None:
    """A name that stands twice is a notion that stands twice, or two notions with one word."""
    classes = [
        node.name
        for path in MODULES.values()
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.ClassDef)
    ]
    assert [name for name in set(classes) if classes.count(name) > 1] == []
    modules = [path.stem for path in MODULES.values() if path.stem != "__init__"]
    twice = {name for name in modules if modules.count(name) > 1}
    assert len(twice) <= 12, "an operator's module in ops and frontend may share its name; others may not"
