"""The paper's tables and figures as data: one file each in configs/paper, table-NAME.yaml or figure-NAME.yaml.

    title: Main results
    section: Section 5.1, Table 2
    agreement: {agrees: 0.5, near: 1.0}
    columns:
      bpe: {title: BPE}
      ...
    rows:
      - {title: En-Vi, run: "iwslt15.en-vi.{method}.base.seed1", paper: {bpe: 31.78, ...}, best: [bpe-dropout]}

A cell is a number of one run: of its result on a test set (`testset: misspelled` in a row; if none is named, the test
set as it is), or of a measurement of its text or model (`measure: timing` in the table). What the paper prints is under
`paper`; what is `beside` are runs that are not the paper's, which get a table of their own. Here it is decided which
runs a table needs, for any table from its YAML alone; experiments/analysis reads their results, and draws.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from bpe_dropout import InputError

from .corpora import CONFIGS, CorpusConfig, read_corpora
from .measures import MEASURES
from .runs import Group, Run, Target, plan_run
from .settings import Count, Positive, Range, read_settings
from .testsets import TEST, read_testset


@dataclass(frozen=True)
class Agreement:
    """Up to which difference from the paper's number ours agrees with it, or is near to it."""

    agrees: Annotated[float, Range(0)]
    near: Annotated[float, Range(0)]
    relative: bool = False  # as a share of the paper's number

    def verdict(self, ours: float, paper: float) -> str:
        off = abs(ours - paper) / (abs(paper) if self.relative else 1)
        return "agrees" if off <= self.agrees + 1e-9 else "near" if off <= self.near + 1e-9 else "differs"


@dataclass(frozen=True)
class Column:
    title: str
    method: str = ""  # the column's own name, if it is not given
    vocabulary: Positive | None = None
    number: str = ""
    agreement: Agreement | None = None


@dataclass(frozen=True)
class PaperRow:
    title: str
    run: str  # {method} stands for the column's
    group: str = ""  # a heading over several rows
    paper: dict[str, float] = field(default_factory=dict)  # by column
    best: list[str] = field(default_factory=list)  # what the paper prints in bold
    methods: dict[str, str] = field(default_factory=dict)  # by column, where it is another than the column's
    testset: str = TEST
    side: str = "src"
    at: float | None = None  # where it is in a figure

    def __post_init__(self) -> None:
        if self.side not in ("src", "tgt"):
            raise InputError(f"side is src or tgt, not {self.side}")


@dataclass(frozen=True)
class Claim:
    """What the paper says of the numbers, and how that is checked; see experiments/analysis/claims.py."""

    text: str
    check: str
    of: list[str] = field(default_factory=list)  # columns
    at: float | None = None
    rows: Positive | None = None


@dataclass(frozen=True)
class Plot:
    x: str
    y: str
    log: bool = False


@dataclass(frozen=True)
class Item:
    """A table or a figure."""

    order: int
    title: str
    section: str
    text: str
    module: str = "grid"  # of experiments/analysis
    measure: str = ""  # whose number it shows; without one, that of a run's result on a test set
    number: str = "bleu"
    scale: float = 1.0
    decimals: Count = 2
    over: str = ""  # smallest: numbers are divided by the smallest of the table
    cased: bool = False  # shows runs on text with its capitals alone
    axis: str = "group"  # how runs that are not the paper's are put into rows: by group, p, size ...: see grid.py
    corpora: list[str] = field(default_factory=list)  # whole corpora, whose text it measures
    translations: list[str] = field(default_factory=list)  # runs whose translations it shows, beside its cells
    plot: Plot | None = None
    agreement: Agreement | None = None
    columns: dict[str, Column] = field(default_factory=dict)
    rows: list[PaperRow] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    beside: list[str] = field(default_factory=list)
    name: str = ""

    def __post_init__(self) -> None:
        for row in self.rows:
            for column in (*row.paper, *row.best, *row.methods):
                if column not in self.columns:
                    raise InputError(f"row {row.title}: there is no column {column}")
            if self.measure and row.testset != TEST:
                raise InputError(f"row {row.title}: {self.measure} is measured, and not on the test set {row.testset}")
        for claim in self.claims:
            if not set(claim.of) <= set(self.columns):
                raise InputError(f"the claim {claim.text!r} is of {', '.join(claim.of)}, and not all are columns")
        if self.measure and self.measure not in MEASURES:
            raise InputError(f"there is no measure {self.measure}; there are {', '.join(MEASURES)}")

    def record_of(self, row: PaperRow) -> str:
        """What the numbers of a row are read from: a measurement, or the results on a test set."""
        return self.measure or row.testset

    @property
    def records(self) -> list[str]:
        """All that its rows are read from."""
        return list(dict.fromkeys(map(self.record_of, self.rows))) or [self.measure or TEST]

    @property
    def record(self) -> str:
        """The first of them: where rows do not differ in it, the only one."""
        return self.records[0]

    def cells(self, configs: Path = CONFIGS) -> Iterator[tuple[PaperRow, str, Run]]:
        """Every cell: its row, its column, and the run whose number it shows."""
        for row, column in itertools.product(self.rows, self.columns):
            # A row without a number of the paper's in this column has no cell, if it has any number at all.
            if row.paper and column not in row.paper:
                continue
            try:
                read_testset(row.testset, configs)
                yield row, column, self.run_of(row, column, configs)
            except InputError as error:
                raise InputError(f"{configs}/paper/{self.name}.yaml, row {row.title}: {error}") from None

    def run_of(self, row: PaperRow, column: str, configs: Path) -> Run:
        """A vocabulary that is the corpus's own is not named: the same run has one name."""
        method = row.methods.get(column) or self.columns[column].method or column
        run = Run.parse(row.run.replace("{method}", method))
        plan = plan_run(run, configs)
        size = self.columns[column].vocabulary
        return replace(run, vocabulary=size) if size and set(plan.vocabularies.values()) != {size} else run


@cache
def read_items(configs: Path = CONFIGS) -> dict[str, Item]:
    """All tables and figures by name, in the order of the report."""
    items = {}
    for path in sorted(configs.glob("paper/*.yaml")):
        name = path.name.removesuffix(".yaml")
        if not re.fullmatch(r"(table|figure)-[a-z-]+", name):
            raise InputError(f"{path}: the name of the file is table-NAME.yaml or figure-NAME.yaml")
        items[name] = replace(read_settings(path, Item), name=name)
    if not items:
        raise InputError(f"{configs}/paper has no tables and figures, such as table-main.yaml")
    return dict(sorted(items.items(), key=lambda one: (one[1].order, one[0])))


def expand(pattern: str) -> list[str]:
    """
    >>> expand("demo.en-de.{bpe,unigram}.small.seed1")
    ['demo.en-de.bpe.small.seed1', 'demo.en-de.unigram.small.seed1']
    """
    parts = re.split(r"\{([^}]*)\}", pattern)
    choices = [part.split(",") if number % 2 else [part] for number, part in enumerate(parts)]
    return ["".join(choice) for choice in itertools.product(*choices)]


def matching(patterns: Iterable[str], names: Iterable[str]) -> list[str]:
    """The names that any of the patterns mean, in the order of the patterns."""
    found = (
        name for pattern in patterns for one in expand(pattern) for name in sorted(names) if fnmatchcase(name, one)
    )
    return list(dict.fromkeys(found))


def fill(name: str, runs: list[str], configs: Path = CONFIGS, seed: int = 1) -> Target:
    """What `make fill-NAME` does: everything that a table or figure needs and that was not run yet. With runs, for
    these in place of the paper's. fill-report is all of them."""
    items = read_items(configs)
    wanted = list(items) if name == "report" else [name]
    if name not in (*items, "report"):
        raise InputError(f"there is no table or figure {name}; there are {', '.join(items)}, and report for all")
    own = [Run.parse(run) for run in runs]
    translated: dict[str, dict[Run, None]] = {}  # by test set
    measures: dict[tuple[str, Run], None] = {}
    for item in (items[one] for one in wanted):
        for record, run in needs_of_own(item, own) if own else needs(item, configs, seed):
            if record not in MEASURES:
                read_testset(record, configs)  # there is one
                translated.setdefault(record, {})[run] = None
            elif MEASURES[record].takes(plan_run(run, configs)):
                measures[record, run] = None
    if not translated and not measures:
        raise InputError(f"{name} needs no runs of its own: `make {name}` shows what there is")
    title = f"what {name} needs" if name != "report" else "what all tables and figures need"
    groups = [Group(group, testset) for testset, found in translated.items() for group in grouped(found)]
    return Target(f"fill-{name}", title, tuple(groups), tuple(measures))


def needs(item: Item, configs: Path, seed: int) -> Iterator[tuple[str, Run]]:
    """The records of the paper's runs that an item shows: of a measurement, or on a test set."""
    for row, _, run in item.cells(configs):
        yield item.record_of(row), replace(run, seed=seed)
    for name in item.translations:
        yield TEST, replace(Run.parse(name), seed=seed)
    for name in corpora_of(item, configs):
        yield item.record, first_run(read_corpora(configs)[name])


def needs_of_own(item: Item, own: list[Run]) -> Iterator[tuple[str, Run]]:
    """The same, of runs in place of the paper's."""
    yield from itertools.product([*item.records, *([TEST] if item.translations else [])], own)


def grouped(runs: Iterable[Run]) -> tuple[tuple[Run, ...], ...]:
    """Runs that differ in their method alone, together."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(run.group, []).append(run)
    return tuple(tuple(group) for group in groups.values())


def first_run(corpus: CorpusConfig) -> Run:
    """A run on all of a corpus, to measure its text by."""
    source, target = corpus.pair
    experiment = corpus.experiments[0]
    return Run(corpus.dataset, source, target, experiment.methods[0], experiment.model)


def corpora_of(item: Item, configs: Path = CONFIGS) -> list[str]:
    """The corpora that an item lists as the paper's."""
    for name in item.corpora:
        if name not in read_corpora(configs):
            raise InputError(f"{item.name}: there is no corpus {name}")
    return item.corpora
