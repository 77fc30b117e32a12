"""How often frequent substrings are tokens (section 6.1, figure 5).

The token to substring ratio of a piece: how often it is a token of the segmented training text, divided by how often
its characters occur in the words, as part of a larger token, across tokens, or as a token. Characters are what
segmentation starts from: those of a piece that ends a word are looked for at the end of words, those of any other
piece before the end. So the ratio is at most 1, and the substrings are the same with and without dropout. Measured for
the tenth of the vocabulary whose substrings are the most frequent: python -m experiments.analysis.substrings RUN
--folder DATA --output FILE
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpe_dropout import Corpus, Dictionary, Segmenter
from scripts.paper import Item
from scripts.runs import Run
from scripts.stage import Reporter

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
    counts = zip(corpus.types(), corpus.counts.tolist(), strict=True)
    substrings = count_substrings(counts, pieces, segmenter.separator, len(corpus.counts))
    ranked = sorted(substrings, key=lambda piece: (-substrings[piece], piece))
    top = ranked[: max(1, len(pieces) // 10)]
    found: dict[str, Any] = {"pieces in the vocabulary": len(pieces), "pieces shown": len(top), "means": {}}
    for name, dropout, epochs in (("bpe", 0.0, 1), ("bpe-dropout", p, EPOCHS)):
        tokens = count_tokens(corpus, segmenter, pieces, dropout, epochs, seed, side)
        ratios = [tokens[piece] / epochs / substrings[piece] for piece in top]
        found[name] = np.histogram(ratios, BINS, (0, 1))[0].tolist()
        found["means"][name] = float(np.mean(ratios))
    return found


def count_substrings(
    counts: Iterable[tuple[str, int]], pieces: Iterable[str], separator: str = "@@", types: int = 0
) -> Counter[str]:
    """How often the characters of pieces occur in words.

    >>> count_substrings([("banana", 2)], ["an@@", "a", "na", "na@@"])
    Counter({'an@@': 4, 'na@@': 2, 'a': 2, 'na': 2})
    """
    inside = {piece.removesuffix(separator): piece for piece in pieces if piece.endswith(separator)}
    final = {piece: piece for piece in pieces if not piece.endswith(separator)}
    longest = max(map(len, [*inside, *final]), default=0)
    found: Counter[str] = Counter()
    report = Reporter()
    for number, (word, count) in enumerate(counts):
        if number % 10_000 == 0 and report.is_due:
            report.show(f"substrings: {number} of {types} words")
        end = len(word)
        for first in range(end):
            for last in range(first + 1, min(first + longest, end) + 1):
                piece = (inside if last < end else final).get(word[first:last])
                if piece is not None:
                    found[piece] += count
    report.clear()
    return found


def count_tokens(
    corpus: Corpus, segmenter: Segmenter, pieces: list[str], p: float, epochs: int, seed: int, side: int
) -> Mapping[str, int]:
    """How often pieces are tokens of the text, over several epochs."""
    dictionary = Dictionary({piece: number for number, piece in enumerate(pieces)}, unk=len(pieces))
    sampler = corpus.sampler(segmenter, dictionary, p)
    totals: NDArray[np.int64] = np.zeros(len(pieces) + 1, np.int64)
    for ids in draw_epochs(sampler, epochs, seed, side):
        totals += np.bincount(ids, minlength=len(totals))
    return dict(zip(pieces, totals.tolist(), strict=False))


def build(item: Item, results: Results, configs: Path, own: list[str]) -> ReportPart:
    part = build_grid(item, results, configs, own)
    for name in measured_runs(item, results, configs, own):
        part.blocks.append(draw(name, (results.get(name, "substrings") or {})["src"], configs))
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
