"""Builds the small program for any board by PlatformIO, into a cache of the test run's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mcudeploy.boards.catalogue import load_board
from mcudeploy.toolchain import Firmware, build_firmware, firmware_build

from .board_line import FILES


@pytest.fixture(autouse=True, scope="module")
def _platformio_itself(request: pytest.FixtureRequest) -> Iterator[None]:
    """Builds are tested on programs of PlatformIO, without the objects that the run shares."""
    with pytest.MonkeyPatch.context() as patch:
        if request.path.name == "test_build.py":
            patch.setattr(firmware_build, "run_logged", firmware_build.run_logged.run)
        yield


@pytest.fixture(scope="module")
def cache(folder_of_the_run: Path) -> Iterator[Path]:
    """A cache folder, empty when the run begins, for the tests of a module."""
    folder = folder_of_the_run / "cache"
    folder.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MCUDEPLOY_CACHE_DIR", str(folder))
        yield folder


@pytest.fixture
def boot(cache: Path) -> Callable[..., Firmware]:
    """Build the small program for a board's emulator, or with emulate=False for its hardware."""

    def build(name: str, *, emulate: bool = True) -> Firmware:
        return build_firmware(load_board(name), FILES, [], emulate=emulate, measurer=False)

    return build
