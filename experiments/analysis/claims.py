"""What the paper claims of its numbers, checked on ours. A check sees a grid, {(row, column): number}, and the rows'
places on the axis; it is not run where a number that it needs is missing.

higher    the first column is above the second in every row, or in at least so many (`rows`), or up to `at`
peak      the column is highest in the row at `at`
fails     from `at` on, the column is below a quarter of its highest
narrower  the first two columns are closer to each other than the last two, on average
wider     rows come in pairs, and the first column is further above the second in the second row of each
slower    the last row takes more than `at` times as long as the first, in every column
close     the first column is at most `at` times the second, in every row
last      the first column is above the second in the last row
shrinks   the first column is less far above the second in the last row than in the first
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean

from bpe_dropout import InputError
from scripts.paper import Claim

Grid = dict[tuple[int, str], float | None]


class Missing(Exception):
    """A number that a check needs was not run."""


def check(claim: Claim, grid: Grid, places: list[float | None]) -> str:
    """holds, does not hold, or not run"""
    if claim.check not in CHECKS:
        raise InputError(f"there is no check {claim.check}; there are {', '.join(CHECKS)}")
    try:
        return "holds" if CHECKS[claim.check](claim, grid, places) else "does not hold"
    except Missing:
        return "not run"


def column(grid: Grid, name: str) -> dict[int, float]:
    """A column by its rows; all of it must have been run."""
    found = {row: value for (row, one), value in grid.items() if one == name}
    if not found or any(value is None for value in found.values()):
        raise Missing
    return {row: value for row, value in found.items() if value is not None}


def together(claim: Claim, grid: Grid, least: int = 1) -> list[tuple[int, list[float]]]:
    """The rows that all columns of a claim have, with their numbers, from the first to the last."""
    columns = [column(grid, name) for name in claim.of]
    rows = sorted(set.intersection(*(set(one) for one in columns)))
    if len(rows) < least:
        raise Missing
    return [(row, [one[row] for one in columns]) for row in rows]


def higher(claim: Claim, grid: Grid, places: list[float | None]) -> bool:
    rows = together(claim, grid, claim.rows or 1)
    if claim.at is not None:
        rows = [(row, values) for row, values in rows if (places[row] or 0) <= claim.at]
    return sum(first > second for _, (first, second) in rows) >= (claim.rows or len(rows))


def peak(claim: Claim, grid: Grid, places: list[float | None]) -> bool:
    values = {places[row]: value for row, value in column(grid, claim.of[0]).items()}
    if claim.at not in values or len(values) < 2:
        raise Missing
    return max(values, key=lambda place: values[place]) == claim.at


def fails(claim: Claim, grid: Grid, places: list[float | None]) -> bool:
    values = column(grid, claim.of[0])
    high = [value for row, value in values.items() if (places[row] or 0) >= (claim.at or 0)]
    if not high or len(high) == len(values):
        raise Missing
    return all(value < max(values.values()) / 4 for value in high)


def narrower(claim: Claim, grid: Grid, places: list[float | None]) -> bool:
    rows = [values for _, values in together(claim, grid)]
    return fmean(abs(a - b) for a, b, _, _ in rows) < fmean(abs(c - d) for _, _, c, d in rows)


def wider(claim: Claim, grid: Grid, places: list[float | None]) -> bool:
    gains = [first - second for _, (first, second) in together(claim, grid, 2)]
    return all(after > before for before, after in zip(gains[::2], gains[1::2], strict=True))


def slower(claim: Claim, grid: Grid, places: list[float | None]) -> bool:
    rows = together(claim, grid, 2)
    return all(after > (claim.at or 1) * before for before, after in zip(rows[0][1], rows[-1][1], strict=True))


def close(claim: Claim, grid: Grid, places: list[float | None]) -> bool:
    return all(first <= (claim.at or 1) * second for _, (first, second) in together(claim, grid))


def last(claim: Claim, grid: Grid, places: list[float | None]) -> bool:
    first, second = together(claim, grid, 2)[-1][1]
    return first > second


def shrinks(claim: Claim, grid: Grid, places: list[float | None]) -> bool:
    rows = together(claim, grid, 2)
    (first, second), (first_after, second_after) = rows[0][1], rows[-1][1]
    return first_after - second_after < first - second


CHECKS: dict[str, Callable[[Claim, Grid, list[float | None]], bool]] = {
    "higher": higher,
    "peak": peak,
    "fails": fails,
    "narrower": narrower,
    "wider": wider,
    "slower": slower,
    "close": close,
    "last": last,
    "shrinks": shrinks,
}

# What can be said of any runs; the other checks are of the rows that the paper has.
ANYWHERE = ("higher", "peak", "fails", "wider", "close")
