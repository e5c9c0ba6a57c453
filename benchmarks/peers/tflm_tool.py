r"""TensorFlow Lite Micro with CMSIS-NN, from a checkout of tflite-micro that its own Makefile has built:

    make -f tensorflow/lite/micro/tools/make/Makefile TARGET=cortex_m_generic TARGET_ARCH=cortex-m4+fp \
        OPTIMIZED_KERNEL_DIR=cmsis_nn BUILD_TYPE=release microlite

The environment variable LEAGUE_TFLM names the checkout. A core whose library it lacks has no row.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path

from mcudeploy.boards.board import Board
from mcudeploy.common.errors import DeployError
from mcudeploy.frontend.tflite.flatbuffer import contents_of
from peers.generated import Buffer, Generated, NetworkRefusedError, raw
from peers.networks import Network
from peers.program import run

CHECKOUT = "LEAGUE_TFLM"
ARCHITECTURES = {
    "cortex-m0": "cortex-m0",
    "cortex-m4": "cortex-m4+fp",
    "cortex-m7": "cortex-m7+fp",
    "cortex-m33": "cortex-m33",
    "cortex-m55": "cortex-m55",
}
"""TARGET_ARCH of TensorFlow's Makefile, by core."""
_MAKE = Path("tensorflow/lite/micro/tools/make/downloads")
_INCLUDES = (Path(), _MAKE / "flatbuffers/include", _MAKE / "gemmlowp")
_RESOLVER = Path("tensorflow/lite/micro/micro_mutable_op_resolver.h")
_ADDS = re.compile(r"TfLiteStatus (Add\w+)\([^{;]*\{[^}]*?BuiltinOperator_(\w+)")
_LARGEST_ARENA = 1 << 20
_SOURCE = """\
#include "tensorflow/lite/micro/micro_interpreter.h"
#include "tensorflow/lite/micro/micro_mutable_op_resolver.h"
#include "tensorflow/lite/schema/schema_generated.h"

using Resolver = tflite::MicroMutableOpResolver<{count}>;

alignas(16) static const unsigned char model[] = {{{model}}};
alignas(16) static unsigned char arena[{arena}];
alignas(16) static unsigned char resolver_bytes[sizeof(Resolver)];
alignas(16) static unsigned char interpreter_bytes[sizeof(tflite::MicroInterpreter)];
static tflite::MicroInterpreter *interpreter;
static uint32_t used;

inline void *operator new(std::size_t, void *place, int) noexcept {{ return place; }}
void operator delete(void *) noexcept {{}}
void operator delete(void *, std::size_t) noexcept {{}}
extern "C" [[noreturn]] void abort(void) {{ __builtin_trap(); }}
extern "C" void __cxa_pure_virtual(void) {{ __builtin_trap(); }}

static void prepare(void)
{{
    if (interpreter != nullptr) {{
        return;
    }}
    Resolver *const resolver = new (resolver_bytes, 0) Resolver;
    const bool known = {adds};
    interpreter = new (interpreter_bytes, 0)
        tflite::MicroInterpreter(tflite::GetModel(model), *resolver, arena, sizeof arena);
    if (!known || interpreter->AllocateTensors() != kTfLiteOk) {{
        __builtin_trap();
    }}
    used = interpreter->arena_used_bytes();
}}

extern "C" uint8_t *tflm_input(unsigned index)
{{
    prepare();
    return interpreter->input(index)->data.uint8;
}}

extern "C" uint8_t *tflm_output(unsigned index)
{{
    return interpreter->output(index)->data.uint8;
}}

extern "C" uint8_t *tflm_used(void)
{{
    return reinterpret_cast<uint8_t *>(&used);
}}

extern "C" void tflm_invoke(void)
{{
    if (interpreter->Invoke() != kTfLiteOk) {{
        __builtin_trap();
    }}
}}
"""
_DECLARATIONS = """\
uint8_t *tflm_input(unsigned index);
uint8_t *tflm_output(unsigned index);
uint8_t *tflm_used(void);
void tflm_invoke(void);
"""


@dataclass(frozen=True, slots=True)
class Checkout:
    """A checkout, and the library that it has built for a core."""

    folder: Path
    library: Path

    @classmethod
    def of(cls, board: Board) -> Checkout | None:
        """Return the checkout and its library for a board's core; None if either is missing."""
        folder, architecture = os.environ.get(CHECKOUT), ARCHITECTURES.get(board.core)
        if not folder or architecture is None:
            return None
        pattern = f"gen/cortex_m_generic_{architecture}_release_cmsis_nn_gcc/lib/libtensorflow-microlite.a"
        built = Path(folder) / pattern
        return cls(Path(folder), built) if built.is_file() else None

    def methods(self) -> dict[str, str]:
        """Return the method of the resolver that registers an operator, by the operator's name."""
        return methods_of((self.folder / _RESOLVER).read_text("utf-8"))


def methods_of(header: str) -> dict[str, str]:
    """Return the methods that a resolver's header declares, by the builtin operator that each registers."""
    return {operator: method for method, operator in _ADDS.findall(header)}


def takes(network: Network, board: Board) -> bool:
    """Whether the network is a .tflite file, and a library is built for the board's core."""
    return network.tflite == network.path and Checkout.of(board) is not None


def board_key(board: Board) -> str:
    """Return a hash of the library for a board's core, which has all kernels; empty without one."""
    checkout = Checkout.of(board)
    return hashlib.sha256(checkout.library.read_bytes()).hexdigest()[:16] if checkout else ""


def generate(network: Network, board: Board, folder: Path) -> Generated:
    """Write a program with the operators of the network, and count the bytes of the arena that it uses.

    Raises NetworkRefusedError if it has an operator without a kernel.
    """
    checkout = Checkout.of(board)
    assert checkout is not None
    operators, methods = operators_of(network), checkout.methods()
    unknown = [it for it in operators if it not in methods]
    if unknown:
        raise NetworkRefusedError(f"has no {unknown[0]}")
    adds = [f"resolver->{methods[it]}() == kTfLiteOk" for it in operators]
    source = folder / "network.cc"
    outputs = network.outputs(network.output_names)
    generated = Generated(
        [source],
        [checkout.folder / it for it in _INCLUDES],
        _DECLARATIONS,
        "tflm_invoke()",
        [Buffer(f"tflm_input({at}u)", it.nbytes) for at, it in enumerate(network.inputs.values())],
        [Buffer(f"tflm_output({at}u)", it.nbytes) for at, it in enumerate(outputs)],
        [it.tobytes() for it in network.inputs.values()],
        [raw(it) for it in outputs],
        levels=("-O2",),
        defines=("TF_LITE_STATIC_MEMORY", "TF_LITE_STRIP_ERROR_STRINGS", "CMSIS_NN"),
        libraries=(checkout.library,),
    )

    arena = min(_LARGEST_ARENA, board.memories[0].bytes // 2)
    model, all_added = ",".join(map(str, network.path.read_bytes())), " && ".join(adds)
    source.write_text(_SOURCE.format(count=len(adds), model=model, arena=arena, adds=all_added), "utf-8")
    probe = replace(generated, outputs=[*generated.outputs, Buffer("tflm_used()", 4)])
    used = int.from_bytes(run(probe, board, "-O2").outputs[-1], "little")
    return replace(generated, spare_bytes=arena - used)


def operators_of(network: Network) -> list[str]:
    """Return the names of a file's builtin operators. Raises NetworkRefusedError for operators of others."""
    try:
        operators = contents_of(network.path.read_bytes(), network.path.name).operators
    except DeployError as error:
        raise NetworkRefusedError(str(error)) from error
    for it in operators:
        if it.custom:
            raise NetworkRefusedError(f"has no custom operator {it.op!r}")
    return list(dict.fromkeys(it.op for it in operators))
