"""The folder that a training reads, `fairseq-train FOLDER ...`:

    codes.en codes.de                      merge tables of subword-nmt (or unigram.en.model, for Kudo's method)
    dict.en.txt dict.de.txt                fairseq dictionaries of pieces
    train.en-de.en train.en-de.de ...      words, not segmented; also valid and test
    preparation.json                       how raw text was made into words

Nothing is binarized, and no file in it names its path, so it can be moved. Here it is only found and checked;
making.py makes it.
"""

from __future__ import annotations

import itertools
import re
from pathlib import Path

from ..errors import InputError

MAKE = "bpe-dropout data --help"


class DataFolder:
    """A data folder and one direction in it.

    >>> folder = DataFolder("data/multi30k.en-de")
    >>> folder.source, folder.target
    ('en', 'de')
    >>> folder.text("train", "en")
    PosixPath('data/multi30k.en-de/train.en-de.en')
    """

    def __init__(self, path: str | Path, source: str | None = None, target: str | None = None) -> None:
        self.path = Path(path)
        if not self.path.is_dir():
            raise InputError(f"there is no folder {self.path}; make one: {MAKE}")
        if source is None or target is None:
            pair = self._languages()
            if (source or target) not in (None, *pair):
                raise InputError(f"{self.path} holds {'-'.join(pair)}, and {source or target} was asked for")
            if source in (None, pair[0]) and target in (None, pair[1]):
                source, target = pair
            else:
                target, source = pair
        self.source, self.target = source, target

    def _languages(self) -> tuple[str, str]:
        names = (
            re.fullmatch(r"[^.]+\.([^.-]+)-([^.-]+)\.[^.]+(?:\.idx)?", path.name)
            for path in sorted(self.path.iterdir())
        )
        pairs = sorted({name.groups() for name in names if name})
        if not pairs:
            raise InputError(
                f"{self.path} holds no text such as train.en-de.en, so the languages are not known: give "
                f"--source-lang and --target-lang, or make the folder: {MAKE}"
            )
        if len(pairs) > 1:
            listed = ", ".join(f"{source}-{target}" for source, target in pairs)
            raise InputError(f"{self.path} holds {listed}: say which with --source-lang and --target-lang")
        return pairs[0]  # type: ignore[return-value]

    def parts(self, split: str) -> list[str]:
        """The parts of a split, which fairseq concatenates: train, train1, train2, ..."""
        names = (split + (str(number) if number else "") for number in itertools.count())
        return list(itertools.takewhile(lambda name: self._find(name, self.source), names))

    def text(self, split: str, language: str) -> Path:
        """The words of a split in a language; an error that says what to do if it is not there."""
        if found := self._find(split, language):
            return found
        expected = self.path / f"{split}.{self.source}-{self.target}.{language}"
        if self._find(split, language, ".idx"):
            raise InputError(
                f"{self.path} was binarized by fairseq-preprocess, so its segmentation is fixed. BPE-dropout needs "
                f"the words: make a folder from your segmented text (with @@), its codes and its dictionaries "
                f"(bpe-dropout convert --help), or from plain text ({MAKE})"
            )
        without = "; to train without validation, say --disable-validation" if split.startswith("valid") else ""
        raise InputError(f"there is no {expected}: the words of {split!r}. Make the folder again: {MAKE}{without}")

    def has_text(self, split: str, language: str) -> bool:
        return self._find(split, language) is not None

    def dictionary(self, language: str) -> Path:
        path = self.path / f"dict.{language}.txt"
        if not path.is_file():
            raise InputError(
                f"there is no {path}: the dictionary of pieces. Make it: bpe-dropout dictionary "
                f"{self.path} (see --help)"
            )
        return path

    def _find(self, split: str, language: str, suffix: str = "") -> Path | None:
        for pair in (f"{self.source}-{self.target}", f"{self.target}-{self.source}"):
            path = self.path / f"{split}.{pair}.{language}{suffix}"
            if path.is_file():
                return path
        return None
