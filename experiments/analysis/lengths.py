"""How long text is with and without dropout (section 5.5, figure 4; the footnote of section 5.3).

Measures, for each side of a run's test set: how many sentences have how many pieces with BPE, and with BPE-dropout
over 20 epochs, and how many times longer dropout makes the text. Draws (a), these, and (b), the lengths of
translations, which are in the results of runs: python -m experiments.analysis.lengths RUN --folder DATA --output FILE
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bpe_dropout import Corpus, Dictionary, InputError, Segmenter
from scripts.paper import Item, grouped
from scripts.runs import Run

from .document import Drawing, ReportPart
from .drawing import colour, draw_steps, new_figure
from .grid import build as build_grid
from .grid import measured_runs
from .labels import language_title, system_title, text_title
from .measurement import begin, record, sides_of
from .results import Results

EPOCHS = 20


def main() -> None:
    plan, options = begin("lengths", __doc__)
    found: dict[str, Any] = {"split": "test", "epochs": EPOCHS, "seed": plan.run.seed}
    for name, side in sides_of(plan, options.folder).items():
        corpus = side.corpus("test")
        measured = measure(corpus, side.segmenter, side.p, seed=plan.run.seed, side=side.number)
        found[name] = {"language": side.language, "p": side.p, **measured}
    record("lengths", plan, options, found)


def measure(corpus: Corpus, segmenter: Segmenter, p: float, *, seed: int = 1, side: int = 0) -> dict[str, Any]:
    """Sentences by their number of pieces. Those without words are left out: no segmentation makes them longer."""
    everything = Dictionary({}, unk=0)  # lengths do not ask what a piece is
    has_words = corpus.word_counts > 0
    if not has_words.any():
        raise InputError(f"{corpus} has no words to measure")
    counts: dict[str, Counter[int]] = {"bpe": Counter(), "bpe-dropout": Counter()}
    for name, dropout, epochs in (("bpe", 0.0, 1), ("bpe-dropout", p, EPOCHS)):
        sampler = corpus.sampler(segmenter, everything, dropout)
        for epoch in range(1, epochs + 1):
            counts[name].update(sampler.lengths(seed=seed, epoch=epoch, side=side)[has_words].tolist())
    means = {name: mean_of(found) for name, found in counts.items()}
    return {
        "ratio": means["bpe-dropout"] / means["bpe"],
        "means": means,
        **{name: dict(sorted(found.items())) for name, found in counts.items()},
    }


def build(item: Item, results: Results, configs: Path, own: list[str]) -> ReportPart:
    part = build_grid(item, results, configs, own)
    for name in measured_runs(item, results, configs, own):
        part.blocks.append(draw_text(name, "tgt", results, configs))
    translated = [name for name in own or item.translations if has_lengths(results.get(name))]
    for runs in grouped(map(Run.parse, translated)):
        part.blocks.append(draw_translations(runs, results, configs))
    return part


def has_lengths(result: dict[str, Any] | None) -> bool:
    return bool(result and result["generation"].get("lengths"))


def mean_of(counts: Mapping[int, int]) -> float:
    return sum(length * count for length, count in counts.items()) / sum(counts.values())


def draw_text(name: str, side: str, results: Results, configs: Path) -> Drawing:
    found = (results.get(name, "lengths") or {})[side]
    figure, (axes,) = new_figure()
    for number, (system, label) in enumerate((("bpe", "BPE"), ("bpe-dropout", f"BPE-dropout, p = {found['p']:g}"))):
        draw_lengths(axes, found[system], label, system, number)
    finish(axes)
    caption = (
        f"(a) {language_title(found['language'])} of the test set of {text_title(Run.parse(name), configs)}: "
        f"{found['ratio']:.3f} times longer with dropout"
    )
    return Drawing(f"figure-lengths-text-{name}", caption, figure)


def draw_translations(runs: Sequence[Run], results: Results, configs: Path) -> Drawing:
    figure, (axes,) = new_figure()
    for number, run in enumerate(runs):
        counts = (results.get(run.name) or {})["generation"]["lengths"]
        draw_lengths(axes, counts, system_title(run, configs), run.system, number)
    finish(axes)
    first = runs[0]
    models = f"{first.model} models of seed {first.seed}"
    caption = f"(b) Translations of the test set of {text_title(first, configs)}, by the {models}"
    return Drawing(f"figure-lengths-translations-{first.group}", caption, figure)


def draw_lengths(axes: Any, found: dict[str, int], label: str, system: str, number: int) -> None:
    """The distribution of one system, with its mean."""
    counts = {int(length): count for length, count in found.items()}
    mean = mean_of(counts)
    shade = colour(system, number)
    draw_steps(axes, counts, f"{label}: {mean:.1f} on average", shade, f"lengths-{system}")
    axes.axvline(mean, color=shade, linestyle=":", linewidth=1)


def finish(axes: Any) -> None:
    axes.set_xlabel("pieces in a sentence")
    axes.set_ylabel("share of the sentences")
    axes.set_ylim(bottom=0)
    axes.set_xlim(0, min(axes.get_xlim()[1], 150))
    axes.legend()


if __name__ == "__main__":
    main()
