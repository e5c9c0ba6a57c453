"""What `import mcudeploy` offers: models planned, built and run from Python, with typed results.

Errors are those of the command line, classes of `mcudeploy.common.errors`; `str(error)` is its message.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from mcudeploy.codegen.exporters import Kind
from mcudeploy.commands import build as building
from mcudeploy.commands import checking
from mcudeploy.commands import commands as api
from mcudeploy.commands.keywords import Choices, Named, board_of, options_of
from mcudeploy.device.target import Target
from mcudeploy.execution.deployment import Deployment
from mcudeploy.execution.running import Ran
from mcudeploy.ops.host_io import from_device

__all__ = ["BuildResult", "Choices", "PlanResult", "RunResult", "build", "check", "fit", "plan", "run"]

Array = NDArray[Any]
Report = Mapping[str, Any]
"""The JSON object of the command of that name."""


@dataclass(frozen=True, slots=True, eq=False)
class PlanResult:
    """A plan of a model for a board. `report`: all that `mcudeploy plan --json` says."""

    arena_bytes: int
    unsplit_arena_bytes: int
    report: Report
    deployment: Deployment

    def save(self, path: str | Path) -> None:
        """Write the plan, for `plan=` and `--plan`."""
        api.save_plan(self.deployment, Path(path))

    def chart(self, path: str | Path) -> None:
        """Draw the arena over steps, as .svg or .html."""
        api.save_chart(self.deployment, Path(path))


@dataclass(frozen=True, slots=True)
class BuildResult:
    """A library that was written. `verified`: None where the program was not run."""

    files: tuple[Path, ...]
    verified: bool | None
    report: Report


@dataclass(frozen=True, slots=True, eq=False)
class RunResult:
    """A run on a device. `outputs`: of every sample the outputs by name, in the model's own shapes and types;
    `milliseconds`: at the board's clock, by what `report["latency"]["milliseconds_by"]` says.
    """

    verified: bool
    outputs: tuple[Mapping[str, Array], ...]
    milliseconds: float
    arena_bytes: int
    flash_bytes: int
    ram_bytes: int
    report: Report


def check(model: str | Path, board: Named | None = None, **choices: Unpack[Choices]) -> Report:
    """What of a model can be deployed, and its sizes; with a board, whether it fits."""
    return checking.check_model(Path(model), None if board is None else board_of(board), options_of(choices))


def fit(model: str | Path, boards: Iterable[Named], **choices: Unpack[Choices]) -> Report:
    """How a model suits each of these boards, the best first."""
    return checking.fit_model(Path(model), [board_of(board) for board in boards], options_of(choices))


def plan(model: str | Path, board: Named, **choices: Unpack[Choices]) -> PlanResult:
    """Order and place all tensors of a model on a board. Raises FitError where there is no room."""
    made = api.plan_model(Path(model), board_of(board), options_of(choices))
    report = api.plan_report(made)
    return PlanResult(report["arena_bytes"], report["unsplit_arena_bytes"], report, made)


def build(
    model: str | Path,
    board: Named,
    folder: str | Path,
    *,
    kind: Kind | None = None,
    library_only: bool = True,
    verify: bool = True,
    force: bool = False,
    **choices: Unpack[Choices],
) -> BuildResult:
    """Write the C library of a model, laid out for the build system `kind`. Firmware comes with it, where the
    board has any, if not `library_only`. Raises OutputsDifferError where the program is wrong.
    """
    report = building.build_models(
        [Path(model)],
        board_of(board),
        options_of(choices),
        Path(folder),
        verify=verify,
        force=force,
        library_only=library_only,
        kind=kind,
    )
    return BuildResult(tuple(map(Path, report["files"])), report["verified"], report)


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

    `inputs`: arrays in the model's shapes and types, or files as `--input` takes them, one for each input, as
    often as there are samples; one sample is drawn where there are none.
    """
    found: list[Mapping[str, Array]] = []

    def keep(ran: Ran) -> None:
        graph = ran.made.plan.graph
        found.extend(
            {
                border.name: from_device(border, graph.tensors[border.tensor], stored[border.tensor])
                for border in graph.own_outputs()
            }
            for stored in ran.observed.outputs
        )

    with TemporaryDirectory(prefix="mcudeploy-") as folder:
        files = [_file(value, Path(folder, f"{number}.npy")) for number, value in enumerate(inputs)]
        report = api.run_model(
            Path(model),
            Target(board_of(board), port, emulate),
            options_of(choices),
            inputs=files,
            expected=[],
            told=keep,
        )
    return RunResult(
        verified=report["verified"],
        outputs=tuple(found),
        milliseconds=report["latency"]["milliseconds"],
        arena_bytes=report["arena_bytes"],
        flash_bytes=report["flash_bytes"],
        ram_bytes=report["total_ram_bytes"],
        report=report,
    )


def _file(value: Array | str | Path, path: Path) -> Path:
    if isinstance(value, str | Path):
        return Path(value)
    np.save(path, value, allow_pickle=False)
    return path
