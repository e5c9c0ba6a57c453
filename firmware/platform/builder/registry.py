"""Extra script of the registry environments: the flags of our board on top of a registry platform."""

import json
import sys
from pathlib import Path

Import("env")

project = Path(env.subst("$PROJECT_DIR"))
sys.path.insert(0, str(project / "platform" / "builder"))
import flags  # noqa: E402

facts = project / "boards" / (env.GetProjectOption("custom_mcud_board") + ".json")
flags.apply(env, json.loads(facts.read_text(encoding="utf-8"))["build"])
