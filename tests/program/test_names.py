"""A model's name in C: a given name is used unchanged or refused; a file's name always works."""

from __future__ import annotations

import pytest

from mcudeploy.codegen.model_names import model_name
from mcudeploy.common.errors import UsageError


@pytest.mark.parametrize(
    ("given", "name"), [("tiny", "tiny"), ("Person-Detect_2", "person_detect_2"), ("a" * 40, "a" * 40)]
)
def test_given_names(given: str, name: str) -> None:
    assert model_name(given, "file") == name


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("", "not a name in C"),
        ("\xfcn\xef", "not a name in C"),
        ("2nd-model", "not a name in C"),
        ("_x", "not a name in C"),
        ("a b", "not a name in C"),
        ("../x", "not a name in C"),
        ("x\n", "not a name in C"),
        ("a" * 41, "longer than 40"),
        ("a__b", "a_b"),
        ("int", "keyword"),
        ("stdint", r"header stdint\.h"),
        ("Math", r"header math\.h"),
        ("t", "a prefix of records"),
        ("in12", "a prefix of records"),
        ("t1_x", "a prefix of records"),
        ("p_feed", "a prefix of records"),
        ("op_feed", "a prefix of records"),
        ("mcud", "runtime"),
        ("mcud_tape", "runtime"),
        ("conv2d_s8_1x1", "runtime"),
        ("concat", "runtime"),
        ("memory", r"header memory\.h"),
        ("all", "target that CMake reserves"),
    ],
)
def test_given_names_that_cannot_be(given: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        model_name(given, "file")


@pytest.mark.parametrize(
    ("stem", "name"),
    [("model", "model"), ("2nd", "model_2nd"), ("math", "model_math"), ("int", "model_int"),
     ("\xfc", "model"), ("mcud_hal", "model_mcud_hal"), ("conv2d_s8", "model_conv2d_s8"),
     ("t_x", "model_t_x"), ("p_feed", "model_p_feed"), ("tiny_x", "tiny_x"),
     ("test", "model_test")],
)  # fmt: skip
def test_names_of_files(stem: str, name: str) -> None:
    assert model_name(None, stem) == name
