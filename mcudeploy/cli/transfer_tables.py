"""Table lines about memories and cores: where tensors are, what moves, and who waits."""

from __future__ import annotations

from mcudeploy.cli.output import Values
from mcudeploy.common.text import count_text, plain

Facts = list[tuple[str, str]]


def memory_facts(report: Values) -> Facts:
    """Return facts about several memories; none if all is in the first one and nobody waits."""
    outside, facts = report.get("elsewhere") or {}, Facts()
    if outside:
        counts = ", ".join(f"{plain(name)} {count:,} B" for name, count in report["traffic"].items())
        facts.append(("traffic", f"{counts} per inference"))
        facts += [(f"in {plain(name)}", plain(", ".join(it))) for name, it in outside.items()]
    moved = report.get("transfers")
    if moved is not None:
        facts += [("transfers", _transfers(moved)), ("core waits", _waits(report))]
    return facts


def _transfers(moved: Values) -> str:
    """Return the number of transfers by direction and by engine."""
    ways = (
        f"{plain(way)} {count_text(each['count'], 'block')} ({each['bytes']:,} B)"
        for way, each in moved["ways"].items()
    )
    engines = (
        f"{count:,} by {'the core' if name == 'cpu' else plain(name)}"
        for name, count in moved["engines"].items()
    )
    return "; ".join((", ".join(ways), ", ".join(engines))) if moved["count"] else ""


def _waits(report: Values) -> str:
    """Return the cycles that the core waits for slow memories, and the limits that cause them."""
    moved = report["transfers"]
    if not moved["exposed_ticks"] and not moved["count"]:
        return ""
    text = f"{moved['exposed_ticks']:,.0f} cycles"
    parts = (("direct_ticks", "in steps"), ("copies_ticks", "in copies"), ("waits_ticks", "for engines"))
    why = ", ".join(f"{moved[key]:,.0f} {what}" for key, what in parts if moved[key])
    text += f" ({why})" if why else ""
    if moved["percent"] is None:
        return f"{text}, modelled"
    limits = (f"--memory {plain(name)}={_size(size)}" for name, size in report["memory_limits"].items())
    price = f"{moved['percent']:.2f} % of the latency, modelled"
    options = " ".join(limits)
    return f"{text}: {options} costs {price}" if options else f"{text}, {price}"


def _size(size: int) -> str:
    return f"{size // 1024}k" if size and size % 1024 == 0 else str(size)


def stall_facts(report: Values) -> Facts:
    """Return the counted bytes by memory, and the latency that slow memories add."""
    if "stalls" not in report:
        return []
    counted, predicted = (_traffic(report.get(f"traffic_{how}") or {}) for how in ("counted", "predicted"))
    stalls = report["stalls"]
    return [
        ("traffic, counted", counted),
        ("of the core, predicted", predicted),
        ("stalls, modelled", f"{stalls['cycles']:,} cycles, +{stalls['percent']:.1f} %; {stalls['source']}"),
    ]


def _traffic(memories: Values) -> str:
    return ", ".join(f"{plain(name)} {it['loaded'] + it['stored']:,} B" for name, it in memories.items())


def cores_facts(report: Values) -> Facts:
    """Return how several cores run a plan, and their speed-up; none for one core."""
    cores = report.get("parallel")
    if not cores:
        return []
    waits = ", ".join(f"{count:,}" for count in cores["waits"])
    text = f"{cores['cores']} share every step; waits by core: {waits}"
    if cores["speedup"]:
        text += f"; {cores['speedup']:.2f} times as fast as one core ({cores['one_core']:,})"
    return [("cores", text)]
