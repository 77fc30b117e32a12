"""Result files, read: RUN.json and comparisons/*.json of experiments/results; the same in a folder TESTSET, for a test
set other than `test`; and MEASURE/RUN.json. Nothing else is read for a table or a figure, so these files are
enough to make them again. A run's record is found by the name of a test set or of a measurement. Records of settings
that have changed since are left out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bpe_dropout import InputError
from scripts.kept import counts
from scripts.resampling import Scores, read_scores
from scripts.runs import Run, plan_run
from scripts.stage import read_json
from scripts.testsets import TEST, place


class Results:
    """`configs`: where the settings are that records must be of; without it, none is left out."""

    def __init__(self, folder: Path, configs: Path | None = None) -> None:
        self.folder = folder
        self.configs = configs
        self._read: dict[Path, Any] = {}
        self._current: dict[Path, bool] = {}

    def names(self, record: str = TEST) -> list[str]:
        """The runs that have a result, or a measurement."""
        return sorted(path.name.removesuffix(".json") for path in place(self.folder, record).glob("*.json"))

    def get(self, run: str, record: str = TEST) -> dict[str, Any] | None:
        path = self._path(run, record)
        found: dict[str, Any] | None = self._content(path)
        if found is not None and (not isinstance(found, dict) or found.get("run") != run):
            raise InputError(f"{path} is not the record of {run}: remove it, or give it its own name")
        if found is not None and self.configs is not None and path not in self._current:
            result, plan = self._content(self._path(run, TEST)), plan_run(Run.parse(run), self.configs)
            self._current[path] = counts(found, result, plan, record, self.configs)
        return found if self._current.get(path, True) else None

    @property
    def left_out(self) -> list[Path]:
        """What was asked for, and is of other settings."""
        return sorted(path for path, current in self._current.items() if not current)

    def _path(self, run: str, record: str) -> Path:
        return place(self.folder, record) / f"{run}.json"

    def number(self, run: str, record: str, path: str) -> float | None:
        """A number of a record, by its path: `src/share`; None where there is no record."""
        value: Any = self.get(run, record)
        if value is None:
            return None
        for key in path.split("/"):
            if not isinstance(value, dict) or key not in value:
                name = self._path(run, record)
                raise InputError(f"{name} has no {path}: it was made by another version; make it again")
            value = value[key]
        return None if value is None else float(value)

    def resampled(self, run: str, testset: str) -> Scores | None:
        """BLEU, and then that on each of the resampled test sets, where a result has it."""
        found = self.get(run, testset)
        if not found or "resampled bleu" not in found:
            return None
        return np.concatenate([[found["bleu"]], read_scores(found["resampled bleu"])])

    def comparison(self, runs: list[str], testset: str = TEST) -> dict[str, Any] | None:
        """A comparison of all of these runs, with the scores that they have: not one of earlier translations."""
        scores = {run: self.number(run, testset, "bleu") for run in runs}
        for found in self._comparisons(testset):
            if all(run in found["bleu"] and found["bleu"][run] == score for run, score in scores.items()):
                return found
        return None

    def _comparisons(self, testset: str) -> list[dict[str, Any]]:
        paths = sorted((place(self.folder, testset) / "comparisons").glob("*.json"))
        return [self._content(path) for path in paths]

    def _content(self, path: Path) -> Any:
        """What a file holds, read once; None if there is none."""
        if path not in self._read:
            self._read[path] = read_json(path) if path.is_file() else None
        return self._read[path]
