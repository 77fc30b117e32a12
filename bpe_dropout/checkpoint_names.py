"""The names of fairseq's checkpoints, and which of them are the last. Needs neither torch nor fairseq."""

from __future__ import annotations

import re
from collections.abc import Sequence

NAMES = {"epoch": r"checkpoint(\d+)\.pt", "update": r"checkpoint_\d+_(\d+)\.pt"}


def number_of(name: str, by: str) -> int | None:
    """
    >>> number_of("checkpoint_3_1500.pt", "update"), number_of("checkpoint_last.pt", "update")
    (1500, None)
    """
    found = re.fullmatch(NAMES[by], name)
    return int(found[1]) if found else None


def choose_checkpoints(names: Sequence[str], last: int, by: str) -> list[str]:
    """The last checkpoints, by epoch (checkpoint7.pt) or by update (checkpoint_3_1500.pt), the oldest first.

    >>> choose_checkpoints(["checkpoint9.pt", "checkpoint10.pt", "checkpoint_best.pt"], last=1, by="epoch")
    ['checkpoint10.pt']
    """
    numbered = sorted((number, name) for name in names if (number := number_of(name, by)) is not None)
    return [name for _, name in numbered[-last:]]
