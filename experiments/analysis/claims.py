"""What the paper claims of its numbers, checked on ours. A check sees a grid, {(row, column): number}, and the rows'
places on the axis; it is not run where a number that it needs is missing.

higher    the first column is above the second in every row, or in at least so many (`rows`)
peak      the column is highest in the row at `at`
fails     from `at` on, the column is below a quarter of its highest
narrower  the first two columns are closer to each other than the last two, on average
wider     the first column is further above the second in rows of misspelled input than in the row before
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


def higher(claim: Claim, grid: Grid, places: list[float | None]) -> bool:
    first, second = (column(grid, name) for name in claim.of)
    both = first.keys() & second.keys()
    return sum(first[row] > second[row] for row in both) >= (claim.rows or len(both))


def peak(claim: Claim, grid: Grid, places: list[float | None]) -> bool:
    values = column(grid, claim.of[0])
    return places[max(values, key=lambda row: values[row])] == claim.at


def fails(claim: Claim, grid: Grid, places: list[float | None]) -> bool:
    values = column(grid, claim.of[0])
    high = [value for row, value in values.items() if (places[row] or 0) >= (claim.at or 0)]
    if not high:
        raise Missing
    return all(value < max(values.values()) / 4 for value in high)


def narrower(claim: Claim, grid: Grid, places: list[float | None]) -> bool:
    a, b, c, d = (column(grid, name) for name in claim.of)
    return fmean(abs(a[row] - b[row]) for row in a) < fmean(abs(c[row] - d[row]) for row in c)


def wider(claim: Claim, grid: Grid, places: list[float | None]) -> bool:
    first, second = (column(grid, name) for name in claim.of)
    gains = [first[row] - second[row] for row in sorted(first)]
    return all(after > before for before, after in zip(gains[::2], gains[1::2], strict=True))


def slower(claim: Claim, grid: Grid, places: list[float | None]) -> bool:
    columns = [column(grid, name) for name in claim.of]
    return all(values[max(values)] > (claim.at or 1) * values[min(values)] for values in columns)


def close(claim: Claim, grid: Grid, places: list[float | None]) -> bool:
    first, second = (column(grid, name) for name in claim.of)
    return all(first[row] <= (claim.at or 1) * second[row] for row in first)


def last(claim: Claim, grid: Grid, places: list[float | None]) -> bool:
    first, second = (column(grid, name) for name in claim.of)
    return first[max(first)] > second[max(first)]


def shrinks(claim: Claim, grid: Grid, places: list[float | None]) -> bool:
    first, second = (column(grid, name) for name in claim.of)
    return first[max(first)] - second[max(first)] < first[min(first)] - second[min(first)]


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
