"""A generated file of docs/: written, or compared with the existing one."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def write_or_check(described: str | None, file: Path, text: str, what: str) -> int:
    """Write the file and print a summary, or with --check only compare it; return the exit code."""
    parser = argparse.ArgumentParser(
        description=described, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="change nothing; fail where the file differs")
    if parser.parse_args().check:
        return int(not file.exists() or text != file.read_text(encoding="utf-8"))
    file.write_text(text, encoding="utf-8")
    print(what, file=sys.stderr)
    return 0
