"""Test sets: what models translate, and are compared on. One file each in configs/testsets:

    title: misspelled                  in a row of a table
    text: the test set with ...        what it is
    change: misspell                   how the source text is changed, by a function of CHANGES; if none, it is as it is
    settings: {rate: 0.1, seed: 1}     of that function

All are made from the test split of a run's corpus. The source alone is changed, so the references stay the same.
`test` is the test set as it is, and what a run has of it is in the run's own folder; what it has of another is in a
folder of that name below.
"""

from __future__ import annotations

import inspect
import re
import shutil
import typing
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from bpe_dropout import InputError
from bpe_dropout.files import whole
from bpe_dropout.lines import read_lines

from .corpora import CONFIGS
from .measures import MEASURES
from .misspelling import misspell_text
from .settings import convert, read_settings

TEST = "test"

# Each takes the lines of the source, tokenized, and its settings by name; it gives as many lines, and a record of what
# it did.
CHANGES: dict[str, Callable[..., tuple[list[str], dict[str, Any]]]] = {"misspell": misspell_text}


@dataclass(frozen=True)
class TestSet:
    __test__: ClassVar[bool] = False  # none of pytest's

    title: str
    text: str
    change: str = ""
    settings: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.change and self.change not in CHANGES:
            raise InputError(f"there is no change {self.change}; there are {', '.join(CHANGES)}")
        takes = settings_of(CHANGES[self.change]) if self.change else {}
        if set(self.settings) != set(takes):
            given = ", ".join(self.settings) or "none"
            raise InputError(f"the settings of the change are {', '.join(takes) or 'none'}, not {given}")
        for name, kind in takes.items():
            convert(self.settings[name], kind, "settings", name)

    def apply(self, lines: list[str]) -> tuple[list[str], dict[str, Any]]:
        """The source lines of this test set, and what was done to them; {} if nothing was."""
        if not self.change:
            return lines, {}
        made, found = CHANGES[self.change](lines, **self.settings)
        if len(made) != len(lines):
            raise InputError(
                f"{self.change} made {len(made)} lines of {len(lines)}: a sentence is a line, and stays one"
            )
        return made, {"name": self.change, **self.settings, **found}


def settings_of(change: Callable[..., Any]) -> dict[str, Any]:
    """The settings that a change takes, with their types: its keyword-only arguments."""
    kinds = typing.get_type_hints(change)
    arguments = inspect.signature(change).parameters.values()
    return {one.name: kinds[one.name] for one in arguments if one.kind is one.KEYWORD_ONLY}


TAKEN = ("comparisons", "translations")  # folders of results


def find_testsets(configs: Path = CONFIGS) -> list[str]:
    """Their names. `make NAME.RUN` and the folders of results know measurements by name, too, so these are taken."""
    paths = sorted(configs.glob("testsets/*.yaml"))
    for path in paths:
        if not re.fullmatch(r"[a-z][a-z0-9-]*", path.stem) or path.stem in (*MEASURES, *TAKEN):
            raise InputError(
                f"{path}: a test set is named in lowercase letters, digits and hyphens, and not as a measurement is "
                f"({', '.join(MEASURES)}), nor {' or '.join(TAKEN)}"
            )
    return [path.stem for path in paths]


@cache
def read_testset(name: str, configs: Path = CONFIGS) -> TestSet:
    there = find_testsets(configs)
    if name not in there:
        raise InputError(f"there is no test set {name} in {configs}/testsets; there are {', '.join(there) or 'none'}")
    return read_settings(configs / "testsets" / f"{name}.yaml", TestSet)


def place(folder: Path, testset: str) -> Path:
    """Where the files of a test set are, below a folder that is a run's, or one of results or comparisons."""
    return folder if testset == TEST else folder / testset


def change_folder(testset: TestSet, folder: Path, output: Path, source: str) -> tuple[Path, dict[str, Any]]:
    """A data folder with the source of the test split changed, and no other text; the same if nothing is to change."""
    if not testset.change:
        return folder, {}
    output.mkdir(parents=True, exist_ok=True)
    done: dict[str, Any] = {}
    for path in sorted(folder.iterdir()):
        if path.name.startswith(("train.", "valid.")) or path.name.endswith(".words"):
            continue
        if path.name.startswith("test.") and path.name.endswith(f".{source}"):
            lines, done = testset.apply(list(read_lines(path, "text")))
            with whole(output / path.name) as part:
                part.write_text("".join(f"{line}\n" for line in lines), "utf-8")
        else:
            shutil.copyfile(path, output / path.name)
    return output, done
