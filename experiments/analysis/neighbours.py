"""Nearest neighbours in the source embeddings (section 6.2, figure 6): tables for some pieces, a system a column, and
4-gram precision. The measuring is in embeddings.py."""

from __future__ import annotations

from pathlib import Path

from scripts.paper import Item
from scripts.runs import Run

from .document import Cell, ReportPart, Row, Table
from .embeddings import groups_of
from .grid import build as build_grid
from .labels import group_title, system_title
from .results import Results


def build(item: Item, results: Results, configs: Path, own: list[str]) -> ReportPart:
    part = build_grid(item, results, configs, own)
    tables = (table_of(runs, results, configs) for runs in groups_of(item, results, configs, own))
    part.blocks += [table for table in tables if table.rows]
    return part


def table_of(runs: tuple[Run, ...], results: Results, configs: Path) -> Table:
    found = [(results.get(run.name, "embeddings") or {})["neighbours"] for run in runs]
    pieces = dict.fromkeys(piece for one in found for piece in one)
    rows = [
        Row([Cell(piece), *(Cell(", ".join(other for other, _ in one.get(piece, []))) for one in found)])
        for piece in pieces
    ]
    return Table(
        f"table-neighbours-{runs[0].group}",
        f"Ten nearest neighbours of some pieces: {group_title(runs[0], configs)}",
        ["piece", *(system_title(run, configs) for run in runs)],
        rows,
        ['The nearest first. Other pieces: `make embeddings.RUN TOKENS="..."`.'],
    )
