"""Every script of benchmarks/ runs to its end, on the smallest task that it can have."""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
from collections.abc import Sequence
from multiprocessing.context import ForkServerContext
from pathlib import Path
from types import ModuleType

import pytest
from faults import ROOT, all_faults
from models import fully_connected, quantised_convolutions

from tests.weekly import sample

sys.path.append(str(Path(__file__).parent / "frontend" / "tflite"))

from flat_cases import network
from flat_files import FlatFile

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"
PATIENCE_S = 300.0

PARTS = {
    "block_cases",
    "cost_cases",
    "fused_cases",
    "coverage_text",
    "fleet_boards",
    "generated",
    "int16_cases",
    "nearest_tests",
    "signal_cases",
    "training_cases",
}
"""Files of the folder that others import or start."""

ON_M4 = ["--board", "mps2-an386"]
SHORT = ["--time-limit", "1"]

RUNS: dict[str, Sequence[Sequence[str]]] = {
    "analyse": [["quick", "--only", "softmax"]],
    "anytime": [["model.onnx", "--time-limits", "0.5,1"]],
    "board_walk": [["model.onnx"]],
    "bounds": [["model.onnx", "--random", "1", "--inputs", "2"]],
    "chips": [["rp2040", "--model", "model.onnx"]],
    "commands": [["--check"]],
    "compilers": [["models", "--limit", "1", "--levels=-O1"]],
    "constant_channels": [["model.onnx", "--inputs", "2"]],
    "cost_table": [["--check", "model.onnx", *ON_M4]],
    "distributions": [["--output", "dist"]],
    "estimates": [["model.onnx", *ON_M4, *SHORT, "--most", "50"]],
    "faults": [["--only", "auc-ties", "--first", "--jobs", "1"]],
    "figures": [["--check"]],
    "flash_waits": [
        ["model.onnx", "--board", "stm32f405", "--time-limit", "0.5"],
        ["--counted", "model.onnx", "--board", "stm32f405"],
    ],
    "fleet": [["--boards", "2", "--tiles", "60", "--busy", "--only", "share"]],
    "fused_networks": [["--networks", "1", "--mutants", "1"]],
    "fuzz": [["--graphs", "1"]],
    "heads": [["cost", "model.onnx", "--features", "conv_1", "--classes", "2"]],
    "interleavings": [["--plans", "1", "--runs", "1", "--graphs", "1"]],
    "interrupts": [["--moments", "1", "--commands", "place", "--time-limit", "0.1"]],
    "kernels": [["model.onnx", *ON_M4], ["--sweep", "--only", "softmax", *ON_M4]],
    "killed": [["--points", "0", "--emulators", "0", "--pairs", "0", "--no-disks"]],
    "layout_gap": [["model.onnx", *SHORT]],
    "league": [["models", "--models", "ic01_int8", "--boards", "mps2-an386", "--tools", "mcudeploy", *SHORT]],
    "licences": [["--only", "dev"]],
    "line_faults": [["--runs", "2"]],
    "link_faults": [["model.onnx", "--faults", "5", "--chain", "host,host"]],
    "loads": [["model.onnx"]],
    "moved_plans": [["--plans", "1", "--boards", "1", "--graphs", "1"]],
    "mutants": [["--mutants", "20"]],
    "npu_judges": [["--graphs", "1", "--mutants", "4"]],
    "npu_league": [["model.tflite", "--macs", "64", "--overheads", "", *SHORT]],
    "npu_streams": [["model.tflite", "--samples", "1", "--accelerators", "ethos-u55-64"]],
    "onnx_score": [["--only", "Abs", "--jobs", "1"]],
    "operators": [["--check"]],
    "order_ablation": [["model.onnx", "--seconds", "1"]],
    "order_models": [["model.onnx", "--seconds", "1"], ["--methods", "model.onnx", "--seconds", "1"]],
    "order_training": [[".", *SHORT], ["--growth", "250", "--growth-limit", "1"]],
    "parallel": [["mps2-an521", "2", "model.onnx", *SHORT]],
    "pipelines": [["models", "--rows", "1"]],
    "place_instances": [["rects.csv", *SHORT]],
    "plan_ablation": [["model.onnx", *SHORT, "--part", "recomputed halos"]],
    "plan_time": [["model.onnx", "--time-limit", "60"]],
    "residency": [[".", "--only", "exact", "--rows", "1", "--seconds", "1"]],
    "same_plans": [["models", "--jobs", "1", "--only", "keep-constant"]],
    "shapes": [["--only", "dense"]],
    "size": [["--model", "model.onnx", *ON_M4]],
    "slow_memory": [["mps2-an505", "model.onnx:sram=64k", *SHORT]],
    "split_plans": [["models/mlperf_tiny", "--summary", "--only", "ic01", "--time-limit", "0.5"]],
    "stack_bounds": [["models", *ON_M4, "--no-split"]],
    "stalls": [["models", "none"]],
    "streamed_decoder": [["--plan-only", "--rate", "0.1"]],
    "tflite_rounding": [["model.tflite", "--samples", "1"]],
    "tradeoff": [["model.onnx", *SHORT, "--limit", "5"]],
    "tune_models": [["model.onnx", *SHORT]],
    "training": [["float.onnx:full:momentum,90", *SHORT]],
    "tutorials": [["--pages", "pages"]],
    "verify_models": [["models", *ON_M4, "--only", "ic01", "--no-split"]],
    "wall_clock": [["2", "model.onnx", "--runs", "2"]],
    "wild": [["--folder", ".", *SHORT]],
}
"""The command lines of each script, in the folder of `work`."""

SLOW = {
    *("anytime", "board_walk", "bounds", "chips", "cost_table", "fleet", "fuzz", "heads", "interleavings"),
    *("kernels", "link_faults", "moved_plans", "npu_judges", "onnx_score", "parallel", "plan_time"),
    *("same_plans", "shapes", "size", "slow_memory", "streamed_decoder", "tradeoff", "training"),
    *("tune_models", "wild"),
}
"""Scripts whose smallest task takes 8 seconds or more: they run once a week."""


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a file of every kind that the scripts read."""
    folder = tmp_path_factory.mktemp("work")
    model = quantised_convolutions(folder / "model.onnx")
    fully_connected(folder / "float.onnx", (12, 8, 4), quantised=False)
    for name in ("mlperf_tiny/vww01_int8", "mlperf_tiny/ic01_int8"):
        (folder / "models" / name).mkdir(parents=True)
        (folder / "models" / name / "model.onnx").symlink_to(model)
    flat = FlatFile()
    flat.save(folder, *network(flat))
    (folder / "rects.csv").write_text("id,lower,upper,size\na,0,3,4\nb,1,5,8\n", "utf-8")
    graph = {
        "nodes": [{"id": at, "op": "op", "inputs": [at - 1][:at], "outputs": [at]} for at in range(9)],
        "tensors": [{"bytes": 8 + at} for at in range(9)],
        "outputs": [8],
    }
    (folder / "graph.json").write_text(json.dumps(graph), "utf-8")
    (folder / "pages").mkdir()
    (folder / "pages" / "page.md").write_text("```sh\nmcudeploy --version\n```\n", "utf-8")
    return folder


@pytest.fixture(scope="module")
def server() -> ForkServerContext:
    """Scripts run in children of a process that has imported what most of them need."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["mcudeploy.commands.tune", "mcudeploy.execution.running", "pytest"])
    return context


def test_every_script_has_a_run() -> None:
    assert RUNS.keys() | PARTS == {script.stem for script in FOLDER.glob("*.py")}


def test_every_fault_has_one_place_and_tests() -> None:
    faults = all_faults()
    assert len({fault.name for fault in faults}) == len(faults)
    for fault in faults:
        assert (ROOT / fault.file).read_text("utf-8").count(fault.old) == 1, fault.name
        assert all((ROOT / name).exists() for name in fault.chosen()) and fault.chosen(), fault.name


@pytest.mark.parametrize("script", sample(RUNS, RUNS.keys() - SLOW))
def test_a_script_runs(script: str, work: Path, server: ForkServerContext) -> None:
    for arguments in RUNS[script]:
        output = work / f"{script}.txt"
        process = server.Process(target=run, args=(script, arguments, work, output))
        process.start()
        process.join(PATIENCE_S)
        if process.is_alive():
            process.kill()
        assert process.exitcode == 0, f"{script} {' '.join(arguments)}\n{output.read_text('utf-8')}"


def run(script: str, arguments: Sequence[str], folder: Path, output: Path) -> None:
    """In a child process: the script as if from a shell, in a folder, with what it says in a file."""
    with output.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sys.stdout, sys.stderr = (os.fdopen(it, "w", buffering=1, encoding="utf-8") for it in (1, 2))
    os.chdir(folder)
    os.environ["PYTHONPATH"] = str(FOLDER.parent)
    sys.argv = [f"{script}.py", *arguments]
    sys.path[:0] = [str(FOLDER), str(FOLDER.parent)]
    file = FOLDER / f"{script}.py"
    module = ModuleType("__main__")
    module.__file__ = str(file)
    sys.modules["__main__"] = sys.modules["__mp_main__"] = module  # where its child processes look for it
    exec(compile(file.read_bytes(), file, "exec"), module.__dict__)
