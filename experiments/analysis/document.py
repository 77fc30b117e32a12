"""What a table, a figure and a part of the report are, before they are written as Markdown, LaTeX or HTML."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any


@dataclass
class Cell:
    """A number of ours beside the paper's, or just text."""

    text: str = ""  # ours, as it is shown
    value: float | None = None  # what a table is sorted by
    spread: str = ""  # over seeds, or whatever else is said of it in brackets
    best: bool = False
    paper: str = ""
    paper_best: bool = False
    difference: str = ""
    verdict: str = ""
    commands: list[str] = field(default_factory=list)  # that would run what is missing of it

    @property
    def plain(self) -> str:
        """
        >>> Cell("33.10", paper="33.27", difference="-0.17", verdict="agrees").plain
        '33.10 (paper 33.27, -0.17, agrees)'
        >>> Cell("26.15", spread="25.90 to 26.40").plain
        '26.15 (25.90 to 26.40)'
        """
        if not self.text:
            return self.paper or (f"{self.verdict} ({self.spread})" if self.spread else self.verdict)
        paper = f"paper {self.paper}" if self.paper else ""
        inside = ", ".join(one for one in (self.spread, paper, self.difference, self.verdict) if one)
        return f"{self.text} ({inside})" if inside else self.text


def commands_of(cells: Iterable[Cell]) -> list[str]:
    """Each once."""
    return list(dict.fromkeys(command for cell in cells for command in cell.commands))


@dataclass
class Row:
    cells: list[Cell]  # the first is the title
    group: str = ""


@dataclass
class Table:
    name: str
    caption: str
    columns: list[str]
    rows: list[Row]
    notes: list[str] = field(default_factory=list)

    @property
    def groups(self) -> list[tuple[str, list[Row]]]:
        """Rows that follow each other and have the same group."""
        return [(group, list(rows)) for group, rows in groupby(self.rows, key=lambda row: row.group)]

    @property
    def has_papers(self) -> bool:
        """Whether it has numbers of the paper."""
        return any(cell.paper for row in self.rows for cell in row.cells)

    @property
    def is_papers_alone(self) -> bool:
        """Whether it has those alone: nothing of it was run."""
        return self.has_papers and {cell.verdict for row in self.rows for cell in row.cells} - {""} == {"not run"}


@dataclass
class Drawing:
    name: str
    caption: str
    figure: Any  # of matplotlib
    panels: list[Any] = field(default_factory=list)  # the same as figures of their own, for screens of any width


@dataclass
class Finding:
    """A claim of the paper, and whether it is reproduced; or a question of our own, and its answer."""

    name: str
    text: str
    verdict: str  # reproduced, not reproduced, undecided, not run; to a question yes, no
    why: str = ""  # it is undecided, or what it rests on
    numbers: str = ""  # that it is about
    is_ours: bool = False  # not a claim of the paper, but a question of the study's own


@dataclass
class ReportPart:
    """A table or a figure, with all that belongs to it."""

    name: str
    title: str
    section: str
    text: str
    blocks: list[Table | Drawing] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    fill: str = ""  # the command that runs all that is missing
    needs: str = "its corpora and a GPU"  # what that takes, of the paper's runs
    is_study: bool = False

    @property
    def tables(self) -> list[Table]:
        return [block for block in self.blocks if isinstance(block, Table)]

    @property
    def cells(self) -> list[Cell]:
        return [cell for table in self.tables for row in table.rows for cell in row.cells]

    @property
    def missing(self) -> list[str]:
        """The commands that would run what was not run, each once."""
        return commands_of(self.cells)

    @property
    def kinds_of_findings(self) -> list[tuple[str, list[Finding]]]:
        """What the paper claims, and what we asked, each with its heading."""
        headings = {False: "What the paper says of it", True: "What else was asked"}
        kinds = [(text, [one for one in self.findings if one.is_ours == ours]) for ours, text in headings.items()]
        return [kind for kind in kinds if kind[1]]

    @property
    def was_run(self) -> bool:
        """Whether any number in it is ours."""
        return any(finding.verdict != "not run" for finding in self.findings) or any(
            cell.text and cell.value is not None
            for table in self.tables
            for row in table.rows
            for cell in row.cells[1:]
        )

    @property
    def drawings(self) -> list[Drawing]:
        return [block for block in self.blocks if isinstance(block, Drawing)]


@dataclass
class Section:
    """Parts of the report that belong together."""

    title: str
    text: str
    parts: list[ReportPart]
