"""Merge tables on disk: the codes and vocabularies of subword-nmt.

A codes file has the line "#version: 0.2" and then one merge per line, the highest priority first:

    #version: 0.2
    t h
    th e</w>

Without the first line it is version 0.1, in which "</w>" is a symbol of its own and not the end of a
character. Tables of byte-level BPE, such as GPT-2's merges.txt, have the same first line and no "</w>" at all:
they are read with end_of_word=False, and never by accident. Left out: learning merges (learning.py).
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from pathlib import Path

from .errors import CarriageReturn, InputError, shorten
from .lines import read_lines


@dataclass(frozen=True)
class Codes:
    """Merges in the order of their priority.

    >>> Codes((("t", "h"), ("th", "e</w>")), version=(0, 2)).ranks
    {('t', 'h'): 0, ('th', 'e</w>'): 1}

    Without `end_of_word`, words have no "</w>" at their end: "the" begins as t, h, e and not as t, h, e</w>.
    """

    pairs: tuple[tuple[str, str], ...]
    version: tuple[int, int] = (0, 2)
    end_of_word: bool = True

    @property
    def ranks(self) -> dict[tuple[str, str], int]:
        """The priority of each pair, 0 the highest. If a pair occurs twice, the first counts."""
        ranks: dict[tuple[str, str], int] = {}
        for rank, pair in enumerate(self.pairs):
            ranks.setdefault(pair, rank)
        return ranks

    def text(self) -> str:
        """The content of a codes file; an error if it could not be read again, which subword-nmt could not either."""
        for pair in self.pairs:
            if "\r" in "".join(pair) and _pair(" ".join(pair)) != pair:
                raise CarriageReturn(
                    f"the merge {shorten(' '.join(pair))} has a carriage return (\\r), which no codes file can hold; "
                    "remove it from the text, for example with: tr -d '\\r'"
                )
        head = "#version: 0.2\n" if self.version == (0, 2) else ""
        return head + "".join(f"{left} {right}\n" for left, right in self.pairs)

    @classmethod
    def read(cls, path: str | Path, merges: int = -1, *, end_of_word: bool | None = None) -> Codes:
        """Reads a codes file; `merges` limits it to the first so many (-1: all).

        A file without any "</w>" is an error unless `end_of_word` says what is meant: False for a table whose words
        have no mark at their end, as in GPT-2's merges.txt; True for codes of subword-nmt that are so few that none
        of them ends a word.
        """
        if merges < -1:
            raise InputError(f"the number of merges is -1 (all of them) or more, not {merges}")
        lines = read_lines(path, "a codes file, as subword-nmt writes it")
        version, first = (0, 1), 1
        if lines and lines[0].startswith("\ufeff"):
            raise InputError(f"{path}, line 1: the file begins with a byte order mark (U+FEFF); save it without")
        if lines and lines[0].startswith("#version:"):
            version, first = _version(lines[0], path), 2
        pairs: list[tuple[str, str]] = []
        where: dict[tuple[str, ...], int] = {}
        for number, line in enumerate(lines[first - 1 :], first):
            if merges >= 0 and len(pairs) == merges:
                break
            pair = _pair(line)
            if len(pair) != 2:
                raise InputError(
                    f"{path}, line {number}: {shorten(line)} is not a merge; expected two symbols with one space "
                    "between them"
                )
            if pair in where:
                warnings.warn(
                    f"{path}, line {number}: the merge {shorten(line)} is already in line {where[pair]}; the first "
                    "counts",
                    stacklevel=2,
                )
            where.setdefault(pair, number)
            pairs.append(pair)
        if not pairs and merges != 0:
            raise InputError(f"{path} holds no merges; make a codes file with `bpe-dropout learn`")
        _check_end_of_word(lines, path, end_of_word)
        return cls(tuple(pairs), version, end_of_word is not False)


def _pair(line: str) -> tuple[str, ...]:
    return tuple(line.strip("\r\n ").split(" "))


def _check_end_of_word(lines: list[str], path: str | Path, end_of_word: bool | None) -> None:
    """Checks the whole file, not only the merges that are used."""
    number = next((number for number, line in enumerate(lines, 1) if line.strip("\r\n ").endswith("</w>")), None)
    if end_of_word is None and number is None:
        raise InputError(
            f'{path} has no merge that ends a word with "</w>", as codes of subword-nmt have. If it is a table '
            "without end-of-word marks, such as GPT-2's merges.txt, say so with --no-end-of-word (in Python "
            "end_of_word=False); if it just has few merges, with --end-of-word (end_of_word=True)"
        )
    if end_of_word is False and number is not None:
        raise InputError(
            f"{path}, line {number}: the merge {shorten(lines[number - 1])} ends a word, so this table does have "
            "end-of-word marks; leave out --no-end-of-word (in Python end_of_word=False)"
        )


def _version(line: str, path: str | Path) -> tuple[int, int]:
    named = line.split(":", 1)[1].strip()
    numbers = re.sub(r"(\.0+)*$", "", named).split(".")
    if numbers not in (["0", "1"], ["0", "2"]):
        raise InputError(f"{path}, line 1: codes of version {named!r}; versions 0.1 and 0.2 can be read")
    return (0, int(numbers[1]))


def read_piece_counts(path: str | Path) -> dict[str, int]:
    """The lines "piece count" of a vocabulary. Pieces have their separator, as `subword-nmt get-vocab` writes them."""
    counts: dict[str, int] = {}
    for number, line in enumerate(read_lines(path, "a vocabulary, as subword-nmt get-vocab writes it"), 1):
        piece, _, count = line.strip("\r\n ").partition(" ")
        if not re.fullmatch(r"-?[0-9]+", count):
            raise InputError(f"{path}, line {number}: expected a piece, a space and its count, not {shorten(line)}")
        counts[piece] = max(int(count), counts.get(piece, int(count)))
    return counts


def read_vocabulary(path: str | Path, threshold: int | None = None) -> frozenset[str]:
    """The pieces of a vocabulary that occur at least `threshold` times."""
    pieces = {piece for piece, count in read_piece_counts(path).items() if threshold is None or count >= threshold}
    if not pieces:
        raise InputError(f"{path}: no piece occurs {threshold} times or more" if threshold else f"{path} is empty")
    return frozenset(pieces)
