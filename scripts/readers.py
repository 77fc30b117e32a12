"""Reads pairs of sentences from the formats that corpora come in.

lines      two files, line n of the one is the translation of line n of the other; also gzipped
wit3-tags  TED talks for training: lines as above, between lines of metadata, which begin with <
wit3-xml   TED talks for development and test: <seg id="1"> text </seg>
sgm        WMT's test sets: the same in SGML, without a header
aspec      one file, fields between |||: the last two are Japanese and English
tabs       one file, fields between tabs; `columns` names them
gettext    catalogues of software translations inside wheels; English is the message

A reader yields pairs as they are in the source: one sentence per line, white space at the ends removed. Lines end at
\\n alone; U+2028 and the like inside a line become spaces, so that no later tool breaks a line there.
"""

from __future__ import annotations

import html
import re
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bpe_dropout import InputError
from bpe_dropout.lines import decode_lines

from .archives import members, open_inside, read_inside

Pair = tuple[str, str]
BREAKS = re.compile("[\t\x0b\x0c\r\x1c-\x1e\x85\u2028\u2029]")


class Reader(ABC):
    def check(self, files: dict[str, Any], pair: Pair, place: str) -> None:
        """What a part of a corpus must name: a file for each language."""
        if sorted(files) != sorted(pair) or not all(isinstance(name, str) for name in files.values()):
            raise InputError(
                f"{place}: this format wants a file for each of {' and '.join(pair)}, such as {pair[0]}: NAME"
            )

    def names(self, files: dict[str, Any]) -> list[str]:
        """The files that are read."""
        return [str(name) for name in files.values()]

    @abstractmethod
    def read(self, folder: Path, files: dict[str, Any], pair: Pair) -> Iterator[Pair]:
        """The pairs of a part, in the order of its languages."""


class TwoFiles(Reader):
    """Formats with a file for each side."""

    @abstractmethod
    def side(self, path: Path) -> Iterator[str]: ...

    def read(self, folder: Path, files: dict[str, Any], pair: Pair) -> Iterator[Pair]:
        paths = [folder / files[language] for language in pair]
        sides = [self.side(path) for path in paths]
        count = 0
        while True:
            first, second = (next(side, None) for side in sides)
            if first is None and second is None:
                return
            if first is None or second is None:
                counts = [count, count]
                counts[first is None] += 1 + sum(1 for _ in sides[first is None])
                raise InputError(
                    f"{paths[0]} has {counts[0]} sentences and {paths[1]} has {counts[1]}: "
                    "they must be translations, line by line"
                )
            count += 1
            yield first, second


class Lines(TwoFiles):
    def side(self, path: Path) -> Iterator[str]:
        return read_lines(path)


class Wit3Tags(TwoFiles):
    def side(self, path: Path) -> Iterator[str]:
        return (line for line in read_lines(path) if not line.startswith("<"))


class Segments(TwoFiles):
    """WIT3's XML and WMT's SGM: segments are on one line or several, and nothing else is text."""

    def side(self, path: Path) -> Iterator[str]:
        begun: list[str] = []
        for rest in read_lines(path):
            while rest:
                if not begun:
                    found = re.search(r"<seg\b[^>]*>", rest, re.IGNORECASE)
                    if not found:
                        break
                    begun, rest = [""], rest[found.end() :]
                end = re.search(r"</seg\s*>", rest, re.IGNORECASE)
                begun.append(rest[: end.start()] if end else rest)
                if not end:
                    break
                yield clean(html.unescape(" ".join(begun)))
                begun, rest = [], rest[end.end() :]
        if begun:
            raise InputError(f"{path} ends inside a segment, so it is not whole")


class Aspec(Reader):
    def check(self, files: dict[str, Any], pair: Pair, place: str) -> None:
        if sorted(files) != ["file"] or sorted(pair) != ["en", "ja"] or not isinstance(files["file"], str):
            raise InputError(f"{place}: ASPEC is en and ja, in one file: NAME")

    def read(self, folder: Path, files: dict[str, Any], pair: Pair) -> Iterator[Pair]:
        path = folder / files["file"]
        for number, line in enumerate(read_lines(path), 1):
            fields = line.split(" ||| ")
            if len(fields) not in (4, 5):
                raise InputError(
                    f"{path}, line {number}: expected 4 or 5 fields between |||, the last two Japanese and English, "
                    f"and there are {len(fields)}"
                )
            text = {"ja": fields[-2].strip(), "en": fields[-1].strip()}
            yield text[pair[0]], text[pair[1]]


class Tabs(Reader):
    """Columns of a file, which are named in their order: [en, fr], or [number, en, fr]. What follows is not read."""

    def check(self, files: dict[str, Any], pair: Pair, place: str) -> None:
        columns = files.get("columns")
        named = isinstance(columns, list) and all(columns.count(language) == 1 for language in pair)
        if sorted(files) != ["columns", "file"] or not isinstance(files["file"], str) or not named:
            raise InputError(f"{place}: tabs wants file: NAME and columns: [{', '.join(pair)}], in the file's order")

    def names(self, files: dict[str, Any]) -> list[str]:
        return [files["file"]]

    def read(self, folder: Path, files: dict[str, Any], pair: Pair) -> Iterator[Pair]:
        path, columns = folder / files["file"], files["columns"]
        first, second = (columns.index(language) for language in pair)
        for number, line in enumerate(read_whole_lines(path), 1):
            fields = line.split("\t")
            if len(fields) < len(columns):
                raise InputError(
                    f"{path}, line {number}: expected {len(columns)} fields between tabs, {', '.join(columns)}, and "
                    f"there are {len(fields)}"
                )
            yield clean(fields[first]), clean(fields[second])


class Gettext(Reader):
    """Wheels, and the names that the language has in them, such as zh_Hans and zh_CN."""

    def check(self, files: dict[str, Any], pair: Pair, place: str) -> None:
        lists = [files.get(name) for name in ("wheels", "locales")]
        are_text = all(isinstance(one, list) and all(isinstance(name, str) for name in one) for one in lists)
        if sorted(files) != ["locales", "wheels"] or pair[0] != "en" or not are_text:
            raise InputError(f"{place}: gettext is from en, and wants wheels: [NAME, ...] and locales: [{pair[1]}]")

    def names(self, files: dict[str, Any]) -> list[str]:
        return [str(name) for name in files["wheels"]]

    def read(self, folder: Path, files: dict[str, Any], pair: Pair) -> Iterator[Pair]:
        seen: set[Pair] = set()
        for wheel in files["wheels"]:
            for name in catalogues(members(folder / wheel), files["locales"]):
                for english, other in messages(folder / wheel / name):
                    pair_of_texts = (clean(english), clean(other))
                    if is_translation(*pair_of_texts) and pair_of_texts not in seen:
                        seen.add(pair_of_texts)
                        yield pair_of_texts


def catalogues(names: list[str], locales: list[str]) -> list[str]:
    """The catalogues of a language in a wheel; of one that is there as .po and as .mo, the .po.

    >>> catalogues(["x/locale/de/LC_MESSAGES/x.mo", "x/locale/de/LC_MESSAGES/x.po", "x/locale/fr.po"], ["de"])
    ['x/locale/de/LC_MESSAGES/x.po']
    """
    tags = "|".join(map(re.escape, locales))
    pattern = rf"(?:.*/)?(?:(?:{tags})/LC_MESSAGES/[^/]+|(?:locale|locales|i18n|po)/(?:{tags}))\.(?:po|mo)"
    found = {name for name in names if re.fullmatch(pattern, name)}
    return sorted(name for name in found if name.endswith(".po") or name[:-3] + ".po" not in found)


def messages(path: Path) -> Iterator[Pair]:
    """The messages of a catalogue that are translated and not marked as doubtful."""
    import polib

    with tempfile.NamedTemporaryFile(suffix=path.suffix) as copy:  # polib reads files
        copy.write(read_inside(path))
        copy.flush()
        try:
            catalogue = polib.pofile(copy.name) if path.suffix == ".po" else polib.mofile(copy.name)
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{path} is not a catalogue of gettext: {error}".replace(copy.name, path.name)) from None
    for entry in catalogue:
        if getattr(entry, "fuzzy", False) or entry.obsolete:
            continue
        # Zope's catalogues have names for messages; the English is in a comment.
        english = re.sub(r'^Default:\s*"?(.*?)"?\s*$', r"\1", entry.comment, flags=re.DOTALL)
        message = english if entry.comment.startswith("Default:") else entry.msgid
        if not entry.msgid_plural:
            yield message, entry.msgstr
            continue
        forms = [entry.msgstr_plural[number] for number in sorted(entry.msgstr_plural)]
        if len(forms) == 2:
            yield message, forms[0]
        if len(forms) <= 2:  # with more forms, which of them goes with the English plural is not known
            yield entry.msgid_plural, forms[-1]


def is_translation(english: str, other: str) -> bool:
    """Not a name of a message, and not the English again.

    >>> is_translation("Log out", "Abmelden"), is_translation("label_log_out", "Abmelden"), is_translation("%s", "%s")
    (True, False, False)
    """
    if not english or not other or english == other or not re.search(r"[A-Za-z]", english):
        return False
    return " " in english or not re.search(r"[_.:]", english)


READERS: dict[str, Reader] = {
    "lines": Lines(),
    "wit3-tags": Wit3Tags(),
    "wit3-xml": Segments(),
    "sgm": Segments(),
    "aspec": Aspec(),
    "tabs": Tabs(),
    "gettext": Gettext(),
}


def clean(text: str) -> str:
    return " ".join(text.split())


def read_lines(path: Path) -> Iterator[str]:
    return (BREAKS.sub(" ", line).strip() for line in read_whole_lines(path))


def read_whole_lines(path: Path) -> Iterator[str]:
    with open_inside(path) as file:
        for number, text in enumerate(decode_lines(file, path)):
            yield text if number else text.removeprefix("\ufeff")
