"""Command lines of proposals: they can be pasted."""

from __future__ import annotations

import shlex

import pytest

from mcudeploy.cli.main import cli
from mcudeploy.cli.proposed import with_commands
from mcudeploy.common.errors import FitError, Proposal


@pytest.mark.parametrize(
    ("line", "option", "command"),
    [
        ("build m.onnx --board tiny -o lib", "--board large", "build m.onnx -o lib --board large"),
        ("run m.onnx --board tiny --port p", "--board large", "plan m.onnx --board large"),
        (
            "adapt build m.onnx --head prototypes --classes 2 --features a --board tiny -o lib",
            "--board large",
            "adapt build m.onnx --head prototypes --classes 2 --features a -o lib --board large",
        ),
        ("adapt build m.onnx --no-split -o lib", "--split", "adapt build m.onnx -o lib --split"),
    ],
)
def test_the_command_of_a_proposal_is_that_of_the_user(line: str, option: str, command: str) -> None:
    error = FitError("too large", (Proposal(option, "would fit"),))
    (proposal,) = with_commands(error, shlex.split(line), cli.commands).proposals
    assert proposal.command == f"mcudeploy {command}"
