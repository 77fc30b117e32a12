"""How raw text becomes the words of a data folder, and how words become text again.

    {"en": {"normalize": false, "unescape": false, "tokenize": true, "escape": false, "lowercase": true}}

is the folder's preparation.json. Training and `fairseq-generate` read words as they are; raw input
(`fairseq-interactive`, a model loaded in Python) goes through the same steps first, in this order, and what the model
writes is detokenized. The steps are those of Moses (moses.py): punctuation is normalized, escapes (&apos;) become
characters, words and punctuation are separated, characters are escaped; text is lowercased, and stays lowercased.

Folders made before "escape" was recorded are taken to have escaped words if they are tokenized.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..errors import InputError
from . import moses

STEPS = ("normalize", "unescape", "tokenize", "escape", "lowercase")
RECORD = "preparation.json"


@dataclass(frozen=True)
class Preparation:
    """The steps that a language's text goes through.

    >>> Preparation("en", tokenize=True, lowercase=True).prepare("It's done.")
    "it 's done ."
    >>> Preparation("en", tokenize=True, lowercase=True).restore("it 's done .")
    "it's done."
    """

    language: str
    normalize: bool = False
    tokenize: bool = False
    lowercase: bool = False
    escape: bool = False
    unescape: bool = False

    def prepare(self, line: str) -> str:
        if self.normalize:
            line = moses.normalizer(self.language)(line)
        if self.unescape:
            line = moses.unescape(line)
        if self.tokenize:
            line = moses.tokenizer(self.language)(line)
        if self.escape:
            line = moses.escape(line)
        return line.lower() if self.lowercase else line

    def restore(self, words: str) -> str:
        if self.escape:
            words = moses.unescape(words)
        return moses.detokenizer(self.language)(words) if self.tokenize else words

    @property
    def steps(self) -> dict[str, bool]:
        return {step: getattr(self, step) for step in STEPS}


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
    return Preparation(language, **{"escape": steps.get("tokenize", False), **steps})


def write_preparation(folder: Path, *preparations: Preparation) -> None:
    record = {preparation.language: preparation.steps for preparation in preparations}
    (folder / RECORD).write_text(json.dumps(record, indent=2) + "\n", "utf-8")
