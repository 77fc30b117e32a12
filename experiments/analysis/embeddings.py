"""The source embeddings of a model (section 6.2, figures 6 and 7).

Measures, for the embeddings of all pieces of the source vocabulary: the ten nearest neighbours of each, by cosine;
character 4-gram precision, the share of the 4-grams of a piece's neighbours that the piece has, too, on average over
the pieces of at least four characters; which pieces are rare, the tenth that is least frequent in the plainly
segmented training text, and how many of their neighbours are rare; and where pieces are on the first two singular
vectors. TOKENS names the pieces whose neighbours are listed; if it does not, some are taken from frequent to rare.
python -m experiments.analysis.embeddings RUN --folder DATA --checkpoint FILE --output FILE
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bpe_dropout import InputError
from bpe_dropout.dictionary import SPECIAL
from scripts.paper import Item, grouped
from scripts.runs import Run

from .document import Drawing, ReportPart
from .drawing import COLOURS, new_figure
from .grid import build as build_grid
from .grid import measured_runs
from .labels import group_title, system_title
from .measurement import begin, record, sides_of
from .results import Results

Vectors = NDArray[np.float32]
NEIGHBOURS = 10
GRAM = 4
RARE = 0.1
LISTED = 8  # pieces whose neighbours are listed, if none are named
SHOWN = 3000  # points of a figure, at most


def main() -> None:
    plan, options = begin("embeddings", __doc__)
    side = sides_of(plan, options.folder)["src"]
    all_counts = read_counts(side.folder / f"dict.{side.language}.txt")
    vectors = read_vectors(options.checkpoint, len(all_counts))
    pieces, kept = list(side.dictionary.ids), [number - len(SPECIAL) for number in side.dictionary.ids.values()]
    named = os.environ.get("TOKENS", "").split()
    found = measure(vectors[kept], pieces, [all_counts[number] for number in kept], named)
    record("embeddings", plan, options, {"language": plan.run.source, **found})


def read_counts(path: Path) -> list[int]:
    """How often the training text has the pieces of a dictionary, in the order of their ids."""
    from fairseq.data import Dictionary

    counts: list[int] = Dictionary.load(str(path)).count[len(SPECIAL) :]
    return counts


def read_vectors(checkpoint: Path, pieces: int) -> Vectors:
    from bpe_dropout.averaging import load_state

    state = load_state(str(checkpoint), map_location="cpu")
    weight = state["model"].get("encoder.embed_tokens.weight")
    if weight is None or len(weight) != pieces + len(SPECIAL):
        raise InputError(f"{checkpoint} has no source embeddings for the {pieces} pieces of the dictionary")
    vectors: Vectors = weight.float().numpy()[len(SPECIAL) :]
    return vectors


def measure(vectors: Vectors, pieces: list[str], counts: list[int], named: list[str]) -> dict[str, Any]:
    for piece in named:
        if piece not in pieces:
            raise InputError(f"TOKENS: {piece} is not a piece of the source vocabulary")
    nearest, similarity = find_neighbours(vectors)
    rare = find_rare(counts)
    is_rare = np.zeros(len(pieces), bool)
    is_rare[rare] = True
    listed = [pieces.index(piece) for piece in named] or choose_listed(pieces, counts)
    shown = choose_shown(counts)
    return {
        "pieces": len(pieces),
        "precision": precision(pieces, nearest),
        "rare": len(rare),
        "rare neighbours of rare": float(is_rare[nearest[rare]].mean()),
        "neighbours": {
            pieces[number]: [
                [pieces[other], round(float(cosine), 3)]
                for other, cosine in zip(nearest[number], similarity[number], strict=True)
            ]
            for number in listed
        },
        "points": [
            [round(float(x), 3), round(float(y), 3), int(is_rare[number])]
            for number, (x, y) in zip(shown, project(vectors)[shown], strict=True)
        ],
    }


def find_neighbours(vectors: Vectors, most: int = NEIGHBOURS) -> tuple[NDArray[np.int64], Vectors]:
    """The nearest of each, the closest first, by cosine, and the cosines. A vector is no neighbour of its own."""
    most = min(most, len(vectors) - 1)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = vectors / np.where(lengths > 0, lengths, 1)
    nearest = np.zeros((len(vectors), most), np.int64)
    similarity = np.zeros((len(vectors), most), np.float32)
    for first in range(0, len(vectors), 1024):
        block = unit[first : first + 1024] @ unit.T
        rows = np.arange(len(block))
        block[rows, first + rows] = -np.inf
        found = np.argsort(-block, axis=1, kind="stable")[:, :most]
        nearest[first : first + 1024] = found
        similarity[first : first + 1024] = np.take_along_axis(block, found, axis=1)
    return nearest, similarity


def grams(piece: str) -> list[str]:
    """
    >>> grams("relat@@"), grams("▁cat")
    (['rela', 'elat'], [])
    """
    characters = letters(piece)
    return [characters[i : i + GRAM] for i in range(len(characters) - GRAM + 1)]


def letters(piece: str) -> str:
    """A piece without the mark of its place in the word: @@ of BPE, ▁ of a unigram model."""
    return piece.removesuffix("@@").removeprefix("▁")


def precision(pieces: list[str], nearest: NDArray[np.int64]) -> float:
    """The mean over pieces that have a 4-gram and a neighbour with one."""
    made = [grams(piece) for piece in pieces]
    shares = []
    for number, own in enumerate(made):
        others = [gram for other in nearest[number] for gram in made[other]]
        if own and others:
            shares.append(sum(gram in own for gram in others) / len(others))
    return float(np.mean(shares)) if shares else 0.0


def find_rare(counts: list[int]) -> NDArray[np.int64]:
    """The least frequent tenth of the pieces; of equals, the later ones of the dictionary."""
    order: NDArray[np.int64] = np.lexsort((-np.arange(len(counts)), np.array(counts)))
    return order[: max(1, round(RARE * len(counts)))]


def choose_listed(pieces: list[str], counts: list[int]) -> list[int]:
    """Some pieces of at least five letters, from frequent to rare."""
    order = sorted(range(len(pieces)), key=lambda number: (-counts[number], number))
    long = [number for number in order if len(name := letters(pieces[number])) >= 5 and name.isalpha()]
    if not long:
        return []
    steps = np.linspace(0, len(long) - 1, min(LISTED, len(long)) + 2)[1:-1]
    return [long[round(step)] for step in steps]


def choose_shown(counts: list[int]) -> NDArray[np.int64]:
    """Pieces evenly from all frequencies, as many as a figure can show."""
    order = np.argsort(-np.array(counts), kind="stable")
    shown: NDArray[np.int64] = order[
        np.unique(np.linspace(0, len(order) - 1, min(SHOWN, len(order))).round().astype(int))
    ]
    return shown


def project(vectors: Vectors) -> Vectors:
    """On the first two singular vectors, each turned so that its largest entry is positive."""
    _, _, axes = np.linalg.svd(vectors.astype(np.float64), full_matrices=False)
    first = axes[:2]
    first *= np.sign(first[np.arange(len(first)), np.abs(first).argmax(axis=1)])[:, None]
    projected: Vectors = vectors @ first.T
    return projected


def build(item: Item, results: Results, configs: Path, own: list[str]) -> ReportPart:
    part = build_grid(item, results, configs, own)
    part.blocks += [draw(runs, results, configs) for runs in groups_of(item, results, configs, own)]
    return part


def groups_of(item: Item, results: Results, configs: Path, own: list[str]) -> list[tuple[Run, ...]]:
    """Runs that were measured, with those that differ from them in their method alone; of a table, those of its first
    row that was measured."""
    found = list(grouped(Run.parse(name) for name in measured_runs(item, results, configs, own)))
    return found if own else found[:1]


def draw(runs: tuple[Run, ...], results: Results, configs: Path) -> Drawing:
    """The runs of a group side by side."""
    figure, axes = new_figure((3.4 * len(runs), 3.4), columns=len(runs))
    for one, run in zip(axes, runs, strict=True):
        points = np.array((results.get(run.name, "embeddings") or {})["points"])
        is_rare = points[:, 2] == 1
        groups = ((~is_rare, "other pieces", COLOURS[6], 4), (is_rare, "rare pieces", COLOURS[1], 6))
        for chosen, label, shade, size in groups:
            name = f"{label.split()[0]}-{run.system}"
            one.scatter(*points[chosen, :2].T, s=size, color=shade, label=label, gid=name, linewidths=0)
        one.set_title(system_title(run, configs), fontsize=9)
        one.set_xlabel("first singular vector")
    axes[0].set_ylabel("second singular vector")
    axes[-1].legend(markerscale=2)
    caption = f"Source embeddings of {group_title(runs[0], configs)}"
    return Drawing(f"figure-embeddings-{runs[0].group}", caption, figure)


if __name__ == "__main__":
    main()
