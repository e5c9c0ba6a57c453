"""The licences of mcudeploy's dependencies, docs/licences.md, from the metadata of installed packages.

    python benchmarks/licences.py [--only EXTRA]

With `--only` those of one extra are printed.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HEAD = """# Licences of dependencies

For those who approve dependencies: their licences.
Made by `python benchmarks/licences.py` from the metadata of the installed packages. mcudeploy is
Apache-2.0. The generated C contains none of these packages: all of it is mcudeploy's and Apache-2.0 as
well. mcudeploy does not ship compilers, QEMU, OpenOCD or similar programs.

| package | for | licence |
|---|---|---|
"""


def licence(name: str) -> str:
    """Return a package's licence: its expression, its classifiers, or the first line of its text."""
    about = metadata.metadata(name)
    if "License-Expression" in about:
        return about["License-Expression"]
    classified = [
        it.split(" :: ")[-1] for it in about.get_all("Classifier") or () if it.startswith("License")
    ]
    named = [it for it in classified if it != "OSI Approved"]
    return ", ".join(named) or about.get("License", "not stated").splitlines()[0]


def main() -> int:
    """Write the file; return 1 if a package is not installed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", metavar="EXTRA")
    only = parser.parse_args().only
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    needed = {"running it": project["dependencies"]} | {
        f"`mcudeploy[{extra}]`": listed for extra, listed in project["optional-dependencies"].items()
    }
    if only is not None:
        needed = {only: project["optional-dependencies"][only]}
    lines = []
    for use, requirements in needed.items():
        for name in sorted(re.match(r"[\w-]+", it)[0].lower() for it in requirements):
            try:
                lines.append(f"| {name} | {use} | {licence(name)} |")
            except metadata.PackageNotFoundError:
                print(f"{name} is not installed", file=sys.stderr)
                return 1
    if only is None:
        (ROOT / "docs" / "licences.md").write_text(HEAD + "\n".join(lines) + "\n", encoding="utf-8")
    else:
        print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
