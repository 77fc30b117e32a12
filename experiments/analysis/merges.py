"""The merges of a word, step by step (section 1, figure 1).

Measures nothing: it keeps the merge table of a run's source language with the results, so that the figure, and the
explorer of the report, can be made from them alone. WORD, P and SEEDS choose what is drawn; the draws are those of
bpe_dropout/reference.py with Python's own random numbers.
python -m experiments.analysis.merges RUN --folder DATA --output FILE
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

from bpe_dropout import Codes, InputError
from bpe_dropout.errors import check_dropout
from bpe_dropout.reference import Step, spell, trace, trace_plain
from scripts.measures import MEASURES
from scripts.paper import Item
from scripts.runs import Run, plan_run

from .document import Drawing, ReportPart
from .drawing import GREEN, INK, RED, new_figure
from .labels import language_title, text_title
from .measurement import begin, record, sides_of
from .results import Results

CHOICE = ("WORD", "P", "SEEDS")  # of the environment


def main() -> None:
    plan, options = begin("merges", __doc__)
    side = sides_of(plan, options.folder)["src"]
    codes = side.segmenter.codes
    if codes.version != (0, 2):
        raise InputError(f"{options.folder}/codes.{side.language}: merges are drawn of codes of version 0.2 alone")
    found = {"language": side.language, "merges": len(codes.pairs), "pairs": [" ".join(pair) for pair in codes.pairs]}
    record("merges", plan, options, found)


def codes_of(found: dict[str, Any]) -> Codes:
    pairs = (pair.split(" ") for pair in found["pairs"])
    return Codes(tuple((left, right) for left, right in pairs))


def distinct(names: list[str], results: Results) -> list[str]:
    """Of runs that were kept with the same merge table, the first."""
    found: dict[tuple[str, ...], str] = {}
    for name in names:
        if record := results.get(name, "merges"):
            found.setdefault(tuple(record["pairs"]), name)
    return list(found.values())


def table_title(name: str, found: dict[str, Any], configs: Path) -> str:
    return f"{language_title(found['language'])} of {text_title(Run.parse(name), configs)}, {found['merges']} merges"


def build(item: Item, results: Results, configs: Path, own: list[str]) -> ReportPart:
    part = ReportPart(item.name, item.title, item.section, item.text.strip(), is_study=item.is_study)
    shown = own or [runs[0].name for _, _, runs in item.cells(configs)]
    wanted = [name for name in shown if MEASURES["merges"].takes(plan_run(Run.parse(name), configs))]
    names = distinct(wanted, results) if own else distinct(wanted[:1], results)  # the others are for the explorer
    if not names and wanted:
        part.notes.append("There is no merge table yet: " + ", ".join(f"`make merges.{name}`" for name in wanted))
    word, p, seeds = read_choice(os.environ, item.settings)
    for name in names:
        found = results.get(name, "merges") or {}
        codes = codes_of(found)
        caption = (
            f"Segmentation of “{word}” with BPE, and with BPE-dropout, p = {p:g} ({table_title(name, found, configs)})"
        )
        panels = trace_panels(word, codes, p, seeds)
        figures = [draw(word, codes, [panel]) for panel in panels]
        part.blocks.append(Drawing(f"figure-merges-{name}", caption, draw(word, codes, panels), figures))
    return part


def read_choice(environment: Mapping[str, str], settings: dict[str, Any]) -> tuple[str, float, list[int]]:
    """WORD, P and SEEDS, or what the YAML file says."""
    word = environment.get("WORD") or settings["word"]
    if len(word.split()) != 1 or word != word.strip():
        raise InputError(f"WORD is one word, without spaces, not {word!r}")
    try:
        p = check_dropout(float(environment.get("P") or settings["p"]))
        seeds = [int(seed) for seed in environment["SEEDS"].split()] if environment.get("SEEDS") else settings["seeds"]
    except ValueError as error:
        raise InputError(f"P is a number from 0 to 1, and SEEDS are whole numbers: {error}") from None
    return word, p, seeds


Panel = tuple[str, list[Step]]  # with its title


def trace_panels(word: str, codes: Codes, p: float, seeds: list[int]) -> list[Panel]:
    """BPE, and a draw of BPE-dropout for each seed."""
    drawn = [(f"BPE-dropout, seed {seed}", list(trace(word, codes, p, Random(seed)))) for seed in seeds]
    return [("BPE", list(trace_plain(word, codes))), *drawn]


def draw(word: str, codes: Codes, panels: list[Panel]) -> Any:
    """The panels from left to right."""
    longest = max(len(steps) for _, steps in panels)
    width = 2 * len(word) + 1
    size = (min(0.105 * width + 0.5, 4) * len(panels), 0.26 * longest + 0.7)
    figure, axes = new_figure(size, columns=len(panels))
    for one, (title, steps) in zip(axes, panels, strict=True):
        one.set_title(title, fontsize=9)
        one.set_xlim(-1, width)
        one.set_ylim(longest - 0.4, -0.8)
        one.axis("off")
        for number, step in enumerate(steps):
            draw_step(one, step, number, codes, width, title.split()[-1])
    return figure


def draw_step(axes: Any, step: Step, line: int, codes: Codes, width: int, panel: str) -> None:
    """Tokens of one step on a line; a hyphen where two can be merged. Each hyphen can be found by its name."""
    tokens = spell(step.tokens, codes)
    place = (width - sum(map(len, tokens)) - len(tokens) + 1) / 2
    for number, token in enumerate(tokens):
        for character in token:
            axes.text(place, line, character, family="monospace", ha="center", va="center", color=INK)
            place += 1
        if number in step.possible:
            state = "applied" if number in step.applied else "dropped" if number in step.dropped else "possible"
            shade = {"applied": GREEN, "dropped": RED}.get(state, INK)
            weight = "normal" if state == "possible" else "bold"
            gid = f"{state}-{panel}-{line}-{number}"
            axes.text(
                place, line, "-", family="monospace", ha="center", va="center", color=shade, weight=weight, gid=gid
            )
        place += 1


if __name__ == "__main__":
    main()
