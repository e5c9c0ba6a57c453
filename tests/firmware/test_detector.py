"""mcud_detector.c: the decision about a wake word, from a mean of probabilities."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest

from mcudeploy.common.resources import resource_dir

SOURCE = resource_dir("firmware") / "audio" / "mcud_detector.c"
WINDOW, CUTOFF, ROWS, PAUSE = 3, 100, 2, 4


class Record(ctypes.Structure):
    _fields_ = [
        ("probabilities", ctypes.c_void_p),
        *((name, ctypes.c_uint8) for name in ("window", "cutoff", "rows", "pause", "newest", "waits")),
        ("unread", ctypes.c_bool),
    ]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    path: Path = tmp_path_factory.mktemp("detector") / "detector.so"
    checked = ["-fsanitize=undefined", "-fsanitize-undefined-trap-on-error", "-Wall", "-Werror"]
    subprocess.run(["gcc", "-std=c99", "-O1", "-shared", "-fPIC", *checked, SOURCE, "-o", path], check=True)
    return ctypes.CDLL(str(path))


@pytest.mark.parametrize(
    ("probabilities", "detected"),
    [
        ([0, 0, 100, 100, 100], []),  # a mean at the cut-off is not above it
        ([0, 0, 100, 100, 101], [4]),
        ([0, 0, 200, 101], [3]),  # 0, 200, 101: the window holds three
        ([255, 255, 255], []),  # no pause before
        ([0, 0, 255, 255, 255, 255, 255], [3]),  # a second word needs a pause
        ([0, 0, 255, 255, 0, 0, 255, 255], [3, 7]),
    ],
)
def test_a_word_is_a_mean_above_the_cutoff_after_a_pause(
    probabilities: list[int], detected: list[int], library: ctypes.CDLL
) -> None:
    values = (ctypes.c_uint8 * WINDOW)()
    record = Record(ctypes.addressof(values), WINDOW, CUTOFF, ROWS, PAUSE)
    library.mcud_detector_add.restype = ctypes.c_bool
    library.mcud_detector_reset(ctypes.byref(record))
    answers = [library.mcud_detector_add(ctypes.byref(record), it) for it in probabilities]
    assert [at for at, answer in enumerate(answers) if answer] == detected
