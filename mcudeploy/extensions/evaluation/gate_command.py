"""`gate`: budgets of several models and boards, for continuous integration."""

from __future__ import annotations

from pathlib import Path

import rich_click as click
from rich.console import Console

from mcudeploy.cli.config import FILE_NAME
from mcudeploy.cli.options import files_option, output_options
from mcudeploy.cli.output import Output, Values, cell
from mcudeploy.cli.parameter_types import InputFile, NewFile
from mcudeploy.cli.table_grids import table_of
from mcudeploy.common.errors import BudgetError


@click.command()
@click.argument("file", type=InputFile(), default=FILE_NAME)
@click.option(
    "--against",
    metavar="BASE",
    help="Compare with a stored report of `gate --json`, or with runs of FILE at a revision of git.",
)
@click.option("--markdown", metavar="FILE.md", type=NewFile(), help="Write a summary for a pull request.")
@click.option("--junit", metavar="FILE.xml", type=NewFile(".xml"), help="Write the results as JUnit XML.")
@files_option
@output_options
@click.pass_context
def gate(
    context: click.Context,
    *,
    file: Path,
    against: str | None,
    markdown: Path | None,
    junit: Path | None,
    output: Output,
) -> None:
    """Hold models to the budgets that the [[gate]] tables of FILE state, mcudeploy.toml by default."""
    from mcudeploy.common.files import write_files
    from mcudeploy.extensions.evaluation import gate_report
    from mcudeploy.extensions.evaluation.gate import read_budgets, run_gate
    from mcudeploy.extensions.evaluation.gate_base import base_figures

    budgets = read_budgets(file)
    with output.progress() as progress:
        base = base_figures(against, file, progress) if against is not None else None
        results = run_gate(budgets, progress)
    report = gate_report.gate_object(results, against, base)
    texts = {markdown: gate_report.markdown(report), junit: gate_report.junit(report)}
    write_files({path: text for path, text in texts.items() if path is not None})
    output.result(report, _table)
    if not report["passed"]:
        context.exit(BudgetError.exit_code)


def _table(console: Console, report: Values) -> None:
    """Print a row for each budget, then what failed."""
    from mcudeploy.extensions.evaluation.gate_report import NAMES, faults_of, figure_text

    table = table_of("", *(f"{name}>" for name in NAMES), "")
    for it in report["results"]:
        figures = {each["figure"]: each for each in it["figures"]}
        cells = [
            cell(figure_text(figures[name]), "" if figures[name]["passed"] else "red")
            if name in figures
            else cell("")
            for name in NAMES
        ]
        table.add_row(cell(it["name"]), *cells, cell("passed" if it["passed"] else "NOT passed"))
    console.print(table)
    if report["against"]:
        console.print(cell(f"In brackets: the change against {report['against']}."))
    for it in report["results"]:
        for fault in faults_of(it):
            console.print(cell(f"{it['name']}: {fault}", "red"), soft_wrap=True)
