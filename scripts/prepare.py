"""Makes words of a plain text, as the paper does: python -m scripts.prepare RAW --languages en vi --output FOLDER

As Moses does it: punctuation is normalized (--normalize), words and punctuation are separated (--tokenize), text is
lowercased (--lowercase), on all cores. Chinese and Japanese words are not separated by it, as in the paper. Of the
training text, pairs with a side that is empty then are left out.

A system writes such words, which are detokenized and scored against the original test text. So the test text
itself, prepared and detokenized, is scored, too, in each language with its tokenization of BLEU (--bleu): that is the
ceiling, the score of a system that writes the references themselves. counts.json keeps it.
"""

from __future__ import annotations

from pathlib import Path

from sacrebleu.metrics import BLEU

from bpe_dropout.data.making import prepare_text
from bpe_dropout.data.preparation import Preparation
from bpe_dropout.files import whole
from bpe_dropout.lines import read_lines

from .corpora import SPLITS
from .stage import Reporter, Stage, read_json, write_json


def main() -> None:
    stage = Stage(__doc__)
    stage.add_argument("raw", type=Path, metavar="RAW", help="a folder with train, valid and test of both languages")
    stage.add_argument("--languages", nargs=2, required=True, metavar="LANGUAGE", help="both")
    stage.add_argument("--output", required=True, type=Path, metavar="FOLDER", help="where the words go")
    for step in ("normalize", "tokenize", "lowercase"):
        stage.add_argument(f"--{step}", action="store_true", help="see above")
    stage.add_argument("--bleu", nargs=2, default=["13a"] * 2, metavar="NAME", help="as SacreBLEU has it, of each")
    stage.add_argument("--processes", type=int, metavar="N", help="how many at once (default: all cores)")
    options = stage.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    counts = read_json(options.raw / "counts.json")
    preparations = [
        Preparation(language, options.normalize, options.tokenize, options.lowercase) for language in options.languages
    ]
    for split in SPLITS:
        texts = []
        for steps in preparations:
            name = f"{split}.{steps.language}"
            with whole(options.output / name) as part:
                prepare_text(options.raw / name, part, steps, Reporter(), options.processes)
            texts.append(options.output / name)
        if split == "train":
            counts[split]["left out when prepared"] = leave_out_empty(texts)
            counts[split]["pairs"] -= counts[split]["left out when prepared"]
        print(f"{options.output} {split}: {counts[split]['pairs']} pairs", flush=True)
    counts["test"]["ceiling"] = {
        steps.language: round(ceiling(read_lines(options.raw / f"test.{steps.language}", "text"), steps, bleu), 2)
        for steps, bleu in zip(preparations, options.bleu, strict=True)
    }
    write_json(options.output / "counts.json", counts)


def ceiling(references: list[str], preparation: Preparation, tokenization: str) -> float:
    """The BLEU of references, prepared and detokenized, against themselves; lowercased, as systems are scored.

    Capitals do not matter here: where text is not lowercased, both sides have the same ones.
    """
    restored = [preparation.restore(preparation.prepare(line)) for line in references]
    found: float = BLEU(lowercase=True, tokenize=tokenization).corpus_score(restored, [references]).score
    return found


def leave_out_empty(paths: list[Path]) -> int:
    """Both files again, without pairs of which a side is empty; says how many there were."""
    empty = 0
    first, second = paths
    with (
        first.open("rb") as left,
        second.open("rb") as right,
        whole(first) as new_left,
        whole(second) as new_right,
        new_left.open("wb") as out_left,
        new_right.open("wb") as out_right,
    ):
        for one, other in zip(left, right, strict=True):
            if one.strip() and other.strip():
                out_left.write(one)
                out_right.write(other)
            else:
                empty += 1
    return empty


if __name__ == "__main__":
    main()
