"""The compiled core, bpe_dropout/core. Not for users: the modules beside it check the input."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Parts = list[tuple[str, bool]]

class InvalidText(ValueError): ...
class TooManyStates(ValueError): ...

class Split:
    SPACES: Split
    WHITESPACE: Split

class Key:
    def __init__(self, seed: int, epoch: int, side: int, sentence: int, /) -> None: ...

class End:
    SUFFIX: End
    SYMBOL: End
    NONE: End

class Merges:
    def __init__(
        self,
        pairs: list[tuple[str, str]],
        end: End,
        separator: str,
        vocabulary: set[str] | None,
        results: list[str] | None,
        /,
    ) -> None: ...

class Dropout:
    def __init__(self, p: float | list[float], /) -> None: ...

AnyDropout = float | Dropout

class Ids:
    def __init__(self, merges: Merges, dictionary: dict[str, int], unknown: int, /) -> None: ...

class Word:
    def __init__(self, text: str, parts: Parts, /) -> None: ...

class Corpus:
    def __init__(
        self,
        words: NDArray[np.uint32],
        sentence_ends: NDArray[np.uint64],
        types: NDArray[np.uint8],
        type_ends: NDArray[np.uint64],
        /,
    ) -> None: ...

class Index:
    def __init__(self, split: Split, /) -> None: ...
    def add(self, text: bytes, /) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]: ...
    def __len__(self) -> int: ...
    def bytes(self) -> bytes: ...
    def ends(self) -> NDArray[np.uint64]: ...
    def counts(self) -> NDArray[np.uint64]: ...

class _Drawing:
    def lengths(
        self, key: Key, first: int, count: int, listed: NDArray[np.int64], threads: int, /
    ) -> NDArray[np.int32]: ...
    def ids(
        self, key: Key, first: int, count: int, listed: NDArray[np.int64], threads: int, /
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]: ...

class DropoutSampler(_Drawing):
    memory: int
    tables: int
    charts: int
    def __init__(
        self,
        corpus: Corpus,
        counts: NDArray[np.uint64],
        merges: Merges,
        ids: Ids,
        parts: dict[int, Parts],
        p: AnyDropout,
        memory: int,
        threads: int,
        before: list[int],
        after: list[int],
        /,
    ) -> None: ...

class ListSampler(_Drawing):
    def __init__(
        self,
        corpus: Corpus | None,
        sentences: int,
        outcome_ends: NDArray[np.uint64],
        cumulated: NDArray[np.uint64],
        id_ends: NDArray[np.uint64],
        ids: NDArray[np.int32],
        before: list[int],
        after: list[int],
        /,
    ) -> None: ...

class Lines:
    def __init__(
        self, merges: Merges, p: AnyDropout, split: Split, divide: Callable[[str], Parts] | None, memory: int, /
    ) -> None: ...
    def segment(self, line: str, key: Key, /) -> list[str]: ...

class Streams:
    def __init__(
        self,
        merges: Merges,
        ids: Ids | None,
        p: AnyDropout,
        split: Split,
        divide: Callable[[str], Parts] | None,
        memory: int,
        threads: int,
        /,
    ) -> None: ...
    def text(self, text: bytes, key: Key, /) -> bytes: ...
    def ids(self, text: bytes, key: Key, /) -> tuple[NDArray[np.int32], NDArray[np.int64]]: ...

def learn(
    words: bytes,
    counts: NDArray[np.int64],
    merges: int,
    min_frequency: int,
    total_symbols: bool,
    progress: Callable[[int, int], None] | None,
    threads: int,
    /,
) -> list[tuple[str, str]]: ...
def philox(counter: list[int], key: list[int], /) -> list[int]: ...
def first(key: Key, position: int, /) -> int: ...
def choose(cumulated: NDArray[np.uint64], key: Key, position: int, /) -> int: ...
def draw(merges: Merges, word: Word, p: AnyDropout, key: Key, position: int, /) -> list[str]: ...
def distribution(merges: Merges, word: Word, p: AnyDropout, most: int, /) -> list[tuple[tuple[str, ...], float]]: ...
def most_probable(
    merges: Merges, word: Word, p: AnyDropout, count: int, most: int, /
) -> list[tuple[tuple[str, ...], float]]: ...
def probability(merges: Merges, word: Word, p: AnyDropout, pieces: list[str], most: int, /) -> tuple[float, float]: ...
def expected_lengths(
    merges: Merges,
    words: list[Word],
    exact: int,
    draws: NDArray[np.uint64],
    p: AnyDropout,
    most: int,
    threads: int,
    /,
) -> tuple[NDArray[np.float64], NDArray[np.uint8]]: ...
def uses_avx2() -> bool: ...
def use_avx2(use: bool, /) -> None: ...
def table(merges: Merges, word: Word, p: AnyDropout, finest: float, /) -> list[tuple[tuple[str, ...], float]]: ...
def table_against_draw(
    merges: Merges, word: Word, p: AnyDropout, finest: float, seed: int, draws: int, /
) -> tuple[int, int]: ...
def chart_against_draw(merges: Merges, word: Word, p: AnyDropout, seed: int, draws: int, /) -> int | None: ...
