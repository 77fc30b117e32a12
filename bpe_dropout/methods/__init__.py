"""Methods of segmentation, a module each: bpe (BPE, BPE-dropout) and unigram (Kudo's subword regularization).

A method gives each segmentation of a text a probability. Its module has one object, METHOD, with all that is particular
to it: the file that is learned from a text, plain and drawn segmentation, how pieces become words again, its options.
Everything else (data folders, the fairseq plugin, the reproduction) looks it up here, by its name:

>>> METHODS["bpe"].file.format("en")
'codes.en'

A new module in this folder is a new method. CONTRIBUTING.md shows one.
"""

from __future__ import annotations

import dataclasses
import pkgutil
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Protocol

from ..data.texts import Text
from ..dictionary import Dictionary
from ..errors import InputError
from ..progress import Progress
from ..rules import Dropout

ROLES = ("src", "tgt")  # the two ends of a translation, as options name them
ROLE_NAMES = {"src": "source", "tgt": "target"}
Found = list[tuple[list[str], float]]  # segmentations of a line, with their probabilities, the most probable first


class LineSegmenter(Protocol):
    """Segments with what a method has learned of a language."""

    def segment(self, line: str) -> list[str]:
        """The pieces of a line of words, the best segmentation; words end at white space."""


@dataclasses.dataclass(frozen=True)
class Drawing:
    """How a text is drawn: the values of a method's options, and what changes the speed alone."""

    options: Any  # the method's `options`, or anything with the same fields
    memory: int = 256 << 20
    threads: int = 1


class Method(ABC):
    """All that the rest of the code needs to know of a method. It has no state."""

    name: ClassVar[str]  # in configs/methods (`kind`) and in the names of data folders
    bpe: ClassVar[str]  # its name as fairseq's --bpe
    symbol: ClassVar[str]  # fairseq's name for how its pieces are joined, as in --remove-bpe
    file: ClassVar[str]  # what it keeps in a data folder, for each language: codes.{}
    given: ClassVar[str]  # the option that gives that file: --src-codes
    option: ClassVar[str]  # the option that names it to a training, for each role: bpe_dropout_{}_codes
    learned: ClassVar[str]  # what that file is, for messages: "merges"
    options: ClassVar[type]  # a dataclass: the options of a training, with their help
    takes_p: ClassVar[bool] = False  # whether a run's p, and the p of each language, is for it

    @abstractmethod
    def learn(self, words: Path, vocabulary: int, output: Path, threads: int, progress: Progress) -> dict[str, int]:
        """Learns from a text, for a vocabulary of about so many pieces; says how many there are."""

    @abstractmethod
    def load(self, path: Path, role: str, language: str = "", folder: Path | None = None) -> Any:
        """A LineSegmenter, from what was learned; an error that says what to do if the file is something else.

        `folder` is the data folder, for what else a method keeps there for a language; default: that of the file.
        """

    @abstractmethod
    def count(self, model: Any, text: Path, vocabulary: str) -> Counter[str]:
        """The pieces for a dictionary of a text, with their counts; `vocabulary` is plain or dropout."""

    @abstractmethod
    def text(self, path: Path, model: Any, dictionary: Dictionary, role: str, drawing: Drawing) -> Text:
        """A text of a data folder, to be drawn from."""

    @abstractmethod
    def join(self, pieces: str) -> str:
        """Words from pieces, as --remove-bpe does it."""

    @abstractmethod
    def check(self, options: Any) -> None:
        """An error if an option has an invalid value."""

    @abstractmethod
    def describe(self, options: Any) -> str:
        """The method and its numbers, for a log."""

    @abstractmethod
    def options_of(self, settings: Mapping[str, Any], sides: list[str], p: Mapping[str, float]) -> dict[str, Any]:
        """The options of a run, from the settings of its YAML file, the sides that are drawn, and the p of each."""

    def most_probable(self, model: Any, count: int, dropout: Dropout) -> Callable[[str], Found]:
        """Finds so many segmentations of a line of words; the dropout is BPE-dropout's."""
        raise InputError(f"several segmentations are not for --bpe {self.bpe}")

    def file_of(self, folder: Path, language: str) -> Path:
        return folder / self.file.format(language)

    def flag_of(self, role: str) -> str:
        """Its option on a command line."""
        return f"--{self.option.format(role).replace('_', '-')}"

    def missing(self, path: Path, role: str) -> InputError:
        return InputError(
            f"there is no {path}: the {self.learned} of the {ROLE_NAMES[role]} side. Put the file "
            f"there, or name it with {self.flag_of(role)}"
        )


def _find() -> dict[str, Method]:
    found: dict[str, Method] = {}
    for module in sorted(one.name for one in pkgutil.iter_modules(__path__)):
        method: Method = import_module(f".{module}", __name__).METHOD
        found[method.name] = method
    return found


METHODS = _find()


def find_method(name: str) -> Method:
    """A method by its name."""
    if name not in METHODS:
        raise InputError(f"there is no method {name}; there are {' and '.join(METHODS)}")
    return METHODS[name]


def method_of(folder: Path, language: str) -> Method:
    """The method that a data folder is for, by the file that it has for a language."""
    found = [method for method in METHODS.values() if method.file_of(folder, language).is_file()]
    if len(found) > 1:
        names = " and ".join(method.file.format(language) for method in found)
        raise InputError(f"{folder} has both {names}: a folder is for one of them")
    if not found:
        names = " or ".join(method.file.format(language) for method in METHODS.values())
        raise InputError(f"{folder} has no {names}, so it is not known how to segment it")
    return found[0]
