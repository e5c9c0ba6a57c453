"""Numbers in messages."""

from __future__ import annotations

from mcudeploy.common.errors import ModelError, Problem
from mcudeploy.common.text import agree, count_text


def test_nouns_and_verbs_agree_with_their_number() -> None:
    assert [count_text(number, "step") for number in (0, 1, 2000)] == ["0 steps", "1 step", "2,000 steps"]
    assert [agree(number, "differs", "differ") for number in (0, 1, 2)] == ["differ", "differs", "differ"]
    assert str(ModelError.unsupported((Problem("a", "Loop", "no"),))) == "1 node is not supported"
