"""Bases of the mutants: the small models of other tests."""

from __future__ import annotations

import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / name) for name in ("mutants", "frontend", "frontend/tflite", "units")]
