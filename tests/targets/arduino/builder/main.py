"""Builds a program for an emulated board; its upload puts it where the test's emulator takes it from."""

import json
import os
import time
from pathlib import Path

from SCons.Script import COMMAND_LINE_TARGETS, AlwaysBuild, Default, DefaultEnvironment

env = DefaultEnvironment()
board = env.BoardConfig()
variant = Path(env.PioPlatform().get_dir()) / "variants" / board.get("build.variant")
facts = json.loads((variant / "facts.json").read_text(encoding="utf-8"))
prefix = facts["toolchain"] + "-"
env.Replace(
    AR=prefix + "gcc-ar",
    AS=prefix + "gcc",
    CC=prefix + "gcc",
    CXX=prefix + "g++",
    LINK=prefix + "gcc",
    OBJCOPY=prefix + "objcopy",
    RANLIB=prefix + "gcc-ranlib",
    SIZETOOL=prefix + "size",
    SIZEPROGREGEXP=r"^(?:\.vectors|\.text|\.tables|\.weights|\.rodata|\.ARM\.exidx|\.data)\s+(\d+).*",
    SIZEDATAREGEXP=r"^(?:\.data|\.bss|\.noinit)\s+(\d+).*",
    SIZECHECKCMD="$SIZETOOL -A -d $SOURCES",
    SIZEPRINTCMD="$SIZETOOL -B -d $SOURCES",
    ARFLAGS=["rc"],
    PROGNAME="firmware",
    PROGSUFFIX=".elf",
)
env.Append(
    ASFLAGS=facts["flags"],
    ASPPFLAGS=["-x", "assembler-with-cpp"],
    CCFLAGS=[*facts["flags"], "-Os", "-Wall", "-Wextra", "-ffunction-sections", "-fdata-sections"],
    CXXFLAGS=["-fno-exceptions", "-fno-rtti"],
    CPPDEFINES=[("F_CPU", "$BOARD_F_CPU")],
    LINKFLAGS=[
        *facts["flags"],
        "-nostartfiles",
        "-Wl,--gc-sections",
        f"-L{variant}",
        f"-T{variant / 'mcudeploy.ld'}",
    ],
    LIBS=["c", "m", "gcc"],
)


def upload(target, source, env):
    """Leaves the program and the port that was named on the desk, until both are taken."""
    desk = Path(os.environ["SHIM_DESK"])
    (desk / "port").write_text(env.subst("$UPLOAD_PORT"), encoding="utf-8")
    (desk / "new").write_bytes(Path(str(source[0])).read_bytes())
    (desk / "new").rename(desk / "uploaded.elf")
    until = time.monotonic() + 10
    while (desk / "uploaded.elf").exists():
        if time.monotonic() > until:
            return 1
        time.sleep(0.01)


ready = "nobuild" in COMMAND_LINE_TARGETS
program = "$BUILD_DIR/${PROGNAME}.elf" if ready else env.BuildProgram()
AlwaysBuild(env.Alias("nobuild", program))
Default(env.Alias("buildprog", program, program))
AlwaysBuild(env.Alias("upload", program, env.VerboseAction(upload, "Uploading $SOURCE")))
