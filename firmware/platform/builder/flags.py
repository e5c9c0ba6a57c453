"""The flags of a board, taken from the JSON that mcudeploy derives from boards/<name>.toml.

One place for both worlds: the local platform, and the platforms of PlatformIO's registry, whose compilers may
be as old as GCC 7.
"""

LIBC = {"arm-none-eabi": "--specs=nano.specs", "riscv64-unknown-elf": "--specs=picolibc.specs"}


def _without_vectors(flag):
    """The flag for the linker, which finds the C library by it; none is for RISC-V cores with vectors."""
    if not flag.startswith("-march=rv"):
        return flag
    base, *extensions = flag.split("_")
    return "_".join([base.rstrip("v"), *(it for it in extensions if not it.startswith("zv"))])


def apply(env, build):
    """Appends the flags of `build` (the "build" part of a board's JSON) to an SCons environment."""
    cpu = [*build["mcud"]["cpu_flags"], LIBC[build["mcud"]["toolchain"]]]
    env.Append(
        ASFLAGS=cpu,
        ASPPFLAGS=["-x", "assembler-with-cpp"],
        CFLAGS=["-std=c99"],
        CCFLAGS=[
            *(*cpu, "-O2", "-g", "-ffunction-sections", "-fdata-sections", "-ffp-contract=off"),
            *("-Wall", "-Wextra"),
        ],
        CPPDEFINES=[
            ("MCUD_EMULATED", int(build["mcud"]["emulated"])),
            ("MCUD_FIRMWARE_HASH", f"{build['mcud']['firmware_hash']}u"),
            *build["mcud"].get("defines", {}).items(),
            ("MCUD_BOARD_NAME", env.StringifyMacro(build["mcud"]["board"])),
        ],
        LINKFLAGS=[*map(_without_vectors, cpu), "-nostartfiles", "-Wl,--gc-sections"],
        LIBS=["c", "m", "gcc"],
    )
