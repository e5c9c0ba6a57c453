"""The subjects of mutants: their bases, and the code of the commands that tries them.

A subject is called with a number and creates and tries the mutant of that number. It returns whether the file
was accepted; a DeployError is a refusal. Any other exception is a finding.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
import random
import sqlite3
import tomllib
from collections.abc import Callable
from pathlib import Path

import mutant_bases
from mutant_samples import MapSubject, SampleSubject
from mutant_wire import FrameSubject
from mutate_onnx import mutated_model
from mutate_values import INTEGERS, TEXTS, mutated_bytes, mutated_value, mutated_words, toml_text

from mcudeploy.boards.board import Board, read_board
from mcudeploy.boards.catalogue import list_boards, load_board
from mcudeploy.checker.judge import PlanFaultError
from mcudeploy.codegen.render import render_firmware
from mcudeploy.common.resources import resource_dir
from mcudeploy.costs.database import Database, RunKey, TileKey
from mcudeploy.execution.deployment import Deployment
from mcudeploy.ir.plan import Measurement, OperatorTime
from mcudeploy.planner import order, place
from mcudeploy.planner.model.model import Model, load_model
from mcudeploy.planner.plan_options import Options
from mcudeploy.planner.planner import find_plans
from mcudeploy.toolchain.project import assemble

Subject = Callable[[random.Random], object]
UNSPLIT = Options(split=False)


class WrongError(Exception):
    """A mutant was accepted, and its result is wrong."""


def generated(model: Model, board: Board, options: Options) -> None:
    """All that `build` does but compile: plan, check, render, assemble."""
    try:
        planned = find_plans(model, board, options)
    except PlanFaultError as error:
        if options.plan_file is None:
            raise WrongError(str(error)) from error
        raise
    deployment = Deployment.of(planned, planned.choices[0], board, options)
    files = render_firmware(deployment.program, deployment.plan, deployment.source)
    if not board.facts_only:
        assemble(board, files, deployment.program.kernels, emulate=board.emulated_only)


def _compile() -> None:
    """Compile the search's inner loops, which takes long if no earlier run did so."""
    for package in (order, place):
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)


class OnnxSubject:
    """Mutants of model files."""

    def __init__(self, folder: Path) -> None:
        paths = mutant_bases.models(folder)
        self.contents = [path.read_bytes() for path in paths]
        self.path = folder / "mutant.onnx"
        self.board = load_board("host")
        _compile()

    def __call__(self, source: random.Random) -> None:
        content = source.choice(self.contents)
        mutate = mutated_bytes if source.random() < 0.3 else mutated_model
        self.path.write_bytes(mutate(content, source))
        float_io, split = source.random() < 0.3, source.random() < 0.03
        generated(load_model(self.path, float_io), self.board, Options(split=split, time_limit=0.2))


class TfliteSubject:
    """Mutants of .tflite files."""

    def __init__(self, folder: Path) -> None:
        self.contents = mutant_bases.tflite_files()
        self.path = folder / "mutant.tflite"
        self.board = load_board("host")
        _compile()

    def __call__(self, source: random.Random) -> None:
        mutate = mutated_bytes if source.random() < 0.3 else mutated_words
        self.path.write_bytes(mutate(source.choice(self.contents), source))
        generated(load_model(self.path, source.random() < 0.3), self.board, UNSPLIT)


class PlanSubject:
    """Mutants of plan files."""

    def __init__(self, folder: Path) -> None:
        self.plans = mutant_bases.plans(folder)
        self.path = folder / "mutant.json"

    def __call__(self, source: random.Random) -> None:
        model, board, text = source.choice(self.plans)
        if source.random() < 0.3:
            self.path.write_bytes(mutated_bytes(text.encode(), source))
        else:
            self.path.write_text(json.dumps(mutated_value(json.loads(text), source)))
        generated(model, board, Options(plan_file=self.path))


class BoardSubject:
    """Mutants of board files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        names = [board.name for board in list_boards()]
        self.texts = {name: (resource_dir("boards") / f"{name}.toml").read_text() for name in names}
        self.model = load_model(mutant_bases.models(folder)[0])

    def __call__(self, source: random.Random) -> None:
        name = source.choice(list(self.texts))
        self.path = self.folder / f"{name}.toml"
        if source.random() < 0.4:
            self.path.write_bytes(mutated_bytes(self.texts[name].encode(), source))
        else:
            text = toml_text(mutated_value(tomllib.loads(self.texts[name]), source))
            self.path.write_text(text, encoding="utf-8", errors="surrogatepass")
        generated(self.model, read_board(self.path), UNSPLIT)


class DatabaseSubject:
    """Mutants of measurement databases: of the file's bytes, and by foreign SQL."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "mutant.sqlite"
        self.tile = TileKey("b", "f00d", "conv2d_s8", "shape", "[0, 3)")
        self.run = RunKey("sha", "b", "f00d", "plan")
        self.measured = Measurement(2**40, "instructions", (OperatorTime("conv_0", 3, 2**33),), 480)
        with Database(self.path) as database:
            database.add_tiles({self._numbered(number): number for number in range(300)} | {self.tile: 10})
            database.add_run(self.run, self.measured)
            database._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.content = self.path.read_bytes()

    def _numbered(self, number: int) -> TileKey:
        return TileKey("b", "f00d", "add_s8", "shape", str(number))

    def __call__(self, source: random.Random) -> None:
        for path in self.path.parent.glob(f"{self.path.name}-*"):
            path.unlink()
        by_bytes = source.random() < 0.6
        self.path.write_bytes(mutated_bytes(self.content, source) if by_bytes else self.content)
        if by_bytes and source.random() < 0.2:
            self.path.with_name(f"{self.path.name}-wal").write_bytes(source.randbytes(source.randrange(9000)))
        if not by_bytes:
            self._change(source)
        with Database(self.path) as database:
            database.tile(self.tile)
            database.run(self.run)
            database.tiles("b", "f00d")
            database.add_tiles({self._numbered(number): number for number in range(290, 310)})
            database.add_run(self.run, self.measured)
            if database.run(self.run) != self.measured:
                raise WrongError("a measurement that was just stored comes back otherwise")

    def _change(self, source: random.Random) -> None:
        operators = '[["conv_0", 3, 8589934592]]'
        other: tuple[object, ...] = (
            None, b"\xff\xfe", 1.5, float("inf"), "12", "[]", "{}", "[[]]", "[1]", "null", "[[1, 2, 3]]",
            operators[:-2], '[["a", 1e999, 2]]', '[["a", null, 2]]', "[" * 5000, *TEXTS,
            *(each for each in INTEGERS if abs(each) < 2**63),
        )  # fmt: skip
        connection = sqlite3.connect(self.path, isolation_level=None)
        connection.execute("PRAGMA ignore_check_constraints = ON")
        for _ in range(source.choice((1, 1, 2))):
            try:
                match source.randrange(8):
                    case 0:
                        connection.execute(f"PRAGMA user_version = {source.choice((0, 1, 2, -1, 2**31 - 1))}")
                    case 1:
                        connection.execute(f"DROP TABLE {source.choice(('tiles', 'runs'))}")
                    case 2:
                        connection.execute("ALTER TABLE tiles RENAME COLUMN ticks TO tacks")
                    case 3:
                        connection.execute("DROP TABLE runs")
                        connection.execute("CREATE VIEW runs AS SELECT * FROM tiles")
                    case 4:
                        connection.execute(
                            "CREATE TRIGGER t BEFORE INSERT ON tiles BEGIN SELECT RAISE(ABORT, 'no'); END"
                        )
                    case 5:
                        column = source.choice(("board", "kernel", "shape", "rows", "ticks", "ticks"))
                        connection.execute(f"UPDATE OR REPLACE tiles SET {column}=?", (source.choice(other),))
                    case _:
                        column = source.choice(("latency", "unit", "stack_bytes", "operators", "operators"))
                        connection.execute(f"UPDATE runs SET {column}=?", (source.choice(other),))
            except (sqlite3.Error, OverflowError, UnicodeError):
                continue
        connection.close()


KINDS: dict[str, Callable[[Path], Subject]] = {
    "onnx": OnnxSubject,
    "tflite": TfliteSubject,
    "plan": PlanSubject,
    "board": BoardSubject,
    "database": DatabaseSubject,
    "frames": FrameSubject,
    "samples": SampleSubject,
    "maps": MapSubject,
}
