"""Boards that labgrid shares: a place is acquired through `labgrid-client`, and released at the end."""

from __future__ import annotations

import ast
import getpass
import hashlib
import os
import re
import socket
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager

from mcudeploy.common.errors import PortError
from mcudeploy.common.resources import cache_dir
from mcudeploy.device.lease import FileLock, leased
from mcudeploy.toolchain.tools import run_tool

PREFIX = "labgrid://"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@+-]{0,99}")
_HOST = re.compile(r"[A-Za-z0-9_.:-]{1,253}")
_HOLDER = re.compile(r"^  acquired: (.+)$", re.MULTILINE)
_PORT = re.compile(
    r"^Acquired resource '[^'\n]*' \([^)\n]*/NetworkSerialPort[^)\n]*\):\n((?:  .*\n?)+)", re.MULTILINE
)
_CLIENT_S = 60.0
_SERVED_S = 15.0
"""Seconds that an exporter may take to serve a port."""
_LOOK_S = 0.3
_OURS = "acquired by mcudeploy"


@contextmanager
def acquired(place: str) -> Iterator[str]:
    """Yield the URL of a place's serial port. The place is ours inside of the block.

    Other runs of mcudeploy on this computer share it; the last of them releases it, unless the user had
    acquired it. Raises PortError if labgrid-client is not installed, or refuses.
    """
    if not _NAME.fullmatch(place):
        raise PortError(f"{PREFIX}{place}: that is not a name of a place. Write {PREFIX}PLACE.")
    digest = hashlib.sha256(place.encode()).hexdigest()[:20]
    users = FileLock(cache_dir() / "leases" / f"{digest}.users")
    changes = f"place {place}"
    try:
        with leased(changes):
            _join(place, users)
            url = _url(place)
        yield url
    finally:
        with leased(changes):
            _leave(place, users)


def _join(place: str, users: FileLock) -> None:
    users.take(shared=True)
    if _holder(_client(place, "show")) == _our_name():
        return
    users.write(_OURS)  # written first: an interrupt may come
    try:
        _client(place, "acquire")
    except PortError:
        users.write("")
        raise


def _leave(place: str, users: FileLock) -> None:
    users.give_back()
    if not users.take():
        return  # others still use it
    try:
        if users.text() == _OURS:
            users.write("")
            if _holder(_client(place, "show")) == _our_name():
                _client(place, "release")
    finally:
        users.give_back()


def _url(place: str) -> str:
    """Return the URL of the one serial port of an acquired place, waiting for its exporter."""
    deadline = time.monotonic() + _SERVED_S
    while True:
        ports = [_params(text) for text in _PORT.findall(_client(place, "show"))]
        if len(ports) != 1:
            count = "no NetworkSerialPort" if not ports else f"{len(ports)} NetworkSerialPorts, needed: one"
            raise PortError(f"place {place} has {count}. Change its matches: labgrid-client add-match.")
        host, port = ports[0].get("host"), ports[0].get("port")
        if isinstance(port, int) and isinstance(host, str) and _HOST.fullmatch(host):
            break
        if time.monotonic() > deadline:
            raise PortError(f"the serial port of place {place} is not served. Is its exporter running?")
        time.sleep(_LOOK_S)
    extra = ports[0].get("extra")
    if isinstance(extra, dict) and extra.get("proxy_required"):
        raise PortError(f"the serial port of place {place} needs a proxy, which mcudeploy cannot use.")
    scheme = "socket" if ports[0].get("protocol") == "raw" else "rfc2217"
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def _params(text: str) -> dict[str, object]:
    """Return the parameters of a resource as labgrid-client prints them; none if they cannot be parsed."""
    try:
        resource = ast.literal_eval(textwrap.dedent(text))
        return dict(resource["params"])
    except (ValueError, SyntaxError, TypeError, KeyError, RecursionError, MemoryError):
        return {}


def _holder(shown: str) -> str:
    match = _HOLDER.search(shown)
    return match[1].strip() if match else ""


def _our_name() -> str:
    """Return labgrid's name for this user and host."""
    host = os.environ.get("LG_HOSTNAME") or socket.gethostname()
    return f"{host}/{os.environ.get('LG_USERNAME') or getpass.getuser()}"


def _client(place: str, command: str) -> str:
    """Return the output of `labgrid-client`. Raises PortError if it fails."""
    try:
        ended = run_tool(["labgrid-client", "-p", place, command], _CLIENT_S)
    except OSError as error:
        raise PortError(
            f"labgrid-client does not start: {error.strerror}. Install it: pipx install labgrid"
        ) from error
    if ended.status:
        lines = [line.strip() for line in ended.output.splitlines() if line.strip()]
        reason = (lines[-1] if lines else f"it ends with status {ended.status}").rstrip(".")
        raise PortError(
            f"place {place}: labgrid-client {command} fails: {reason}. LG_COORDINATOR names the coordinator."
        )
    if ended.status is None:
        raise PortError(
            f"place {place}: labgrid-client {command} has not ended after {_CLIENT_S:.0f} s. Does the "
            "coordinator run that LG_COORDINATOR names?"
        )
    return ended.output
