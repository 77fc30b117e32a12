"""How raw text becomes the words of a data folder, and how words become text again.

    {"en": {"normalize": true, "tokenize": true, "lowercase": true}}

stands in the folder's preparation.json. Training and `fairseq-generate` read words as they are; raw input
(`fairseq-interactive`, a model loaded in Python) is put through the same steps first, and what the model says is
put together again. The steps are those of Moses, by sacremoses: punctuation is normalised, words and punctuation
are separated and special characters escaped, letters are made small. Small letters stay small.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from ..errors import InputError

STEPS = ("normalize", "tokenize", "lowercase")
RECORD = "preparation.json"


@dataclass(frozen=True)
class Preparation:
    """The steps that a language's text goes through.

    >>> Preparation("en", tokenize=True, lowercase=True).prepare("It's done.")
    'it &apos;s done .'
    >>> Preparation("en", tokenize=True, lowercase=True).restore("it &apos;s done .")
    "it's done."
    """

    language: str
    normalize: bool = False
    tokenize: bool = False
    lowercase: bool = False

    def prepare(self, line: str) -> str:
        if self.normalize:
            line = self._normalizer.normalize(line)
        if self.tokenize:
            line = self._tokenizer.tokenize(line, return_str=True)
        return line.lower() if self.lowercase else line

    def restore(self, words: str) -> str:
        return self._detokenizer.detokenize(words.split()) if self.tokenize else words

    @property
    def steps(self) -> dict[str, bool]:
        return {step: getattr(self, step) for step in STEPS}

    @cached_property
    def _normalizer(self) -> Any:
        return sacremoses().MosesPunctNormalizer(self.language)

    @cached_property
    def _tokenizer(self) -> Any:
        return sacremoses().MosesTokenizer(self.language)

    @cached_property
    def _detokenizer(self) -> Any:
        return sacremoses().MosesDetokenizer(self.language)


def sacremoses() -> Any:
    try:
        return import_module("sacremoses")
    except ImportError:
        raise InputError("text is prepared by sacremoses, which is not installed: pip install sacremoses") from None


def read_preparation(folder: Path, language: str) -> Preparation:
    """What the folder records for a language; without a record, words are taken as they are."""
    path = folder / RECORD
    try:
        record = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return Preparation(language)
    except ValueError as error:
        raise InputError(f"{path} is not JSON ({error}); make the folder again, or remove the file") from None
    steps = record.get(language, {}) if isinstance(record, Mapping) else None
    if not isinstance(steps, Mapping) or any(
        step not in STEPS or not isinstance(done, bool) for step, done in steps.items()
    ):
        raise InputError(f'{path}: expected {{"{language}": {{"normalize": true, ...}}}} with {", ".join(STEPS)}')
    return Preparation(language, **steps)


def write_preparation(folder: Path, *preparations: Preparation) -> None:
    record = {preparation.language: preparation.steps for preparation in preparations}
    (folder / RECORD).write_text(json.dumps(record, indent=2) + "\n", "utf-8")
