"""Tables as LaTeX, for a paper of one's own: booktabs, ours with the paper's number in brackets, the best in bold. Of a
table of which nothing was run, the paper's numbers."""

from __future__ import annotations

from .document import Cell, Table

LONG = 50  # characters of a cell
SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "↔": r"$\leftrightarrow$",
    "–": "--",
    "“": "``",
    "”": "''",
}


def render_table(table: Table) -> str:
    beside = " In brackets: the numbers of Provilkov et al. (2020)." if table.has_papers else ""
    theirs = " The numbers are those of Provilkov et al. (2020)." if table.is_papers_alone else beside
    lines = [
        rf"% Made by `make report`; needs \usepackage{{booktabs}}.{theirs}",
        r"\begin{table}",
        r"\centering",
        rf"\begin{{tabular}}{{{columns_of(table)}}}",
        r"\toprule",
        row_of(list(map(escape, table.columns))),
        r"\midrule",
    ]
    for number, (group, rows) in enumerate(table.groups):
        lines += [r"\midrule"] if number else []
        heading = rf"\multicolumn{{{len(table.columns)}}}{{l}}{{\textbf{{{escape(group)}}}}} \\"
        lines += [heading] if group else []
        lines += [row_of([render_cell(cell, table.is_papers_alone) for cell in row.cells]) for row in rows]
    label = table.name.replace("_", "-")
    lines += [r"\bottomrule", r"\end{tabular}", rf"\caption{{{escape(table.caption)}}}", rf"\label{{{label}}}"]
    return "\n".join([*lines, r"\end{table}", ""])


def columns_of(table: Table) -> str:
    """The first to the left, numbers in the middle; long text is broken into lines."""
    places = range(1, len(table.columns))
    longest = [max((len(row.cells[place].plain) for row in table.rows), default=0) for place in places]
    width = 0.8 / max(1, sum(one > LONG for one in longest))
    return "l" + "".join(rf"p{{{width:.2f}\textwidth}}" if one > LONG else "c" for one in longest)


def row_of(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"


def render_cell(cell: Cell, papers_alone: bool = False) -> str:
    r"""
    >>> render_cell(Cell("33.10", best=True, paper="33.27"))
    '\\textbf{33.10} (33.27)'
    >>> render_cell(Cell(paper="33.27", verdict="not run")), render_cell(Cell(paper="33.27", verdict="not run"), True)
    ('-- (33.27)', '33.27')
    """
    ours = escape(cell.text) or ("--" if cell.verdict == "not run" else cell.verdict)
    ours = rf"\textbf{{{ours}}}" if cell.best and cell.text else ours
    if not cell.paper:
        return ours
    paper = rf"\textbf{{{escape(cell.paper)}}}" if cell.paper_best else escape(cell.paper)
    return paper if papers_alone else f"{ours} ({paper})".strip()


def escape(text: str) -> str:
    return "".join(SPECIAL.get(character, character) for character in text)
