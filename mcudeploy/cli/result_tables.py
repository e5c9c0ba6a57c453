"""Reports as tables for people. Text of models and files goes through `cell`: it is data, never markup."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from mcudeploy.cli.hop_tables import hop_curve, hop_facts
from mcudeploy.cli.latencies import latency_facts, latency_of, milliseconds_text
from mcudeploy.cli.output import Values, cell, is_verbose, lines
from mcudeploy.cli.outputtable import outputs
from mcudeploy.cli.table_grids import facts, table_of
from mcudeploy.cli.transfer_tables import cores_facts, memory_facts, stall_facts
from mcudeploy.common.errors import Problem, causes
from mcudeploy.common.text import agree, count_text, plain, short_name
from mcudeploy.extension import added
from mcudeploy.report.wording import (
    coarse_text,
    cut_bounds_text,
    int8_caches_text,
    litert_text,
    operators_text,
    outputs_text,
    smaller_facts,
    steps_text,
)

_MOST_NAMED = 3
"""Operators that a row of the table of floats names."""
_NODE_WIDTH = 130
"""The least width of a console that shows the nodes of the file beside operators."""

_FLOAT_BYTES = 4
"""Bytes of a float32 value, beside 1 of an int8 value."""


def check(console: Console, report: Values) -> None:
    """Print the `check` report."""
    if report["problems"]:
        table = table_of("node", "operator", "why it is unsupported")
        for cause in causes(Problem(**problem) for problem in report["problems"]):
            table.add_row(cell(cause.where), cell(cause.op), cell(cause.reason))
        console.print(table)
    known = [("parameters", _count(report, "parameters")), ("MACs", _macs(report))]
    known += [("weights", _bytes(report, "weights_bytes")), ("left out", _left_out(report))]
    if "plans" in report:
        way = {"unsplit": "unsplit (--no-split)", "streamed": "streamed (--stream-input)"}
        known += [(f"arena, {way.get(name, name)}", _fit(report, it)) for name, it in report["plans"].items()]
    else:
        portable = "" if report.get("board") else " (with portable kernels)"
        known += [("arena, unsplit", _bytes(report, "arena_bytes") + portable)]
    known += [*smaller_facts(report), ("states", _states(report.get("states") or ()))]
    facts(console, known)
    _in_float(console, report.get("in_float", ()))
    for line in (*report["notes"], *report.get("missing", ())):
        console.print(cell(line), soft_wrap=True)
    verdict = ("supported", "green") if report["supported"] else ("not supported", "bold red")
    console.print(Text(*verdict))


def _in_float(console: Console, causes: Sequence[Values]) -> None:
    """Print the operators of a quantised model that run in float32, by cause."""
    if not causes:
        return
    table = table_of("runs in float32", "why", "weights>", "at least>", "largest result>", "as int8>")
    for cause in causes:
        names = cause["operators"]
        first = ", ".join(names[:_MOST_NAMED]) + (", ..." if len(names) > _MOST_NAMED else "")
        weights, least, result = (
            cause[key] for key in ("weights_bytes", "least_weights_bytes", "largest_result_bytes")
        )
        table.add_row(
            cell(f"{len(names)}: {first}"),
            cell(cause["cause"]),
            f"{weights:,} B",
            f"{least:,} B" if least < weights else "-",
            f"{result:,} B",
            f"{result // _FLOAT_BYTES:,} B",
        )
    console.print(table)


def _states(states: Sequence[Values]) -> str:
    """Return the bytes that stay between runs, and the types and shapes of the states."""
    if not states:
        return ""
    shapes = (f"{it['type']} [{', '.join(map(str, it['shape']))}]" for it in states)
    total = sum(it["bytes"] for it in states)
    return f"{total:,} B between runs: {', '.join(shapes)}"


def _left_out(report: Values) -> str:
    """Return the channels that the front end removed."""
    removed = report.get("constant_channels")
    if not removed:
        return ""
    channels = count_text(removed["channels"], "constant or unread channel")
    return f"{channels}: {removed['macs']:,} MACs, {removed['weight_bytes']:,} B of weights"


def _macs(report: Values) -> str:
    per_second = report.get("macs_per_second")
    return _count(report, "macs") + (f" a run, {per_second:,.0f} a second" if per_second else "")


def _fit(report: Values, figures: Values) -> str:
    fits = "fits" if figures["fits"] else "does not fit"
    text = f"{figures['arena_bytes']:,} B: {fits} {plain(report['board'])}"
    if "latency" not in figures:
        return text
    period = f" of {report['period_ms']:g} ms" if "period_ms" in report else ""
    return f"{text}; {milliseconds_text(figures['latency'])}{period}, {figures['flash_bytes']:,} B of flash"


def plan(console: Console, report: Values) -> None:
    """Print the `plan` report."""
    if "explanation" in report:
        console.print(Text(lines(report["explanation"]) + "\n"), soft_wrap=True)
    facts(console, [*_plan_facts(report), *latency_facts(report), *smaller_facts(report)])
    hop_curve(console, report)


def plans(console: Console, report: Values) -> None:
    """Print the report of `plan` for several boards."""
    table = table_of("board", "fits", "arena>", "unsplit>", "latency>", "overhead>")
    for board in report["boards"]:
        if not board["fits"]:
            table.add_row(cell(board["board"]), cell("no", "red"), *[cell("-")] * 4)
            continue
        overhead = board["overhead_percent"]
        texts = (
            _bytes(board, "arena_bytes"),
            _bytes(board, "unsplit_arena_bytes"),
            milliseconds_text(latency_of(board)),
            "-" if overhead is None else f"{overhead:+.2f} %",
        )
        table.add_row(cell(board["board"]), cell("yes", "green"), *map(cell, texts))
    console.print(table)
    for board in report["boards"]:
        if not board["fits"]:
            console.print(Text(lines(f"{board['board']}: {board['message']}")), soft_wrap=True)


def tune(console: Console, report: Values) -> None:
    """Print the `tune` report."""
    search = report["search"]
    predicted = report["predicted_overhead_percent"]
    facts(
        console,
        [
            *_plan_facts(report),
            *latency_facts(report),
            *smaller_facts(report),
            ("predicted", "" if predicted is None else f"{predicted:+.2f} %"),
            ("search", f"{count_text(search['candidates'], 'candidate')}, "
                       f"{count_text(search['duplicates'], 'duplicate')}, "
                       f"{count_text(search['measured'], 'tile')} timed, {search['cache_hits']:,} known, "
                       f"{search['seconds']:.1f} s"),
        ],
    )  # fmt: skip


def build(console: Console, report: Values) -> None:
    """Print the `build` report: the cost of the program; the files with --verbose."""
    if is_verbose():
        for name in report["files"]:
            console.print(cell(name), soft_wrap=True)
    else:
        console.print(cell(f"wrote {count_text(len(report['files']), 'file')}: --verbose lists them"))
    if "models" in report:
        facts(console, [(f"arenas, {plain(report['arena'])}", _sizes_text(report["library_arenas"]))])
    for model in report.get("models", (report,)):
        if "models" in report:
            console.print(cell(f"\n{model['name']}".strip(), "bold"))
        check = f"{model['name']}_selftest() returns 0 if the outputs match" if model["selftest"] else ""
        facts(
            console,
            [
                ("arena", _arena_text(model)),
                *_parameter_facts(model),
                *hop_facts(model),
                *_size_facts(model),
                ("stack", _library_stack(model) or f"not known: {plain(model['stack_unknown'])}"),
                *latency_facts(model),
                *(row for section in added("section") for row in section.facts(model)),
                ("steps", _steps_text(model)),
                ("on your chip", check),
            ],
        )
        if model["verified"] is None:
            console.print(Text("not verified: the program was not run (--no-verify)"))
        else:
            drawn = "drawn inputs" if report.get("dossier") else "a drawn input"
            _operator_checks(console, model)
            _verdict(console, model, f"verified on this computer, for {drawn}")
    if report.get("dossier"):
        console.print(cell(f"dossier in {report['dossier']}: begin with index.html"), soft_wrap=True)


def _arena_text(report: Values) -> str:
    each = f" ({_sizes_text(report['arenas'])})" if len(report["arenas"]) > 1 else ""
    return f"{_bytes(report, 'arena_bytes')}{each}"


def _sizes_text(arenas: Values) -> str:
    return ", ".join(f"{plain(memory)} {size:,} B" for memory, size in arenas.items())


def _steps_text(report: Values) -> str:
    longest = report.get("longest_step")
    if longest is None:
        return steps_text(report)
    time, name = milliseconds_text(longest["time"]), plain(longest["operator"])
    return f"{steps_text(report)}; step {longest['step']} ({name}) takes the longest: {time}, estimated"


def init(console: Console, report: Values) -> None:
    """Print the `init` report."""
    count = count_text(len(report["files"]), "file")
    text = f"wrote {count} for {report['board']} to {report['directory']}: its README.md says how to go on"
    console.print(cell(text), soft_wrap=True)


def flash(console: Console, report: Values) -> None:
    """Print the `flash` report."""
    for line in report["commands"] or ():
        console.print(cell(shlex.join(line)), soft_wrap=True)
    known = [("board", "board"), ("port", "port"), ("flasher", "flasher"), ("firmware", "firmware_hash")]
    facts(console, [(name, plain(report[key] or "")) for name, key in known])


def measure(console: Console, report: Values) -> None:
    """Print the `measure` report."""
    _operators(console, report)
    facts(
        console,
        [
            *_plan_facts(report),
            *_size_facts(report),
            ("stack", _painted(report)),
            ("RAM in total", _bytes(report, "total_ram_bytes")),
            *latency_facts(report),
            *smaller_facts(report),
            *_model_facts(report.get("cycles_model")),
            *stall_facts(report),
        ],
    )


def run(console: Console, report: Values) -> None:
    """Print the `run` report."""
    measure(console, report)
    for section in added("section"):
        section.table(console, report)
        facts(console, section.facts(report))
    outputs(console, report)
    _operator_checks(console, report)
    verdict(console, report)
    warnings(console, report)


def warnings(console: Console, report: Values) -> None:
    """Print the warnings about inputs and outputs."""
    for warning in report["warnings"]:
        console.print(cell(f"warning: {warning}", "yellow"), soft_wrap=True)


def verdict(console: Console, report: Values) -> None:
    """Print whether a run is verified, and the reasons if it is not."""
    _verdict(console, report, "verified")
    if report.get("reason"):
        console.print(Text(lines(report["reason"])), soft_wrap=True)


def _operator_checks(console: Console, report: Values) -> None:
    """Print the comparison with the reference, operator by operator."""
    if report.get("operator_checks"):
        console.print(Text(operators_text(report["operator_checks"])), soft_wrap=True)


def _verdict(console: Console, report: Values, verified: str) -> None:
    """Print the comparison of the outputs with the reference.

    First come the outputs that decide: those with rounding ties resolved, if there were ties.
    """
    ties = report["ties_resolved"]
    text = verified if report["verified"] else "NOT verified"
    text += f" after {count_text(ties, 'rounding tie')} {agree(ties, 'was', 'were')} resolved" if ties else ""
    elements, differences = report["elements"], outputs_text(report, resolved=bool(ties))
    details = f": {count_text(elements, 'output element')}, "
    if report["verified"]:
        details += f"{'all ' * (elements > 1)}{_allowed(report, 'within', 'equal')}; {differences}"
    else:
        details += f"{differences}; {_allowed(report, 'allowed:', 'allowed: none')}"
    style = "bold green" if report["verified"] else "bold red"
    console.print(Text.assemble((text, style), details), soft_wrap=True)
    for name, allowed in report["coarse_tolerances"].items():
        console.print(Text(coarse_text(name, allowed), "yellow"), soft_wrap=True)
    if ties:
        without = (
            f"unresolved, {outputs_text(report, resolved=False)}: a value halfway between two int8 values "
            "may round either way"
        )
        console.print(Text(without), soft_wrap=True)
    if report.get("tflm_runs") and report["verified"]:
        runs = count_text(report["tflm_runs"], "run")
        console.print(Text(f"TensorFlow Lite Micro has the same bits in {runs}"), soft_wrap=True)
    if litert := report.get("litert"):
        console.print(Text(litert_text(litert)), soft_wrap=True)


def _allowed(report: Values, word: str, none: str) -> str:
    """Return `word` and the tolerances of int8 and of float32 outputs; `none` if they must be equal."""
    lsb, share = report["tolerance"]["lsb"], report["tolerance"]["share_of_range"]
    parts = [f"{lsb} LSB"] if lsb is not None else []
    if share is not None:
        least = f", at least {report['tolerance']['least']:.2g}"
        parts.append(f"{share:g} of the range, which is {report['range']:g}{least}")
    return f"{word} {' or '.join(parts)}" if parts else none


def _operators(console: Console, report: Values) -> None:
    unit = (report.get("latency") or {}).get("unit", "ticks")
    nodes = ["node"] if console.width >= _NODE_WIDTH else []
    table = table_of("operator", "kernel", "steps>", "MACs>", f"{unit}>", "per MAC>", "share>", *nodes)
    for operator in report["operators"]:
        macs, ticks = operator["macs"], operator["ticks"]
        texts = (
            operator["name"],
            operator["kernel"],
            operator["steps"],
            f"{macs:,}" if macs else "-",
            f"{ticks:,}",
            f"{ticks / macs:.2f}" if macs and unit != "us" else "-",
            f"{operator['share']:.1%}",
        )
        table.add_row(*map(cell, [*texts, *(short_name(operator["nodes"]) for _ in nodes)]))
    console.print(table)


def _plan_facts(report: Values) -> list[tuple[str, str]]:
    facts = [("arena", _plan_arena_text(report)), *memory_facts(report)]
    if report.get("state_bytes"):
        facts.append(("of it, states", f"{_bytes(report, 'state_bytes')} between runs"))
    facts.append(("int8 caches", int8_caches_text(report)))
    facts += [*_parameter_facts(report), *hop_facts(report), *_bound_facts(report), *_cut_facts(report)]
    facts += [("sharing", _sharing(report.get("sharing"))), *cores_facts(report)]
    facts.append(("steps", steps_text(report)))
    facts += [("left out", _left_out(report)), ("estimates", _source(report.get("estimates")))]
    if "flash_bytes" not in report:  # else it stands with the other parts of the flash
        facts += [("tables in flash", _bytes(report, "tables_bytes"))]
    return facts


def _plan_arena_text(report: Values) -> str:
    """Return the bytes of all arenas; in brackets each of several, or that the placement is optimal."""
    from mcudeploy.planner.place.arena import ARENA_GRAIN_BYTES
    from mcudeploy.planner.place.placement_problem import align_up

    arenas = (report.get("arenas") or {}) if report.get("elsewhere") else {}
    note = ", ".join(f"{plain(memory)} {size:,}" for memory, size in arenas.items())
    above_peak = report.get("arena_bytes", 0) > align_up(report.get("peak_bytes", 0), ARENA_GRAIN_BYTES)
    if not report.get("elsewhere") and above_peak and report.get("layout_status") == "optimal":
        note = "no offsets take less in this order"
    arena = _bytes(report, "arena_bytes")
    return f"{arena} ({note})" if note else arena


def _bound_facts(report: Values) -> list[tuple[str, str]]:
    """Return the live peak and its lower bounds: of the order, of these cuts, and over all cuts."""
    least = report.get("order_lower_bound_bytes")
    unproven = least is not None and report.get("order_status") == "feasible"
    order = f" (other orders need {least:,} B at least)" if unproven else ""
    scope = f"{'with these' if report.get('splits') else 'without'} cuts{', in this order' if order else ''}"
    return [
        ("live peak", f"{_bytes(report, 'peak_bytes')}{order}"),
        ("lower bound", f"{_bytes(report, 'lower_bound_bytes')} {scope}"),
        ("over all cuts", cut_bounds_text(report)),
    ]


def _cut_facts(report: Values) -> list[tuple[str, str]]:
    """Return the cuts and the fused chains, by their first and last operators."""
    facts = []
    if report.get("splits"):
        cuts = (
            f"{'..'.join(dict.fromkeys((plain(s['operators'][0]), plain(s['operators'][-1]))))}, "
            f"rows per part: {s['rows']}"
            for s in report["splits"]
        )
        facts += [("unsplit arena", _bytes(report, "unsplit_arena_bytes")), ("split", "; ".join(cuts))]
    if report.get("fused"):
        chains = (f"{plain(names[0])} to {plain(names[-1])}" for names in report["fused"])
        facts.append(("fused", "; ".join(chains)))
    return facts


def _source(estimates: Values | None) -> str:
    """Return a note if the kernel costs are those of another core, or calibrated."""
    if estimates is None:
        return ""
    if estimates.get("calibrated"):
        return "calibrated by times of kernels that `calibrate` measured on this board"
    if estimates["core"] == estimates["costs_of"]:
        return ""
    core, other = plain(estimates["core"]), plain(estimates["costs_of"])
    return f"latencies by the costs of kernels on {other}, which stand in for those on {core}"


def _sharing(sharing: Values | None) -> str:
    if sharing is None:
        return ""
    count = len({function["unit"] for function in sharing["functions"]})
    units = count_text(count, "separate unit" if count > 1 else "unit")
    return (
        f"saves {sharing['saved_bytes']:,} B of {sharing['separate_bytes']:,} B for {units}; "
        f"{count_text(len(sharing['functions']), 'function')}, "
        f"{count_text(sharing['border_tensors'], 'tensor')} between them "
        f"({sharing['border_bytes']:,} B), copies: {sharing['copies']}"
    )


def _parameter_facts(report: Values) -> list[tuple[str, str]]:
    """Return the bytes of parameters beside the arena, and their operators; empty without them."""
    parameters = report.get("parameters")
    if not parameters:
        return []
    where = "in flash" if parameters["memory"] == "flash" else "beside it"
    return [
        ("parameters", f"{parameters['bytes']:,} B {where}: {', '.join(map(plain, parameters['operators']))}")
    ]


def _size_facts(report: Values) -> list[tuple[str, str]]:
    flash = _bytes(report, "flash_bytes")
    names = ("code", "weights", "tables", "initial_parameters")
    sizes = ((name.replace("_", " "), _bytes(report, f"{name}_bytes")) for name in names)
    parts = ", ".join(f"{name} {size}" for name, size in sizes if size)
    if "flash_bytes" not in report:
        return [("constants", parts)]
    return [
        ("flash", f"{flash} ({parts})" if parts else flash),
        ("static RAM", _bytes(report, "static_ram_bytes")),
    ]


def _painted(report: Values) -> str:
    painted, most = _bytes(report, "stack_bytes"), _bytes(report, "stack_bound_bytes")
    return f"{painted} (at most {most}; {_library_stack(report)})" if most else painted


def _library_stack(report: Values) -> str:
    """Return the stack of a library call; empty if no firmware was built, or on the host."""
    most = _bytes(report, "library_stack_bound_bytes")
    return f"a call of the library needs at most {most}" if most else ""


def _model_facts(model: Values | None) -> list[tuple[str, str]]:
    if model is None:
        return []
    kinds = sorted(model["histogram"].items(), key=lambda it: -it[1]["cycles"])[:6]
    most = ", ".join(f"{kind} {spent['cycles'] / (model['cycles'] or 1):.0%}" for kind, spent in kinds)
    span = f"{model['least']:,} to {model['most']:,}"
    return [
        ("instructions", f"{model['instructions']:,}"),
        ("model", f"{model['core']}, {span} cycles without stalls; {model['source']}"),
        ("cycles go to", most),
        ("not modelled", "; ".join(model["left_out"])),
    ]


def _bytes(report: Values, key: str) -> str:
    return f"{report[key]:,} B" if report.get(key) is not None else ""


def _count(report: Values, key: str) -> str:
    return f"{report[key]:,}" if report.get(key) is not None else ""
