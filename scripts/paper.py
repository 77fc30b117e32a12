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
set as it is), or of a measurement of its text or model (`measure: timing` in the table). With several `seeds`, it is of
a run for each, and shows their mean. What the paper prints is under `paper`.

The study asks what the paper claims of small models, on small text. It is data, too: a file in
configs/study is a table or figure of the same form. With `of: table-main` it takes title, columns and claims from that
of the paper, as far as it does not give its own; under `claims` it then changes those of the paper by their names, or
adds questions of our own (`is_ours: true`).

Here it is decided which runs a table needs, for any table from its YAML alone; experiments/analysis reads their
results, and draws.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from bpe_dropout import InputError

from .corpora import CONFIGS, CorpusConfig, read_corpora
from .measures import MEASURES
from .runs import Group, Run, Target, plan_run
from .settings import Count, Node, Positive, Range, at, convert, load, named
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
    seeds: list[Count] = field(default_factory=list)  # where they are others than the table's

    def __post_init__(self) -> None:
        if self.side not in ("src", "tgt"):
            raise InputError(f"side is src or tgt, not {self.side}")


@dataclass(frozen=True)
class Claim:
    """What the paper says of the numbers, and how that is checked; see experiments/analysis/claims.py."""

    name: str  # in this table
    text: str
    check: str
    of: list[str] = field(default_factory=list)  # columns
    at: float | None = None
    within: Annotated[float, Range(0)] = 0.0
    rows: Positive | None = None  # so many of the rows are enough
    where: str = ""  # the group of the rows that it is of; all, if none is named
    is_ours: bool = False  # the paper does not say it: a question that the study asks beside the paper's
    paper: str = ""  # what the paper says of it in numbers, where they are not in the table's own cells


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
    seeds: list[Count] = field(default_factory=lambda: [1])
    of: str = ""  # of the study: the table or figure of the paper that it repeats
    name: str = ""

    def __post_init__(self) -> None:
        names = [claim.name for claim in self.claims]
        if len(set(names)) < len(names):
            raise InputError("two claims have the same name")
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

    @property
    def is_study(self) -> bool:
        return self.name.startswith(STUDY)

    def cells(self, configs: Path = CONFIGS) -> Iterator[tuple[PaperRow, str, list[Run]]]:
        """Every cell: its row, its column, and the runs whose number it shows, one for each seed."""
        for row, column in itertools.product(self.rows, self.columns):
            # A row without a number of the paper's in this column has no cell, if it has any number at all.
            if row.paper and column not in row.paper:
                continue
            try:
                read_testset(row.testset, configs)
                run = self.run_of(row, column, configs)
                yield row, column, [replace(run, seed=seed) for seed in row.seeds or self.seeds]
            except InputError as error:
                raise InputError(f"{path_of(self.name, configs)}, row {row.title}: {error}") from None

    def run_of(self, row: PaperRow, column: str, configs: Path) -> Run:
        """A vocabulary that is the corpus's own is not named: the same run has one name."""
        method = row.methods.get(column) or self.columns[column].method or column
        run = Run.parse(row.run.replace("{method}", method))
        plan = plan_run(run, configs)
        size = self.columns[column].vocabulary
        return replace(run, vocabulary=size) if size and set(plan.vocabularies.values()) != {size} else run


STUDY = "study-"  # how the names of the study's tables begin, which have no other kind


def path_of(name: str, configs: Path) -> Path:
    """
    >>> str(path_of("table-main", Path("configs"))), str(path_of("study-main", Path("configs")))
    ('configs/paper/table-main.yaml', 'configs/study/main.yaml')
    """
    folder = "study" if name.startswith(STUDY) else "paper"
    return configs / folder / f"{name.removeprefix(STUDY)}.yaml"


@cache
def read_items(configs: Path = CONFIGS) -> dict[str, Item]:
    """All tables and figures by name, in the order of the report: the study's, and then the paper's."""
    found: list[dict[str, Item]] = []
    for folder, pattern, prefix in (("study", "[a-z-]+", STUDY), ("paper", "(table|figure)-[a-z-]+", "")):
        items = {}
        for path in sorted(configs.glob(f"{folder}/*.yaml")):
            if not re.fullmatch(pattern, path.stem):
                form = "NAME.yaml, in lowercase letters" if prefix else "table-NAME.yaml or figure-NAME.yaml"
                raise InputError(f"{path}: the name of the file is {form}")
            content = load(path)
            if prefix and "of" in content:
                content = inherit(content, configs)
            item: Item = convert(content, Item, str(path), "")
            items[f"{prefix}{path.stem}"] = replace(item, name=f"{prefix}{path.stem}")
        found.append(dict(sorted(items.items(), key=lambda one: (one[1].order, one[0]))))
    study, paper = found
    if not paper:
        raise InputError(f"{configs}/paper has no tables and figures, such as table-main.yaml")
    return study | paper


NOT_INHERITED = ("order", "text", "rows", "corpora", "translations", "agreement", "seeds")


def inherit(content: Node, configs: Path) -> Node:
    """A table of the study with what it does not say itself from that of the paper. Claims about columns that it does
    not have are left out."""
    with at(content.place_of("of")):
        base = load(named(configs / "paper", str(content["of"])))
    changes = content.pop("claims", Node())  # None: the claim is left out
    for key, value in base.items():
        if key not in NOT_INHERITED:
            content.setdefault(key, value)
    claims = content.get("claims", [])
    with at(getattr(changes, "place", content.place)):
        if not isinstance(changes, Node):
            raise InputError(f"claims changes those of {content['of']}, by name")
        names = [claim.get("name") for claim in claims]
        added = [name for name in changes if name not in names]
        if unknown := [name for name in added if not is_our_own(changes[name])]:
            raise InputError(f"claims changes those of {content['of']} by name, and it has none named {unknown}")
    made = []
    for claim in claims:
        change = changes.get(claim.get("name"), {})
        if change is not None and set(claim.get("of", [])) <= set(content["columns"]):
            changed = claim.only(claim)
            changed.update(change)
            made.append(changed)
    for name in added:
        changes[name]["name"] = name
        made.append(changes[name])
    content["claims"] = made
    return content


def is_our_own(claim: Any) -> bool:
    return isinstance(claim, Node) and bool(claim.get("is_ours"))


def fill(name: str, runs: list[str], configs: Path = CONFIGS, seed: int = 1) -> Target:
    """What `make fill-NAME` does: everything that a table or figure needs and that was not run yet. With runs, for
    these in place of its own. fill-report is all of the paper's."""
    items = read_items(configs)
    if name not in (*items, "report"):
        raise InputError(f"there is no table or figure {name}; there are {', '.join(items)}, and report for all")
    wanted = [item for item in items.values() if item.name == name or (name == "report" and not item.is_study)]
    own = [Run.parse(run) for run in runs]
    needed = [need for item in wanted for need in (needs_of_own(item, own) if own else needs(item, configs, seed))]
    title = f"what {name} needs" if name != "report" else "what all tables and figures need"
    target = target_of(f"fill-{name}", title, needed, configs)
    if not target.groups and not target.measures:
        raise InputError(f"{name} needs no runs of its own: `make {name}` shows what there is")
    return target


def study(configs: Path = CONFIGS) -> Target:
    """All runs of the study, in the order of its tables, and within each of the seeds: the most telling ones first."""
    items = [item for item in read_items(configs).values() if item.is_study]
    if not items:
        raise InputError(f"{configs}/study has no tables")
    ordered = [sorted(needs(item, configs), key=lambda need: need[1].seed) for item in items]
    title = "the paper's claims, tried on small models"
    return merge([target_of("study", title, needed, configs) for needed in ordered])


def merge(targets: list[Target]) -> Target:
    """One target of several, such as of the same with several seeds."""
    groups = dict.fromkeys(group for target in targets for group in target.groups)
    measures = dict.fromkeys(measure for target in targets for measure in target.measures)
    return replace(targets[0], groups=tuple(groups), measures=tuple(measures))


def target_of(name: str, title: str, needed: Iterable[tuple[str, Run]], configs: Path) -> Target:
    """Runs that are compared with each other on test sets, and measurements, of records that are needed."""
    translated: dict[str, dict[Run, None]] = {}  # by test set
    measures: dict[tuple[str, Run], None] = {}
    for record, run in needed:
        if record not in MEASURES:
            read_testset(record, configs)  # there is one
            translated.setdefault(record, {})[run] = None
        elif MEASURES[record].takes(plan_run(run, configs)):
            measures[record, run] = None
    groups = [Group(group, testset) for testset, found in translated.items() for group in grouped(found)]
    return Target(name, title, tuple(groups), tuple(measures), fills=True)


def needs(item: Item, configs: Path, seed: int | None = None) -> Iterator[tuple[str, Run]]:
    """The records of the runs that an item shows, of a measurement or on a test set; of the paper's, with a seed."""
    for row, _, runs in item.cells(configs):
        for run in runs:
            yield item.record_of(row), run if item.is_study or seed is None else replace(run, seed=seed)
    for name in item.translations:
        yield TEST, replace(Run.parse(name), seed=seed or 1)
    for name in corpora_of(item, configs):
        yield item.record, first_run(read_corpora(configs)[name])


def needs_of_own(item: Item, own: list[Run]) -> Iterator[tuple[str, Run]]:
    """The same, of runs in place of its own."""
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
