"""The requests of the wire protocol, and the causes of a device's refusals; see firmware/WIRE.md."""

from __future__ import annotations

from enum import IntEnum

REPLY, BUSY, ERROR = 0x80, 0xFE, 0xFF
"""The bit that turns a request's type into its reply's; types of other frames from the device."""


class Request(IntEnum):
    """Types of requests."""

    HELLO = 1
    WRITE = 2
    READ = 3
    RUN = 4
    TIME = 5
    STACK = 6
    CALL = 7
    KERNELS = 8
    GUARD = 9
    START = 10
    PUT = 11
    TAKE = 12
    NEXT = 13
    STATE = 14
    RESET = 15
    PARAMETERS = 16
    PULL = 17
    PUSH = 18
    RESTORE = 19


CHANGING = frozenset(
    {
        Request.HELLO,
        Request.WRITE,
        Request.RUN,
        Request.TIME,
        Request.CALL,
        Request.START,
        Request.PUT,
        Request.RESET,
        Request.PUSH,
        Request.RESTORE,
    }
)
"""Requests that may change an arena."""
UNSYNCHRONISED, SEQUENCE, UNKNOWN = 1, 2, 3
"""Causes of a refusal to which a session reacts; `REASONS` has all of them."""
OF_PARAMETERS = frozenset({Request.PARAMETERS, Request.PULL, Request.PUSH, Request.RESTORE})
"""Requests that only programs with parameters know."""
REASONS = {  # the predicates of "the board"
    1: "was reset in the middle of the session (brown-out, watchdog, crash, or its reset button). Run again.",
    2: "is talking to another program too: its sequence numbers do not match. Close the other one.",
    3: "does not know this request: write the current measurer to the board.",
    4: "refuses the length of this request: write the current measurer to the board.",
    5: "refuses it: out of range.",
    6: "refuses it: the kernel is not linked into this firmware.",
    7: "cannot do it: only a host build with the address sanitizer guards memory, only a board of a chain "
    "takes payloads.",
    8: "cannot do it now: it computes, or the payload or a part of the parameters is not there.",
    9: "refuses it: the parameters are those of another model. Make them for this program: "
    "`mcudeploy parameters make`.",
    10: "refuses it: the parameters arrived with a wrong CRC. The initial ones are set.",
}
