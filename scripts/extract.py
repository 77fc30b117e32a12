"""Reads a corpus as it was downloaded into plain text: python -m scripts.extract CORPUS --output FOLDER

Writes train, valid and test for both languages, one sentence per line, untokenized, as they are in the source; and
counts.json. The numbers of pairs are those that the corpus's YAML file expects, or it is an error. Test texts are what
translations are scored against, so nothing is changed or left out of them. Of the training text, pairs with an empty
side are left out.

A part that its source has tokenized with Moses (`tokenized`) is detokenized, so that all text is untokenized from here
on, also what is held out of it. (Stanford's copy of IWSLT15, tokenized again, is what it was except for 5 of 7642
lines, and the full stop at the end of lines such as "in the U.S.")

Pairs with a side of fewer words than a part's `shortest` are left out of it.

Where a corpus has no dev and test of its own (`held_out`), they are taken out of its text: sentences are compared by
their letters and digits alone, on the first language's side, so no dev or test sentence is in the training text with
other capitals or another full stop. With `overlap: 0.5`, near-duplicates are left out of the training text, too: those
that share half of their words or more with a dev or test sentence (twice the words in common, of the words of both).
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from bpe_dropout import InputError
from bpe_dropout.data import moses
from bpe_dropout.files import whole

from .corpora import SPLITS, CorpusConfig, Held, bounds, read_corpora
from .readers import READERS, Pair
from .stage import Reporter, Stage, write_json


def main() -> None:
    stage = Stage(__doc__)
    stage.add_argument("corpus", metavar="CORPUS", help="a name in configs/corpora, such as iwslt15.en-vi")
    stage.add_argument("--output", required=True, type=Path, metavar="FOLDER", help="where the texts go")
    stage.add_argument("--downloads", type=Path, default=Path("data/downloads"), metavar="FOLDER", help="(%(default)s)")
    stage.add_configs()
    options = stage.parse_args()
    corpora = read_corpora(options.configs)
    if options.corpus not in corpora:
        raise InputError(f"there is no corpus {options.corpus}; there are {', '.join(corpora)}")
    extract(corpora[options.corpus], options.downloads, options.output)


def extract(corpus: CorpusConfig, downloads: Path, output: Path) -> None:
    output.mkdir(parents=True, exist_ok=True)
    texts: dict[str, Iterable[Pair]] = {split: read_split(corpus, split, downloads) for split in corpus.parts}
    if corpus.held_out:
        texts = dict(zip(SPLITS, hold_out(list(texts["train"]), corpus.held_out), strict=True))
    counts = {}
    for split in SPLITS:
        counts[split] = write_split(texts[split], [output / f"{split}.{language}" for language in corpus.pair], split)
        check_kept(corpus, split, counts[split]["pairs"])
        print(f"{corpus.name} {split}: {counts[split]['pairs']} pairs", flush=True)
    write_json(output / "counts.json", counts)


def read_split(corpus: CorpusConfig, split: str, downloads: Path) -> Iterator[Pair]:
    report = Reporter()
    total = 0
    for part in corpus.parts[split]:
        found = 0
        pairs = READERS[part.format].read(downloads, part.files, corpus.pair)
        for pair in (put_together(pair, corpus.pair) for pair in pairs) if part.tokenized else pairs:
            found += 1
            if found % 1000 == 0:
                report.show(f"{corpus.name} {split}: read {total + found} pairs")
            if part.shortest == 1 or all(len(text.split()) >= part.shortest for text in pair):
                yield pair
        total += found
        if part.pairs is not None and found != part.pairs:
            raise InputError(
                f"{corpus.name} {split}: {', '.join(corpus.files(split))} hold {found} pairs, and {part.pairs} were "
                f"expected: they are not the files that the corpus is known by, or not whole"
            )
    report.clear()


def put_together(pair: Pair, languages: Pair) -> Pair:
    """
    >>> put_together(("It &apos;s done .", "C&apos; est fait !"), ("en", "fr"))
    ("It's done.", "C'est fait !")
    """
    first, second = (
        moses.detokenizer(language)(moses.unescape(text)) for language, text in zip(languages, pair, strict=True)
    )
    return first, second


def check_kept(corpus: CorpusConfig, split: str, pairs: int) -> None:
    """Against a public count."""
    expected = corpus.kept.get(split, pairs)
    lowest, highest = bounds(expected)
    if not lowest <= pairs <= highest:
        raise InputError(
            f"{corpus.name} {split}: there are {pairs} pairs, and about {expected} were expected: the files are not "
            f"those that the corpus is known by, or not whole; if they are, correct `kept` in its YAML file"
        )


def write_split(pairs: Iterable[Pair], paths: list[Path], split: str) -> dict[str, int]:
    written = empty = 0
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(stack.enter_context(whole(path)).open("wb")) for path in paths]
        for pair in pairs:
            if split == "train" and not all(pair):
                empty += 1
                continue
            written += 1
            for file, text in zip(files, pair, strict=True):
                file.write(text.encode() + b"\n")
    if not written:
        raise InputError(f"{paths[0].parent}: {split} holds no pairs")
    return {"pairs": written, "left out as empty": empty}


def key_of(text: str) -> str:
    """
    >>> key_of("Log out?") == key_of("log out")
    True
    """
    return re.sub(r"[\W_]+", "", text.casefold())


def hold_out(pairs: list[Pair], held: Held) -> tuple[list[Pair], list[Pair], list[Pair]]:
    """Training, dev and test pairs; which are which depends on each sentence and the seed, not on the order."""
    first: dict[str, Pair] = {}
    for pair in pairs:
        if key := key_of(pair[0]):
            first.setdefault(key, pair)
    keys = sorted(first, key=lambda key: hashlib.sha256(f"{held.seed}:{key}".encode()).digest())
    if len(keys) <= held.valid + held.test:
        raise InputError(
            f"there are {len(keys)} different sentences: too few to take {held.valid} and {held.test} out of them"
        )
    test, valid = keys[: held.test], keys[held.test : held.test + held.valid]
    out = {*test, *valid}
    train = [pair for pair in pairs if key_of(pair[0]) not in out]
    if held.overlap is not None:
        overlap = highest_overlaps([pair[0] for pair in train], [first[key][0] for key in (*test, *valid)])
        train = [pair for pair, found in zip(train, overlap, strict=True) if found < held.overlap]
    return train, [first[key] for key in valid], [first[key] for key in test]


def highest_overlaps(texts: list[str], others: list[str]) -> list[float]:
    """For each text, how much it shares with the one of the others that is most like it: twice the words in common, of
    the words of both. A word that is twice in both is shared twice.

    >>> highest_overlaps(["Close the window!", "Open it."], ["Open the window.", "Do not."])
    [0.6666666666666666, 0.4]
    """
    numbers: dict[tuple[str, int], int] = {}
    words = [[numbers.setdefault(word, len(numbers)) for word in words_of(text)] for text in others]
    lengths = np.array([len(one) for one in words])
    has = np.zeros((len(numbers), len(others)), dtype=np.int16)  # by word and sentence
    for column, one in enumerate(words):
        has[one, column] = 1
    highest = []
    for text in texts:
        all_words = words_of(text)
        common = has[[numbers[word] for word in all_words if word in numbers]].sum(axis=0)
        highest.append(float((2 * common / np.maximum(1, lengths + len(all_words))).max()))
    return highest


def words_of(text: str) -> list[tuple[str, int]]:
    """
    >>> words_of("The more, the merrier.")
    [('the', 1), ('more', 1), ('the', 2), ('merrier', 1)]
    """
    seen: Counter[str] = Counter()
    found = []
    for word in re.findall(r"\w+", text.casefold()):
        seen[word] += 1
        found.append((word, seen[word]))
    return found


if __name__ == "__main__":
    main()
