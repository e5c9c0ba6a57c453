"""PlatformIO development platform that needs no package of PlatformIO's registry.

`pio run` wants one private package: tool-scons, which is SCons. PyPI has the same SCons, and mcudeploy
depends on it. This platform is loaded before PlatformIO looks for the package, so it can put a package there
that starts the SCons of the running Python. A real tool-scons, where installed, is left alone.
"""

import importlib.metadata
import json
import re
import tempfile
from pathlib import Path

from platformio.dependencies import get_core_dependencies
from platformio.package.manager.core import get_core_package_dir
from platformio.platform.base import PlatformBase

NAME = "tool-scons"
SCRIPT = """\
import sys

from SCons.Script.Main import main

sys.exit(main())
"""


def package_version(scons: str, wanted: str) -> str:
    """PlatformIO's number for a SCons version, e.g. 4.11.1 -> 4.41101.0; the wanted one where they disagree.

    A SCons of another minor version still builds these projects; refusing it would only stop the user.
    """
    major, minor, patch = (int(part) for part in [*re.findall(r"\d+", scons), "0", "0"][:3])
    ours = f"{major}.{major}{minor:02d}{patch:02d}.0"
    floor = re.sub(r"^[^\d]*", "", wanted)
    return ours if ours.split(".")[:2] == floor.split(".")[:2] else floor


class McudeployPlatform(PlatformBase):
    def configure_default_packages(self, options, targets):
        if not get_core_package_dir(NAME, auto_install=False):
            self._provide_scons()
        return super().configure_default_packages(options, targets)

    def is_embedded(self):
        return True

    def _provide_scons(self):
        version = package_version(importlib.metadata.version("scons"), get_core_dependencies()[NAME])
        # The owner in .piopm is what makes PlatformIO accept the folder as the package it wants.
        spec = {"owner": "platformio", "id": None, "name": NAME, "requirements": None, "uri": None}
        files = {
            "scons.py": SCRIPT,
            "package.json": json.dumps({"name": NAME, "version": version, "system": "*"}),
            ".piopm": json.dumps({"type": "tool", "name": NAME, "version": version, "spec": spec}),
        }
        packages = Path(self.config.get("platformio", "packages_dir"))
        packages.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=packages, prefix=".scons-") as temporary:
            ready = Path(temporary) / NAME
            ready.mkdir()
            for name, text in files.items():
                (ready / name).write_text(text, encoding="utf-8")
            try:
                ready.replace(packages / NAME)
            except OSError:  # another build was faster
                if not (packages / NAME / "scons.py").is_file():
                    raise
