"""Figures: how they look, and how they are written. SVG takes the colour of the text around it, so that it can be read
on a light and on a dark page; PDF is for papers. The same figure is the same file every time."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib.figure import Figure

from bpe_dropout.files import whole

INK = "#010203"  # black, but one that can be told from any other
SIZE = (6.4, 3.6)  # inches
# Okabe and Ito's colours, which people with any colour vision can tell apart; darkened or lightened to be seen on white
# and on black.
COLOURS = ("#2186c9", "#d55e00", "#009e73", "#c05a9b", "#b8860b", "#3fa0dc", "#7f7f7f", "#a0522d")
SYSTEMS = {"bpe": 0, "unigram": 1, "bpe-dropout": 2, "bpe-dropout-src": 3, "bpe-dropout-tgt": 4}
GREEN, RED = "#009e73", "#d1495b"

matplotlib.rcParams.update(
    {
        "font.family": "sans-serif",
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": INK,
        "axes.labelcolor": INK,
        "text.color": INK,
        "xtick.color": INK,
        "ytick.color": INK,
        "legend.frameon": False,
        "svg.fonttype": "none",  # text stays text
        "svg.hashsalt": "bpe-dropout",
        "pdf.fonttype": 42,
    }
)


def new_figure(size: tuple[float, float] = SIZE, columns: int = 1, **settings: Any) -> tuple[Figure, list[Any]]:
    """A figure, and its axes from left to right."""
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(1, columns, squeeze=False, **settings)
    return figure, list(axes[0])


def colour(key: str, number: int) -> str:
    """The colour of a system, the same in all figures; of anything else, by its number."""
    return COLOURS[SYSTEMS.get(key, number) % len(COLOURS)]


def svg(figure: Figure) -> str:
    """The figure as text to put in a page, in the colour of the page's own text."""
    out = io.StringIO()
    figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = out.getvalue().replace(INK, "currentColor")
    return re.sub(r"^.*?(?=<svg )", "", text, flags=re.DOTALL)


def write(figure: Figure, folder: Path, name: str) -> None:
    """NAME.svg, in black on white, and NAME.pdf."""
    folder.mkdir(parents=True, exist_ok=True)
    text = svg(figure).replace("currentColor", "#000000")
    style = '<rect width="100%" height="100%" fill="#ffffff"/>'
    with whole(folder / f"{name}.svg") as part:
        part.write_text(re.sub(r"(<svg [^>]*>)", rf"\1\n {style}", text, count=1), "utf-8")
    with whole(folder / f"{name}.pdf") as part:
        nothing = {"CreationDate": None, "Creator": None, "Producer": None}
        figure.savefig(part, format="pdf", metadata=nothing)


def draw_steps(axes: Any, counts: dict[int, int], label: str, shade: str, name: str) -> None:
    """A distribution over whole numbers, as an outline; `name` finds it again in the SVG."""
    total = sum(counts.values())
    places = range(0, max(counts) + 2)
    axes.plot(
        list(places),
        [counts.get(place, 0) / total for place in places],
        drawstyle="steps-mid",
        color=shade,
        label=label,
        gid=name,
        linewidth=1.4,
    )
