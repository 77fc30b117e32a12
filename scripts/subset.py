"""Takes a random part of a training text: python -m scripts.subset RAW --pairs 250000 --output FOLDER

Each smaller part is within each larger one: pairs get a random order by the seed, and a part has the first of that
order, in the order of the text. Dev and test stay as they are. (The paper's subsets of WMT14 En-Fr are random; which
sentences they hold is not published.)
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

from bpe_dropout import InputError
from bpe_dropout.files import whole

from .stage import Reporter, Stage, read_json, write_json

SEED = 1


def main() -> None:
    stage = Stage(__doc__)
    stage.add_argument("raw", type=Path, metavar="RAW", help="a folder that scripts.extract has made")
    stage.add_argument("--pairs", type=int, required=True, metavar="N", help="how many pairs")
    stage.add_argument("--output", required=True, type=Path, metavar="FOLDER", help="where the texts go")
    options = stage.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    counts = read_json(options.raw / "counts.json")
    chosen = choose(counts["train"]["pairs"], options.pairs)
    for path in sorted(options.raw.glob("*.*")):
        if path.name.startswith("train."):
            take(path, chosen, options.output / path.name)
        elif path.name != "counts.json":
            shutil.copyfile(path, options.output / path.name)
    counts["train"] = {"pairs": options.pairs, "of": counts["train"]["pairs"], "seed": SEED}
    write_json(options.output / "counts.json", counts)


def choose(total: int, pairs: int, seed: int = SEED) -> np.ndarray:
    """Which of so many pairs are in the part of a size: true or false for each."""
    if not 1 <= pairs <= total:
        raise InputError(f"a part of {pairs} pairs cannot be taken from {total}")
    chosen = np.zeros(total, dtype=bool)
    chosen[np.random.Generator(np.random.PCG64(seed)).permutation(total)[:pairs]] = True
    return chosen


def take(path: Path, chosen: np.ndarray, target: Path) -> None:
    report = Reporter()
    with path.open("rb") as source, whole(target) as part, part.open("wb") as out:
        for number, (line, taken) in enumerate(zip(source, chosen.tolist(), strict=True)):
            if taken:
                out.write(line)
            if number % 10000 == 0:
                report.show(f"{target}: {number} of {len(chosen)} lines")
    report.clear()


if __name__ == "__main__":
    main()
