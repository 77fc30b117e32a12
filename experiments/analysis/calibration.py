"""The p that makes a text 1.25 times longer (section 5.3, footnote).

Measured on each side of a run's training text: how many times longer dropout with the language's own p makes it, in
expectation, and which p would make it 1.25 times longer; and how many times longer words become by their number of
characters, which matters where a word is a whole clause. As exact as bpe_dropout/calibration.py says:
python -m experiments.analysis.calibration RUN --folder DATA --output FILE
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bpe_dropout import InputError, Segmenter, calibrate
from bpe_dropout.calibration import length_ratio
from scripts.stage import Reporter

from .measurement import begin, record, sides_of

RATIO = 1.25
CHARACTERS = {"1 to 5": (1, 5), "6 to 10": (6, 10), "11 to 20": (11, 20), "21 to 30": (21, 30), "more": (31, 10**9)}


def main() -> None:
    plan, options = begin("calibration", __doc__)
    found: dict[str, Any] = {"split": "train"}
    report = Reporter()
    for name, side in sides_of(plan, options.folder).items():
        corpus = side.corpus("train")
        counts = corpus.type_counts()
        ratio = length_ratio(side.segmenter, counts, side.p)
        found[name] = {"language": side.language, "p": side.p, "ratio": ratio}
        found[name]["by characters"] = by_characters(side.segmenter, counts, side.p)
        of = f"{plan.run.name}, {side.language}"
        try:
            best = calibrate(
                side.segmenter,
                counts,
                RATIO,
                progress=lambda p, ratio, of=of: report.show(f"{of}: p = {p:.4f} gives {ratio:.4f}"),  # type: ignore[misc]
            )
        except InputError:  # not even characters are that much longer
            found[name] |= {"p of 1.25": None, "exact share": None, "pieces with BPE": None}
            continue
        finally:
            report.clear()
        found[name] |= {"p of 1.25": best.p, "exact share": best.exact_share, "pieces with BPE": best.plain_length}
    record("calibration", plan, options, found)


def by_characters(segmenter: Segmenter, counts: Mapping[str, int], p: float) -> dict[str, dict[str, float | None]]:
    """How many times longer words of so many characters become, and how large their share of all pieces is."""
    pieces = {word: len(segmenter.segment(word)) * count for word, count in counts.items()}
    found: dict[str, dict[str, float | None]] = {}
    for name, (least, most) in CHARACTERS.items():
        some = {word: count for word, count in counts.items() if least <= len(word) <= most}
        ratio = length_ratio(segmenter, some, p) if some else None
        found[name] = {"ratio": ratio, "share": sum(pieces[word] for word in some) / sum(pieces.values())}
    return found


if __name__ == "__main__":
    main()
