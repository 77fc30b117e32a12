"""The study's and the paper's tables and figures from the results that there are: python -m experiments.analysis NAME
[RUN ...]

NAME is a table or figure of configs/paper, such as table-main or figure-p, or of configs/study, such as study-main, or
`report` for all of them; nothing is trained or measured, and what is missing is named, with the command that would run
it. With the names of runs, the paper's tables and figures are made of these.

Reads experiments/results. Writes to experiments/report, or with runs or a word of one's own to
experiments/report-own: tables as Markdown and LaTeX, figures as SVG and PDF; for `report` also README.md and
index.html, which holds everything; the study's main table goes to README.md of the project, too.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from bpe_dropout import InputError
from scripts.corpora import ROOT
from scripts.marks import write_between_marks
from scripts.paper import read_items
from scripts.runs import Run
from scripts.stage import Reporter, Stage

from . import markdown
from .merges import CHOICE
from .report import arrange, build, read_table, write_part, write_report
from .results import Results

SHOWN = "study-main"  # in README.md, too


def main() -> None:
    stage = Stage(__doc__, "python -m experiments.analysis")
    stage.add_argument("name", metavar="NAME", help="a table or figure, or report")
    stage.add_argument("runs", nargs="*", metavar="RUN", help="runs of one's own")
    folder = ROOT / "experiments"
    stage.add_argument(
        "--results", type=Path, default=folder / "results", metavar="FOLDER", help="(default: %(default)s)"
    )
    stage.add_argument("--output", type=Path, metavar="FOLDER", help="(default: experiments/report or report-own)")
    stage.add_configs()
    options = stage.parse_args()
    own = options.runs or any(os.environ.get(name) for name in CHOICE)  # other than what is published
    output = options.output or folder / ("report-own" if own else "report")
    items = read_items(options.configs)
    results = Results(options.results, options.configs)
    check_runs(options.runs, results)
    if options.name == "report":
        shown_items = [item for item in items.values() if not (options.runs and item.is_study)]
        parts, report = [], Reporter()
        for number, item in enumerate(shown_items, 1):
            report.show(f"{number} of {len(shown_items)}: {item.name}")
            parts.append(build(item, results, options.configs, options.runs))
        report.clear()
        write_report(arrange(shown_items, parts, results, options.configs, options.runs), output)
        if output == folder / "report":
            write_between_marks(ROOT / "README.md", {"study": read_table(output, SHOWN)})
        print(f"written to {shown(output)}: index.html, README.md, tables and figures")
        tell_left_out(results)
        return
    if options.name not in items:
        raise InputError(f"there is no {options.name}; there are {', '.join(items)}, and report for all of them")
    part = build(items[options.name], results, options.configs, options.runs)
    write_part(part, output)
    print(markdown.render(part, shown(output / "figures")))
    if part.blocks:
        print(f"written to {shown(output / 'tables')} and {shown(output / 'figures')}")
    else:
        print("nothing of it was run, and the paper prints no numbers: nothing is written")
    tell_left_out(results)


def tell_left_out(results: Results) -> None:
    if left_out := [shown(path) for path in results.left_out]:
        print(f"left out, since the settings have changed: {', '.join(left_out)}; run them again", file=sys.stderr)


def shown(path: Path) -> str:
    """A path as it is read from here."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def check_runs(runs: list[str], results: Results) -> None:
    """Runs of one's own must be runs, and at least one of them must have been run or measured."""
    for name in runs:
        Run.parse(name)
    known = {name for folder in results.folder.glob("*") if folder.is_dir() for name in results.names(folder.name)}
    if runs and not known.union(results.names()) & set(runs):
        raise InputError(
            f"{results.folder} has nothing of {', '.join(runs)}: run them first, `make {runs[0]}`, or measure them, "
            f'`make fill-report RUNS="{" ".join(runs)}"`'
        )


if __name__ == "__main__":
    main()
