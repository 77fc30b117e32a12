"""Tables of numbers, a run a cell, or a run for each seed: ours beside the paper's, and the study's. Most tables and
both curves of the paper are such grids; what sets one apart from another is in configs/paper and configs/study.

Runs of one's own are put into rows by what the item says:

    group      a row is a text and a model, a column a system
    p          a row is a value of p, a column a text and a model
    size       a row is a number of sentence pairs, a column a system and a vocabulary
    language   a row is a side of a run, the columns are the item's own
    testset    as group, with a row for each test set that the item's own rows have
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from scripts.measures import MEASURES, is_of_text
from scripts.paper import Agreement, Claim, Item
from scripts.resampling import Scores
from scripts.runs import AT_THE_LIMIT, Run, plan_run
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
    """A cell before it is text: the numbers of its runs, one for each seed, and the paper's."""

    runs: list[str]
    record: str  # what its number is read from: a measurement, or the results on a test set
    number: str
    values: list[float | None] = field(default_factory=list)  # None: was not run, or there is none
    is_missing: bool = True  # none was run; a number can also be none because there is none
    paper: float | None = None
    paper_best: bool = False
    best: bool = False
    agreement: Agreement | None = None

    @property
    def there(self) -> list[float]:
        return [value for value in self.values if value is not None]

    @property
    def value(self) -> float | None:
        """The mean over seeds."""
        return fmean(self.there) if self.there else None

    @property
    def is_exact(self) -> bool:
        """Whether it is of a text alone: no training is in it."""
        return is_of_text(self.record)

    @property
    def by_seed(self) -> dict[int, tuple[str, float]]:
        """What there is: a run and its number."""
        pairs = zip(self.runs, self.values, strict=True)
        return {Run.parse(run).seed: (run, value) for run, value in pairs if value is not None}


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

    @property
    def is_empty(self) -> bool:
        """Whether it has no number at all, neither ours nor the paper's."""
        return not self.is_filled and all(entry.paper is None for entry in self.entries)


def build(item: Item, results: Results, configs: Path, own: list[str]) -> ReportPart:
    """The part of the report; with runs of one's own, of these alone."""
    part = ReportPart(item.name, item.title, item.section, item.text.strip(), is_study=item.is_study)
    if own:
        grid = own_grid(item, own, results, configs)
        if grid.lines:
            add_grid(part, item, grid, results, is_own=True)
        if any(entry.is_missing for entry in grid.entries):
            part.fill = f'make fill-{item.name} RUNS="{" ".join(own)}"'
        return part
    grid = item_grid(item, results, configs)
    if not grid.is_empty:
        add_grid(part, item, grid, results)
    if any(None in entry.values for entry in grid.entries):
        part.fill = f"make fill-{item.name}"
    if is_of_text(item.measure):
        part.needs = "its corpora"
    return part


def measured_runs(item: Item, results: Results, configs: Path, own: list[str]) -> list[str]:
    """Of the runs that an item shows, those that have been measured; of several seeds, the first."""
    names = dict.fromkeys(own or [runs[0].name for _, _, runs in item.cells(configs)])
    return [name for name in names if results.get(name, item.record)]


def add_grid(part: ReportPart, item: Item, grid: Grid, results: Results, is_own: bool = False) -> None:
    notes = divide_by_smallest(grid, results, is_own) if item.over == "smallest" else []
    notes += mark_best(grid, results) if not item.measure and item.number == "bleu" and not item.plot else []
    shown = [(run, entry.record) for entry in grid.entries for run in entry.runs]
    notes += [*at_the_limit(shown, results), *other_models(shown, results)]
    if item.plot and grid.is_filled:
        part.blocks.append(Drawing(item.name, item.title, draw_lines(item, grid)))
    name = f"{item.name}-values" if item.plot else item.name
    part.blocks.append(Table(name, item.title, *table_of(item, grid), notes=notes))
    if not is_own:
        part.findings += find_claims(item, grid, results)


def find_claims(item: Item, grid: Grid, results: Results) -> list[Finding]:
    """The paper's claims, on the runs of a table of the paper or of the study. Other runs get no verdict."""
    figures = GridFigures(grid, results)
    found = []
    for claim in item.claims:
        verdict = claims.check(claim, figures)
        numbers = claims.describe(claim, replace(figures, is_partial=True), item.decimals)
        found.append(finding_of(claim, verdict, numbers))
    return found


def finding_of(claim: Claim, verdict: claims.Verdict, numbers: str = "") -> Finding:
    text = claims.ANSWERS.get(verdict.text, verdict.text) if claim.is_ours else verdict.text
    return Finding(claim.name, claim.text, text, verdict.why, numbers, claim.is_ours)


def paper_numbers(item: Item, name: str, results: Results, configs: Path) -> str:
    """What the paper's own numbers say of one of its claims, as far as it prints them."""
    claim = next(claim for claim in item.claims if claim.name == name)
    figures = GridFigures(item_grid(item, results, configs), results, is_paper=True, is_partial=True)
    return claims.describe(claim, figures, item.decimals)


@dataclass
class GridFigures:
    """A grid as claims see it: of all seeds, of one of them, or with the paper's numbers in place of ours."""

    grid: Grid
    results: Results
    seed: int | None = None
    is_paper: bool = False
    is_partial: bool = False  # rows whose numbers are missing are left out

    @property
    def places(self) -> list[float | None]:
        return [line.at for line in self.grid.lines]

    @property
    def seeds(self) -> list[int]:
        return sorted({Run.parse(run).seed for entry in self.grid.entries for run in entry.runs})

    def title(self, row: int) -> str:
        return title_of(self.grid.lines[row])

    def seeds_of(self, claim: Claim) -> list[int]:
        return common_seeds(self.entries(claim))

    def of_seed(self, seed: int) -> GridFigures:
        return replace(self, seed=seed)

    def number(self, entry: Entry, beside: Sequence[Entry]) -> float | None:
        if self.is_paper:
            return entry.paper
        values = {seed: entry.by_seed[seed][1] for seed in common_seeds([entry, *beside])}
        if self.seed is not None:
            return values.get(self.seed)
        return fmean(values.values()) if values else None

    def column(self, name: str, claim: Claim | None = None) -> dict[int, float]:
        found = {}
        for row, line in self.lines(name):
            others = [line.entries[other] for other in (claim.of if claim else []) if other in line.entries]
            if claim is None or claims.is_about(claim, line.group, line.at):
                found[row] = self.number(line.entries[name], others)
        there = {row: value for row, value in found.items() if value is not None}
        if not there or (len(there) < len(found) and not self.is_partial):
            raise claims.Missing
        return there

    def lines(self, name: str) -> list[tuple[int, Line]]:
        return [(row, line) for row, line in enumerate(self.grid.lines) if name in line.entries]

    def entries(self, claim: Claim) -> list[Entry]:
        """The cells that a claim is of."""
        lines = [(line, name) for name in claim.of for _, line in self.lines(name)]
        return [line.entries[name] for line, name in lines if claims.is_about(claim, line.group, line.at)]

    def runs(self, claim: Claim) -> tuple[int, int]:
        entries = self.entries(claim)
        return sum(len(entry.there) for entry in entries), sum(len(entry.runs) for entry in entries)

    def fewest_seeds(self, claim: Claim) -> int:
        return min(0 if entry.is_exact else len(entry.runs) for entry in self.entries(claim))

    def has_test(self, claim: Claim) -> bool:
        return all(entry.is_exact or entry.number == "bleu" for entry in self.entries(claim))

    def tests(self, first: claims.Place, second: claims.Place) -> list[claims.Test]:
        if self.is_paper:
            raise claims.NotCompared
        one, other = (self.grid.lines[row].entries[name] for row, name in (first, second))
        return tests_of(one, other, self.results)

    def resampled(self, cell: tuple[int, str], seed: int) -> Scores:
        row, name = cell
        entry = self.grid.lines[row].entries[name]
        if seed not in entry.by_seed:
            raise claims.Missing
        run, _ = entry.by_seed[seed]
        found = self.results.resampled(run, entry.record) if entry.number == "bleu" else None
        if found is None:
            raise claims.NotCompared
        return found


def common_seeds(entries: Sequence[Entry]) -> list[int]:
    """The seeds for which all of these were run."""
    return sorted(set.intersection(*(set(entry.by_seed) for entry in entries)))


def tests_of(first: Entry, second: Entry, results: Results) -> list[claims.Test]:
    """How far the first of two is above the second, for each seed that both have. BLEU must have been compared; of a
    text alone a difference is a difference; other numbers of models have no test."""
    found = []
    for seed in common_seeds([first, second]):
        (run, value), (other, other_value) = first.by_seed[seed], second.by_seed[seed]
        p = 0.0 if first.is_exact else math.nan
        if first.number == "bleu":
            pair = compared(run, other, results, first.record)
            if pair is None:
                raise claims.NotCompared
            p = pair["p"]
        found.append(claims.Test(seed, value - other_value, p))
    return found


def compared(run: str, other: str, results: Results, record: str) -> dict[str, Any] | None:
    """The comparison of two runs on a test set, if there is one, of the scores that they have."""
    found = results.comparison([run, other], record)
    pairs = found["pairs"] if found else []
    return next((pair for pair in pairs if set(pair["systems"]) == {run, other}), None)


# What is where.


def item_grid(item: Item, results: Results, configs: Path) -> Grid:
    lines: dict[int, Line] = {}
    for row, column, runs in item.cells(configs):
        settings = item.columns[column]
        line = lines.setdefault(id(row), Line(row.title, row.group, row.at))
        number = (settings.number or item.number).replace("{side}", row.side)
        line.entries[column] = Entry(
            [run.name for run in runs],
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
        found = [results.number(run, entry.record, entry.number) for run in entry.runs]
        entry.values = [None if one is None else one * item.scale for one in found]
        entry.is_missing = all(results.get(run, entry.record) is None for run in entry.runs)
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
        line.entries[run.system] = Entry([run.name], item.record, item.number)
        columns[run.system] = system_title(run, configs)
    return Grid(columns, list(lines.values()), {name: name for name in columns})


def by_p(item: Item, runs: list[Run], results: Results, configs: Path) -> Grid:
    lines: dict[float, Line] = {}
    columns: dict[str, str] = {}
    for run in runs:
        plan = plan_run(run, configs)
        p, on_target = plan.dropout.values()
        if plan.method.kind != "bpe" or plan.method.has_rule or p != on_target:  # not one p, or no p at all
            continue
        line = lines.setdefault(p, Line(f"{p:g}", at=p))
        line.entries.setdefault(run.group, Entry([run.name], item.record, item.number))
        columns[run.group] = group_title(run, configs)
    return Grid(columns, [lines[p] for p in sorted(lines)])


def by_size(item: Item, runs: list[Run], results: Results, configs: Path) -> Grid:
    lines: dict[int, Line] = {}
    columns: dict[str, str] = {}
    systems: dict[str, str] = {}
    several = len({replace(run, method="", p=None, target_p=None, vocabulary=None, subset="") for run in runs}) > 1
    order = list(dict.fromkeys(run.system for run in runs))
    for run in sorted(runs, key=lambda one: (order.index(one.system), one.vocabulary or 10**9)):
        pairs = pairs_of(run, results, configs)
        if pairs is None:
            continue
        whole, sizes = replace(run, subset=""), vocabulary_title(run, configs)
        key = f"{whole.group} {run.system} {sizes}"
        line = lines.setdefault(pairs, Line(short(pairs), at=pairs))
        line.entries[key] = Entry([run.name], item.record, item.number)
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
                line.entries[name] = Entry([run.name], item.record, number)
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


def divide_by_smallest(grid: Grid, results: Results, is_own: bool) -> list[str]:
    """Times become ratios: of a table, when all of it is there, since any could be the smallest; of runs of one's own,
    within a corpus and a model. Times of several machines do not."""
    records = {
        run: record for entry in grid.entries for run in entry.runs if (record := results.get(run, entry.record))
    }
    repeats = sorted({record["repeats"] for record in records.values()})
    notes = [f"Averaged over {' or '.join(map(str, repeats))} translations of the test set."] if repeats else []
    groups: dict[str, list[Entry]] = {}
    for entry in grid.entries:
        run = Run.parse(entry.runs[0])
        groups.setdefault(f"{run.dataset} {run.direction} {run.model}" if is_own else "", []).append(entry)
    for entries in groups.values():
        there = [entry for entry in entries if entry.value is not None]
        several = len({str(records[run]["machine"]) for entry in there for run, _ in entry.by_seed.values()}) > 1
        if several or (not is_own and there and len(there) < len(entries)):
            why = "of several machines" if several else "and are compared when all have been taken"
            times = ", ".join(f"{entry.runs[0]} {entry.value:.2f} s" for entry in there)
            notes.append(f"Times that are there, {why}: {times}.")
            for entry in there:
                entry.values, entry.is_missing = [None] * len(entry.runs), not several
            continue
        smallest = min((entry.value for entry in there if entry.value), default=1.0)
        for entry in there:
            entry.values = [None if value is None else value / smallest for value in entry.values]
    return notes


def at_the_limit(shown: list[tuple[str, str]], results: Results) -> list[str]:
    """Runs, shown by some record, that were cut off: noise makes a training longer, so they may be the noisiest."""
    cut = [
        run
        for run, record in shown
        if not is_of_text(record)
        and results.get(run, record)
        and (results.get(run) or {}).get("training", {}).get("stopped") == AT_THE_LIMIT
    ]
    names = ", ".join(dict.fromkeys(cut))
    return [f"Trained until the limit of updates, and may not have converged: {names}."] if cut else []


def other_models(shown: list[tuple[str, str]], results: Results) -> list[str]:
    """Runs of which another model was measured than the one that was scored: it was trained again elsewhere."""
    others = []
    for run, record in dict.fromkeys(shown):
        result, measured = results.get(run), results.get(run, record)
        scored = (result or {}).get("generation", {}).get("model")
        if record in MEASURES and scored and measured and measured.get("model", scored) != scored:
            others.append(run)
    told = "Measured on another training with the same settings than the one that was scored"
    return [f"{told}: {', '.join(others)}."] if others else []


def mark_best(grid: Grid, results: Results) -> list[str]:
    """Marks the best of a row and all that are not found to be worse, where its runs have been compared."""
    missing, notes = False, list[str]()
    for line in grid.lines:
        there = [entry for entry in line.entries.values() if entry.value is not None]
        if len(there) < 2:
            continue
        top = max(there, key=lambda entry: entry.value or 0)
        others = [(entry, tests_if_compared(top, entry, results)) for entry in there if entry is not top]
        if not all(tests for _, tests in others):
            missing = True
            continue
        top.best = True
        for entry, tests in others:
            entry.best = claims.sign_of(tests) <= 0
        notes.append(significance(line, grid, results))
    if missing:
        notes.append("Nothing is bold in rows whose runs were not compared with each other.")
    return notes


def tests_if_compared(first: Entry, second: Entry, results: Results) -> list[claims.Test]:
    """None, if some of the runs were not compared."""
    try:
        return tests_of(first, second, results)
    except claims.NotCompared:
        return []


def significance(line: Line, grid: Grid, results: Results) -> str:
    """En-De: BPE-dropout - BPE = +0.60 (p = 0.012), ..."""
    entries = {name: entry for name, entry in line.entries.items() if entry.value is not None}
    found = []
    for first, second in itertools.combinations(entries, 2):
        if tests := tests_if_compared(entries[second], entries[first], results):
            difference, ps = fmean(one.difference for one in tests), ", ".join(f"{one.p:.3f}" for one in tests)
            found.append(f"{grid.columns[second]} − {grid.columns[first]} = {difference:+.2f} (p = {ps})")
    return f"{title_of(line)}: {', '.join(found)}"


def title_of(line: Line) -> str:
    return f"{line.group}, {line.title}" if line.group else line.title


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
    if seeds := common_seeds([first, second]):
        cell.value = fmean(first.by_seed[seed][1] - second.by_seed[seed][1] for seed in seeds)
        cell.text = f"{cell.value:+.{item.decimals}f}"
    return cell


def cell_of(item: Item, entry: Entry | None) -> Cell:
    if entry is None:
        return Cell("–")
    prefix = "" if entry.record == TEST else f"{entry.record}."
    missing = [f"make {prefix}{run}" for run, value in zip(entry.runs, entry.values, strict=True) if value is None]
    cell = Cell(best=entry.best, paper_best=entry.paper_best, commands=missing)
    if entry.paper is not None:
        cell.paper = f"{entry.paper:.{item.decimals}f}"
        cell.value = entry.paper
    if entry.value is None:
        cell.text, cell.verdict = ("", "not run") if entry.is_missing else ("none", "")
        cell.commands = missing if entry.is_missing else []
        return cell
    cell.text, cell.value = f"{entry.value:.{item.decimals}f}", entry.value
    cell.spread = spread_of(entry, item.decimals)
    if entry.paper is not None:
        cell.difference = f"{entry.value - entry.paper:+.{item.decimals}f}"
        cell.verdict = entry.agreement.verdict(entry.value, entry.paper) if entry.agreement else ""
    return cell


def spread_of(entry: Entry, decimals: int) -> str:
    """The smallest and the largest over seeds, or how many seeds there are, if not all."""
    if len(entry.there) < len(entry.runs):
        return f"{len(entry.there)} of {len(entry.runs)} seeds"
    return claims.span(entry.there, decimals, "") if len(entry.runs) > 1 else ""


def draw_lines(item: Item, grid: Grid) -> Any:
    """A curve a column over the rows' places, as far as there are numbers."""
    assert item.plot
    figure, (axes,) = new_figure()
    names = list(grid.columns)
    for number, name in enumerate(names):
        there = {line.at: line.entries[name].value for line in grid.lines if name in line.entries}
        if not any(value is not None for value in there.values()):
            continue
        points = [(place, math.nan if value is None else value) for place, value in there.items()]  # no line over gaps
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
    if item.axis == "p":
        axes.set_ylim(0, 1.08 * max(entry.value or 0 for entry in grid.entries))
    figure.legend(loc="outside upper center", ncols=4)  # above the curves, which may be anywhere
    return figure
