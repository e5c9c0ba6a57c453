"""Ports that several runs share: one has a port at a time, and none keeps it for ever."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from mcudeploy.common.errors import ConfigError, PortError
from mcudeploy.device import lease
from mcudeploy.device.hints import flash_hint, silence_hint
from mcudeploy.device.lease import Claims, Lease, leased


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MCUDEPLOY_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_who_waits_is_next(tmp_path: Path) -> None:
    (tmp_path / "by-id").symlink_to(tmp_path / "ttyACM0")
    first, second = Lease(str(tmp_path / "ttyACM0")), Lease(str(tmp_path / "by-id"))  # one device
    other, third = Lease("socket://a:1"), Lease(str(tmp_path / "ttyACM0"))
    assert first.take() and first.take() and not first.wanted() and other.take()
    assert not second.take() and first.wanted() and f"process {os.getpid()} on " in second.holder()
    first.give_back()
    assert not first.take() and not third.take()  # it is the turn of the second
    assert second.take() and not second.wanted()
    assert not third.take() and second.wanted()
    third.give_back()  # waits no more
    assert not second.wanted()


def _hold(port: str, ready: multiprocessing.synchronize.Event) -> None:
    lease = Lease(port)
    assert lease.take()
    ready.set()
    time.sleep(60)


def test_a_process_that_is_killed_has_no_lease(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "PATIENCE_S", 0.1)
    context = multiprocessing.get_context("fork")
    ready = context.Event()
    child = context.Process(target=_hold, args=("/dev/ttyX", ready))
    child.start()
    assert ready.wait(10)
    said = rf"/dev/ttyX has been in use by process {child.pid} on .* for 0 s"
    with pytest.raises(PortError, match=said), leased("/dev/ttyX"):
        pass
    os.kill(child.pid or 0, signal.SIGKILL)
    child.join()
    other = Lease("/dev/ttyX")
    with leased("/dev/ttyX"):
        assert not other.take()
    assert other.take()


def test_a_command_waits_for_its_turn() -> None:
    lease, had = Lease("/dev/ttyX"), list[float]()
    assert lease.take()

    def wait() -> None:
        with leased("/dev/ttyX"):
            had.append(time.monotonic())

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.1)
    assert not had
    lease.give_back()
    thread.join(5)
    assert had


def _claimed(path: Path) -> bool:
    claims = Claims(path)
    with claims.of("tile") as ours:
        return ours


def test_what_one_process_claims_no_other_does(tmp_path: Path) -> None:
    claims = Claims(tmp_path / "claims")
    with multiprocessing.get_context("fork").Pool(1) as pool:
        with claims.of("tile") as ours, claims.of("another"):
            assert ours and not pool.apply(_claimed, (tmp_path / "claims",))
        assert pool.apply(_claimed, (tmp_path / "claims",))
    claims.close()


def test_a_cache_that_cannot_be_written_is_an_error_with_a_way_out(cache: Path) -> None:
    cache.write_text("")
    with pytest.raises(ConfigError, match=r"leases.*MCUDEPLOY_CACHE_DIR"):
        Lease("/dev/ttyX").take()


def test_hints_for_a_board_of_the_users_own_name_its_facts() -> None:
    assert silence_hint("stm32f405").endswith('Run "mcudeploy doctor --board stm32f405".')
    own = silence_hint("greenhouse")
    assert '"mcudeploy doctor --board FILE"' in own and "file of greenhouse" in own and "`clock_hz`" in own
    assert flash_hint("greenhouse") == 'Write it with "mcudeploy flash --board FILE".'
    assert flash_hint("") == 'Write it with "mcudeploy flash".'
