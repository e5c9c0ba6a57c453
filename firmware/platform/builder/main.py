"""Builds a bare-metal program with the compilers of the system, and uploads it with OpenOCD or mcudeploy."""

import sys
from pathlib import Path

from SCons.Script import AlwaysBuild, Default, DefaultEnvironment

env = DefaultEnvironment()
board = env.BoardConfig()
platform_dir = Path(env.PioPlatform().get_dir())
sys.path.insert(0, str(platform_dir / "builder"))
import flags  # noqa: E402

build = board.get("build")
prefix = build["mcud"]["toolchain"] + "-"
env.Replace(
    AR=prefix + "gcc-ar",
    AS=prefix + "gcc",
    CC=prefix + "gcc",
    CXX=prefix + "g++",
    LINK=prefix + "gcc",
    OBJCOPY=prefix + "objcopy",
    RANLIB=prefix + "gcc-ranlib",
    SIZETOOL=prefix + "size",
    GDB="gdb-multiarch",
    ARFLAGS=["rc"],
    PROGNAME="firmware",
    PROGSUFFIX=".elf",
)
flags.apply(env, build)
# Beside each object a .ci with frames and calls, for the bound of the stack. GCC 10 or later.
env.Append(CCFLAGS=["-fcallgraph-info=su"])

program = env.BuildProgram()
AlwaysBuild(env.Alias("nobuild", program))
Default(env.Alias("buildprog", program, program))
AlwaysBuild(env.Alias("size", program, env.VerboseAction("$SIZETOOL -B -d $SOURCE", "Size of $SOURCE")))

openocd = board.get("upload.openocd", [])
if openocd:
    arguments = " ".join(openocd)
    command = f'openocd {arguments} -c "program {{$SOURCE}} verify reset exit"'
    AlwaysBuild(env.Alias("upload", program, [env.VerboseAction(command, "Writing $SOURCE with OpenOCD")]))
elif board.get("upload.mcudeploy", False):
    command = f'"$PYTHONEXE" -m mcudeploy flash --board {build["mcud"]["board"]} --elf "$SOURCE"'
    AlwaysBuild(env.Alias("upload", program, [env.VerboseAction(command, "Writing $SOURCE with mcudeploy")]))
