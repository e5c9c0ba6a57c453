"""TensorFlow Lite Micro's arena, as the recording interpreter of its wheel reports it."""

from __future__ import annotations

import re
import subprocess

from peers.environment import environment, last_message
from peers.generated import NetworkRefusedError
from peers.networks import Network

_SCRIPT = """
import sys
from tflite_micro.python.tflite_micro import runtime
interpreter = runtime.Interpreter.from_file(sys.argv[1], arena_size=64 << 20)
interpreter.print_allocations()
"""
_TOTAL = re.compile(r"Arena allocation total (\d+) bytes")


def arena_bytes(network: Network) -> int:
    """Return the bytes that the interpreter allocates, on this computer. Raises NetworkRefusedError."""
    if network.tflite is None:
        raise NetworkRefusedError("reads .tflite files; there is none of this network")
    command = [environment() / "python", "-c", _SCRIPT, network.tflite]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NetworkRefusedError(last_message(done.stderr))
    return total_of(done.stderr + done.stdout)


def total_of(text: str) -> int:
    """Return the total of the recording interpreter's report. Raises NetworkRefusedError without one."""
    total = _TOTAL.search(text)
    if total is None:
        raise NetworkRefusedError("reports no total of its arena")
    return int(total[1])
