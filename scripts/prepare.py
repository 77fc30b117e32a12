"""Makes words of a plain text, as the paper does: python -m scripts.prepare RAW --languages en vi --output FOLDER

Moses, by sacremoses: punctuation is normalised (--normalize), words are told from punctuation (--tokenize), letters are
made small (--lowercase), on all cores. Chinese and Japanese words are not separated by it, as in the paper. Of the
training text, pairs with a side that is empty then are left out.
"""

from __future__ import annotations

from pathlib import Path

from bpe_dropout.data.making import prepare_text
from bpe_dropout.data.preparation import Preparation
from bpe_dropout.files import whole

from .corpora import SPLITS
from .stage import Reporter, Stage, read_json, write_json


def main() -> None:
    stage = Stage(__doc__)
    stage.add_argument("raw", type=Path, metavar="RAW", help="a folder with train, valid and test of both languages")
    stage.add_argument("--languages", nargs=2, required=True, metavar="LANGUAGE", help="both")
    stage.add_argument("--output", required=True, type=Path, metavar="FOLDER", help="where the words go")
    for step in ("normalize", "tokenize", "lowercase"):
        stage.add_argument(f"--{step}", action="store_true", help="see above")
    stage.add_argument("--tokenized", nargs="*", default=[], metavar="SPLIT", help="splits that are tokenized already")
    stage.add_argument("--processes", type=int, metavar="N", help="how many at once (default: all cores)")
    options = stage.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    counts = read_json(options.raw / "counts.json")
    for split in SPLITS:
        texts = []
        for language in options.languages:
            done = split in options.tokenized
            steps = Preparation(
                language, options.normalize and not done, options.tokenize and not done, options.lowercase
            )
            name = f"{split}.{language}"
            with whole(options.output / name) as part:
                prepare_text(options.raw / name, part, steps, Reporter(), options.processes)
            texts.append(options.output / name)
        if split == "train":
            counts[split]["left out when prepared"] = leave_out_empty(texts)
            counts[split]["pairs"] -= counts[split]["left out when prepared"]
        print(f"{options.output} {split}: {counts[split]['pairs']} pairs", flush=True)
    write_json(options.output / "counts.json", counts)


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
