"""What a draw hangs on: the seed, the epoch, the side, the sentence, and nothing else."""

from __future__ import annotations

from . import _core
from .errors import check_number


def make_key(seed: int, epoch: int = 0, side: int = 0, sentence: int = 0) -> _core.Key:
    """Names the draws of one sentence."""
    return _core.Key(
        check_number("the seed", seed),
        check_number("the epoch", epoch),
        check_number("the side", side, 2**24),
        check_number("the sentence", sentence),
    )
