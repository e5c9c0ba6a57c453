"""Several instances of a model in one library: each has the bits of a separate library."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from mcudeploy.boards.catalogue import load_board
from mcudeploy.common.errors import FitError, UsageError
from mcudeploy.extensions.dossier.dossier_part import DossierPart
from mcudeploy.extensions.instances.instances_part import InstancesPart
from mcudeploy.planner.cores import parts as core_parts
from mcudeploy.planner.plan_options import Options
from tests import reports
from tests.deploy.test_stateful import network, saved
from tests.linked import SANITIZED, linked
from tests.networks.windows import TimeConv, time_network

COUNT, CALLS = 3, 60
STATEFUL = Options(stateful=True, time_limit=0.5)
HOP = Options(hop=2, time_limit=0.5, split=False)
IN_AXI_SRAM = Options(hop=2, time_limit=0.5, split=False, memory_limits=(("dtcm", 512),))
PADDED = (TimeConv(8, stride=2, pads=(1, 1)), TimeConv(8, pads=(1, 1)))

READS_CALLS = r"""
#include <stdio.h>
#include <string.h>

#include "net.h"
@ARENAS@
/* Each call is the number of an instance, whether it is reset before, and an input. */
int main(void)
{
    static float x[NET_INPUT_COUNT];
    int32_t head[2];
    @INIT@
    while (fread(head, sizeof head, 1, stdin) == 1 && fread(x, sizeof x, 1, stdin) == 1) {
        uint32_t lacking = 0;
#ifdef NET_INSTANCES
        if (net_select(NET_INSTANCES) != 1u || net_select((uint32_t)head[0]) != 0u) {
            return 1;
        }
#endif
        if (head[1] != 0) {
            net_reset();
        }
#ifdef NET_HOP_ROWS
        lacking = net_push(x);
#else
        memcpy(net_input(), x, sizeof x);
        net_run();
#endif
        printf("%u", (unsigned)lacking);
        for (uint32_t i = 0; i < NET_OUTPUT_COUNT; i++) {
            printf(" %a", (double)net_output()[i]);
        }
        printf("\n");
    }
    return 0;
}
"""
OF_APPLICATION = "uint8_t net_arena_sram[NET_ARENA_SRAM_BYTES] __attribute__((aligned(NET_ARENA_ALIGNMENT)));"
GIVEN = {"extern": (OF_APPLICATION, ""), "init": (f"static {OF_APPLICATION}", "net_init(net_arena_sram);")}


@dataclass(frozen=True)
class Calls:
    """Calls in turn: the instance of each, whether it is reset before, and its input."""

    instances: np.ndarray
    resets: np.ndarray
    inputs: np.ndarray

    @classmethod
    def drawn(cls, elements: int) -> Calls:
        rng = np.random.default_rng(elements)
        inputs = rng.standard_normal((CALLS, elements)).astype("<f4")
        return cls(rng.integers(0, COUNT, CALLS), rng.integers(0, 15, CALLS) == 0, inputs)

    def of(self, instance: int) -> Calls:
        mine = self.instances == instance
        return Calls(self.instances[mine], self.resets[mine], self.inputs[mine])

    def bytes(self) -> bytes:
        heads = np.stack([self.instances, self.resets], 1).astype("<i4")
        return b"".join(
            head.tobytes() + each.tobytes() for head, each in zip(heads, self.inputs, strict=True)
        )


def built(path: Path, out: Path, options: Options, count: int = COUNT, **how: Any) -> reports.Report:
    parts = [InstancesPart(count), *how.pop("parts", ())] if count > 1 else []
    how = {"library_only": True, "verify": False, **how}
    name = "rp2040" if options.cores == 2 else "stm32h743" if options.memory_limits else "stm32f405"
    return reports.build_models([path], load_board(name), options, out, parts=parts, **how)


def outputs(out: Path, calls: Calls, arena: str = "own") -> list[str]:
    """A line for each call: the runs that the window lacks, and the output."""
    program = out / "program"
    if not program.exists():
        arenas, init = GIVEN.get(arena, ("", ""))
        example = (out / "examples" / "main.c").read_text()
        cores, _, _ = example.partition("int main(void)") if "mcud_core_start" in example else ("", "", "")
        main = cores + READS_CALLS.replace("@ARENAS@", arenas).replace("@INIT@", init)
        linked(out, main, *SANITIZED, "-pthread")
    done = subprocess.run([program], input=calls.bytes(), capture_output=True, check=True)
    return done.stdout.decode().splitlines()


def model(kind: str, folder: Path) -> Path:
    if kind in ("GRU", "LSTM"):
        return saved(network(kind), folder)
    return time_network(folder / "net.onnx", 20, 6, PADDED, "mean")


@pytest.mark.parametrize(
    ("kind", "options", "arena"),
    [
        ("LSTM", STATEFUL, "own"),
        ("GRU", STATEFUL, "init"),
        ("window", HOP, "own"),
        ("window", HOP, "extern"),
        ("window", IN_AXI_SRAM, "own"),
        ("window", replace(HOP, cores=2), "own"),
    ],
    ids=["lstm", "gru, init", "window", "window, extern", "window, two memories", "window, two cores"],
)
def test_interleaved_sequences_give_the_bits_of_separate_libraries(
    kind: str, options: Options, arena: str, tmp_path: Path
) -> None:
    path = model(kind, tmp_path)
    with patch.object(core_parts, "_LEAST_ITERATIONS", 1):
        report = built(path, tmp_path / "all", options, arena=arena)
    alone = built(path, tmp_path / "one", options, count=1)
    assert len(report["library_arenas"]) == (2 if options is IN_AXI_SRAM else 1)
    calls = Calls.drawn(6 if kind in ("GRU", "LSTM") else 12)
    interleaved = np.array(outputs(tmp_path / "all", calls, arena))
    assert 0 < calls.resets.sum() < CALLS and len(interleaved) == CALLS
    for instance in range(COUNT):
        wanted = outputs(tmp_path / "one", calls.of(instance))
        assert interleaved[calls.instances == instance].tolist() == wanted
    assert len(set(interleaved)) > CALLS // 2
    known = report["instances"]
    more = {memory: size - alone["library_arenas"][memory] for memory, size in known["arenas"].items()}
    assert known["arenas"] == report["library_arenas"] and known["count"] == COUNT
    assert sum(more.values()) == (COUNT - 1) * known["state_bytes"]
    assert report["state_bytes"] <= known["state_bytes"] < report["state_bytes"] + 8 * 32


SELECTS_IN_A_RUN = """
#include "mcud_owner.h"
#include "net.h"
static uint32_t faults;
void mcud_owner_fault(uint32_t code, const void *program, const void *holder)
{
    faults += code == MCUD_OWNER_ORDER;
    (void)program;
    (void)holder;
}
int main(void)
{
    net_select(1);
    net_run();
    net_select(0);
    net_step(0);
    if (faults != 0u || net_select(1) != 0u) {
        return 1;
    }
    net_step(1); /* of a run of instance 0 */
    return faults == 1u && mcud_owner_error() == MCUD_OWNER_ORDER ? 0 : 2;
}
"""


def test_debug_builds_refuse_the_next_step_of_another_instance(tmp_path: Path) -> None:
    out = tmp_path / "all"
    built(model("window", tmp_path), out, HOP)
    program = linked(out, SELECTS_IN_A_RUN, *SANITIZED, "-DMCUD_CHECK_OWNER")
    assert subprocess.run([program], check=False).returncode == 0


def test_the_figures_of_a_library_count_all_instances(tmp_path: Path) -> None:
    path = model("window", tmp_path)
    report, one = (built(path, tmp_path / f"{n}", HOP, n, verify=True) for n in (COUNT, 1))
    known = report["instances"]
    header = (tmp_path / f"{COUNT}" / "include" / "net.h").read_text()
    for macro, value in (
        ("NET_ARENA_BYTES", known["arenas"]["sram"]),
        ("NET_INSTANCES", COUNT),
        ("NET_INSTANCE_BYTES", known["state_bytes"]),
    ):
        assert f"#define {macro} {value}u\n" in header
    more = report["static_ram_bytes"] - one["static_ram_bytes"]
    assert report["verified"] and more >= (COUNT - 1) * known["state_bytes"]
    assert report["weights_bytes"] == one["weights_bytes"]


@pytest.mark.parametrize(
    ("kind", "example"),
    [(None, "examples/main.c"), ("arduino", "examples/out_selftest/out_selftest.ino"), ("rust", None)],
)
def test_the_readme_and_the_example_name_the_choice(
    kind: str | None, example: str | None, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    built(model("window", tmp_path), out, replace(HOP, name="out"), kind=kind)
    readme = (out / "README.md").read_text()
    assert f"select(i)` {'of the model ' if kind == 'rust' else ''}chooses one of {COUNT} instances" in readme
    assert example is None or "out_select(i)" in (out / example).read_text()


def test_every_model_of_a_library_has_the_instances(tmp_path: Path) -> None:
    paths = [time_network(tmp_path / f"{name}.onnx", 20, 6, PADDED, "mean") for name in ("one", "two")]
    board, out = load_board("stm32f405"), tmp_path / "out"
    parts = [InstancesPart(COUNT)]
    report = reports.build_models(paths, board, HOP, out, parts=parts, library_only=True, verify=False)
    sizes = [each["instances"]["arenas"]["sram"] for each in report["models"]]
    assert report["library_arenas"] == {"sram": sum(sizes)} and len(sizes) == 2


@pytest.mark.parametrize(
    ("count", "options", "how", "message"),
    [
        (2, Options(time_limit=0.5), {}, "keeps no states between runs, so one instance serves all callers"),
        (2, HOP, {"kind": "esphome"}, "hears one microphone: leave out --instances"),
        (2, HOP, {"arena": "shared"}, "leave out --instances, or --arena shared"),
        (2, HOP, {"parts": [DossierPart(Path("papers"), ())]}, "library of one instance"),
    ],
)
def test_what_cannot_have_instances_is_refused(
    count: int, options: Options, how: dict[str, Any], message: str, tmp_path: Path
) -> None:
    path = model("window", tmp_path)
    with pytest.raises(UsageError, match=message):
        built(path, tmp_path / "out", options, count, **how)
    assert not (tmp_path / "out").exists()


def test_instances_without_room_are_refused_with_their_share(tmp_path: Path) -> None:
    path = model("window", tmp_path)
    with pytest.raises(FitError, match=r"250 instances of net need .* One needs .* fewer instances"):
        built(path, tmp_path / "out", HOP, 250)
