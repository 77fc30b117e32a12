"""Algorithm 1 of the paper (section 3), in plain Python, written to be read.

This is the oracle that the compiled core is tested against: the same candidates, the same priorities,
the same probabilities, and nothing done for speed. Tokens are strings; "</w>" marks the end of a word.

>>> codes = Codes((("a", "b"), ("ab", "c</w>")))
>>> segment("abc", codes, p=0)
('abc',)
>>> distribution("abc", codes, p=0.5)
{('a', 'b', 'c'): 0.5, ('ab', 'c'): 0.25, ('abc',): 0.25}

The dropout p is a number, or a rate for each merge, in the order of the codes:

>>> distribution("abc", codes, p=[0.5, 0.25])
{('a', 'b', 'c'): 0.5, ('ab', 'c'): 0.125, ('abc',): 0.375}
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from random import Random
from typing import NamedTuple

from .codes import Codes

END = "</w>"
Tokens = tuple[str, ...]
Dropout = float | Sequence[float]  # the same for all merges, or a rate for each
Ranks = dict[tuple[str, str], int]


def drops(p: Dropout) -> bool:
    """Whether any merge is ever dropped; if none is, the rule is that of plain BPE."""
    return max(p, default=0.0) > 0 if isinstance(p, Sequence) else p > 0


def rate(tokens: Tokens, i: int, ranks: Ranks, p: Dropout) -> float:
    """The probability that the merge of tokens i and i + 1 is dropped."""
    return p[ranks[tokens[i], tokens[i + 1]]] if isinstance(p, Sequence) else p


def characters(word: str, codes: Codes) -> Tokens:
    """What segmentation starts from.

    >>> characters("abc", Codes((), version=(0, 2)))
    ('a', 'b', 'c</w>')
    >>> characters("abc", Codes((), version=(0, 1)))
    ('a', 'b', 'c', '</w>')
    >>> characters("abc", Codes((), end_of_word=False))
    ('a', 'b', 'c')
    """
    if not codes.end_of_word:
        return tuple(word)
    if codes.version == (0, 1):
        return (*word, END)
    return (*word[:-1], word[-1] + END)


def candidates(tokens: Tokens, ranks: Ranks) -> list[int]:
    """The positions at which a merge is possible, the highest priority first; of equals, the leftmost."""
    pairs = list(pairwise(tokens))
    possible = [i for i, pair in enumerate(pairs) if pair in ranks]
    return sorted(possible, key=lambda i: (ranks[pairs[i]], i))


def merge(tokens: Tokens, i: int) -> Tokens:
    """Tokens i and i + 1 become one."""
    return (*tokens[:i], tokens[i] + tokens[i + 1], *tokens[i + 2 :])


def merge_all(tokens: Tokens, positions: Collection[int]) -> Tokens:
    """The tokens at each of these positions and their right neighbours become one."""
    for i in sorted(positions, reverse=True):
        tokens = merge(tokens, i)
    return tokens


def occurrences(tokens: Tokens, pair: tuple[str, str]) -> list[int]:
    """Where a pair occurs, from the left; of occurrences that overlap, the first: what subword-nmt merges in one step.

    >>> occurrences(("a", "a", "a", "b", "a", "a"), ("a", "a"))
    [0, 4]
    """
    found: list[int] = []
    for i, here in enumerate(pairwise(tokens)):
        if here == pair and i - 1 not in found:
            found.append(i)
    return found


class Step(NamedTuple):
    """One step of a segmentation, as in figure 1: tokens, and what becomes of the merges that are possible."""

    tokens: Tokens
    possible: tuple[int, ...]  # positions, the highest priority first
    dropped: tuple[int, ...]
    applied: tuple[int, ...]  # one, or none in the last step; of plain BPE all occurrences of the pair


def trace(word: str, codes: Codes, p: Dropout, random: Random) -> Iterator[Step]:
    """Algorithm 1 as it is printed, step by step: drop each candidate with its probability, apply the best survivor.

    >>> codes = Codes((("a", "b"), ("ab", "c</w>")))
    >>> [(step.tokens, step.applied) for step in trace("abc", codes, 0, Random())]
    [(('a', 'b', 'c</w>'), (0,)), (('ab', 'c</w>'), (0,)), (('abc</w>',), ())]
    """
    tokens, ranks = characters(word, codes), codes.ranks
    while True:
        possible = candidates(tokens, ranks)
        survivors = [i for i in possible if random.random() >= rate(tokens, i, ranks, p)]
        dropped = tuple(i for i in possible if i not in survivors)
        yield Step(tokens, tuple(possible), dropped, tuple(survivors[:1]))
        if not survivors:
            return
        tokens = merge(tokens, survivors[0])


def trace_plain(word: str, codes: Codes) -> Iterator[Step]:
    """BPE without dropout, by subword-nmt's rule: the best pair is merged wherever it occurs."""
    tokens, ranks = characters(word, codes), codes.ranks
    while found := candidates(tokens, ranks):
        best = found[0]
        applied = occurrences(tokens, (tokens[best], tokens[best + 1]))
        yield Step(tokens, tuple(found), (), tuple(applied))
        tokens = merge_all(tokens, applied)
    yield Step(tokens, (), (), ())


def plain(word: str, codes: Codes) -> Tokens:
    return last(trace_plain(word, codes)).tokens


def sample(word: str, codes: Codes, p: Dropout, random: Random) -> Tokens:
    return last(trace(word, codes, p, random)).tokens


def last(steps: Iterator[Step]) -> Step:
    return deque(steps, maxlen=1)[0]


def segment(
    word: str,
    codes: Codes,
    p: Dropout,
    random: Random | None = None,
    vocabulary: Collection[str] = (),
    separator: str = "@@",
) -> Tokens:
    """A segmentation of a word, without separators: ("un", "related")."""
    if len(word) == 1:
        return (word,)
    tokens = sample(word, codes, p, random or Random()) if drops(p) else plain(word, codes)
    return spell(tokens, codes, vocabulary, separator)


def distribution(
    word: str, codes: Codes, p: Dropout, vocabulary: Collection[str] = (), separator: str = "@@"
) -> dict[Tokens, float]:
    """Every segmentation of a word with its exact probability.

    A state is a tuple of tokens. With candidates c0, c1, ... in the order of their priority, and their rates p0,
    p1, ..., ci is applied if it survives and all before it are dropped: with probability p0 * p1 * ... * (1 - pi).
    With the product of all rates none survives, and the word is done. Every merge makes a state one token shorter, so
    the states are processed from the longest to the shortest.
    """
    if len(word) == 1:
        return {(word,): 1.0}
    if not drops(p):
        return {segment(word, codes, 0, None, vocabulary, separator): 1.0}
    ranks = codes.ranks
    done: defaultdict[Tokens, float] = defaultdict(float)
    states: dict[Tokens, float] = {characters(word, codes): 1.0}
    while states:
        shorter: defaultdict[Tokens, float] = defaultdict(float)
        for tokens, probability in states.items():
            for position in candidates(tokens, ranks):
                dropped = rate(tokens, position, ranks, p)
                shorter[merge(tokens, position)] += probability * (1 - dropped)
                probability *= dropped
            done[spell(tokens, codes, vocabulary, separator)] += probability
        states = shorter
    return {pieces: probability for pieces, probability in done.items() if probability > 0}


def spell(tokens: Tokens, codes: Codes, vocabulary: Collection[str] = (), separator: str = "@@") -> Tokens:
    """The tokens without "</w>"; those that are not in the vocabulary, if there is one, are split again."""
    end = END if codes.end_of_word else ""
    if end and tokens[-1] == end:
        tokens = tokens[:-1]
    elif end:
        tokens = (*tokens[:-1], tokens[-1].removesuffix(end))
    if not vocabulary:
        return tokens
    # Of several pairs with the same concatenation, subword-nmt undoes the one whose last line comes first.
    merged_from = {left + right: (left, right) for left, right in dict.fromkeys(reversed(codes.pairs))}

    def take_apart(token: str, final: bool) -> Tokens:
        if (token if final else token + separator) in vocabulary:
            return (token,)
        pair = merged_from.get(token + end if final else token)
        if pair is None or not token:
            return (token,)
        left, right = pair
        return take_apart(left, False) + take_apart(right[: -len(end)] if final and end else right, final)

    return tuple(piece for i, token in enumerate(tokens) for piece in take_apart(token, final=i == len(tokens) - 1))
