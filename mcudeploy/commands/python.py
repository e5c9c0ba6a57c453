"""The functions of `import mcudeploy`: models checked, planned, built and run, with typed results.

Errors are those of the command line, classes of `mcudeploy.common.errors`; `str(error)` is its message.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, KeysView, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, SupportsIndex, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from mcudeploy.codegen.exporters import Kind
from mcudeploy.commands import build as building
from mcudeploy.commands import checking
from mcudeploy.commands import commands as api
from mcudeploy.commands.keywords import (
    Choices,
    Named,
    board_of,
    boards_of,
    checked,
    options_of,
    with_keywords,
)
from mcudeploy.common.c_arrays import model_file
from mcudeploy.common.text import count_text
from mcudeploy.device.target import Target
from mcudeploy.execution.deployment import Deployment
from mcudeploy.execution.parts import BuildRequest, RunRequest
from mcudeploy.ir.plan import Split
from mcudeploy.report import as_json
from mcudeploy.report import html as pages
from mcudeploy.verify.samples import NamedArray, ValueSource

Array = NDArray[Any]
Report = Mapping[str, Any]
"""The JSON object of the command of that name."""


class SampleOutputs(tuple[Mapping[str, Array], ...]):
    """The outputs of every sample by name, in the model's own shapes and types. A name instead of a number
    selects an output of the only sample.
    """

    __slots__ = ()

    @overload
    def __getitem__(self, key: str) -> Array: ...
    @overload
    def __getitem__(self, key: SupportsIndex) -> Mapping[str, Array]: ...
    @overload
    def __getitem__(self, key: slice) -> tuple[Mapping[str, Array], ...]: ...
    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return super().__getitem__(key)
        if len(self) != 1:
            raise KeyError(f"there are {len(self)} samples: outputs[0][{key!r}] is of the first")
        if key not in self[0]:
            raise KeyError(f"no output {key!r}; there are {', '.join(map(repr, self[0]))}")
        return self[0][key]

    def keys(self) -> KeysView[str]:
        """Return the names of the outputs."""
        return self[0].keys()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RunResult:
    """A run on a device. `milliseconds`: at the board's clock, by the source that
    `report["latency"]["milliseconds_by"]` names.
    """

    verified: bool
    outputs: SampleOutputs
    milliseconds: float
    arena_bytes: int
    flash_bytes: int
    ram_bytes: int
    report: Report

    def __repr__(self) -> str:
        """One line."""
        verdict = "verified" if self.verified else "NOT verified"
        sizes = f"{self.milliseconds:.3g} ms, {self.ram_bytes:,} B of RAM"
        return f"<run on {self.report['board']}: {verdict}, {sizes}>"

    @property
    def profile(self) -> Sequence[Report]:
        """The time of each operator, as `report["operators"]` has it."""
        return self.report["operators"]  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True, repr=False)
class BuildResult:
    """A library that was written. `verified`: None if the program was not run."""

    files: tuple[Path, ...]
    verified: bool | None
    report: Report

    def __repr__(self) -> str:
        """One line."""
        verdict = "verified" if self.verified else "not run"
        sizes = f"arena {self.report['arena_bytes']:,} B, {count_text(len(self.files), 'file')}"
        return f"<library for {self.report['board']}: {verdict}, {sizes}>"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PlanResult:
    """A plan of a model for a board. `report`: the object of `mcudeploy plan --json`. `choices`: the options
    with which the plan is run and built. `source`: the temporary folder of the model's file, if it has one.
    """

    arena_bytes: int
    unsplit_arena_bytes: int
    report: Report
    deployment: Deployment
    choices: Choices
    source: object = None

    def __repr__(self) -> str:
        """One line."""
        deployment = self.deployment
        return (
            f"<plan of {deployment.model.path.name} for {deployment.board.name}: "
            f"arena {self.arena_bytes:,} B, "
            f"unsplit {self.unsplit_arena_bytes:,} B, {count_text(len(self.splits), 'split')}>"
        )

    def _repr_html_(self) -> str:
        """Return the report of `mcudeploy plan --report`, in a frame of a notebook."""
        deployment = self.deployment
        command = ("plan", str(deployment.model.path), "--board", deployment.board.name)
        subject = pages.Subject(deployment, dict(self.report), deployment.measured())
        page = html.escape(pages.page(deployment.model.path, [subject], command))
        return f'<iframe sandbox="allow-scripts" width="100%" height="800" srcdoc="{page}"></iframe>'

    @property
    def latency(self) -> Report | None:
        """The measured latency of this plan, else the estimated one; None if neither is known."""
        known: Report | None = self.report["latency"] or self.report["estimated_latency"]
        return known

    @property
    def splits(self) -> tuple[Split, ...]:
        """The operators that are computed in rows together."""
        return self.deployment.plan.splits

    def save(self, path: str | Path) -> None:
        """Write the plan, for `plan=` and `--plan`."""
        api.save_plan(self.deployment, Path(path))

    def chart(self, path: str | Path) -> None:
        """Draw the arena over steps, as .svg or .html."""
        api.save_chart(self.deployment, Path(path))

    def run(self, inputs: Sequence[Array | str | Path] = (), device: str | None = None) -> RunResult:
        """Run the plan, and verify its outputs: in the emulator, or on the board at the port `device`. A plan
        for the host runs on this computer.
        """
        model, board = self.deployment.model.path, self.deployment.board
        with self._stored() as choices:
            return run(model, board, inputs=inputs, emulate=device is None, port=device, **choices)

    def build(
        self, folder: str | Path, *, layout: Kind | None = None, verify: bool = True, force: bool = False
    ) -> BuildResult:
        """Write the C library of the plan, laid out for the build system `layout`."""
        model, board = self.deployment.model.path, self.deployment.board
        with self._stored() as choices:
            return build(model, board, folder, kind=layout, verify=verify, force=force, **choices)

    @contextmanager
    def _stored(self) -> Iterator[Choices]:
        """Yield the choices with the plan in a file, which exists until the block ends."""
        with TemporaryDirectory(prefix="mcudeploy-") as folder:
            path = Path(folder, "plan.json")
            self.save(path)
            choices = self.choices.copy()
            choices["plan"] = path
            yield choices


@with_keywords
def check(model: str | Path, board: Named | None = None, **choices: Unpack[Choices]) -> Report:
    """Return the unsupported operators, the causes, and the model's sizes; with a board, whether it fits."""
    named = None if board is None else board_of(board)
    return as_json(checking.check_model(model_file(Path(model)), named, options_of(choices)))


@with_keywords
def fit(model: str | Path, boards: Iterable[Named], **choices: Unpack[Choices]) -> Report:
    """Return how a model suits each of these boards, the smallest that fits first."""
    return as_json(checking.fit_model(model_file(Path(model)), boards_of(boards), options_of(choices)))


@with_keywords
def plan(model: str | Path, board: Named, **choices: Unpack[Choices]) -> PlanResult:
    """Order and place all tensors of a model on a board. Raises FitError if there is no room."""
    deployment = api.plan_model(model_file(Path(model)), board_of(board), options_of(choices))
    report = as_json(deployment)
    return PlanResult(report["arena_bytes"], report["unsplit_arena_bytes"], report, deployment, choices)


@with_keywords
def build(
    model: str | Path,
    board: Named,
    folder: str | Path,
    *,
    kind: Kind | None = None,
    library_only: bool = True,
    verify: bool = True,
    force: bool = False,
    bounds: bool = False,
    **choices: Unpack[Choices],
) -> BuildResult:
    """Write the C library of a model, laid out for the build system `kind`. Firmware comes with it if the
    board has any and `library_only` is false. `bounds` adds the most instructions and cycles of a call.
    Raises OutputsDifferError if the program is wrong.
    """
    kind = checked("kind", kind, Kind | None)
    request = BuildRequest(
        [model_file(Path(model))],
        board_of(board),
        options_of(choices),
        Path(folder),
        verify=verify,
        force=force,
        library_only=library_only,
        kind=kind,
        parts=[building.named_part("bounds")] if bounds else [],
    )
    result = building.build_models(request)
    report = as_json(result)
    return BuildResult(tuple(result.files), report["verified"], report)


@with_keywords
def run(
    model: str | Path,
    board: Named = "host",
    *,
    inputs: Sequence[Array | str | Path] = (),
    emulate: bool = False,
    port: str | None = None,
    **choices: Unpack[Choices],
) -> RunResult:
    """Build a model, run it on the board, its emulator, or this computer, and verify its outputs.

    `inputs`: arrays in the model's shapes and types, or files as `--input` takes them, one for each input and
    sample. Without any, one sample is drawn.
    """
    result = api.run_model(
        model_file(Path(model)),
        Target(board_of(board), port, emulate),
        options_of(choices),
        RunRequest([_source(value, f"inputs[{number}]") for number, value in enumerate(inputs)]),
    )
    report = as_json(result)
    return RunResult(
        verified=report["verified"],
        outputs=SampleOutputs(api.model_outputs(result)),
        milliseconds=report["latency"]["milliseconds"],
        arena_bytes=report["arena_bytes"],
        flash_bytes=report["flash_bytes"],
        ram_bytes=report["total_ram_bytes"],
        report=report,
    )


def _source(value: Array | str | Path, name: str) -> ValueSource:
    return Path(value) if isinstance(value, str | Path) else NamedArray(name, np.asarray(value))
