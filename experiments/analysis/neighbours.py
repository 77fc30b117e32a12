"""Nearest neighbours in the source embeddings (section 6.2, figure 6): tables for some pieces, a system a column, and
4-gram precision. The measuring is in embeddings.py."""

from __future__ import annotations

from pathlib import Path

from scripts.paper import Item, matching
from scripts.runs import Run

from .document import Cell, Part, Row, Table
from .grid import build as build_grid
from .labels import model_title, system_title, text_title
from .results import Results


def build(item: Item, results: Results, configs: Path, own: list[str]) -> Part:
    part = build_grid(item, results, configs, own)
    paper = [] if own else [run.name for _, _, run in item.cells(configs)]
    for names in (paper, own or matching(item.beside, results.names("embeddings"))):
        runs = [Run.parse(name) for name in names if results.get(name, "embeddings")]
        for group in dict.fromkeys(run.group for run in runs):
            table = table_of([run for run in runs if run.group == group], results, configs)
            part.blocks += [table] if table.rows else []
    return part


def table_of(runs: list[Run], results: Results, configs: Path) -> Table:
    found = [(results.get(run.name, "embeddings") or {})["neighbours"] for run in runs]
    pieces = dict.fromkeys(piece for one in found for piece in one)
    rows = [
        Row([Cell(piece), *(Cell(", ".join(other for other, _ in one.get(piece, []))) for one in found)])
        for piece in pieces
    ]
    caption = f"Ten nearest neighbours of some pieces: {text_title(runs[0], configs)}"
    return Table(
        f"table-neighbours-{runs[0].group}",
        f"{caption} ({model_title(runs[0])})",
        ["piece", *(system_title(run, configs) for run in runs)],
        rows,
        ['The nearest first. Other pieces: `make embeddings.RUN TOKENS="..."`.'],
    )
