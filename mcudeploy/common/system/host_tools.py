"""External programs: their names, their flags, and how they are installed."""

from __future__ import annotations

from pathlib import Path

from mcudeploy.common.system import MACOS, WINDOWS


def program_names(name: str) -> tuple[str, ...]:
    """Return the names of the file of a program, by its name on PATH or by its path.

    Windows would run `.bat` and `.cmd` files by cmd.exe, whose quoting lets arguments run commands: they do
    not count.
    """
    if not WINDOWS:
        return (name,)
    suffix = Path(name).suffix.lower()
    is_path = Path(name).name != name
    exact = suffix in (".exe", ".com") or (is_path and suffix not in (".bat", ".cmd"))
    return *((name,) if exact else ()), f"{name}.exe", f"{name}.com"


HOST_COMPILERS = ("gcc", "clang") if WINDOWS else ("cc", "gcc", "clang")
"""C compilers of this computer, the preferred one first."""
HOST_CODE_FLAGS = (
    *(() if MACOS else ("-fno-pie",)),  # macOS runs no code for a fixed address
    "-ffunction-sections",
    *(() if WINDOWS else ("-fdata-sections",)),  # MinGW's linker would store the zeros
)
HOST_LINK_FLAGS = (
    ("-static", "-Wl,--gc-sections")  # runs without the compiler's libraries on PATH
    if WINDOWS
    else ("-Wl,-dead_strip",)
    if MACOS
    else ("-no-pie", "-Wl,--gc-sections")
)
PLUGIN_FLAGS = None if WINDOWS else ("-undefined", "dynamic_lookup") if MACOS else ()
"""Flags of a plugin that calls functions of the program that loads it; None if it must be linked to it."""

_PACKAGES = {
    "gcc": ("xcode-select --install", "BrechtSanders.WinLibs.POSIX.UCRT"),
    "gcc-arm-none-eabi": ("brew install --cask gcc-arm-embedded", "Arm.GnuArmEmbeddedToolchain"),
    "libnewlib-arm-none-eabi": ("brew install --cask gcc-arm-embedded", "Arm.GnuArmEmbeddedToolchain"),
    "qemu-system-arm": ("brew install qemu", "SoftwareFreedomConservancy.QEMU"),
    "qemu-system-misc": ("brew install qemu", "SoftwareFreedomConservancy.QEMU"),
    "gdb-multiarch": ("brew install gdb", ""),
    "openocd": ("brew install openocd", ""),
    "stlink-tools": ("brew install stlink", ""),
    "picotool": ("brew install picotool", ""),
    "dfu-util": ("brew install dfu-util", ""),
    "teensy-loader-cli": ("brew install teensy_loader_cli", ""),
    "cppcheck": ("brew install cppcheck", "Cppcheck.Cppcheck"),
    "python3.11": ("brew install python@3.11", "Python.Python.3.11"),
}
"""By the name of Debian's package: the command of macOS, and winget's name; "" for none."""


def install_command(packages: str) -> str:
    """Return the command, or the advice, that installs packages, named as Debian names them."""
    if not (WINDOWS or MACOS):
        return f"sudo apt-get install {packages}{'  # Debian 13 or newer' * (packages == 'picotool')}"
    first = packages.split(maxsplit=1)[0]
    command, winget = _PACKAGES.get(first, ("", ""))
    if WINDOWS:
        command = winget and f"winget install --exact --id {winget}"
    return command or f"install {first} by hand and add its folder to PATH"
