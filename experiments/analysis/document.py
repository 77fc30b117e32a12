"""What a table, a figure and a part of the report are, before they are written as Markdown, LaTeX or HTML."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

VERDICTS = ("agrees", "near", "differs", "not run")


@dataclass
class Cell:
    """A number of ours beside the paper's, or just text."""

    text: str = ""  # ours, as it is shown
    value: float | None = None  # what a table is sorted by
    best: bool = False
    paper: str = ""
    paper_best: bool = False
    difference: str = ""
    verdict: str = ""
    command: str = ""  # that would run it

    @property
    def plain(self) -> str:
        """
        >>> Cell("33.10", paper="33.27", difference="-0.17", verdict="agrees").plain
        '33.10 (paper 33.27, -0.17, agrees)'
        """
        if not self.paper:
            return self.text or self.verdict
        inside = ", ".join(one for one in (f"paper {self.paper}", self.difference, self.verdict) if one)
        return f"{self.text} ({inside})" if self.text else f"{self.verdict} (paper {self.paper})".strip()


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


@dataclass
class Drawing:
    name: str
    caption: str
    figure: Any  # of matplotlib


@dataclass
class Finding:
    """A claim of the paper, and whether it holds."""

    text: str
    verdict: str  # holds, does not hold, not run
    where: str = ""  # of which runs


@dataclass
class ReportPart:
    """A table or a figure of the paper, with all that belongs to it."""

    name: str
    title: str
    section: str
    text: str
    blocks: list[Table | Drawing] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    fill: str = ""  # the command that runs all that is missing

    @property
    def tables(self) -> list[Table]:
        return [block for block in self.blocks if isinstance(block, Table)]

    @property
    def cells(self) -> list[Cell]:
        return [cell for table in self.tables for row in table.rows for cell in row.cells]

    @property
    def not_run(self) -> list[Cell]:
        return [cell for cell in self.cells if cell.verdict == "not run"]

    @property
    def missing(self) -> list[str]:
        """The commands that would run what was not run, each once."""
        return list(dict.fromkeys(cell.command for cell in self.not_run if cell.command))

    @property
    def drawings(self) -> list[Drawing]:
        return [block for block in self.blocks if isinstance(block, Drawing)]


def verdicts(parts: list[ReportPart]) -> dict[str, int]:
    """How many of the paper's numbers have which verdict."""
    counts = dict.fromkeys(VERDICTS, 0)
    for cell in (cell for part in parts for cell in part.cells):
        if cell.paper and cell.verdict in counts:
            counts[cell.verdict] += 1
    return counts
