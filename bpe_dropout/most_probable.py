"""The most probable segmentations of a line of words, by best-first search over the segmentations of its words.

The most probable one takes the first of every word. What comes after a combination is the same with one of its choices
replaced by the word's next; the search takes the most probable of all these, again and again. So it is exact, and looks
at few combinations. The most probable segmentations of each word are the compiled core's (core/probability.h).
"""

from __future__ import annotations

import heapq
import itertools
import math
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from . import _core
from .errors import OutOfReach, check_number, shorten
from .segmenter import read_split

if TYPE_CHECKING:
    from .rules import Dropout
    from .segmenter import Segmenter, Split

Word = list[tuple[tuple[str, ...], float]]  # its segmentations, with their probabilities
LIMIT = 1 << 14  # states of Algorithm 1 at a time: a second for a word, at most, on most machines
KEPT = 1 << 16  # words that are remembered


class MostProbable:
    """Finds the most probable segmentations of many lines: each word is looked at once.

    `beyond` says what becomes of a word that needs more than `limit` states: it is an error, or it stays as plain BPE
    segments it, and counts as if that were sure.

    >>> find = MostProbable(segmenter, dropout=0.1, count=2)
    >>> find("unrelated words")
    [(['un@@', 'related', 'words'], 0.55), (['un@@', 'relat@@', 'ed', 'words'], 0.06)]
    """

    def __init__(
        self,
        segmenter: Segmenter,
        dropout: Dropout,
        count: int,
        *,
        epoch: int | None = None,
        split: Split = "spaces",
        limit: int = LIMIT,
        beyond: Literal["error", "plain"] = "error",
    ) -> None:
        self._segmenter, self._dropout, self._count = segmenter, segmenter._rates(dropout, epoch), count
        check_number("the number of segmentations", count, least=1)
        read_split(split)
        self._split, self._limit, self._beyond = split, check_number("the limit of states", limit, least=1), beyond
        self._words: dict[str, Word] = {}
        self.plain: set[str] = set()  # the words that stay as plain BPE segments them

    def __call__(self, line: str) -> list[tuple[list[str], float]]:
        words = [self._word(word) for word in words_of(line, self._split)]
        found = combinations([[p for _, p in outcomes] for outcomes in words])
        best = itertools.islice(found, min(self._count, sys.maxsize))
        return [
            ([piece for outcomes, number in zip(words, chosen, strict=True) for piece in outcomes[number][0]], p)
            for chosen, p in best
        ]

    def _word(self, word: str) -> Word:
        if word not in self._words:
            if len(self._words) >= KEPT:
                self._words.clear()
            self._words[word] = self._find(word)
        return self._words[word]

    def _find(self, word: str) -> Word:
        segmenter = self._segmenter
        try:
            found = _core.most_probable(
                segmenter._merges, segmenter.word(word), self._dropout, self._count, self._limit
            )
        except _core.TooManyStates as error:
            if self._beyond == "error":
                raise OutOfReach(
                    f"the most probable segmentations of {shorten(word)} cannot be found: {error}"
                ) from None
            self.plain.add(word)
            return [(tuple(segmenter.segment(word)), 1.0)]
        return sorted(found, key=lambda outcome: (-outcome[1], outcome[0]))


def words_of(line: str, split: Split) -> list[str]:
    return line.split() if split == "whitespace" else [word for word in line.strip("\r\n ").split(" ") if word]


def combinations(lists: Sequence[Sequence[float]]) -> Iterator[tuple[tuple[int, ...], float]]:
    """Which one of each list, and the product of their probabilities, the most probable first.

    Each list begins with its most probable. Of combinations that are equally probable, the first in the order of their
    numbers comes first.

    >>> [chosen for chosen, p in combinations([[0.7, 0.3], [1.0], [0.8, 0.2]])]
    [(0, 0, 0), (1, 0, 0), (0, 0, 1), (1, 0, 1)]
    """
    logs = [[math.log(probability) for probability in one] for one in lists]
    open_lists = [number for number, one in enumerate(lists) if len(one) > 1]
    # What waits is kept as its changes against the first of each list: (-list, number). So it takes little room in a
    # long line, and changes are in the order of the numbers, since a change further to the left makes them larger.
    waiting: list[tuple[float, tuple[tuple[int, int], ...], int]] = [(-sum(one[0] for one in logs), (), 0)]
    while waiting:
        # `since` is the place in open_lists of the last change. Only from there on are choices changed further, so that
        # each combination is made in one way.
        cost, changes, since = heapq.heappop(waiting)
        chosen = [0] * len(lists)
        for at, number in changes:
            chosen[-at] = number
        yield tuple(chosen), math.prod(one[number] for one, number in zip(lists, chosen, strict=True))
        for place in range(since, len(open_lists)):
            at = open_lists[place]
            number = chosen[at] + 1
            if number < len(lists[at]):
                kept = changes[:-1] if number > 1 else changes
                more = (*kept, (-at, number))
                heapq.heappush(waiting, (cost + logs[at][number - 1] - logs[at][number], more, place))
