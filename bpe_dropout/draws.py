"""The random numbers themselves, for methods that draw in Python.

The bits of a word are a pure function of (seed, epoch, side, sentence, position): Philox-4x64-10 with
these numbers as key and counter. Nothing is seeded, nothing is shared, nothing depends on order.

>>> first_bits(seed=7, epoch=1, side=0, sentence=41, position=2)
12267585628539540163
>>> choose([0.5, 0.3, 0.2], seed=7, epoch=1, side=0, sentence=41)
1
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from . import _core
from .errors import InputError, check_number
from .keys import make_key


def first_bits(*, seed: int, epoch: int = 0, side: int = 0, sentence: int = 0, position: int = 0) -> int:
    """The first 64 random bits of a word, as a whole number below 2**64."""
    return _core.first(make_key(seed, epoch, side, sentence), check_number("the position", position, 2**32))


def choose(
    probabilities: Iterable[float],
    *,
    seed: int,
    epoch: int = 0,
    side: int = 0,
    sentence: int = 0,
    position: int = 0,
) -> int:
    """Draws from a distribution: the number of the outcome."""
    key = make_key(seed, epoch, side, sentence)
    return _core.choose(cumulate(probabilities), key, check_number("the position", position, 2**32))


def cumulate(probabilities: Iterable[float]) -> NDArray[np.uint64]:
    """Cumulated probabilities as fractions of 2**64; outcome i is drawn below the i-th of them.

    >>> cumulate([0.25, 0.75]) / 2**64
    array([0.25, 1.  ])
    """
    weights: Sequence[float] = list(probabilities)
    total = math.fsum(weights)
    if not weights or not all(0 <= weight <= 1 for weight in weights) or abs(total - 1) > 1e-6:
        raise InputError(f"expected probabilities from 0 to 1 that sum to 1; these {len(weights)} sum to {total}")
    sums, passed = [], 0.0
    for weight in weights:
        passed += weight
        sums.append(min(int(passed / total * 2.0**64), 2**64 - 1))
    sums[-1] = 2**64 - 1
    return np.array(sums, dtype=np.uint64)
