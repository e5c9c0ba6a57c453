"""Numbers in messages."""

from __future__ import annotations

from mcudeploy.common.errors import ModelError, Problem, causes
from mcudeploy.common.text import agree, count_text


def test_nouns_and_verbs_agree_with_their_number() -> None:
    assert [count_text(number, "step") for number in (0, 1, 2000)] == ["0 steps", "1 step", "2,000 steps"]
    assert [agree(number, "differs", "differ") for number in (0, 1, 2)] == ["differ", "differs", "differ"]
    assert str(ModelError.unsupported((Problem("a", "Loop", "no"),))) == "1 node is not supported"


def test_nodes_of_one_cause_are_told_together() -> None:
    problems = (Problem("a", "Loop", "no"), Problem("b", "If", "no"), Problem("c", "Loop", "no"))
    assert [str(cause) for cause in causes(problems)] == ["2 nodes (Loop): no; first: 'a'", "b (If): no"]
    assert [cause.where for cause in causes(problems)] == ["2 nodes, first: 'a'", "b"]
