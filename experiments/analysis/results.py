"""Result files, read: experiments/results/RUN.json, MEASURE/RUN.json and comparisons/*.json. Nothing else is read for a
table or a figure, so whoever has these files can draw them again."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

from bpe_dropout import InputError
from scripts.stage import read_json


class Results:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read: dict[Path, Any] = {}

    def names(self, measure: str = "") -> list[str]:
        """The runs that have a result, or a measurement."""
        return sorted(path.name.removesuffix(".json") for path in (self.folder / measure).glob("*.json"))

    def get(self, run: str, measure: str = "") -> dict[str, Any] | None:
        path = self.folder / measure / f"{run}.json"
        if path not in self._read:
            content = read_json(path) if path.is_file() else None
            if content is not None and (not isinstance(content, dict) or content.get("run") != run):
                raise InputError(f"{path} is not the record of {run}: remove it, or give it its own name")
            self._read[path] = content
        found: dict[str, Any] | None = self._read[path]
        return found

    def number(self, run: str, measure: str, path: str) -> float | None:
        """A number of a record, by its path: `src/share`; None where there is no record."""
        value: Any = self.get(run, measure)
        if value is None:
            return None
        for key in path.split("/"):
            if not isinstance(value, dict) or key not in value:
                name = self.folder / measure / f"{run}.json"
                raise InputError(f"{name} has no {path}: it was made by another version; make it again")
            value = value[key]
        return None if value is None else float(value)

    @cached_property
    def _comparisons(self) -> list[tuple[bool, dict[str, Any]]]:
        paths = sorted((self.folder / "comparisons").glob("*.json"))
        return [(".misspelled." in path.name, read_json(path)) for path in paths]

    def comparison(self, runs: list[str], misspelled: bool = False) -> dict[str, Any] | None:
        """A comparison of all of these runs, with the scores that they have: not one of earlier translations."""
        for kind, found in self._comparisons:
            scores = found["bleu"]
            same = all(run in scores and scores[run] == self.bleu(run, misspelled) for run in runs)
            if kind == misspelled and same:
                return found
        return None

    def bleu(self, run: str, misspelled: bool) -> float | None:
        return self.number(run, "misspelled" if misspelled else "", "bleu")
