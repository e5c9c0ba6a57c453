"""The documentation: what is generated is current, and what is linked is there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from mcudeploy.planner.files import planfile

ROOT = Path(__file__).parents[1]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "firmware").glob("*.md")]
PAGES += [ROOT / "llms.txt"]


@pytest.mark.parametrize("name", ["operators", "commands"])
def test_a_generated_page_is_up_to_date(name: str) -> None:
    script = ROOT / "benchmarks" / f"{name}.py"
    done = subprocess.run([sys.executable, str(script), "--check"], check=False)
    assert done.returncode == 0, f"run python benchmarks/{name}.py"


def test_tables_are_of_these_kernels() -> None:
    """A change of a kernel's code makes figures old: make figures MODELS=DIR."""
    figures = ROOT / "benchmarks/figures.py"
    tables = [it for page in PAGES for it in re.findall(r"<!-- figures: (\S+)", page.read_text("utf-8"))]
    assert len(tables) >= 4 and all((ROOT / "benchmarks" / script).is_file() for script in tables)
    done = subprocess.run([sys.executable, figures, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_picture_of_the_readme_has_the_figures_of_its_table() -> None:
    readme, picture = (ROOT / "README.md").read_text("utf-8"), (ROOT / "docs/shrink.svg").read_text("utf-8")
    rows = [line for line in readme.splitlines() if line.startswith("|")]
    sizes = re.findall(r">([\d,]+ B)</tspan><tspan[^>]*>([\d.]+ M) cycles", picture)
    assert len(sizes) == 3 and all(any(f"{size}, {time}" in it for it in rows) for size, time in sizes)
    widths = [float(it) for it in re.findall(r'<rect class="(?:whole|cut)".*? width="([\d.]+)"', picture)]
    numbers = [int(size[:-2].replace(",", "")) for size, _ in sizes]
    assert widths == [pytest.approx(it * widths[0] / numbers[0], abs=0.1) for it in numbers]


def test_links_lead_to_files_and_headings_that_are_there() -> None:
    lost = []
    for page in PAGES:
        for target in re.findall(r"\]\(([^)\s]+)\)", without_code(page)):
            if "://" in target:
                continue
            name, _, heading = target.partition("#")
            file = (page.parent / name).resolve() if name else page
            if not file.exists() or (heading and heading not in headings(file)):
                lost.append(f"{page.relative_to(ROOT)}: {target}")
    assert not lost


def without_code(page: Path) -> str:
    """The text without fenced blocks."""
    return re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.M | re.S)


def headings(page: Path) -> set[str]:
    """The names of headings in links."""
    titles = re.findall(r"^#+ (.*)", without_code(page), re.M)
    return {re.sub(r"[^\w -]", "", it.lower()).replace(" ", "-") for it in titles}


def test_the_keys_of_plan_files_are_described() -> None:
    page = (ROOT / "docs" / "plan-file.md").read_text("utf-8")
    rows = "".join(re.findall(r"^\| (`.*?) \|", page, re.M))
    assert set(re.findall(r"`(\w+)`", rows)) == planfile.PlanFile.model_fields.keys()
    assert f"| `format` | {planfile._FORMAT} |" in page
