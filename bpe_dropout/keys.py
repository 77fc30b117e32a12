"""What a draw depends on: the seed, the epoch, the side, the sentence, and nothing else."""

from __future__ import annotations

import itertools
import os

from . import _core
from .errors import InputError, check_number


def make_key(seed: int, epoch: int = 0, side: int = 0, sentence: int = 0) -> _core.Key:
    """Names the draws of one sentence."""
    return _core.Key(
        check_number("the seed", seed),
        check_number("the epoch", epoch),
        check_number("the side", side, 2**24),
        check_number("the sentence", sentence),
    )


class FreshKeys:
    """A new key for each draw that names no seed: sentences 0, 1, 2, ... of one seed.

    That seed is random, or the one that seed() was given. A forked process takes a random one, so that no two
    workers draw the same.
    """

    def __init__(self) -> None:
        self.seed(None)

    def seed(self, seed: int | None) -> None:
        seed = int.from_bytes(os.urandom(8), "big") if seed is None else check_number("the seed", seed)
        self._state = os.getpid(), seed, itertools.count()

    def next(self) -> _core.Key:
        if self._state[0] != os.getpid():
            self.seed(None)
        _, seed, numbers = self._state
        return _core.Key(seed, 0, 0, next(numbers))


def check_no_key(epoch: int, side: int, sentence: int) -> None:
    """Without a seed, the other parts of a key mean nothing."""
    if (epoch, side, sentence) != (0, 0, 0):
        make_key(0, epoch, side, sentence)
        raise InputError("epoch, side and sentence name a draw together with a seed; give a seed, or none of them")
