"""`--dossier` of `build`."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import rich_click as click

from mcudeploy.cli.options import Command, typed_arguments
from mcudeploy.cli.parameter_types import NewFolder


def _dossier_option(command: Command) -> Command:
    """Add --dossier, which becomes one of the `parts`."""

    @click.option(
        "--dossier",
        metavar="DIR",
        type=NewFolder(),
        help="Also write the evidence for the library here: a page of what was checked, the plan, a second "
        "checker that needs Python alone, hashes.",
    )
    @functools.wraps(command)
    def packed(*args: Any, dossier: Path | None, parts: tuple[Any, ...] = (), **rest: Any) -> None:
        if dossier is not None:
            from mcudeploy.extensions.dossier.dossier_part import DossierPart

            parts = (*parts, DossierPart(dossier, typed_arguments()))
        command(*args, parts=parts, **rest)

    return packed


OPTIONS = {"build": (_dossier_option,)}
