"""The core: Arduino's interface over the bare-metal HAL of the board, whose functions get other names."""

from pathlib import Path

Import("env")

platform = Path(env.PioPlatform().get_dir())
variant = platform / "variants" / env.BoardConfig().get("build.variant")
NAMES = {
    "init",
    "clock_hz",
    "uart_write",
    "uart_read",
    "wait",
    "exit",
    "ticks",
    "ticks_hz",
    "stack_limit",
    "stack_top",
}
env.Append(CPPPATH=[str(platform / "core")])
core = env.Clone()
core.Prepend(CPPPATH=[str(variant / "include")])
core.Append(
    CPPDEFINES=[
        ("MCUD_EMULATED", 1),
        ("timer_init", "board_timer_init"),
        *((f"hal_{name}", f"board_{name}") for name in sorted(NAMES)),
    ]
)
core.BuildSources("$BUILD_DIR/Core", str(platform / "core"))
core.BuildSources("$BUILD_DIR/Variant", str(variant / "hal"))
