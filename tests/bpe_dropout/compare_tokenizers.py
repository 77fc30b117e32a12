"""Compares segmenters of Hugging Face tokenizers, without dropout, with the tokenizers, on all the real text of
../shared/data, which takes a quarter of an hour:

    python -m tests.bpe_dropout.compare_tokenizers [KIND ...]

Prints a line for each kind of tokenizer, and ends at the first line of text whose ids differ.
"""

import argparse

from bpe_dropout import Segmenter
from tests.bpe_dropout.test_tokenizers import PATHS
from tests.conftest import read_gz
from tests.kinds_of_tokenizers import KINDS

BLOCK = 10_000  # lines at a time


def compare(kind: str) -> int:
    """How many lines are the same."""
    tokenizer, count = KINDS[kind](), 0
    segmenter = Segmenter.from_tokenizer(tokenizer)
    for path in PATHS:
        lines = read_gz(path)
        for begin in range(0, len(lines), BLOCK):
            block = lines[begin : begin + BLOCK]
            for number, theirs in enumerate(tokenizer.encode_batch(block), begin):
                if segmenter.ids(lines[number]) != theirs.ids:
                    raise SystemExit(f"{kind}: {path}, line {number + 1} differs")
            count += len(block)
    return count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", metavar="KIND", choices=[[], *KINDS])
    options = parser.parse_args()
    for kind in options.kinds or KINDS:
        print(f"{kind}: {compare(kind)} lines of {len(PATHS)} files are the same", flush=True)


if __name__ == "__main__":
    main()
