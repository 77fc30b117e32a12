"""A part of the report as Markdown: tables as they are read on GitHub and in a terminal; figures as links."""

from __future__ import annotations

from dataclasses import replace

from .document import Cell, Drawing, Finding, ReportPart, Table


def render(part: ReportPart, figures: str = "figures") -> str:
    lines = [f"## {part.title}", "", f"{part.section} of the paper.", "", part.text, ""]
    for block in part.blocks:
        if isinstance(block, Drawing):
            lines += [f"![{block.caption}]({figures}/{block.name}.svg)", "", f"*{block.caption}*", ""]
        else:
            lines += [render_table(block), ""]
    if part.findings:
        lines += ["What the paper says of it:", "", *map(render_finding, part.findings), ""]
    for note in part.notes:
        lines += [note, ""]
    if part.missing:
        every = f"`{part.fill}` runs all that is missing" if part.fill else ""
        single = f"`{part.missing[0]}` runs one of them"
        lines += [f"Not run: {len(part.missing)}. {'; '.join(one for one in (every, single) if one)}.", ""]
    return "\n".join(lines)


def render_table(table: Table) -> str:
    """A pipe table; a group of rows has a heading of its own."""
    lines = [f"**{table.caption}**", "", row_of(table.columns), row_of(["---"] * len(table.columns))]
    for group, rows in table.groups:
        lines += [row_of([f"**{group}**", *[""] * (len(table.columns) - 1)])] if group else []
        lines += [row_of([render_cell(cell) for cell in row.cells]) for row in rows]
    for note in table.notes:
        lines += ["", note]
    return "\n".join(lines)


def row_of(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def render_cell(cell: Cell) -> str:
    """
    >>> render_cell(Cell("33.10", best=True, paper="33.27", paper_best=True, difference="-0.17", verdict="agrees"))
    '**33.10** (paper **33.27**, -0.17, agrees)'
    """
    text = f"**{escape(cell.text)}**" if cell.best and cell.text else escape(cell.text)
    paper = f"**{cell.paper}**" if cell.paper_best and cell.paper else cell.paper
    return replace(cell, text=text, paper=paper).plain


def escape(text: str) -> str:
    """What would be taken for Markdown, or for the end of a cell."""
    for character in "\\|*_`<>":
        text = text.replace(character, f"\\{character}")
    return text


def render_finding(finding: Finding) -> str:
    where = f" ({finding.where})" if finding.where else ""
    return f"- {finding.text} **{finding.verdict}**{where}"
