"""Constants in RAM that the application replaces: of another model file, whole or not at all, bit for bit."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from models import fully_connected, quantised_convolutions
from numpy.typing import NDArray
from onnx import numpy_helper

import mcudeploy
from mcudeploy.boards.catalogue import load_board
from mcudeploy.checker.judge import PlanFaultError
from mcudeploy.checker.judge import check as check_plan
from mcudeploy.cli.main import cli
from mcudeploy.commands.commands import plan_model
from mcudeploy.common.errors import ConfigError, FitError, ModelError, ProtocolError, UsageError
from mcudeploy.device.target import Device, Target, open_device
from mcudeploy.execution.deployment import Deployment
from mcudeploy.extensions.dossier.dossier_part import DossierPart
from mcudeploy.extensions.heads import parameter_exchange as api
from mcudeploy.ir.parameter_blob import ParameterBlob
from mcudeploy.ir.parameter_table import Parameter, ParameterTable
from mcudeploy.planner.cores.functions import assign
from mcudeploy.planner.files.parameter_layout import layout_text, parameters_of, read_layout
from mcudeploy.planner.model.model import load_model
from mcudeploy.planner.plan_options import Options
from mcudeploy.verify.compare import Storage, run_once
from mcudeploy.verify.samples import drawn_samples
from tests import reports
from tests.deploy.test_stateful import network, saved
from tests.device.served import Served
from tests.linked import SANITIZED, linked
from tests.weekly import sample

M4, HOST = load_board("mps2-an386"), load_board("host")
BOTH = Options(time_limit=0.5, name="model", replaceable=("conv_0,conv_1",))
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "parameters"

Outputs = Mapping[str, NDArray[np.generic]]


def outputs_of(device: Device, deployment: Deployment) -> Outputs:
    storage = Storage.of(deployment.plan)
    (sample,) = drawn_samples(deployment.plan.graph, 5, 1)
    run_once(device, storage, sample.stored)
    return {io.tensor: storage.get_tensor(device, io.tensor) for io in deployment.plan.graph.outputs}


def same(one: Outputs, other: Outputs) -> bool:
    return all(one[name].tobytes() == other[name].tobytes() for name in one)


def changed(path: Path, out: Path, initializer: str, by: int = 1) -> Path:
    """The model with one element of a constant changed."""
    model = onnx.load(path)
    for each in model.graph.initializer:
        if each.name == initializer:
            value = numpy_helper.to_array(each).copy()
            value.flat[0] += by
            each.CopyFrom(numpy_helper.from_array(value, initializer))
    onnx.save(model, out)
    return out


def layout_of(deployment: Deployment, options: Options, folder: Path) -> Path:
    path = folder / "model_parameters.json"
    path.write_text(layout_text(deployment.plan, deployment.model, options))
    return path


@pytest.mark.parametrize("board", [HOST, M4], ids=lambda it: it.name)
def test_outputs_are_those_of_constants_in_flash(board: object, model: Path) -> None:
    target = Target(board)  # type: ignore[arg-type]
    plain = reports.run_model(model, target, replace(BOTH, replaceable=()), inputs=[], expected=[])
    report = reports.run_model(model, target, BOTH, inputs=[], expected=[])
    assert report["verified"] and plain["verified"]
    assert report["outputs"] == plain["outputs"]
    assert report["parameters"]["operators"] == ["conv_0", "conv_1"] and plain["parameters"] is None
    more = report["static_ram_bytes"] - plain["static_ram_bytes"]
    arenas = report["arena_bytes"] - plain["arena_bytes"]
    assert 0 <= more - arenas - report["parameters"]["bytes"] <= 32


@pytest.mark.parametrize("kind", ["int8", "float32"])
def test_a_pushed_blob_gives_the_outputs_of_the_changed_file(kind: str, tmp_path: Path) -> None:
    if kind == "int8":
        files = [quantised_convolutions(tmp_path / f"{seed}.onnx", seed) for seed in (1, 2)]
    else:
        files = [
            fully_connected(tmp_path / f"{seed}.onnx", (24, 16, 4), quantised=False, seed=seed)
            for seed in (1, 2)
        ]
    deployment, other = (plan_model(path, M4, BOTH) for path in files)
    blob = parameters_of(files[1], read_layout(layout_of(deployment, BOTH, tmp_path)))
    target = Target(M4)
    with open_device(target, other.build(target)) as device:
        wanted = outputs_of(device, other)
    with open_device(target, deployment.build(target)) as device:
        session = device.session
        first = outputs_of(device, deployment)
        assert session.pull_parameters().values == deployment.plan.parameters.content()
        session.push_parameters(blob)
        assert same(outputs_of(device, deployment), wanted) and not same(first, wanted)
        assert session.pull_parameters() == replace(blob, sequence=0)
        foreign = ParameterBlob(bytes(8), blob.values)
        with pytest.raises(ProtocolError, match="another model"):
            session.push_parameters(foreign)
        assert same(outputs_of(device, deployment), wanted)
        session.restore_parameters()
        assert same(outputs_of(device, deployment), first)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("small", replace(BOTH, stream_input=True)),
        ("small", replace(BOTH, cores=2)),
        ("small", replace(BOTH, split=False)),
        ("LSTM", replace(BOTH, replaceable=("recurrent_0",), stateful=True)),
        ("LSTM", replace(BOTH, replaceable=("recurrent_0",))),
    ],
    ids=["streamed", "cores", "unsplit", "stateful", "recurrent"],
)
def test_forms_of_programs(kind: str, options: Options, tmp_path: Path) -> None:
    """The program of a first file, with the parameters of a second one, has the second program's outputs."""
    if kind == "small":
        files = [quantised_convolutions(tmp_path / f"{seed}.onnx", seed) for seed in (1, 2)]
    else:
        files = [saved(network(kind), tmp_path)]
        files.append(changed(files[0], tmp_path / "other.onnx", "w"))
    deployment, other = (plan_model(path, HOST, options) for path in files)
    blob = parameters_of(files[1], read_layout(layout_of(deployment, options, tmp_path)))
    target = Target(HOST)
    outputs = []
    for each in (other, deployment):
        with open_device(target, each.build(target, sanitize=True)) as device:
            if each is deployment:
                device.session.push_parameters(blob)
            device.session.reset()
            outputs.append(outputs_of(device, each))
    assert same(*outputs)


def test_a_blob_that_ends_early_or_wrong_leaves_no_mixture(model: Path) -> None:
    deployment = plan_model(model, HOST, BOTH)
    target = Target(HOST)
    values = bytes(255 - byte for byte in deployment.plan.parameters.content())
    with open_device(target, deployment.build(target, sanitize=True)) as device:
        session = device.session
        first = outputs_of(device, deployment)
        blob = ParameterBlob(session.pull_parameters().hash, values)
        content = bytearray(blob.to_bytes())
        content[-1] ^= 1

        class Wrong:
            def to_bytes(self) -> bytes:
                return bytes(content)

        with pytest.raises(ProtocolError, match="wrong CRC"):
            session.push_parameters(Wrong())  # type: ignore[arg-type]
        assert same(outputs_of(device, deployment), first)
        del content[-40:]
        session.push_parameters(Wrong())  # type: ignore[arg-type]
        for refused in (session.run, session.time_steps, session.pull_parameters):
            with pytest.raises(ProtocolError, match="a part of the parameters"):
                refused()
        session.push_parameters(blob)
        assert session.pull_parameters() == blob


def test_a_program_without_parameters_says_so(model: Path) -> None:
    deployment = plan_model(model, HOST, replace(BOTH, replaceable=()))
    target = Target(HOST)
    with (
        open_device(target, deployment.build(target)) as device,
        pytest.raises(ProtocolError, match="build it with --replaceable and --parameters-in ram"),
    ):
        device.session.pull_parameters()


@pytest.mark.parametrize(
    ("constant", "reason"),
    [
        (
            "first_w",
            "packed_weights of conv_0 differs, and conv_0 is not replaceable.* --replaceable conv_1,conv_0",
        ),
        ("q_first_zero", "conv_0 has the tensor .* activations must not change"),
    ],
)
def test_a_model_that_differs_in_more_is_refused(
    constant: str, reason: str, model: Path, tmp_path: Path
) -> None:
    options = replace(BOTH, replaceable=("conv_1",))
    layout = read_layout(layout_of(plan_model(model, M4, options), options, tmp_path))
    assert parameters_of(model, layout).hash.hex() == layout.hash
    parameters_of(changed(model, tmp_path / "good.onnx", "second_w"), layout)
    with pytest.raises(ModelError, match=reason):
        parameters_of(changed(model, tmp_path / "bad.onnx", constant), layout)
    with pytest.raises(ModelError, match=r"cannot replace small\.onnx"):
        parameters_of(fully_connected(tmp_path / "fc.onnx", (8, 4), quantised=True), layout)


def test_a_scale_that_changes_a_number_of_the_record_is_refused(tmp_path: Path, model: Path) -> None:
    layout = read_layout(layout_of(plan_model(model, M4, BOTH), BOTH, tmp_path))
    coarse = onnx.load(model)
    for each in coarse.graph.initializer:
        if each.name in ("second_w_scale", "second_b_scale"):
            each.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(each) * np.float32(1000), each.name))
    onnx.save(coarse, tmp_path / "coarse.onnx")
    with pytest.raises(ModelError, match=r"conv_1 needs quant\.left_shift = [1-9].*, the library has 0"):
        parameters_of(tmp_path / "coarse.onnx", layout)


_USE = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

static void run_and_print(uint32_t result)
{
    printf("%u", (unsigned)result);
    memset(model_input(), 7, MODEL_INPUT_COUNT * sizeof *model_input());
    model_run();
    for (uint32_t i = 0; i < MODEL_OUTPUT_COUNT; i++) {
        printf(" %d", model_output()[i]);
    }
    printf("\\n");
}

int main(int count, char **words)
{
    run_and_print(0);
    for (int i = 1; i < count; i++) {
        FILE *file = fopen(words[i], "rb");
        uint8_t *flash = malloc(4096);
        const uint32_t size = (uint32_t)fread(flash, 1, 4096, file);
        uint8_t *blob = malloc(size + (size == 0u)); /* the program may read no byte more */
        uint8_t *beside = malloc(size + 1);
        memcpy(blob, flash, size);
        memcpy(beside + 1, flash, size);
        run_and_print(model_use_parameters(blob, size));
        if (model_use_parameters(beside + 1, size) == MCUD_PARAMETERS_OK) {
            return 1;
        }
    }
    model_reset_parameters();
    run_and_print(0);
    return 0;
}
"""


def test_parameters_that_kernels_read_in_flash(tmp_path: Path) -> None:
    """Each blob fills an allocation, so the sanitizer finds a read beyond it."""
    options = replace(BOTH, parameters_in="flash")
    files = [quantised_convolutions(tmp_path / f"{seed}.onnx", seed) for seed in (1, 2)]
    lines: list[list[str]] = []
    blobs = [tmp_path / f"{name}.bin" for name in ("new", "foreign", "short", "damaged", "empty")]
    for path in files:
        library = tmp_path / f"lib{path.stem}"
        report = reports.build_models([path], HOST, options, library, library_only=True)
        assert report["verified"] and report["parameters"]["memory"] == "flash"
        if path is files[0]:
            content = mcudeploy.make_parameters(files[1], library)
            foreign = ParameterBlob(bytes(8), ParameterBlob.of(content).values).to_bytes()
            damaged = content[:-1] + bytes([content[-1] ^ 1])
            for blob, data in zip(blobs, (content, foreign, content[:-1], damaged, b""), strict=True):
                blob.write_bytes(data)
        command = [linked(library, _USE, *SANITIZED), *(blobs if path is files[0] else ())]
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, env={"ASAN_OPTIONS": "detect_leaks=0"}
        )
        lines.append(done.stdout.splitlines())
    first, new, *refused, last = lines[0]
    assert lines[1] == [new, new] and new != first and last == first
    assert [line.split(" ", 1) for line in refused] == [
        [code, new.split(" ", 1)[1]] for code in ("3", "5", "5", "2")
    ]


@pytest.mark.parametrize("board", sample([load_board("mps2-an521"), M4], 1), ids=lambda it: it.name)
def test_parameters_in_flash_on_boards(board: Any, model: Path) -> None:
    options = replace(BOTH, parameters_in="flash", cores=board.cores)
    bare = replace(options, replaceable=(), parameters_in="ram")
    plain = reports.run_model(model, Target(board), bare, inputs=[], expected=[])
    report = reports.run_model(model, Target(board), options, inputs=[], expected=[])
    assert report["verified"] and report["outputs"] == plain["outputs"]
    assert 0 < report["static_ram_bytes"] - plain["static_ram_bytes"] < 400 * board.cores
    with pytest.raises(UsageError, match="name their operators with --replaceable"):
        plan_model(model, board, replace(options, replaceable=()))
    program = plan_model(model, board, options).program
    assert program.parameters is not None
    lines = program.parameters.assignments
    symbols = {it.params_symbol for it in (*program.operators, *program.part_operators)}
    assert {line.partition(".")[0] for line in lines} == symbols and len(lines) == len(set(lines))


def test_names_of_onnx_nodes_name_operators(model: Path) -> None:
    read = load_model(model)
    operator = next(it for it in read.graph.operators if it.name == "conv_0")
    node = operator.onnx_nodes[-1]
    assert node != "conv_0" and read.with_replaceable([node]).replaceable == ("conv_0",)
    board = load_board("stm32h747")
    unit = board.units[-1].name
    assert assign(read.graph, board, [f"{unit}={node}"]).elsewhere == {"conv_0": unit}


def test_names_and_kinds_of_operators_are_checked(model: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no such operator; it has conv_0, conv_1"):
        plan_model(model, M4, replace(BOTH, replaceable=("conv_7",)))
    with pytest.raises(UsageError, match="cannot be combined with --hop"):
        plan_model(model, M4, replace(BOTH, hop=2))
    with pytest.raises(UsageError, match="cannot be combined with --assign"):
        plan_model(model, load_board("rp2040"), replace(BOTH, assign=("core1=conv_0",)))
    with pytest.raises(UsageError, match="leave out --replaceable"):
        wanted = DossierPart(tmp_path / "papers", ("mcudeploy", "build"))
        reports.build_models([model], M4, BOTH, tmp_path / "lib", parts=[wanted])
    with pytest.raises(FitError, match=r"parameters need [\d,]+ bytes, sram .* [\d,]+ too many\. Name fewer"):
        wide = fully_connected(tmp_path / "wide.onnx", (1000, 300, 2), quantised=True)
        plan_model(wide, load_board("stm32f405"), replace(BOTH, replaceable=("conv_0",)))


def test_tables_of_indices_are_not_replaceable(tmp_path: Path) -> None:
    nodes = [
        onnx.helper.make_node("Gather", ["x", "places"], ["taken"], axis=2),
        onnx.helper.make_node("Relu", ["taken"], ["y"]),
    ]
    x, y = (
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, 4, count])
        for name, count in (("x", 8), ("y", 3))
    )
    places = numpy_helper.from_array(np.array([5, 0, 3]), "places")
    graph = onnx.helper.make_graph(nodes, "gather", [x], [y], [places])
    path = tmp_path / "gather.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)]), path)
    with pytest.raises(UsageError, match=r"--replaceable take_0: rows.* of take_0 decide where it reads"):
        plan_model(path, M4, replace(BOTH, replaceable=("take_0",)))


def test_the_judge_knows_the_table(model: Path) -> None:
    deployment = plan_model(model, M4, BOTH)
    plan, work = deployment.plan, deployment.model.work
    check_plan(plan, work, M4)
    first, second, *others = plan.parameters.parameters

    def judged(*parameters: Parameter) -> None:
        check_plan(replace(plan, parameters=ParameterTable(parameters)), work, M4)

    judged(first, second, *others)
    with pytest.raises(PlanFaultError, match="overlaps another"):
        judged(first, replace(second, offset=first.end - 4), *others)
    with pytest.raises(PlanFaultError, match="is not aligned"):
        judged(first, replace(second, offset=second.offset + 2), *others)
    with pytest.raises(PlanFaultError, match="belongs to no step"):
        judged(first, replace(second, operator="conv_9"), *others)
    with pytest.raises(PlanFaultError, match="overlaps another"):
        judged(replace(first, offset=-4), second, *others)
    sram = M4.memories[0]
    full = sram.bytes - M4.free_bytes(sram)
    small = sram.model_copy(update={"bytes": full + plan.layout.arena_bytes + plan.parameters.size_bytes - 1})
    board = M4.model_copy(update={"memories": (small, *M4.memories[1:])})
    check_plan(replace(plan, parameters=ParameterTable()), work, board)
    with pytest.raises(PlanFaultError, match="the parameters"):
        check_plan(plan, work, board)


def test_blobs_of_files_are_checked(model: Path, tmp_path: Path) -> None:
    reports.build_models([model], M4, BOTH, tmp_path / "lib", library_only=True)
    blob = tmp_path / "new.bin"
    other = changed(model, tmp_path / "other.onnx", "second_w")
    report = api.make(other, tmp_path / "lib", blob)
    assert report["operators"] == ["conv_0", "conv_1"] and blob.stat().st_size == report["blob_bytes"]
    initial = ParameterBlob.of(mcudeploy.make_parameters(model, tmp_path / "lib"))
    comparison = api.compare(api.read_blob(blob), initial, tmp_path / "lib")
    assert not comparison["equal"] and [bool(it["differ"]) for it in comparison["parameters"]] == [
        False,
        True,
    ]
    layout = read_layout(tmp_path / "lib")
    larger = [layout.parameters[0].model_copy(update={"offset": layout.size_bytes})]
    (tmp_path / "damaged.json").write_text(layout.model_copy(update={"parameters": larger}).model_dump_json())
    with pytest.raises(ConfigError, match=r"damaged\.json is not the layout of .* ends at byte .* of "):
        api.compare(initial, initial, tmp_path / "damaged.json")
    content = bytearray(blob.read_bytes())
    for size in (0, 31, 32, len(content) - 1):
        blob.write_bytes(content[:size])
        with pytest.raises(ConfigError, match="is not a blob of parameters"):
            api.read_blob(blob)
    for at in range(len(content)):
        blob.write_bytes(content[:at] + bytes([content[at] ^ 0x20]) + content[at + 1 :])
        with pytest.raises(ConfigError, match="is not a blob of parameters"):
            api.read_blob(blob)


def test_the_commands_exchange_blobs_with_a_running_program(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    deployment = plan_model(model, HOST, BOTH)
    layout_of(deployment, BOTH, tmp_path)
    changed(model, tmp_path / "other.onnx", "second_w")

    def run(line: str, code: int = 0) -> dict[str, Any]:
        result = CliRunner().invoke(cli, [*line.split(), "--json"])
        assert result.exit_code == code, result.output
        report: dict[str, Any] = json.loads(result.stdout)
        return report

    assert run("parameters make other.onnx --library . -o new.bin")["operators"] == ["conv_0", "conv_1"]
    with Served(deployment.build(Target(HOST)).elf, "socket") as served:
        run(f"parameters pull --port {served.url} -o initial.bin")
        pushed = run(f"parameters push new.bin --port {served.url}")
        assert pushed["value_bytes"] == deployment.plan.parameters.size_bytes
        run(f"parameters pull --port {served.url} -o now.bin")
        assert run(f"parameters diff new.bin --port {served.url} --library .")["equal"]
        assert (tmp_path / "now.bin").read_bytes() == (tmp_path / "new.bin").read_bytes()
        parameters = run("parameters diff initial.bin now.bin --library model_parameters.json")["parameters"]
        assert [(it["operator"], bool(it["differ"])) for it in parameters] == [
            ("conv_0", False),
            ("conv_1", True),
        ]
    assert "second file, or --port" in run("parameters diff new.bin --library .", 2)["error"]["message"]
    damaged = (tmp_path / "now.bin").read_bytes()[:-1]
    (tmp_path / "now.bin").write_bytes(damaged)
    assert "its header states" in run("parameters push now.bin --port /dev/null", 3)["error"]["message"]
    assert "is not a port" in run("parameters push new.bin --port spy://x", 2)["error"]["message"]


@pytest.mark.parametrize("kind", ["rust", "cmake"])
def test_libraries_of_build_systems(kind: str, model: Path, tmp_path: Path) -> None:
    if kind == "rust":
        with pytest.raises(UsageError, match="leave out --replaceable"):
            reports.build_models([model], M4, BOTH, tmp_path / "lib", kind=kind)
        return
    reports.build_models([model], M4, BOTH, tmp_path / "lib", kind=kind)
    assert read_layout(tmp_path / "lib").replaceable == ("conv_0", "conv_1")


@pytest.mark.parametrize("compiler", sample(["gcc", "clang"], 1))
def test_power_cuts_leave_the_old_or_the_new_parameters(compiler: str, model: Path, tmp_path: Path) -> None:
    """The program of examples/parameters; the power fails in the middle of each unit of flash."""
    library = tmp_path / "library"
    reports.build_models([model], HOST, BOTH, library, library_only=True)
    first, *sources = sorted(EXAMPLE.glob("*.c"))
    sanitized = SANITIZED if compiler == "gcc" else ()
    program = linked(library, first, f"-I{EXAMPLE}", *sanitized, *sources, compiler=compiler)
    flash, blobs = tmp_path / "flash.bin", [tmp_path / f"{seed}.bin" for seed in (2, 3)]
    for seed, blob in zip((2, 3), blobs, strict=True):
        api.make(quantised_convolutions(tmp_path / f"{seed}.onnx", seed), library, blob)

    def run(*words: object, status: int = 0) -> list[str]:
        command = [program, flash, *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stderr
        return done.stdout.splitlines()

    initial = run()
    old = run(blobs[0])
    assert initial[0] == "loaded from flash: 2" and old[1:3] == ["taken from the message: 0", "saved: 0"]
    assert run() == ["loaded from flash: 0", old[-1]] and old[-1] != initial[-1]
    before, cuts, kept = flash.read_bytes(), 0, []
    while True:
        flash.write_bytes(before)
        command = [program, flash, blobs[1], str(cuts)]
        if subprocess.run(command, capture_output=True, check=False).returncode == 0:
            break
        assert run()[0] == "loaded from flash: 0"
        kept.append(run()[-1])
        cuts += 1
    new = run()[-1]
    assert cuts == 128 + 1 + 352 // 32 and new not in (old[-1], initial[-1])
    assert set(kept) == {old[-1]}, "the header, the last unit, is torn in all cuts"
    assert run(tmp_path / "nothing.bin")[1] == "taken from the message: 1"
    blobs[0].write_bytes(blobs[0].read_bytes()[:-1])
    assert run(blobs[0])[1:] == ["taken from the message: 1", new]
