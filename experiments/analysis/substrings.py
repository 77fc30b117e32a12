"""How often frequent substrings are tokens (section 6.1, figure 5).

The token to substring ratio of a piece, by the paper's own words: how often it "appears in a segmented text as an
individual token", divided by how often it does so "as a sequence of characters (which may be part of a bigger token or
an individual token)". So the characters are looked for within tokens, not across their borders, and whether a word ends
there makes no difference: "an" is in "an@@", in "man" and in "hand". Each text, segmented with dropout or without, has
counts of its own; of each, the tenth of the vocabulary whose substrings are the most frequent in it is measured.
python -m experiments.analysis.substrings RUN --folder DATA --output FILE
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpe_dropout import Corpus, Dictionary, Segmenter
from bpe_dropout.data.vocabulary import possible_pieces
from scripts.paper import Item
from scripts.runs import Run

from .document import Drawing, ReportPart
from .drawing import colour, new_figure
from .grid import build as build_grid
from .grid import measured_runs
from .labels import language_title, text_title
from .measurement import begin, draw_epochs, record, sides_of
from .results import Results

EPOCHS = 5
BINS = 40


def main() -> None:
    plan, options = begin("substrings", __doc__)
    found: dict[str, Any] = {"split": "train", "epochs": EPOCHS, "seed": plan.run.seed}
    for name, side in sides_of(plan, options.folder).items():
        pieces = list(side.dictionary.ids)
        measured = measure(side.corpus("train"), side.segmenter, pieces, side.p, plan.run.seed, side.number)
        found[name] = {"language": side.language, "p": side.p, **measured}
    record("substrings", plan, options, found)


def measure(
    corpus: Corpus, segmenter: Segmenter, pieces: list[str], p: float, seed: int = 1, side: int = 0
) -> dict[str, Any]:
    number = max(1, len(pieces) // 10)
    found: dict[str, Any] = {"pieces in the vocabulary": len(pieces), "pieces shown": number, "means": {}}
    for name, dropout, epochs in (("bpe", 0.0, 1), ("bpe-dropout", p, EPOCHS)):
        tokens = count_tokens(corpus, segmenter, dropout, epochs, seed, side)
        substrings = count_substrings(tokens, pieces, segmenter.separator)
        top = sorted(substrings, key=lambda piece: (-substrings[piece], piece))[:number]
        ratios = [tokens.get(piece, 0) / substrings[piece] for piece in top]
        found[name] = np.histogram(ratios, BINS, (0, 1))[0].tolist()
        found["means"][name] = float(np.mean(ratios))
    return found


def count_tokens(
    corpus: Corpus, segmenter: Segmenter, p: float, epochs: int, seed: int, side: int
) -> Mapping[str, int]:
    """The tokens of the text, also those that are not in the vocabulary, and how often they occur in these epochs."""
    pieces = list(possible_pieces(segmenter, corpus.types()))
    dictionary = Dictionary({piece: number for number, piece in enumerate(pieces)}, unk=len(pieces))
    sampler = corpus.sampler(segmenter, dictionary, p)
    totals: NDArray[np.int64] = np.zeros(len(pieces) + 1, np.int64)
    for ids in draw_epochs(sampler, epochs, seed, side):
        totals += np.bincount(ids, minlength=len(totals))
    return {piece: count for piece, count in zip(pieces, totals.tolist(), strict=False) if count}


def count_substrings(tokens: Mapping[str, int], pieces: list[str], separator: str = "@@") -> dict[str, int]:
    """How often the characters of pieces occur in tokens, of which there are few, each with its count.

    >>> count_substrings({"ban@@": 2, "ana": 1, "an": 5}, ["an@@", "a", "na", "x"])
    {'an@@': 8, 'a': 9, 'na': 1}
    """
    characters = {piece: piece.removesuffix(separator) for piece in pieces}
    found = dict.fromkeys(characters.values(), 0)
    for token, count in tokens.items():
        text = token.removesuffix(separator)
        for first in range(len(text)):
            for last in range(first + 1, len(text) + 1):
                if (substring := text[first:last]) in found:
                    found[substring] += count
    return {piece: found[substring] for piece, substring in characters.items() if found[substring]}


def build(item: Item, results: Results, configs: Path, own: list[str]) -> ReportPart:
    part = build_grid(item, results, configs, own)
    sides = {} if own else {runs[0].name: row.side for row, _, runs in item.cells(configs)}
    for name in measured_runs(item, results, configs, own):
        part.blocks.append(draw(name, (results.get(name, "substrings") or {})[sides.get(name, "src")], configs))
    return part


def draw(name: str, found: dict[str, Any], configs: Path) -> Drawing:
    figure, (axes,) = new_figure()
    edges = np.linspace(0, 1, BINS + 1)
    for number, (system, label) in enumerate((("bpe", "BPE"), ("bpe-dropout", f"BPE-dropout, p = {found['p']:g}"))):
        shares = np.array(found[system]) / sum(found[system])
        shade = colour(system, number)
        axes.stairs(
            shares, edges, color=shade, label=f"{label}: {found['means'][system]:.3f} on average", gid=f"ratio-{system}"
        )
        axes.stairs(shares, edges, color=shade, fill=True, alpha=0.15)
    axes.set_xlabel("token to substring ratio")
    axes.set_ylabel("share of the pieces")
    axes.set_xlim(0, 1)
    axes.legend()
    caption = (
        f"{language_title(found['language'])} of the training text of {text_title(Run.parse(name), configs)}: the "
        f"{found['pieces shown']} most frequent of {found['pieces in the vocabulary']} pieces"
    )
    return Drawing(f"figure-substrings-{name}", caption, figure)


if __name__ == "__main__":
    main()
