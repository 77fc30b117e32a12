"""Compares the learner with subword-nmt's on all the real text of ../shared/data, which takes hours:

    python -m tests.bpe_dropout.compare_learning [FOLDER ...] [--most BYTES] [--least BYTES] [--keep CODES]

Each file as it is and Moses-tokenized, 1k, 4k, 16k and 32k merges; the first two files of each folder joined, with
--total-symbols and --min-frequency. The smallest files come first; --most and --least choose by their size. Prints a
line for each, with the CPU seconds of both, and ends at the first difference. What subword-nmt learned is kept in the
folder CODES, so that it is not learned again.
"""

import argparse
import tempfile
import time
from collections import Counter
from pathlib import Path

from bpe_dropout.files import whole
from bpe_dropout.learning import learn
from tests.bpe_dropout.test_learning import count, oracle
from tests.bpe_dropout.test_subword_nmt import moses
from tests.conftest import SHARED, read_gz

SIZES = (1000, 4000, 16000, 32000)


def compare(keep: Path, name: str, counts: dict[str, int], sizes: tuple[int, ...] = SIZES, **options) -> None:
    """subword-nmt learns once: what it learns first does not depend on how much it learns."""
    kept = keep / name.replace("/", ".")
    start = time.process_time()
    if not kept.is_file():
        text = oracle(counts, max(sizes), **options)
        with whole(kept) as part:
            part.write_bytes(text.encode())
    theirs = time.process_time() - start
    expected = kept.read_bytes().decode().split("\n")[:-1]
    start = time.process_time()
    learned = learn(counts, max(sizes), **options)
    ours = time.process_time() - start
    for size in sizes:
        codes = learned if size == max(sizes) else learn(counts, size, **options)
        lines = codes.text().split("\n")[:-1]
        if lines != expected[: None if options else size + 1]:
            line = next((n for n, (a, b) in enumerate(zip(lines, expected, strict=False), 1) if a != b), "the last")
            raise SystemExit(f"{name}, {size} merges: they differ at line {line}")
    print(f"{name}: {len(learned.pairs)} merges are the same, {theirs:.1f} s and {ours:.2f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", metavar="FOLDER")
    parser.add_argument("--most", type=int, default=2**40)
    parser.add_argument("--least", type=int, default=0)
    parser.add_argument("--keep", type=Path, default=Path(tempfile.mkdtemp()))
    options = parser.parse_args()
    options.keep.mkdir(exist_ok=True)
    paths = [path for folder in options.folders or ["*"] for path in SHARED.glob(f"{folder}/*.gz")]
    paths = sorted((path for path in paths if options.least <= size_of(path) < options.most), key=size_of)
    last: dict[Path, dict[str, int]] = {}
    for path in paths:
        name = f"{path.parent.name}/{path.name}"
        raw = count(read_gz(path))
        compare(options.keep, f"{name}, raw", raw)
        compare(options.keep, f"{name}, tokenized", count(moses(path)))
        if path.parent in last:
            joined = Counter(last[path.parent]) + Counter(raw)
            compare(options.keep, f"{name} and another", joined, (4000,), total_symbols=True, min_frequency=3)
        last[path.parent] = raw


def size_of(path: Path) -> int:
    return path.stat().st_size


if __name__ == "__main__":
    main()
