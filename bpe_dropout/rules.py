"""Rules of dropout: a rate for every merge, and for every epoch, written as a short text.

    0.1                    p = 0.1 for every merge: the paper's BPE-dropout
    rank:0.05..0.2         from 0.05 for the first merge of the codes to 0.2 for the last, in equal steps
    frequency:0.2..0.05    from 0.2 for the merge that plain BPE applies most often to 0.05 for one that it never
                           applies, by the logarithm of how often that is
    file:rates.en          the rates of a file, one per line, for each merge of the codes; it is beside the codes
    1.5xfile:rates.en      the same, times 1.5, and 1 at most
    0.2@anneal:30          times 1 in the first epoch, and less from epoch to epoch, down to 0 in epoch 30 and after it
    0.1@warmup:5           times 0 in the first epoch, and more from epoch to epoch, up to 1 from epoch 5 on

The first merges of the codes are the most frequent ones, so rank:0..0.2 drops rare merges more often than others.

>>> rule = Rule.parse("rank:0..0.4@anneal:5")
>>> rule.at(1).rates(3), rule.at(3).rates(3), rule.at(5).rates(3)
([0.0, 0.2, 0.4], [0.0, 0.1, 0.2], 0.0)

What is decided here is plain numbers; core/random.h spends random bits on them. A rule that gives all merges the same
rate is that number, and draws the same. All rates 0 is plain BPE.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from .errors import InputError, check_dropout, check_number, shorten
from .lines import read_lines

_NUMBER = r"-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
_RULE = re.compile(
    rf"(?:(?P<scale>{_NUMBER})x)?"
    rf"(?:(?P<p>{_NUMBER})|(?P<kind>rank|frequency):(?P<first>{_NUMBER})\.\.(?P<last>{_NUMBER})|file:(?P<path>.+?))"
    r"(?:@(?P<schedule>anneal|warmup):(?P<epochs>[0-9]+))?"
)
DIGITS = 12  # of a rate that is scaled, so that 3 times 0.1 is 0.3
# What can be used anywhere; frequency:0.2..0.05 is for a corpus, which has a text to count merges in.
FORMS = "0.1, rank:0.05..0.2, file:PATH, 1.5xfile:PATH, 0.2@anneal:30 or 0.1@warmup:5"


@dataclass(frozen=True)
class Rule:
    """A rate for every merge, in every epoch. Its text says all of it, but for the frequencies.

    Rates are times `scale`, and 1 at most; where the first and the last rate can be scaled themselves, they are.
    """

    kind: str  # constant, rank, frequency or file
    first: float = 0.0  # the rate of the first merge, or of the most frequent
    last: float = 0.0
    path: str = ""
    scale: float = 1.0
    schedule: str = ""  # anneal, warmup or none
    epochs: int = 0
    frequencies: tuple[int, ...] | None = None  # how often plain BPE applies each merge

    @classmethod
    def parse(cls, text: str) -> Rule:
        """
        >>> Rule.parse("rank:0..0.2@warmup:5"), Rule.parse("0.5xrank:0..0.2")
        (Rule('rank:0..0.2@warmup:5'), Rule('rank:0..0.1'))
        """
        found = _RULE.fullmatch(text)
        if not found:
            raise InputError(f"{text!r} is no rule of dropout, such as {FORMS}")
        p, first, last = found["p"], found["first"], found["last"]
        for number in (p, first, last):
            if number is not None:
                check_dropout(float(number))
        scale = float(found["scale"] or 1)
        if not 0 <= scale < math.inf:
            raise InputError(f"{text!r}: {found['scale']} is not a scale")
        if p is not None and (scale == 0 or round(scale * float(p), DIGITS) > 1):
            raise InputError(f"{text!r}: {found['scale']} times {p} is no dropout; give the probability itself, 0 to 1")
        epochs = int(found["epochs"] or 0)
        if found["schedule"] and epochs < 2:
            raise InputError(f"{text!r}: {found['schedule']} takes 2 epochs or more, not {epochs}")
        return cls(
            kind=found["kind"] or ("constant" if p is not None else "file"),
            first=float(p or first or 0),
            last=float(p or last or 0),
            path=found["path"] or "",
            schedule=found["schedule"] or "",
            epochs=epochs,
        ).scaled(scale)

    def __str__(self) -> str:
        shape = _short(self.first)
        if self.kind == "file":
            shape = f"file:{self.path}"
        elif self.kind != "constant":
            shape = f"{self.kind}:{_short(self.first)}..{_short(self.last)}"
        scale = f"{_short(self.scale)}x" if self.scale != 1 else ""
        return scale + shape + (f"@{self.schedule}:{self.epochs}" if self.schedule else "")

    def __repr__(self) -> str:
        return f"Rule({str(self)!r})"

    def __format__(self, spec: str) -> str:
        return str(self)  # wherever a number would be formatted

    def __hash__(self) -> int:
        return hash(str(self))  # and not of thousands of frequencies

    @property
    def number(self) -> float | None:
        """The p of a rule that is no more than a number."""
        return self.first if self.kind == "constant" and not self.schedule else None

    @property
    def drops(self) -> bool:
        """Whether it may drop any merge in any epoch; of a file that is not known."""
        return self.scale * max(self.first, self.last, self.kind == "file") > 0

    def scaled(self, factor: float) -> Rule:
        """All rates so many times as high, and 1 at most."""
        scale = self.scale * factor
        if scale == 1:
            return self
        if self.kind == "constant":
            first = last = min(1.0, self.first * scale)
        elif self.kind == "file" or max(self.first, self.last) * scale > 1:
            return replace(self, scale=scale)
        else:
            first, last = self.first * scale, self.last * scale
        return replace(self, first=round(first, DIGITS), last=round(last, DIGITS), scale=1.0)

    def at(self, epoch: int | None) -> Rule:
        """The rule of one epoch; the first is 1, and 0 is the same. Without a schedule, none needs to be named."""
        if not self.schedule:
            return self
        if epoch is None:
            raise InputError(
                f"{self} has other rates in each epoch: say which it is, from 1 on, with --epoch (in Python epoch=1)"
            )
        epoch = check_number("the epoch", epoch)
        passed = min(max(epoch, 1) - 1, self.epochs - 1) / (self.epochs - 1)
        factor = passed if self.schedule == "warmup" else 1 - passed
        return replace(self.scaled(factor), schedule="", epochs=0)

    @property
    def needs_counts(self) -> bool:
        """Whether it is not known yet how often merges are applied: see counted()."""
        return self.kind == "frequency" and self.frequencies is None

    def counted(self, frequencies: Sequence[int]) -> Rule:
        """The rule for a text in which plain BPE applies each merge so often: see merge_counts.count_merges."""
        return replace(self, frequencies=tuple(frequencies))

    def rates(self, merges: int, folder: Path | None = None) -> float | list[float]:
        """The rate of each of so many merges, or one number if they are all the same.

        `folder` is where the codes are, and a file of rates.
        """
        if self.schedule:
            raise InputError(f"{self} has rates for each epoch; name one with at(epoch)")
        if self.kind == "constant" or not merges:
            return self.first
        rates = [min(1.0, self.scale * rate) for rate in self._shape(merges, folder)]
        return rates[0] if min(rates) == max(rates) else rates

    def _shape(self, merges: int, folder: Path | None) -> list[float]:
        if self.kind == "file":
            return read_rates(self.path if folder is None else folder / self.path, merges)
        if self.kind == "rank":
            return self._between([rank / max(1, merges - 1) for rank in range(merges)])
        if self.frequencies is None:
            raise InputError(
                f"{self}: how often merges are applied depends on a text, and there is none here. Take a corpus, or "
                f"count them: Rule.parse({str(self)!r}).counted(count_merges(segmenter, counts))"
            )
        if len(self.frequencies) != merges:
            raise InputError(f"{self}: {len(self.frequencies)} merges were counted, and the codes have {merges}")
        most = math.log1p(max(self.frequencies)) or 1.0
        return self._between([1 - math.log1p(frequency) / most for frequency in self.frequencies])

    def _between(self, shares: list[float]) -> list[float]:
        return [self.first + (self.last - self.first) * share for share in shares]


Dropout = float | str | Rule  # as it is given: a number, the text of a rule, or a rule


def read_dropout(dropout: Dropout) -> float | Rule:
    """A dropout as it is given; a rule that is no more than a number becomes that number.

    >>> read_dropout("0.1"), read_dropout("rank:0..0.2")
    (0.1, Rule('rank:0..0.2'))
    """
    if isinstance(dropout, str):
        dropout = Rule.parse(dropout)
    if isinstance(dropout, Rule):
        return dropout if dropout.number is None else dropout.number
    return check_dropout(dropout)


def has_schedule(dropout: Dropout) -> bool:
    """Whether its rates depend on the epoch."""
    if isinstance(dropout, float):
        return False
    given = read_dropout(dropout)
    return isinstance(given, Rule) and bool(given.schedule)


def may_drop(dropout: float | Rule) -> bool:
    """Whether it may drop a merge in any epoch."""
    return dropout.drops if isinstance(dropout, Rule) else dropout > 0


def read_rates(path: str | Path, merges: int) -> list[float]:
    """The rates of a file, one per line, for so many merges."""
    try:
        lines = read_lines(path, "a list of rates")
    except FileNotFoundError:
        raise InputError(
            f"there is no {path}: one rate per line, for each merge of the codes. A file of rates is looked for "
            "beside the codes"
        ) from None
    rates = []
    for number, line in enumerate(lines, 1):
        if not re.fullmatch(_NUMBER, line.strip()) or not 0 <= float(line) <= 1:
            raise InputError(f"{path}, line {number}: {shorten(line)} is not a rate; expected a number from 0 to 1")
        rates.append(float(line))
    if len(rates) != merges:
        raise InputError(
            f"{path} has {len(rates)} rates, and the codes have {merges} merges; expected one rate per line, in the "
            "order of the merges"
        )
    return rates


def _short(number: float) -> str:
    """
    >>> _short(0.25), _short(1.0)
    ('0.25', '1')
    """
    return repr(float(number)).removesuffix(".0")
