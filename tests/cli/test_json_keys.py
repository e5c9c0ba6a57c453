"""The keys of every command's JSON object: scripts rely on them.

After a change that is meant: pytest tests/cli/test_json_keys.py --update-golden
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from models import fully_connected
from onnx import TensorProto, helper, numpy_helper

from mcudeploy.cli.main import cli
from mcudeploy.common.resources import cache_dir
from tests.networks.decoder import Sizes, decoder
from tests.networks.onnx_files import save
from tests.pipeline.test_topology_file import GOOD
from tests.text.byte_tokenizer import TOKENS, save_byte_tokenizer

GOLDEN = Path(__file__).parent / "json_keys.txt"
QUICK = "--time-limit 0.3"
CACHES = "--no-split --state key_0_out=key_0 --state value_0_out=value_0"
COMMANDS = (
    "quantize float.onnx --data samples.npz -o m.onnx",
    "boards --all",
    "boards --explain stm32f405",
    "doctor",
    "devices",
    "check m.onnx",
    "check m.onnx --board stm32f405",
    "check unsupported.onnx",
    "fit m.onnx --boards stm32f405,microbit",
    f"plan m.onnx --board stm32f405 {QUICK} -o plan.json",
    f"plan m.onnx --board stm32f405,microbit {QUICK}",
    f"plan m.onnx --board stm32f405 {QUICK} --ram-limit 64",
    f"plan m.onnx --board stm32f405 {QUICK} --hop 2",
    "run m.onnx --board mps2-an386 --no-split",
    "evaluate dense.onnx --board host --no-split --data test.npz",
    "gate budgets.toml",
    f"measure m.onnx --board mps2-an386 {QUICK}",
    f"tune m.onnx --board mps2-an386 {QUICK}",
    f"build m.onnx --board stm32f405 {QUICK} -o lib --library-only",
    f"build m.onnx --board stm32f405 {QUICK} -o firmware",
    f"build m.onnx --board stm32f405 {QUICK} -o replaceable --library-only --replaceable conv_0",
    f"build m.onnx --board stm32f405 {QUICK} -o instances --library-only --hop 2 --instances 2",
    f"generate decoder.onnx --tokenizer tokenizer.json --tokens 2 --prompt a --board host {QUICK} {CACHES} "
    "--int8-cache *",
    f"build decoder.onnx --tokenizer tokenizer.json --board host {QUICK} {CACHES} -o text --library-only",
    "diff lib replaceable",
    "parameters make m.onnx --library replaceable -o new.bin",
    "parameters diff new.bin new.bin --library replaceable",
    f"adapt build m.onnx --board stm32f405 {QUICK} --head prototypes --features conv_0 --classes 3 -o head",
    "train check dense.onnx --boards stm32f405",
    f"train build dense.onnx --board stm32f405 {QUICK} -o steps",
    "train run dense.onnx --board mps2-an386 --no-split --data test.npz --steps 2",
    f"init project m.onnx --board stm32f405 {QUICK}",
    "flash --board mps2-an386 --dry-run",
    "graph order graph.json --time-limit 1",
    "graph order graph.json --time-limit 1 --memory 50% --link 1 --recompute",
    "graph place rectangles.csv --capacity 9",
    "graph complete m.onnx --board host --cuts cuts.json -o plan.json",
    "graph export m.onnx --board host --plan plan.json -o plan.csv",
    "graph pipeline m.onnx --topology units.toml",
)


def _float_model() -> onnx.ModelProto:
    weights = np.random.default_rng(0).normal(size=(4, 1, 3, 3)).astype(np.float32)
    node = helper.make_node("Conv", ["x", "w"], ["y"], name="conv", pads=[1, 1, 1, 1])
    x, y = (
        helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, c, 8, 8]) for n, c in (("x", 1), ("y", 4))
    )
    graph = helper.make_graph([node], "g", [x], [y], [numpy_helper.from_array(weights, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the commands read."""
    folder = tmp_path_factory.mktemp("keys")
    model = _float_model()
    onnx.save(model, folder / "float.onnx")
    model.graph.node[0].op_type = "Unknown"
    onnx.save(model, folder / "unsupported.onnx")
    samples = np.random.default_rng(1).normal(size=(4, 1, 8, 8)).astype(np.float32)
    np.savez(folder / "samples.npz", x=samples)
    fully_connected(folder / "dense.onnx", (8, 6, 4), quantised=False)
    np.savez(folder / "test.npz", x=samples.reshape(-1, 8)[:16], y=np.arange(16) % 4)
    sizes = Sizes(dim=8, layers=1, heads=2, kv_heads=1, vocabulary=TOKENS, context=8, hidden=8)
    save(decoder(sizes), folder, "decoder")
    save_byte_tokenizer(folder / "tokenizer.json")
    nodes = [{"id": n, "op": "op", "inputs": [n - 1] * bool(n), "outputs": [n]} for n in range(3)]
    graph = {"nodes": nodes, "tensors": [{"bytes": 4}] * 3, "outputs": [2]}
    (folder / "budgets.toml").write_text('[[gate]]\nmodel = "m.onnx"\nboard = "mps2-an386"\narena = 9\n')
    (folder / "graph.json").write_text(json.dumps(graph))
    (folder / "rectangles.csv").write_text("id,lower,upper,size\na,0,2,4\nb,1,3,5\n")
    (folder / "cuts.json").write_text('{"splits": []}')
    (folder / "units.toml").write_text(GOOD)
    return folder


def key_paths(value: Any, at: str = "") -> Iterator[str]:
    """Paths of all keys; names of tensors, operators, memories and files, which are data, become `*`."""
    if isinstance(value, list):
        for item in value:
            yield from key_paths(item, f"{at}[]")
    elif isinstance(value, dict):
        for key, item in value.items():
            path = f"{at}.{key if at.rpartition('.')[2] not in NAMED else '*'}"
            yield path
            yield from key_paths(item, path)


NAMED = {
    *("arenas", "traffic", "elsewhere", "kernels", "operator_checks", "memory_limits", "plans"),
    *("functions", "histogram"),
}
"""Objects whose keys are names from the model, the board or the program."""


def test_keys_of_json_objects(
    workplace: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(workplace)
    firmware = cache_dir() / "firmware"
    firmware.mkdir(parents=True, exist_ok=True)
    (workplace / "cache").mkdir()
    (workplace / "cache" / "firmware").symlink_to(firmware.resolve())
    monkeypatch.setenv("MCUDEPLOY_CACHE_DIR", str(workplace / "cache"))  # without earlier measurements
    lines = []
    for line in COMMANDS:
        result = CliRunner().invoke(cli, [*line.split(), "--json"])
        keys = sorted(set(key_paths(json.loads(result.stdout))))
        lines += [f"{line}: exit {result.exit_code}", *(f"    {path}" for path in keys)]
    text = "\n".join(lines) + "\n"
    if request.config.getoption("--update-golden"):
        GOLDEN.write_text(text, "utf-8")
    assert text == GOLDEN.read_text("utf-8"), "if that is meant, --update-golden"
