"""Tables of numbers, a run a cell: ours beside the paper's (sections 5 and 6 and the appendix). Most tables and both
curves of the paper are such grids; what sets one apart from another is in configs/paper.

Runs that are not the paper's are in a table of their own, put into rows by what the item says:

    group      a row is a text and a model, a column a system
    p          a row is a value of p, a column a text and a model
    size       a row is a number of sentence pairs, a column a system and a vocabulary
    language   a row is a side of a run, the columns are the item's own
    testset    as group, with a row for each test set that the item's own rows have
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from scripts.compare import best
from scripts.measures import MEASURES
from scripts.paper import Agreement, Item, matching
from scripts.runs import Run, plan_run
from scripts.testsets import TEST, read_testset

from . import claims
from .document import Cell, Drawing, Finding, ReportPart, Row, Table
from .drawing import colour, new_figure
from .labels import (
    direction_title,
    group_title,
    language_title,
    model_title,
    short,
    system_title,
    text_title,
    vocabulary_title,
)
from .results import Results


@dataclass
class Entry:
    """A cell before it is text: a run's number, and the paper's."""

    run: str
    record: str  # what its number is read from: a measurement, or the results on a test set
    number: str
    value: float | None = None
    is_missing: bool = True  # was not run; a number can also be none because there is none
    paper: float | None = None
    paper_best: bool = False
    best: bool = False
    agreement: Agreement | None = None


@dataclass
class Line:
    title: str
    group: str = ""
    at: float | None = None
    entries: dict[str, Entry] = field(default_factory=dict)


@dataclass
class Grid:
    columns: dict[str, str]  # titles
    lines: list[Line]
    colours: dict[str, str] = field(default_factory=dict)  # the systems whose colours columns have in a figure

    @property
    def entries(self) -> list[Entry]:
        return [entry for line in self.lines for entry in line.entries.values()]

    @property
    def numbers(self) -> claims.Grid:
        return {(row, name): entry.value for row, line in enumerate(self.lines) for name, entry in line.entries.items()}

    @property
    def is_filled(self) -> bool:
        return any(entry.value is not None for entry in self.entries)


def build(item: Item, results: Results, configs: Path, own: list[str]) -> ReportPart:
    """The part of the report; with runs of one's own, of these alone."""
    part = ReportPart(item.name, item.title, item.section, item.text.strip())
    if not own:
        paper = paper_grid(item, results, configs)
        add_grid(part, item, paper, results, f"{item.title} ({item.section})", item.name)
        part.fill = f"make fill-{item.name}" if any(entry.is_missing for entry in paper.entries) else ""
    grid = own_grid(item, own or beside(item, results), results, configs)
    if grid.lines:
        caption = item.title if own else f"{item.title}: runs that are not the paper's"
        add_grid(part, item, grid, results, caption, item.name if own else f"{item.name}-beside", is_paper=False)
        if own and any(entry.is_missing for entry in grid.entries):
            part.fill = f'make fill-{item.name} RUNS="{" ".join(own)}"'
    return part


def beside(item: Item, results: Results) -> list[str]:
    """Runs that are not the paper's, and have what the item shows."""
    names = matching(item.beside, results.names(item.record))
    return [name for name in names if all(results.get(name, record) for record in item.records)]


def measured_runs(item: Item, results: Results, configs: Path, own: list[str]) -> list[str]:
    """Of the runs that an item shows, the paper's first, those that have been measured."""
    paper = [] if own else [run.name for _, _, run in item.cells(configs)]
    names = dict.fromkeys([*paper, *(own or beside(item, results))])
    return [name for name in names if results.get(name, item.record)]


def add_grid(
    part: ReportPart, item: Item, grid: Grid, results: Results, caption: str, name: str, is_paper: bool = True
) -> None:
    notes = divide_by_smallest(grid, results, is_paper) if item.over == "smallest" else []
    notes += mark_best(grid, results) if not item.measure and item.number == "bleu" and not item.plot else []
    if item.plot and grid.is_filled:
        part.blocks.append(Drawing(name, caption, draw_lines(item, grid)))
    part.blocks.append(Table(name if not item.plot else f"{name}-values", caption, *table_of(item, grid), notes=notes))
    part.findings += find_claims(item, grid, is_paper)


def find_claims(item: Item, grid: Grid, is_paper: bool) -> list[Finding]:
    """The paper's claims, on the paper's runs; those that mean something on others, on these, too."""
    places = [line.at for line in grid.lines]
    if is_paper:
        return [Finding(claim.text, claims.check(claim, grid.numbers, places)) for claim in item.claims]
    found = []
    for claim in item.claims:
        if claim.check not in claims.ANYWHERE or claim.rows:
            continue
        if item.axis == "p":  # a text and a model a column, and the claim is of each
            for column, title in grid.columns.items():
                verdict = claims.check(replace(claim, of=[column]), grid.numbers, places)
                found.append(Finding(claim.text, verdict, title))
        elif set(claim.of) <= set(grid.columns):
            verdict = claims.check(claim, grid.numbers, places)
            found.append(Finding(claim.text, verdict, "runs that are not the paper's"))
    return [finding for finding in found if finding.verdict != "not run"]


# What is where.


def paper_grid(item: Item, results: Results, configs: Path) -> Grid:
    lines: dict[int, Line] = {}
    for row, column, run in item.cells(configs):
        settings = item.columns[column]
        line = lines.setdefault(id(row), Line(row.title, row.group, row.at))
        number = (settings.number or item.number).replace("{side}", row.side)
        line.entries[column] = Entry(
            run.name,
            item.record_of(row),
            number,
            paper=row.paper.get(column),
            paper_best=column in row.best,
            agreement=settings.agreement or item.agreement,
        )
    grid = Grid(
        {name: column.title for name, column in item.columns.items()},
        list(lines.values()),
        {name: column.method or name for name, column in item.columns.items()},
    )
    return look_up(grid, item, results)


def look_up(grid: Grid, item: Item, results: Results) -> Grid:
    for entry in grid.entries:
        found = results.number(entry.run, entry.record, entry.number)
        entry.value = None if found is None else found * item.scale
        entry.is_missing = results.get(entry.run, entry.record) is None
    return grid


def own_grid(item: Item, names: list[str], results: Results, configs: Path) -> Grid:
    """What is measured of some methods alone says nothing of the others: they are left out."""
    runs = [run for run in map(Run.parse, names) if run.cased or not item.cased]
    if item.measure:
        runs = [run for run in runs if MEASURES[item.measure].takes(plan_run(run, configs))]
    return look_up(AXES[item.axis](item, runs, results, configs), item, results)


def by_group(item: Item, runs: list[Run], results: Results, configs: Path) -> Grid:
    lines: dict[str, Line] = {}
    columns: dict[str, str] = {}
    for run in runs:
        line = lines.setdefault(run.group, Line(group_title(run, configs)))
        line.entries[run.system] = Entry(run.name, item.record, item.number)
        columns[run.system] = system_title(run, configs)
    return Grid(columns, list(lines.values()), {name: name for name in columns})


def by_p(item: Item, runs: list[Run], results: Results, configs: Path) -> Grid:
    lines: dict[float, Line] = {}
    columns: dict[str, str] = {}
    for run in runs:
        plan = plan_run(run, configs)
        p, on_target = plan.dropout.values()
        if plan.method.kind != "bpe" or p != on_target:  # not one p, or no p at all
            continue
        line = lines.setdefault(p, Line(f"{p:g}", at=p))
        line.entries.setdefault(run.group, Entry(run.name, item.record, item.number))
        columns[run.group] = group_title(run, configs)
    return Grid(columns, [lines[p] for p in sorted(lines)])


def by_size(item: Item, runs: list[Run], results: Results, configs: Path) -> Grid:
    lines: dict[int, Line] = {}
    columns: dict[str, str] = {}
    systems: dict[str, str] = {}
    several = len({replace(run, method="", p=None, vocabulary=None, subset="") for run in runs}) > 1
    order = list(dict.fromkeys(run.system for run in runs))
    for run in sorted(runs, key=lambda one: (order.index(one.system), one.vocabulary or 10**9)):
        pairs = pairs_of(run, results, configs)
        if pairs is None:
            continue
        whole, sizes = replace(run, subset=""), vocabulary_title(run, configs)
        key = f"{whole.group} {run.system} {sizes}"
        line = lines.setdefault(pairs, Line(short(pairs), at=pairs))
        line.entries[key] = Entry(run.name, item.record, item.number)
        title = f"{system_title(run, configs)}, {sizes}"
        columns[key] = f"{run.dataset} {direction_title(run)} ({model_title(run)}): {title}" if several else title
        systems[key] = run.system
    return Grid(columns, [lines[pairs] for pairs in sorted(lines)], systems)


def pairs_of(run: Run, results: Results, configs: Path) -> int | None:
    """How many sentence pairs a run was, or is to be, trained on; of a whole corpus only its result knows."""
    if result := results.get(run.name):
        return int(result["text"]["train"]["pairs"])
    return plan_run(run, configs).corpus.subsets[run.subset].pairs if run.subset else None


def by_language(item: Item, runs: list[Run], results: Results, configs: Path) -> Grid:
    lines = []
    for run in runs:
        for side, language in (("src", run.source), ("tgt", run.target)):
            found = results.get(run.name, item.record)
            more = f", p = {found[side]['p']:g}" if found else ""
            line = Line(f"{language_title(language)}, {text_title(run, configs)}{more}")
            for name, column in item.columns.items():
                number = (column.number or item.number).replace("{side}", side)
                line.entries[name] = Entry(run.name, item.record, number)
            lines.append(line)
    return Grid({name: column.title for name, column in item.columns.items()}, lines)


def by_testset(item: Item, runs: list[Run], results: Results, configs: Path) -> Grid:
    grid = by_group(item, runs, results, configs)
    lines = []
    for line in grid.lines:
        for testset in item.records:
            entries = {name: replace(entry, record=testset) for name, entry in line.entries.items()}
            lines.append(Line(read_testset(testset, configs).title, line.title, entries=entries))
    return Grid(grid.columns, lines, grid.colours)


AXES: dict[str, Callable[[Item, list[Run], Results, Path], Grid]] = {
    "group": by_group,
    "p": by_p,
    "size": by_size,
    "language": by_language,
    "testset": by_testset,
}


# What is made of the numbers.


def divide_by_smallest(grid: Grid, results: Results, is_paper: bool) -> list[str]:
    """Times become ratios. Of the paper's table when all of it is there, since any could be the smallest; of others
    within a corpus and a model. Times of several machines do not."""
    records = {entry.run: record for entry in grid.entries if (record := results.get(entry.run, entry.record))}
    repeats = sorted({record["repeats"] for record in records.values()})
    notes = [f"Averaged over {' or '.join(map(str, repeats))} translations of the test set."] if repeats else []
    groups: dict[str, list[Entry]] = {}
    for entry in grid.entries:
        run = Run.parse(entry.run)
        groups.setdefault("" if is_paper else f"{run.dataset} {run.direction} {run.model}", []).append(entry)
    for entries in groups.values():
        there = [entry for entry in entries if entry.value is not None]
        several = len({str(records[entry.run]["machine"]) for entry in there}) > 1
        if several or (is_paper and there and len(there) < len(entries)):
            why = "of several machines" if several else "and are compared when all have been taken"
            times = ", ".join(f"{entry.run} {entry.value:.2f} s" for entry in there)
            notes.append(f"Times that are there, {why}: {times}.")
            for entry in there:
                entry.value, entry.is_missing = None, not several
            continue
        smallest = min((entry.value for entry in there if entry.value), default=1.0)
        for entry in there:
            entry.value = (entry.value or 0.0) / smallest
    return notes


def mark_best(grid: Grid, results: Results) -> list[str]:
    """Marks what the paper prints in bold, where the runs of a row have been compared."""
    missing, notes = False, list[str]()
    for line in grid.lines:
        there = [entry for entry in line.entries.values() if entry.value is not None]
        if len(there) < 2:
            continue
        compared = results.comparison([entry.run for entry in there], there[0].record)
        if compared is None:
            missing = True
            continue
        marked = best_of(compared, [entry.run for entry in there])
        for entry in there:
            entry.best = entry.run in marked
        notes.append(significance(line, grid, compared))
    if missing:
        notes.append("Nothing is bold in rows whose runs were not compared with each other.")
    return notes


def significance(line: Line, grid: Grid, comparison: dict[str, Any]) -> str:
    """En-De: BPE-dropout - BPE = +0.60 (p = 0.012), ..."""
    names = {entry.run: grid.columns[column] for column, entry in line.entries.items()}
    found = [
        f"{names[pair['systems'][1]]} − {names[pair['systems'][0]]} = {pair['difference']:+.2f} (p = {pair['p']:.3f})"
        for pair in comparison["pairs"]
        if set(pair["systems"]) <= set(names)
    ]
    return f"{line.group + ', ' if line.group else ''}{line.title}: {', '.join(found)}"


def best_of(comparison: dict[str, Any], runs: list[str]) -> list[str]:
    """Of some of the runs of a comparison, the best, and those whose difference from it is not significant."""
    scores = {run: score for run, score in comparison["bleu"].items() if run in runs}
    pairs = [pair for pair in comparison["pairs"] if set(pair["systems"]) <= set(runs)]
    return best(scores, pairs)


def table_of(item: Item, grid: Grid) -> tuple[list[str], list[Row]]:
    rows = []
    for line in grid.lines:
        title = Cell(line.title, value=line.at)
        cells = [cell_of(item, line.entries.get(column)) for column in grid.columns]
        if "difference" in item.settings:
            cells.append(difference_of(item, line))
        rows.append(Row([title, *cells], line.group))
    more = ["difference"] if "difference" in item.settings else []
    first = {"p": "p", "size": "sentence pairs", "language": "text"}.get(item.axis, "")
    return [first, *grid.columns.values(), *more], rows


def difference_of(item: Item, line: Line) -> Cell:
    """How far one column is above another, of ours and of the paper's."""
    first, second = (line.entries.get(name) for name in item.settings["difference"])
    if first is None or second is None:
        return Cell("–")
    cell = Cell()
    if first.paper is not None and second.paper is not None:
        cell.value = first.paper - second.paper
        cell.paper = f"{cell.value:+.{item.decimals}f}"
    if first.value is not None and second.value is not None:
        cell.value = first.value - second.value
        cell.text = f"{cell.value:+.{item.decimals}f}"
    return cell


def cell_of(item: Item, entry: Entry | None) -> Cell:
    if entry is None:
        return Cell("–")
    prefix = "" if entry.record == TEST else f"{entry.record}."
    cell = Cell(best=entry.best, paper_best=entry.paper_best, command=f"make {prefix}{entry.run}")
    if entry.paper is not None:
        cell.paper = f"{entry.paper:.{item.decimals}f}"
        cell.value = entry.paper
    if entry.value is None:
        cell.text, cell.verdict = ("", "not run") if entry.is_missing else ("none", "")
        cell.command = cell.command if entry.is_missing else ""
        return cell
    cell.text, cell.value, cell.command = f"{entry.value:.{item.decimals}f}", entry.value, ""
    if entry.paper is not None:
        cell.difference = f"{entry.value - entry.paper:+.{item.decimals}f}"
        cell.verdict = entry.agreement.verdict(entry.value, entry.paper) if entry.agreement else ""
    return cell


def draw_lines(item: Item, grid: Grid) -> Any:
    """A curve a column over the rows' places, as far as there are numbers."""
    assert item.plot
    figure, (axes,) = new_figure()
    names = list(grid.columns)
    for number, name in enumerate(names):
        points = [
            (line.at, line.entries[name].value)
            for line in grid.lines
            if name in line.entries and line.entries[name].value is not None
        ]
        if not points:
            continue
        system = grid.colours.get(name, name)
        same = [other for other in names[:number] if grid.colours.get(other, other) == system]
        xs, ys = zip(*points, strict=True)
        axes.plot(
            xs,
            ys,
            marker="os^D"[len(same) % 4],
            linestyle=("-", "--", ":", "-.")[len(same) % 4],
            color=colour(system, number),
            label=grid.columns[name],
            gid=f"curve-{number}",
        )
    axes.set_xlabel(item.plot.x)
    axes.set_ylabel(item.plot.y)
    if item.plot.log:
        axes.set_xscale("log")
        places = [line.at for line in grid.lines]
        axes.set_xticks(places, [line.title for line in grid.lines])
        axes.minorticks_off()
    axes.set_ylim(bottom=0 if item.axis == "p" else None)
    axes.legend()
    return figure
