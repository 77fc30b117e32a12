"""Tables of numbers, a run a cell: ours beside the paper's (sections 5 and 6 and the appendix). Most tables and both
curves of the paper are such grids; what sets one apart from another stands in configs/paper.

Runs that are not the paper's stand in a table of their own, put into rows by what the item says:

    group      a row is a text and a model, a column a system
    p          a row is a value of p, a column a text and a model
    size       a row is a number of sentence pairs, a column a system and a vocabulary
    language   a row is a side of a run, the columns are the item's own
    spelling   as group, with a row for the test set as it is, and one for the same misspelled
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

from . import claims
from .document import Cell, Drawing, Finding, Part, Row, Table
from .drawing import colour, new_figure
from .labels import language_title, model_title, short, system_title, text_title, vocabulary_title
from .results import Results


@dataclass
class Entry:
    """A cell before it is text: a run's number, and the paper's."""

    run: str
    measure: str
    number: str
    value: float | None = None
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
    def is_filled(self) -> bool:
        return any(entry.value is not None for entry in self.entries)


def build(item: Item, results: Results, configs: Path, own: list[str]) -> Part:
    return build_grid(item, results, configs, own)


def build_grid(item: Item, results: Results, configs: Path, own: list[str]) -> Part:
    """The part of the report; with runs of one's own, of these alone."""
    part = Part(item.name, item.title, item.section, item.text.strip())
    if not own:
        paper = paper_grid(item, results, configs)
        add_grid(part, item, paper, results, f"{item.title} ({item.section})", item.name)
        part.fill = f"make fill-{item.name}" if any(entry.value is None for entry in paper.entries) else ""
    names = own or matching(item.beside, results.names(item.measure))
    grid = own_grid(item, names, results, configs)
    if grid.lines:
        caption = f"{item.title}: runs that are not the paper's" if not own else item.title
        add_grid(part, item, grid, results, caption, f"{item.name}-beside" if not own else item.name, beside=True)
        if own and any(entry.value is None for entry in grid.entries):
            part.fill = f'make fill-{item.name} RUNS="{" ".join(own)}"'
    return part


def add_grid(
    part: Part, item: Item, grid: Grid, results: Results, caption: str, name: str, beside: bool = False
) -> None:
    if item.over == "smallest":
        divide_by_smallest(grid)
    notes = mark_best(grid, results) if item.number == "bleu" and not item.plot else []
    notes += note_machines(item, grid, results)
    if item.plot and grid.is_filled:
        part.blocks.append(Drawing(name, caption, draw_lines(item, grid)))
    part.blocks.append(Table(name if not item.plot else f"{name}-values", caption, *table_of(item, grid), notes=notes))
    places = [line.at for line in grid.lines]
    numbers = {
        (row, column): entry.value for row, line in enumerate(grid.lines) for column, entry in line.entries.items()
    }
    if beside and item.axis == "p":  # columns are texts, and the claim is of any
        numbers = {(row, item.claims[0].of[0]): value for (row, _), value in numbers.items()} if item.claims else {}
    for claim in item.claims:
        if claim.check in claims.CHECKS and (not beside or set(claim.of) <= {column for _, column in numbers}):
            verdict = claims.check(claim, numbers, places)
            part.findings.append(Finding(claim.text, verdict, "runs that are not the paper's" if beside else ""))


# What stands where.


def paper_grid(item: Item, results: Results, configs: Path) -> Grid:
    lines: dict[int, Line] = {}
    for row, column, run in item.cells(configs):
        settings = item.columns[column]
        line = lines.setdefault(id(row), Line(row.title, row.group, row.at))
        number = (settings.number or item.number).replace("{side}", row.side)
        line.entries[column] = Entry(
            run.name,
            item.measure_of(row),
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
        found = results.number(entry.run, entry.measure, entry.number)
        entry.value = None if found is None else found * item.scale
    return grid


def own_grid(item: Item, names: list[str], results: Results, configs: Path) -> Grid:
    runs = [Run.parse(name) for name in names]
    return look_up(AXES[item.axis](item, runs, results, configs), item, results)


def by_group(item: Item, runs: list[Run], results: Results, configs: Path) -> Grid:
    """What is measured of some methods alone says nothing of the others: they are left out."""
    lines: dict[str, Line] = {}
    columns: dict[str, str] = {}
    for run in runs:
        if item.measure and not MEASURES[item.measure].takes(plan_run(run, configs)):
            continue
        title = f"{text_title(run, configs)} ({model_title(run)})"
        line = lines.setdefault(run.group, Line(title))
        line.entries[run.system] = Entry(run.name, item.measure, item.number)
        columns[run.system] = system_title(run, configs)
    if len(item.columns) == 1:  # a single number, whose title says what it is
        columns = dict.fromkeys(columns, next(iter(item.columns.values())).title)
    return Grid(columns, list(lines.values()), {name: name for name in columns})


def by_p(item: Item, runs: list[Run], results: Results, configs: Path) -> Grid:
    lines: dict[float, Line] = {}
    columns: dict[str, str] = {}
    for run in runs:
        p = p_of(run, results)
        if p is None:
            continue
        line = lines.setdefault(p, Line(f"{p:g}", at=p))
        line.entries[run.group] = Entry(run.name, item.measure, item.number)
        columns[run.group] = f"{text_title(run, configs)} ({model_title(run)})"
    return Grid(columns, [lines[p] for p in sorted(lines)])


def p_of(run: Run, results: Results) -> float | None:
    """The p of a run that has the same on both sides; 0 of plain BPE."""
    result = results.get(run.name)
    if not result or result["configuration"]["method"]["kind"] != "bpe":
        return None
    src, tgt = result["configuration"]["dropout"].values()
    return float(src) if src == tgt else None


def by_size(item: Item, runs: list[Run], results: Results, configs: Path) -> Grid:
    lines: dict[int, Line] = {}
    columns: dict[str, str] = {}
    systems: dict[str, str] = {}
    several = len({(run.dataset, run.direction, run.model) for run in runs}) > 1
    order = list(dict.fromkeys(run.system for run in runs))
    for run in sorted(runs, key=lambda one: (order.index(one.system), one.vocabulary or 10**9)):
        result = results.get(run.name)
        if result is None:
            continue
        pairs = result["text"]["train"]["pairs"]
        key = ".".join([run.dataset, run.direction, run.model, run.system, vocabulary_title(run, configs)])
        line = lines.setdefault(pairs, Line(short(pairs), at=pairs))
        line.entries[key] = Entry(run.name, item.measure, item.number)
        title = f"{system_title(run, configs)}, {vocabulary_title(run, configs)}"
        columns[key] = f"{text_title(run, configs)}: {title}" if several else title
        systems[key] = run.system
    return Grid(columns, [lines[pairs] for pairs in sorted(lines)], systems)


def by_language(item: Item, runs: list[Run], results: Results, configs: Path) -> Grid:
    lines = []
    for run in runs:
        for side, language in (("src", run.source), ("tgt", run.target)):
            found = results.get(run.name, item.measure)
            more = f", p = {found[side]['p']:g}" if found else ""
            line = Line(f"{language_title(language)}, {text_title(run, configs)}{more}")
            for name, column in item.columns.items():
                number = (column.number or item.number).replace("{side}", side)
                line.entries[name] = Entry(run.name, item.measure, number)
            lines.append(line)
    return Grid({name: column.title for name, column in item.columns.items()}, lines)


def by_spelling(item: Item, runs: list[Run], results: Results, configs: Path) -> Grid:
    grid = by_group(item, runs, results, configs)
    lines = []
    for line in grid.lines:
        for title, measure in (("original", ""), ("misspelled", "misspelled")):
            entries = {name: replace(entry, measure=measure) for name, entry in line.entries.items()}
            lines.append(Line(title, line.title, entries=entries))
    return Grid(grid.columns, lines, grid.colours)


AXES: dict[str, Callable[[Item, list[Run], Results, Path], Grid]] = {
    "group": by_group,
    "p": by_p,
    "size": by_size,
    "language": by_language,
    "spelling": by_spelling,
}


# What is made of the numbers.


def divide_by_smallest(grid: Grid) -> None:
    there = [entry.value for entry in grid.entries if entry.value]
    for entry in grid.entries:
        if entry.value is not None:
            entry.value /= min(there)


def mark_best(grid: Grid, results: Results) -> list[str]:
    """Marks what the paper prints in bold, where the runs of a row have been compared."""
    missing, notes = False, list[str]()
    for line in grid.lines:
        there = [entry for entry in line.entries.values() if entry.value is not None]
        if len(there) < 2:
            continue
        compared = results.comparison([entry.run for entry in there], there[0].measure == "misspelled")
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


def note_machines(item: Item, grid: Grid, results: Results) -> list[str]:
    """Times are compared, so they must come from one machine, and how often they were taken is said."""
    if item.measure != "timing":
        return []
    found = [record for entry in grid.entries if (record := results.get(entry.run, "timing"))]
    machines = {str(record["machine"]) for record in found}
    repeats = sorted({record["repeats"] for record in found})
    notes = [f"Averaged over {' or '.join(map(str, repeats))} translations of the test set."] if found else []
    return (
        [*notes, "These times come from several machines, and so cannot be compared."] if len(machines) > 1 else notes
    )


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
    prefix = f"{entry.measure}." if entry.measure else ""
    cell = Cell(best=entry.best, paper_best=entry.paper_best, command=f"make {prefix}{entry.run}")
    if entry.paper is not None:
        cell.paper = f"{entry.paper:.{item.decimals}f}"
        cell.value = entry.paper
    if entry.value is None:
        cell.verdict = "not run"
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
