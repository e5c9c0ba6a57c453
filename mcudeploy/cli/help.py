"""Layout of `--help`: an example of each command, commands and options in groups, the common options."""

from __future__ import annotations

from typing import Any

import rich_click as click

from mcudeploy.common.system.serial_ports import EXAMPLE_PORT

EXAMPLES = {
    "boards": "mcudeploy boards --explain stm32f405",
    "devices": "mcudeploy devices",
    "doctor": "mcudeploy doctor --board stm32f405",
    "fit": "mcudeploy fit model.onnx",
    "quantize": "mcudeploy quantize float.onnx --data samples/ -o int8.onnx",
    "frontend": "mcudeploy frontend micro-speech -o front.tflite",
    "check": "mcudeploy check model.onnx --board stm32f405",
    "plan": "mcudeploy plan model.onnx --board stm32f405 -o plan.json --chart plan.svg",
    "tune": "mcudeploy tune model.onnx --board stm32f405 --emulate -o plan.json",
    "build": "mcudeploy build model.onnx --board stm32f405 --for cmake -o library",
    "init": "mcudeploy init project model.onnx --board stm32f405",
    "flash": "mcudeploy flash --board stm32f405 model.onnx --dry-run",
    "measure": "mcudeploy measure model.onnx --board stm32f405 --emulate",
    "calibrate": "mcudeploy calibrate --board stm32f405",
    "run": "mcudeploy run model.onnx --board stm32f405 --emulate --input picture.png --classes names.txt",
    "evaluate": "mcudeploy evaluate int8.onnx --board stm32f405 --emulate --data test/ --float float.onnx",
    "generate": "mcudeploy generate decoder.onnx --tokenizer tokenizer.json --board stm32h743 --prompt Once",
    "diff": "mcudeploy diff library-before library",
    "gate": "mcudeploy gate mcudeploy.toml --markdown summary.md",
    "adapt build": "mcudeploy adapt build int8.onnx --head prototypes --features average_pool_0 --classes 12 "
    "--board stm32f405 -o lib",
    "train check": "mcudeploy train check float.onnx --boards stm32f405,rp2350",
    "train build": "mcudeploy train build float.onnx --update bias --rate 0.01 --board stm32f405 -o lib",
    "train tune": "mcudeploy train tune float.onnx --update full --board mps2-an505 --memory sram=64k",
    "train run": "mcudeploy train run float.onnx --data train.npz --update last:2 --board mps2-an386",
    "parameters make": "mcudeploy parameters make retrained.onnx --library lib -o new.bin",
    "parameters pull": f"mcudeploy parameters pull --port {EXAMPLE_PORT} -o present.bin",
    "parameters push": f"mcudeploy parameters push new.bin --port {EXAMPLE_PORT}",
    "parameters diff": f"mcudeploy parameters diff new.bin --port {EXAMPLE_PORT} --library lib",
    "graph export": "mcudeploy graph export model.onnx --board stm32f405 -o graph.json",
    "graph order": "mcudeploy graph order graph.json -o order.json",
    "graph place": "mcudeploy graph place rectangles.csv --capacity 1M -o offsets.csv",
    "graph complete": "mcudeploy graph complete model.onnx --board stm32f405 --cuts cuts.json -o plan.json",
    "graph pipeline": "mcudeploy graph pipeline model.onnx --topology units.json",
}
_COMMANDS = {
    "A model and a board": (
        ["check", "fit", "plan", "tune", "run", "measure", "evaluate", "generate", "gate", "diff"]
    ),
    "Into your project": ["quantize", "frontend", "build", "init", "flash", "parameters", "adapt", "train"],
    "What is here": ["boards", "devices", "doctor", "calibrate"],
    "Graphs of your own": ["graph"],
}
_OPTIONS = {
    "Input and output": (
        "--input --expected --labels --classes --pixels --mean --std --resize --data --sample-rate "
        "--before --steps --reference --save-outputs --save-model --float --output-name --top --library "
        "--prompt --tokens --temperature --top-k --top-p "
        "--threshold --samples --min-accuracy --max-drop --output --chart --report --trace --markdown "
        "--junit --name --for --library-only --arena --verify --sbom --manifest --dossier --force --plan "
        "--order --explain --curve"
    ),
    "Board": (
        "--board --boards --all --max-latency --max-ram --max-flash "
        "--chain --emulate --port --baud --probe --flasher --measurers --link --frames "
        "--elf --dry-run --guards --timing --period --bounds --hardware-map --patience --trust-board"
    ),
    "Model": (
        "--shape --bind --float-io --state --int8-cache --stateful --rounding --keep-constant-channels "
        "--hop --replaceable --parameters-in --extension --trust-extension "
        "--head --features --statistics --examples --tokenizer --stop-token --token --logits --positions"
    ),
    "Training": "--loss --update --rate --weight-decay --momentum --batch --clip-norm",
    "Plan": (
        "--optimize --max-overhead --time-limit --ram-limit --flash-limit --memory --split --stream-input "
        "--assign --placement --dma-io --io-align --parallel --objective --seed --fresh"
    ),
    "What is printed": "--json --quiet --verbose --traceback --help --help-all",
}
"""Groups of options, by the names that may be in each."""
_COMMON = (
    "--input --expected --classes --pixels --data --float --steps --output --chart "
    "--report --name --for --library-only --arena --verify --plan --explain --save-model "
    "--board --boards --all --top --max-latency --max-ram --max-flash --emulate --port --elf --dry-run "
    "--cuts --offsets --period --shape --head --features --examples --loss --update --rate --batch "
    "--tokenizer --prompt --tokens --temperature --top-k --top-p "
    "--optimize --max-overhead --ram-limit --time-limit --stream-input --json --quiet --help --help-all"
)
"""The options that `--help` of a `LongCommand` shows."""
_BRIEF = "mcudeploy.brief"
"""Key in the context: whether help shows the options of `_COMMON` only."""


class LongCommand(click.RichCommand):
    """A command whose `--help` shows the options that most people need; `--help-all` shows all."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.params.append(_HELP_ALL)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return all parameters, or only those that `--help` shows while its text is made."""
        params = super().get_params(ctx)
        if not ctx.meta.get(_BRIEF):
            return params
        return [it for it in params if isinstance(it, click.Argument) or it.opts[-1] in _COMMON.split()]

    def get_help(self, ctx: click.Context) -> str:
        """Return the text of `--help`; of `--help-all` if its callback has asked for it."""
        ctx.meta.setdefault(_BRIEF, True)
        return super().get_help(ctx)


def _show_all(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        context.meta[_BRIEF] = False
        click.echo(context.get_help())
        context.exit()


_HELP_ALL = click.Option(
    ["--help-all"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_all,
    help="Show this message with the less common options as well.",
)


def leaves(program: click.Group) -> dict[str, click.Command]:
    """Return all commands but groups and hidden ones, by their full names such as `graph order`."""
    shown = {name: it for name, it in program.commands.items() if not it.hidden}
    groups = {name: leaves(it) for name, it in shown.items() if isinstance(it, click.Group)}
    inner = {f"{name} {own}": it for name, members in groups.items() for own, it in members.items()}
    return {name: it for name, it in shown.items() if name not in groups} | inner


def describe(program: str, name: str, command: click.Command) -> None:
    """Give a command of the program, or each of a group, its example, and put its options in groups."""
    if isinstance(command, click.Group):
        for own, member in leaves(command).items():
            _describe(program, f"{name} {own}", member)
    else:
        _describe(program, name, command)


def _describe(program: str, name: str, command: click.Command) -> None:
    if name in EXAMPLES:
        command.epilog = f"Example: {EXAMPLES[name]}"
    shown = [it.opts[-1] for it in command.params if isinstance(it, click.Option) and not it.hidden]
    options = {"--help", *shown}
    groups = {title: [each for each in names.split() if each in options] for title, names in _OPTIONS.items()}
    click.rich_click.OPTION_GROUPS[f"{program} {name}"] = [
        {"name": title, "options": each} for title, each in groups.items() if each
    ]


def group_commands(program: str) -> None:
    """Put the commands of the program in groups."""
    click.rich_click.COMMAND_GROUPS[program] = [
        {"name": title, "commands": each} for title, each in _COMMANDS.items()
    ]
