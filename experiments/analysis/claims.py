"""What the paper claims of its numbers, tried on ours.

higher    the first column is above the second in every row, or in at least so many (`rows`), or up to `at`
first     the first column is above the second in the first row
last      the first column is above the second in the last row
peak      the column is highest in the row at `at`
wider     rows come in pairs, and the first column is further above the second in the second row of each pair
narrower  the first two columns are closer to each other than the last two, on average
shrinks   the first column is less far above the second in the last row than in the first
fails     from `at` on, the column is below a quarter of its highest
slower    the last row takes more than `at` times as long as the first, in every column
close     the first column is at most `at` times the second, in every row
about     the column is within `within` of `at`, in every row

A claim is `reproduced`, `not reproduced` or `undecided`, by one rule. A difference of BLEU between two systems counts
as found if it is significant for each seed (paired bootstrap, p < 0.05), and the seeds agree in its sign; so does a
difference between such differences. The opposite of a claim of several rows is found where it is found in all of them;
one row is enough, too, if no other has more seeds, but there p must be below 0.05 divided by their number. Other
numbers of trained models have no such test: which of two systems has more is decided by a sign test over all rows and
seeds, as if they were independent, and a limit is kept if each seed keeps it. Numbers of a text alone have no training
in them, and are taken as they are. Where what a claim says is not found, and neither is its opposite, it is undecided,
and the differences that were not found are named; where a run or a comparison is missing, too.

A bootstrap knows the noise of a test set, and not that of training: what one seed alone decides is marked.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import Protocol

import numpy as np

from bpe_dropout import InputError
from scripts.compare import LEVEL
from scripts.paper import Claim
from scripts.resampling import Scores, p_value

REPRODUCED, NOT_REPRODUCED, UNDECIDED, NOT_RUN = "reproduced", "not reproduced", "undecided", "not run"
ANSWERS = {REPRODUCED: "yes", NOT_REPRODUCED: "no"}  # to questions of our own
ONE_SEED = "one seed"
RUNS_MISSING = " runs"  # how it ends, what is said where runs are missing
NAMED = 3  # differences that are named, at most

Place = tuple[int, str]  # of a cell: its row and its column


class Missing(Exception):
    """A number that a check needs was not run."""


class NotCompared(Exception):
    """Two runs are there, and the bootstrap that would compare them is not."""


@dataclass(frozen=True)
class Test:
    """A difference that a claim says to be above 0, of one seed, and how probable chance alone would make it."""

    __test__ = False  # not one of pytest's

    seed: int
    difference: float
    p: float  # 0 of a text alone, which has no training in it; nan where there is no test

    def sign(self, level: float = LEVEL) -> int:
        return int(np.sign(self.difference)) if self.p < level else 0


class Figures(Protocol):
    """What a check asks of a table: numbers of its cells, and how far one is above another."""

    @property
    def places(self) -> Sequence[float | None]:
        """Where its rows are in a figure."""

    @property
    def seeds(self) -> Sequence[int]:
        """Of its runs."""

    def title(self, row: int) -> str:
        """The name of a row."""

    def column(self, name: str, claim: Claim | None = None) -> dict[int, float]:
        """A column by its rows, all of which must have been run: all rows, or those that a claim is of. Then means are
        over the seeds that the other columns of the claim have, too."""

    def runs(self, claim: Claim) -> tuple[int, int]:
        """How many of the runs that a claim is of there are, and how many there would be."""

    def seeds_of(self, claim: Claim) -> Sequence[int]:
        """The seeds that all cells have that a claim is of."""

    def of_seed(self, seed: int) -> Figures:
        """The same with the numbers of one seed."""

    def tests(self, first: Place, second: Place) -> list[Test]:
        """How far the first of two cells is above the second, for each seed that both have."""

    def resampled(self, cell: Place, seed: int) -> Scores:
        """The BLEU of a cell, and then that on each of the resampled test sets."""

    def fewest_seeds(self, claim: Claim) -> int:
        """Of the cells that a claim is of; 0 if they are of a text alone, which has none."""

    def has_test(self, claim: Claim) -> bool:
        """Whether a bootstrap compares the cells of a claim, or none is needed."""


@dataclass(frozen=True)
class Verdict:
    text: str
    why: str = ""  # it is undecided; or what it rests on


@dataclass(frozen=True)
class Decision:
    """Whether what a claim says was found, 1, or its opposite, -1, or neither."""

    sign: int
    why: str = ""  # what is in the way, or what the opposite was found in
    seeds: int | None = None  # the fewest of the rows that decide, where these are not all


Tests = dict[str, list[Test]]  # by row, or by pair of rows


def check(claim: Claim, figures: Figures) -> Verdict:
    """Whether a claim is reproduced; if that is undecided, why, and else, whether by one seed."""
    if claim.check not in CHECKS:
        raise InputError(f"there is no check {claim.check}; there are {', '.join(CHECKS)}")
    if unfinished := without_all_runs(*figures.runs(claim)):
        return unfinished
    try:
        found = CHECKS[claim.check].decide(claim, figures)
    except Missing:
        return Verdict(NOT_RUN)
    except NotCompared:
        return Verdict(UNDECIDED, "not compared")
    return verdict_of(found, figures.fewest_seeds(claim))


def without_all_runs(done: int, wanted: int) -> Verdict | None:
    """The verdict where runs are missing."""
    if not done:
        return Verdict(NOT_RUN)
    return Verdict(UNDECIDED, f"{done} of {wanted}{RUNS_MISSING}") if done < wanted else None


def verdict_of(found: Decision, seeds: int) -> Verdict:
    """`seeds` is how many a claim rests on at the least; 0 if it is of a text alone."""
    if not found.sign:
        return Verdict(UNDECIDED, found.why)
    rests_on = found.seeds if seeds and found.seeds is not None else seeds
    why = [found.why, ONE_SEED if rests_on == 1 else ""]
    return Verdict(REPRODUCED if found.sign > 0 else NOT_REPRODUCED, "; ".join(filter(None, why)))


def decide(tests: Tests, needed: int | None = None) -> Decision:
    """Whether so many rows, or all, have a difference above 0 that is significant for each seed, or the opposite."""
    needed = needed or len(tests)
    if sum(sign_of(one) > 0 for one in tests.values()) >= needed:
        return Decision(1)
    against = {row: one for row, one in tests.items() if sign_of(one) < 0}
    if len(against) < len(tests):  # what is found in one row of several must be surer, and rest on as much
        most, surer = max(map(len, tests.values())), LEVEL / len(tests)
        against = {row: one for row, one in against.items() if len(one) == most and sign_of(one, surer) < 0}
    if len(tests) - len(against) < needed:
        why = opposite_in(against, len(tests)) if len(tests) > 1 else ""
        return Decision(-1, why, min(map(len, against.values())))
    return Decision(0, in_the_way(tests))


def opposite_in(against: Tests, rows: int) -> str:
    """
    >>> opposite_in({"10k pairs": [Test(1, -1.5, 0.001), Test(2, -0.5, 0.01)]}, 3)
    'the opposite in 1 of 3: 10k pairs (-1.00)'
    """
    told = [f"{row} ({fmean(test.difference for test in found):+.2f})" for row, found in against.items()]
    return f"the opposite in {len(against)} of {rows}{named(told)}"


def keep(limit: Callable[[Claim, Figures], int], claim: Claim, figures: Figures) -> Decision:
    """Whether each seed keeps a limit, or none does."""
    kept = {seed: limit(claim, figures.of_seed(seed)) for seed in figures.seeds_of(claim)}
    if len(set(kept.values())) == 1:
        return Decision(next(iter(kept.values())))
    others = ", ".join(str(seed) for seed, one in kept.items() if one < 0)
    return Decision(0, f"so with {sum(one > 0 for one in kept.values())} of {len(kept)} seeds, not with seed {others}")


def sign_of(tests: Sequence[Test], level: float = LEVEL) -> int:
    """The sign of a difference that is significant for each seed, if the seeds agree; else 0."""
    signs = {test.sign(level) for test in tests}
    return signs.pop() if len(signs) == 1 else 0


def in_the_way(tests: Tests) -> str:
    """The differences that were not found, by name if they are few.

    >>> in_the_way({"En-De": [Test(1, 2.0, 0.001), Test(2, 0.57, 0.0999)], "De-En": [Test(1, 1.5, 0.02)]})
    'not found in 1 of 3: En-De, seed 2 (+0.57, p = 0.100)'
    """
    failed = [(row, test) for row, found in tests.items() for test in found if test.sign() <= 0]
    told = [
        f"{row + ', ' if row else ''}seed {test.seed} ({test.difference:+.2f}, p = {test.p:.3f})"
        for row, test in failed
    ]
    return f"not found in {len(failed)} of {sum(map(len, tests.values()))}{named(told)}"


def named(told: Sequence[str]) -> str:
    """Differences by name, if they are few."""
    return f": {'; '.join(told)}" if len(told) <= NAMED else ""


def sign_test(tests: Tests) -> Decision:
    """The sign that most differences have, if chance alone would seldom make so many of one sign; else 0.

    >>> [sign_test({"": [Test(1, one, math.nan) for one in found]}).sign for found in (
    ...     [0.1] * 10 + [-0.1] * 2, [-0.1] * 12, [0.1] * 9 + [-0.1] * 3, [1.0])]
    [1, -1, 0, 0]
    """
    differences = [test.difference for found in tests.values() for test in found]
    above, below = sum(one > 0 for one in differences), sum(one < 0 for one in differences)
    count, fewer = above + below, min(above, below)
    p = 2 * sum(math.comb(count, k) for k in range(fewer + 1)) / 2**count
    sign = ((above > below) - (above < below)) if p < LEVEL else 0
    return Decision(sign, "" if sign > 0 else f"so in {above} of {len(differences)}")


def describe(claim: Claim, figures: Figures, decimals: int = 2) -> str:
    """The numbers that a claim is about, in a few words; nothing where they are not known."""
    try:
        return CHECKS[claim.check].describe(claim, figures, decimals)
    except Missing:
        return ""


def together(claim: Claim, figures: Figures, least: int = 1) -> list[tuple[int, list[float]]]:
    """The rows that all columns of a claim have, with their numbers, from the first to the last."""
    columns = [figures.column(name, claim) for name in claim.of]
    rows = sorted(set.intersection(*(set(one) for one in columns)))
    if len(rows) < least:
        raise Missing
    return [(row, [one[row] for one in columns]) for row in rows]


def is_about(claim: Claim, group: str, place: float | None) -> bool:
    """Whether a claim is of a row."""
    in_reach = claim.check != "higher" or claim.at is None or (place or 0) <= claim.at
    return claim.where in ("", group) and in_reach


def span(values: Sequence[float], decimals: int, sign: str = "+") -> str:
    """
    >>> span([1.0, 0.5], 2), span([1.5], 1, "")
    ('+0.50 to +1.00', '1.5')
    """
    shown = list(dict.fromkeys(f"{value:{sign}.{decimals}f}" for value in (min(values), max(values))))
    return " to ".join(shown)


# Which of two is higher.


def higher(claim: Claim, figures: Figures) -> Tests:
    rows = [row for row, _ in together(claim, figures, claim.rows or 1)]
    return {figures.title(row): figures.tests((row, claim.of[0]), (row, claim.of[1])) for row in rows}


def describe_higher(claim: Claim, figures: Figures, decimals: int) -> str:
    gains = [first - second for _, (first, second) in together(claim, figures)]
    if len(gains) == 1:
        return span(gains, decimals)
    told = f"so in {sum(gain > 0 for gain in gains)} of {len(gains)}"
    tests: Tests = {}
    with contextlib.suppress(Missing, NotCompared):
        tests = higher(claim, figures)
    if any(test.p > 0 for found in tests.values() for test in found):  # not of a text alone, and not without a test
        signs = [sign_of(found) for found in tests.values()]
        told += f", significantly in {signs.count(1)}"
        told += f", the opposite in {signs.count(-1)}" if -1 in signs else ""
    return f"{span(gains, decimals)}; {told}"


def at_end(place: int) -> tuple[Callable[[Claim, Figures], Tests], Callable[[Claim, Figures, int], str]]:
    def compare(claim: Claim, figures: Figures) -> Tests:
        row, _ = together(claim, figures, 2)[place]
        return {figures.title(row): figures.tests((row, claim.of[0]), (row, claim.of[1]))}

    def tell(claim: Claim, figures: Figures, decimals: int) -> str:
        _, (first, second) = together(claim, figures, 2)[place]
        return f"{first - second:+.{decimals}f}"

    return compare, tell


def peak(claim: Claim, figures: Figures) -> Tests:
    (name,) = claim.of
    rows = {figures.places[row]: row for row in figures.column(name)}
    if claim.at not in rows or len(rows) < 2:
        raise Missing
    best = rows.pop(claim.at)
    return {f"against {figures.title(row)}": figures.tests((best, name), (row, name)) for row in rows.values()}


def describe_peak(claim: Claim, figures: Figures, decimals: int) -> str:
    values = {figures.places[row]: value for row, value in figures.column(claim.of[0]).items()}
    best = max(values, key=lambda place: values[place])
    other = f"; at {claim.at:g}: {values[claim.at]:.{decimals}f}" if claim.at in values and claim.at != best else ""
    return f"best of {len(values)} at {best:g}: {values[best]:.{decimals}f}{other}"


# Differences between differences.


def gains_of(claim: Claim, figures: Figures) -> dict[int, float]:
    """How far the first column is above the second, by row."""
    return {row: first - second for row, (first, second) in together(claim, figures, 2)}


def tests_of(figures: Figures, statistic: Callable[[Callable[[Place], Scores]], Scores]) -> list[Test]:
    """Of a number that is made of several cells, for each seed that all of them have."""
    tests = []
    for seed in figures.seeds:
        try:
            value, *resampled = statistic(partial(figures.resampled, seed=seed))
        except Missing:  # a row has seeds of its own
            continue
        tests.append(Test(seed, float(value), p_value(value, np.array(resampled))))
    return tests


def gain(claim: Claim, row: int, scores: Callable[[Place], Scores]) -> Scores:
    first, second = claim.of
    return scores((row, first)) - scores((row, second))


def wider(claim: Claim, figures: Figures) -> Tests:
    def tests(before: int, after: int) -> list[Test]:
        return tests_of(figures, lambda scores: gain(claim, after, scores) - gain(claim, before, scores))

    return {figures.title(after): tests(before, after) for before, after in pairs_of_rows(claim, figures)}


def pairs_of_rows(claim: Claim, figures: Figures) -> dict[tuple[int, int], tuple[float, float]]:
    """Two rows each, the first with the second, the third with the fourth ..., and their gains; whole pairs alone."""
    gains = gains_of(claim, figures)
    pairs = {(row, row + 1): (gains[row], gains[row + 1]) for row in gains if row % 2 == 0 and row + 1 in gains}
    if not pairs:
        raise Missing
    return pairs


def describe_wider(claim: Claim, figures: Figures, decimals: int) -> str:
    before, after = zip(*pairs_of_rows(claim, figures).values(), strict=True)
    return f"{span(before, decimals)}, then {span(after, decimals)}"


def distances(claim: Claim, figures: Figures) -> tuple[float, float]:
    rows = together(claim, figures)
    numbers = {(row, name): value for row, values in rows for name, value in zip(claim.of, values, strict=True)}
    near, far = mean_distances(claim, [row for row, _ in rows], lambda cell: np.array([numbers[cell]]))
    return float(near[0]), float(far[0])


def mean_distances(claim: Claim, rows: list[int], scores: Callable[[Place], Scores]) -> tuple[Scores, Scores]:
    """How far the first two columns are apart, and the last two, on average."""
    a, b, c, d = claim.of
    near = np.mean([np.abs(scores((row, a)) - scores((row, b))) for row in rows], axis=0)
    far = np.mean([np.abs(scores((row, c)) - scores((row, d))) for row in rows], axis=0)
    return near, far


def narrower(claim: Claim, figures: Figures) -> Tests:
    rows = [row for row, _ in together(claim, figures)]

    def statistic(scores: Callable[[Place], Scores]) -> Scores:
        near, far = mean_distances(claim, rows, scores)
        return far - near

    return {"": tests_of(figures, statistic)}


def describe_narrower(claim: Claim, figures: Figures, decimals: int) -> str:
    near, far = distances(claim, figures)
    return f"{near:.{decimals}f} against {far:.{decimals}f}"


def shrinks(claim: Claim, figures: Figures) -> Tests:
    rows = [row for row, _ in together(claim, figures, 2)]
    return {"": tests_of(figures, lambda scores: gain(claim, rows[0], scores) - gain(claim, rows[-1], scores))}


def describe_shrinks(claim: Claim, figures: Figures, decimals: int) -> str:
    gains = list(gains_of(claim, figures).values())
    return f"{gains[0]:+.{decimals}f}, then {gains[-1]:+.{decimals}f}"


# Limits.


def fails(claim: Claim, figures: Figures) -> int:
    high, most = of_high(claim, figures)
    return 1 if all(value < most / 4 for value in high) else -1


def of_high(claim: Claim, figures: Figures) -> tuple[list[float], float]:
    values = figures.column(claim.of[0])
    high = [value for row, value in values.items() if (figures.places[row] or 0) >= (claim.at or 0)]
    if not high or len(high) == len(values):
        raise Missing
    return high, max(values.values())


def describe_fails(claim: Claim, figures: Figures, decimals: int) -> str:
    high, most = of_high(claim, figures)
    return f"{span(high, decimals, '')}, of {most:.{decimals}f} at best"


def ratios_of_rows(claim: Claim, figures: Figures) -> list[float]:
    rows = together(claim, figures, 2)
    return [after / before for before, after in zip(rows[0][1], rows[-1][1], strict=True)]


def slower(claim: Claim, figures: Figures) -> int:
    return 1 if all(ratio > (claim.at or 1) for ratio in ratios_of_rows(claim, figures)) else -1


def describe_slower(claim: Claim, figures: Figures, decimals: int) -> str:
    return f"{span(ratios_of_rows(claim, figures), decimals, '')} times"


def ratios_of_columns(claim: Claim, figures: Figures) -> list[float]:
    return [first / second for _, (first, second) in together(claim, figures)]


def close(claim: Claim, figures: Figures) -> int:
    return 1 if all(ratio <= (claim.at or 1) for ratio in ratios_of_columns(claim, figures)) else -1


def describe_close(claim: Claim, figures: Figures, decimals: int) -> str:
    return f"{span(ratios_of_columns(claim, figures), decimals, '')} times"


def about(claim: Claim, figures: Figures) -> int:
    values = [value for _, (value,) in together(claim, figures)]
    return 1 if all(abs(value - (claim.at or 0)) <= claim.within for value in values) else -1


def describe_about(claim: Claim, figures: Figures, decimals: int) -> str:
    return span([value for _, (value,) in together(claim, figures)], decimals, "")


@dataclass(frozen=True)
class Check:
    decide: Callable[[Claim, Figures], Decision]
    describe: Callable[[Claim, Figures, int], str]


def of_tests(tests: Callable[[Claim, Figures], Tests], describe: Callable[[Claim, Figures, int], str]) -> Check:
    def decided(claim: Claim, figures: Figures) -> Decision:
        found = tests(claim, figures)
        return decide(found, claim.rows) if figures.has_test(claim) else sign_test(found)

    return Check(decided, describe)


def of_limit(limit: Callable[[Claim, Figures], int], describe: Callable[[Claim, Figures, int], str]) -> Check:
    return Check(partial(keep, limit), describe)


CHECKS: dict[str, Check] = {
    "higher": of_tests(higher, describe_higher),
    "first": of_tests(*at_end(0)),
    "last": of_tests(*at_end(-1)),
    "peak": of_tests(peak, describe_peak),
    "wider": of_tests(wider, describe_wider),
    "narrower": of_tests(narrower, describe_narrower),
    "shrinks": of_tests(shrinks, describe_shrinks),
    "fails": of_limit(fails, describe_fails),
    "slower": of_limit(slower, describe_slower),
    "close": of_limit(close, describe_close),
    "about": of_limit(about, describe_about),
}
