"""Figures of JSON objects in words, the same in tables and in the HTML report."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

from mcudeploy.common.text import agree, count_text, printable

Values = Mapping[str, Any]

EVALUATED = {"device": "on the device", "reference": "reference", "float": "float model"}
"""The models of an evaluation."""


def verdict_text(report: Values) -> str:
    """Return the verdict of an evaluation."""
    if report["passed"] is None:
        return "not judged: see the warning. --min-accuracy sets a limit that decides"
    return "passed" if report["passed"] else "NOT passed"


def percent(share: float | None) -> str:
    """Return a share in percent; "" if there is none."""
    return "" if share is None else f"{100 * share:.2f} %"


def quality_texts(report: Values, model: Values) -> dict[str, str]:
    """Return the figures of one model of an evaluation by name; "" for missing ones."""

    def text(key: str, digits: str) -> str:
        return "" if model[key] is None else format(model[key], digits)

    return {
        "accuracy": percent(model["accuracy"]),
        f"top {report['top']}": percent(model["top_k"]),
        "area under curve": text("auc", ".4f"),
        "mean squared error": text("mse", ".5g"),
        "mean absolute error": text("mae", ".5g"),
    }


def class_name(report: Values, number: int) -> str:
    """Return the name of a class of an evaluation, or its number."""
    names = report["classes"] or ()
    return str(names[number]) if number < len(names) else str(number)


def steps_text(report: Values) -> str:
    """Return all entries of the tape, as the header of the generated C counts them; empty if unknown."""
    steps, moves = report.get("steps"), report.get("moves", 0)
    if not steps:
        return ""
    if not moves:
        return f"{steps:,}"
    how = "moves a block" if moves == 1 else "move a block each"
    return f"{steps + moves:,}, {moves:,} of them {how} ({report['moved_bytes']:,} B)"


def cut_bounds_text(report: Values) -> str:
    """Return the lower bounds over all cuts, "" if no cuts were searched."""
    bounds = report.get("cut_bounds")
    if not bounds:
        return ""
    least, once = bounds["any_bytes"], bounds["once_bytes"]
    return f"{least:,} B" + (f", {once:,} B if no row is computed twice" if once > least else "")


def int8_caches_text(report: Values) -> str:
    """Return what int8 caches cost; "" for a report without any."""
    loss = report.get("int8_caches")
    if not loss:
        return ""
    exact = f"the outputs with float32 caches, over {count_text(loss['runs'], 'run')}"
    if loss["range"] is None or not isfinite(loss["range"]):
        return f"nothing comparable beside {exact}: an output is not finite"
    if loss["sqnr_db"] is None:
        return f"no difference from {exact}"
    worst = f"largest difference {loss['largest_difference']:.3g} of a range of {loss['range']:.3g}"
    return f"{loss['sqnr_db']:.1f} dB beside {exact}; {worst}"


def outputs_text(report: Values, *, resolved: bool) -> str:
    """Describe the outputs, with rounding ties resolved or not: integers by the number that differ, floats by
    the error.
    """
    kind = "_resolved" if resolved else ""
    wrong, worst = report[f"mismatches{kind}"], report[f"max_abs_error{kind}"]
    if report["tolerance"]["share_of_range"] is not None and report["tolerance"]["lsb"] is None:
        return f"largest error {_share(worst, report['range'])}"
    unit = " LSB" if report["error_unit"] == "LSB" else ""
    return f"{wrong:,} {agree(wrong, 'differs', 'differ')} from the reference, largest error {worst:g}{unit}"


def coarse_text(name: str, allowed: float) -> str:
    """Warn of a tolerance that exceeds half of the values of an output."""
    return (
        f"warning: output {printable(name)!r} may differ by {allowed:.2g}, more than half of its values in a "
        "sample. Verify with inputs whose outputs have a smaller range"
    )


def litert_text(litert: Values) -> str:
    """Describe the comparison of the outputs of a .tflite file with LiteRT."""
    if litert["not_run"]:
        return f"not compared with LiteRT: {litert['not_run']}"
    if not litert["share_of_range"]:
        return f"LiteRT's reference kernels have equal outputs in {count_text(litert['runs'], 'run')}"
    return (
        f"LiteRT's reference kernels differ by at most {litert['share_of_range']:.2g} of an output's range "
        f"in {count_text(litert['runs'], 'run')}"
    )


def operators_text(checks: Mapping[str, Values]) -> str:
    """Return the number of operators within tolerance, and the largest errors.

    Errors of integers are in LSB, those of floats a share of the range of the operator's output.
    """
    passed = list(checks.values())
    within = sum(check["within_tolerance"] for check in passed)
    integers = [check for check in passed if check["error_unit"] == "LSB"]
    text = f"{within:,} of {count_text(len(passed), 'operator')} within tolerance"
    differing = sum(check["mismatches"] for check in integers)
    if differing:
        elements = count_text(differing, "integer element")
        ties = sum(check["ties"] for check in integers)
        text += f"; {elements} off by at most {max(check['max_abs_error'] for check in integers):g} LSB, "
        text += f"{ties:,} of them at rounding ties"
    elif integers:
        text += "; integers equal to the reference in every element"
    floats = [check for check in passed if check["error_unit"] != "LSB"]
    if floats:
        worst = max(floats, key=lambda check: check["max_abs_error"] / (check["range"] or 1))
        text += f"; largest error of floats {error_text(worst)}"
    return text


def error_text(check: Values) -> str:
    """Return the largest error of one operator."""
    if check["error_unit"] == "LSB":
        return f"{check['max_abs_error']:g} LSB"
    return _share(check["max_abs_error"], check["range"])


def _share(error: float, span: float) -> str:
    """Return an error as a share of the range of values, or unchanged if all values are 0."""
    return f"{error / span:.1g} of the range" if span else f"{error:g}"


def smaller_facts(report: Values) -> list[tuple[str, str]]:
    """Return the option that searches for less RAM, and flash limits with the time that each adds."""
    search = report.get("search")
    searched = report.get("splits") if search is None else search["candidates"]
    more = "a higher --max-overhead searches for a smaller arena" if searched else ""
    return [("less RAM", more), ("less flash", _less_flash(report))]


def _less_flash(report: Values) -> str:
    curve, own, limit = (report.get(key) for key in ("flash_curve", "estimated_latency", "flash_limit"))
    if not curve or not own:
        return ""
    least = curve[-1]["flash_limit"]
    slower = [point for point in curve if point["latency"]["value"] > own["value"]]
    if not slower:
        none = f"none: these are the smallest constants; with 32 KiB of code they need --flash-limit {least}"
        return none if limit and limit < least else ""
    most = curve[max(0, len(curve) - len(slower) - 1)]["flash_limit"]  # of the point before the slower ones
    wanted = [least + (most - least) * part // 3 for part in (2, 1, 0)]
    limits = [point["flash_limit"] for point in slower]
    shown = {max((it for it in limits if it <= size), default=least) for size in wanted}
    texts = (
        f"{point['flash_limit']} {100 * (point['latency']['value'] / own['value'] - 1):+.1f} %"
        for point in slower
        if point["flash_limit"] in shown
    )
    code = report.get("code_bytes")
    own_code = "" if code is None else f"; this program has {code:,} B of code"
    return f"--flash-limit {', '.join(texts)}, estimated for these steps, with 32 KiB of code{own_code}"
