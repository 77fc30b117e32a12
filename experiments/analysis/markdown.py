"""A part of the report as Markdown: tables as they are read on GitHub and in a terminal; figures as links."""

from __future__ import annotations

from dataclasses import replace

from .document import Cell, Drawing, Finding, ReportPart, Section, Table


def render_report(head: str, summary: str, found: ReportPart | None, sections: list[Section]) -> str:
    """What was found, the contents, and then everything. Of two parts with one title, the second's link is its own."""
    lines = [head, "", summary, ""]
    if found:
        lines += [f"## {found.title}", "", found.text, ""]
        lines += [line for table in found.tables for line in (render_table(table, found.title), "")]
    taken: dict[str, int] = {}
    for section in sections:
        lines += [f"- {section.title}"] if section.title else []
        for part in section.parts:
            link = anchor(part.title)
            again = taken[link] = taken.get(link, -1) + 1
            inside = "  " if section.title else ""
            lines.append(f"{inside}- [{part.title}](#{link}{f'-{again}' if again else ''}) ({part.section})")
    lines.append("")
    for section in sections:
        lines += [f"## {section.title}", "", section.text, ""] if section.title else []
        lines += map(render, section.parts)
    return "\n".join(lines).rstrip() + "\n"


def anchor(title: str) -> str:
    """As GitHub makes it of a heading."""
    kept = "".join(one for one in title.lower() if one.isalnum() or one in " -_")
    return kept.replace(" ", "-")


def render(part: ReportPart, figures: str = "figures") -> str:
    lines = [f"### {part.title}", "", f"{part.section} of the paper.", "", part.text, ""]
    for block in part.blocks:
        if isinstance(block, Drawing):
            lines += [f"![{block.caption}]({figures}/{block.name}.svg)", ""]
            lines += [f"*{block.caption}*", ""] if block.caption != part.title else []
        else:
            lines += [render_table(block, part.title), ""]
    if part.findings and part.was_run:
        for heading, findings in part.kinds_of_findings:
            lines += [f"{heading}:", "", *map(render_finding, findings), ""]
    for note in part.notes:
        lines += [note, ""]
    if part.missing:
        lines += [render_missing(part), ""]
    return "\n".join(lines)


def render_missing(part: ReportPart) -> str:
    """One line on what was not run, and how to run it."""
    every = f"`{part.fill}` runs all that is missing" if part.fill else ""
    single = f"`{part.missing[0]}` runs one of them"
    return f"Not run: {len(part.missing)}. {'; '.join(one for one in (every, single) if one)}."


def render_table(table: Table, under: str = "") -> str:
    """A pipe table; a group of rows has a heading of its own. Under a heading that says the same, it has no caption."""
    lines = [] if table.caption == under else [f"**{table.caption}**", ""]
    lines += [row_of(table.columns), row_of(["---"] * len(table.columns))]
    for group, rows in table.groups:
        lines += [row_of([f"**{group}**", *[""] * (len(table.columns) - 1)])] if group else []
        lines += [row_of([render_cell(cell) for cell in row.cells]) for row in rows]
    for note in [*(["The paper's numbers."] if table.is_papers_alone else []), *table.notes]:
        lines += ["", note]
    return "\n".join(lines)


def row_of(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def render_cell(cell: Cell) -> str:
    """
    >>> render_cell(Cell("33.10", best=True, paper="33.27", paper_best=True, difference="-0.17", verdict="agrees"))
    '**33.10** (paper **33.27**, -0.17, agrees)'
    >>> render_cell(Cell(paper="33.27", verdict="not run"))
    '33.27'
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
    """
    >>> render_finding(Finding("a", "BPE-dropout is better.", "undecided", "not significant", "+0.20"))
    '- BPE-dropout is better. **undecided** (not significant; +0.20)'
    """
    inside = "; ".join(one for one in (finding.why, finding.numbers) if one)
    return f"- {finding.text} **{finding.verdict}**" + (f" ({inside})" if inside else "")
