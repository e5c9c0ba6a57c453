"""Puts the harness on the path: `from harness import check_against_onnx, check_graph`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
