"""Boards at sockets: raw, by RFC 2217, and through labgrid."""

from __future__ import annotations

import os
import socket
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from bad_line import HASH
from served import Served

from mcudeploy.boards.catalogue import load_board
from mcudeploy.boards.flashers import Command
from mcudeploy.boards.trust import trust
from mcudeploy.common.errors import FlashError, PortError, ProtocolError, UsageError
from mcudeploy.device.labgrid import acquired
from mcudeploy.device.session import connect
from mcudeploy.device.target import Target, open_board, require_port
from mcudeploy.device.transport import open_transport
from mcudeploy.toolchain.firmware import Firmware, Sizes

BYTES = bytes(range(256)) * 8
"""0xff, which telnet escapes, among them."""


@pytest.mark.parametrize("scheme", ["socket", "rfc2217"])
def test_a_served_port(scheme: str, program: Path) -> None:
    with Served(program, scheme) as served:
        for _ in range(2):  # the port is free again as soon as it is closed
            with connect(served.url, board="host") as session:
                session.write(0, 0, BYTES)
                assert session.read(0, 0, len(BYTES)) == BYTES
        with connect(served.url, board="host") as session:
            served.cut()
            with pytest.raises(ProtocolError, match=r"closed the connection|lost rfc2217.*server still run"):
                session.read(0, 0, len(BYTES))
    with pytest.raises(PortError, match=r"refused.*(serves the port|server running)"):
        connect(served.url)


@pytest.mark.parametrize("port", ["process:./evil.sh", "spy:///dev/null?file=log", "unix:///tmp/s", "a:b"])
def test_a_port_starts_no_program_and_writes_no_file(port: str) -> None:
    with pytest.raises(UsageError, match=r"is not a port: give a device"):
        Target(load_board("stm32f405"), port)
    assert Target(load_board("stm32f405"), "/dev/serial/by-path/pci-0000:00:14.0-usb-0:1:1.0").is_real


def test_a_server_that_speaks_something_else() -> None:
    said = r"does not seem to support RFC2217.*Is its server running"
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(PortError, match=said):
        open_transport(f"rfc2217://127.0.0.1:{silent.getsockname()[1]}")
    with socket.create_server(("127.0.0.1", 0)) as talks:
        said = threading.Thread(target=lambda: talks.accept()[0].sendall(b"Port already in use\r\n"))
        said.start()
        with pytest.raises(ProtocolError):
            connect(f"socket://127.0.0.1:{talks.getsockname()[1]}", timeout_s=0.3)
        said.join()


@pytest.mark.parametrize(
    "url",
    ["socket://", "socket://a", "socket://:1", "socket://a:x", "socket://a:99999", "socket://[::1:5",
     "rfc2217://", "rfc2217://a", "rfc2217://127.0.0.1:1?timeout=x", "nosuch://a:1", f"socket://{'a' * 70}:1",
     "socket://a..b:1", "rfc2217://a..b:1"],
)  # fmt: skip
def test_what_is_not_an_address(url: str) -> None:
    with pytest.raises(PortError) as caught:
        open_transport(url)
    assert url in str(caught.value)


def test_a_board_elsewhere_needs_a_flasher_that_reaches_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCUDEPLOY_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("mcudeploy.device.target.open_transport", lambda *_: _Closes())
    tool(tmp_path, monkeypatch, "openocd", "exit 0")
    tool(tmp_path, monkeypatch, "esptool", "exit 0")
    board, port = load_board("stm32f405"), "socket://lab1:4000"
    elsewhere = r'on lab1, and openocd writes boards whose probe is on this computer\. Run .*tool = "command"'
    with pytest.raises(UsageError, match=elsewhere):
        require_port(Target(board, port))
    assert require_port(Target(board, port, probe="066DFF48")) == port
    assert require_port(Target(board, "socket://localhost:4000")) == "socket://localhost:4000"
    (tmp_path / "openocd").unlink()
    with pytest.raises(UsageError, match=elsewhere):
        require_port(Target(board, port))
    with pytest.raises(FlashError, match="none of its flashers is installed"):
        require_port(Target(board, "socket://localhost:4000"))


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def test_an_emulator_that_its_flasher_starts_is_waited_for(
    tmp_path: Path, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing listens before the command has run, and for some time after it."""
    monkeypatch.setenv("MCUDEPLOY_CACHE_DIR", str(tmp_path))
    starts = Command(tool="command", line=("emulate", "{elf}"))
    board = load_board("stm32f405").model_copy(update={"flashers": (starts,)})
    trust(board)
    number = _free_port()
    emulators: list[Served] = []

    def start() -> None:
        emulators.append(Served(program, "socket", number).__enter__())

    later = threading.Timer(0.4, start)
    monkeypatch.setattr("mcudeploy.device.target.flash", lambda *_: later.start())
    firmware = Firmware(program, board, HASH, emulated=False, sizes=Sizes(0, 0, 0, 0, 0, 0))
    target = Target(board, f"socket://127.0.0.1:{number}")
    try:
        assert require_port(target) == target.port
        with open_board(target, str(target.port), firmware, reuse=True) as device:
            assert device.session.info.board == "host"
    finally:
        later.join()
        for emulator in emulators:
            emulator.__exit__()


def test_only_a_command_may_start_what_listens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCUDEPLOY_CACHE_DIR", str(tmp_path))
    tool(tmp_path, monkeypatch, "openocd", "exit 0")
    with pytest.raises(PortError, match="refused"):
        require_port(Target(load_board("stm32f405"), f"socket://127.0.0.1:{_free_port()}"))


def test_patience_multiplies_the_time_limits() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        for patience, least_s in ((1.0, 0.1), (5.0, 0.5)):
            start = time.monotonic()
            with pytest.raises(ProtocolError, match="no answer"):
                connect(f"socket://127.0.0.1:{silent.getsockname()[1]}", timeout_s=0.1, patience=patience)
            assert least_s <= time.monotonic() - start < least_s + 0.35


class _Closes:
    def close(self) -> None:
        """Nothing was open."""


def tool(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, script: str) -> None:
    """A program of that name, and none of others but the shell's own."""
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{folder}")


CLIENT = """
PATH=/usr/bin:/bin
cd {folder}
echo "$2 $3" >> calls
held=`/bin/cat held 2>/dev/null`
case $3 in
show)
    echo "Place '$2':"
    echo "  acquired: ${{held:-None}}"
    [ -n "$held" ] && /bin/cat resource ;;
acquire)
    if [ -n "$held" ]; then echo "labgrid-client: error: Place $2 is already acquired by $held"; exit 1; fi
    echo me/tester > held ;;
release) : > held ;;
esac
exit 0
"""
RESOURCE = """Acquired resource 'uart' (lab/boards/NetworkSerialPort/uart):
  {{'acquired': 'bench',
   'avail': True,
   'cls': 'NetworkSerialPort',
   'params': {{'extra': {{'path': '/dev/ttyACM0'}},
              'host': '{host}',
              'port': {port},
              'protocol': '{protocol}',
              'speed': 115200}}}}
"""
Lab = Callable[..., list[str]]


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """A labgrid-client with one place; what it was called with since the last look."""
    monkeypatch.setenv("MCUDEPLOY_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("LG_HOSTNAME", "me")
    monkeypatch.setenv("LG_USERNAME", "tester")
    tool(tmp_path, monkeypatch, "labgrid-client", CLIENT.format(folder=tmp_path))
    (tmp_path / "resource").write_text(RESOURCE.format(host="lab1", port=5001, protocol="rfc2217"))

    def calls() -> list[str]:
        text = (tmp_path / "calls").read_text()
        (tmp_path / "calls").write_text("")
        return [line.split()[1] for line in text.splitlines() if not line.endswith("show")]

    return calls


def held(folder: Path) -> bool:
    return bool((folder / "held").exists() and (folder / "held").read_text().strip())


def test_a_place_is_released_by_the_last_who_uses_it(lab: Lab, tmp_path: Path) -> None:
    with acquired("bench") as url:
        assert url == "rfc2217://lab1:5001" and lab() == ["acquire"]
        with acquired("bench") as same:
            assert same == url
        assert lab() == [] and held(tmp_path)
    assert lab() == ["release"] and not held(tmp_path)
    with pytest.raises(KeyboardInterrupt), acquired("bench"):
        raise KeyboardInterrupt
    assert lab() == ["acquire", "release"]


def test_a_place_that_the_user_has_acquired_stays_his(lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "held").write_text("me/tester")
    with acquired("bench"):
        pass
    assert lab() == [] and held(tmp_path)


def test_what_a_killed_run_left_is_taken_over_and_released(lab: Lab, tmp_path: Path) -> None:
    child = os.fork()
    if child == 0:
        with acquired("bench"):
            os._exit(0)
    os.waitpid(child, 0)
    assert held(tmp_path)
    with acquired("bench"):
        assert lab() == ["acquire"]
    assert lab() == ["release"] and not held(tmp_path)


def test_a_place_of_somebody_else_is_left_alone(lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "held").write_text("me2/other")
    said = r"place bench: .*acquire fails: .*already acquired by me2/other"
    with pytest.raises(PortError, match=said), acquired("bench"):
        pass
    assert lab() == ["acquire"] and held(tmp_path)


@pytest.mark.parametrize(
    ("resource", "message"),
    [
        ("", "has no NetworkSerialPort"),
        (RESOURCE.format(host="a", port=1, protocol="raw") * 2, "2 NetworkSerialPorts"),
        (RESOURCE.format(host="a", port="None", protocol="raw"), "is not served"),
        (RESOURCE.format(host="a;b", port=1, protocol="raw"), "is not served"),
        (RESOURCE.replace("'path'", "'proxy_required': True, 'x'").format(host="a", port=1, protocol="raw"),
         "needs a proxy"),
        (RESOURCE.format(host="a", port="(", protocol="raw"), "is not served"),
    ],
)  # fmt: skip
def test_places_without_a_port_of_use_are_released(
    resource: str, message: str, lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcudeploy.device.labgrid._SERVED_S", 0.0)
    (tmp_path / "resource").write_text(resource)
    with pytest.raises(PortError, match=message), acquired("bench"):
        pass
    assert not held(tmp_path)


def test_without_labgrid_the_error_says_how_to_get_it(lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "resource").write_text(RESOURCE.format(host="::1", port=7, protocol="raw"))
    with acquired("bench") as url:
        assert url == "socket://[::1]:7"
    (tmp_path / "labgrid-client").unlink()
    with pytest.raises(PortError, match=r"does not start: .*pipx install labgrid"), acquired("bench"):
        pass
    with pytest.raises(PortError, match="not a name of a place"), acquired("--help"):
        pass
