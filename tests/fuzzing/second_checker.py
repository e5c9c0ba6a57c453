"""The second checker of a dossier, and the files that it reads."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from fuzzing.plans import JudgedPlan
from mcudeploy.codegen.program import Program, make_program
from mcudeploy.codegen.render import Source, render_model
from mcudeploy.common.resources import resource_dir
from mcudeploy.extensions.dossier.plan_facts import board_text, network_text
from mcudeploy.planner.files.planfile import plan_text
from mcudeploy.planner.tape.plan_view import PlanView

CHECKER = resource_dir("templates") / "dossier/check_plan.py"


def written(judged: JudgedPlan, folder: Path) -> Path:
    """The files of a dossier, with the library of a plan."""
    folder.mkdir(parents=True, exist_ok=True)
    program = with_tables(judged, folder / "lib")
    (folder / "plan.json").write_text(plan_text(judged.plan, judged.model.sha256), "utf-8")
    (folder / "network.json").write_text(network_text(judged.plan, judged.model, program), "utf-8")
    (folder / "board.json").write_text(board_text(judged.board), "utf-8")
    return folder


def with_tables(judged: JudgedPlan, folder: Path) -> Program:
    """Write the C tables of a plan. Returns the program."""
    program = make_program(PlanView(judged.plan, judged.model.calls), "m", judged.board)
    folder.mkdir(exist_ok=True)
    for name, text in render_model(program, judged.plan, Source("m.onnx", judged.model.sha256)).items():
        (folder / name).write_text(text, "utf-8")
    return program


def _checker() -> Any:
    """The second checker, which is not a module of mcudeploy."""
    spec = importlib.util.spec_from_file_location("check_plan", CHECKER)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MAIN = _checker().main


def verdict(folder: Path, library: str = "lib") -> int:
    """The exit code of the second checker."""
    return int(MAIN([str(folder / "plan.json"), str(folder / library)]))
