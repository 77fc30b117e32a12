"""Makes data folders: from plain text and codes, or from what people already have, text with @@.

Text that is prepared here is prepared on all cores, and how is recorded in the folder. A folder appears when it is
whole; one that exists already is left alone unless --overwrite is given.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from bpe_dropout import Corpus, Dictionary, InputError
from bpe_dropout.dictionary import SPECIAL
from bpe_dropout.files import whole
from bpe_dropout.learning import count_words, learn
from bpe_dropout.lines import decode_lines
from bpe_dropout.progress import Progress

from .bpe import SEPARATOR, read_segmenter
from .folder import DataFolder
from .preparation import RECORD, Preparation, write_preparation
from .unigram import UnigramModel
from .vocabulary import count_bpe, count_unigram, make_dictionary

SPLITS = ("train", "valid", "test")
_LINES = 2000


def make_data(options: argparse.Namespace) -> None:
    """From plain text."""
    check_options(options, merges=True)
    preparations = {language: preparation(options, language) for language in languages(options)}
    with new_folder(options) as folder:
        for path, name, language in texts(options):
            if options.already_prepared or not any(preparations[language].steps.values()):
                copy_text(path, folder / name)
            else:
                prepare_text(path, folder / name, preparations[language])
        finish(options, folder)


def convert_data(options: argparse.Namespace) -> None:
    """From segmented text: words are put together again, and must be what the codes take apart so."""
    check_options(options, merges=False)
    with new_folder(options) as folder:
        for path, name, language in texts(options):
            side = "src" if language == options.source_lang else "tgt"
            join_text(path, folder / name, Path(getattr(options, f"{side}_codes") or options.codes), side)
        finish(options, folder)


def make_dictionaries(options: argparse.Namespace) -> None:
    """The dictionaries of a folder that has words, and codes or unigram models."""
    folder = DataFolder(options.folder, options.source_lang, options.target_lang)
    given = [
        path for path in (folder.path / f"dict.{name}.txt" for name in (folder.source, folder.target)) if path.exists()
    ]
    if given and not options.overwrite:
        raise InputError(f"{given[0]} exists already. To make it anew, add --overwrite")
    write_dictionaries(options, folder)


def languages(options: argparse.Namespace) -> tuple[str, str]:
    return options.source_lang, options.target_lang


def sides(options: argparse.Namespace) -> tuple[tuple[str, str], ...]:
    """src and tgt, as options name them, with their languages."""
    return ("src", options.source_lang), ("tgt", options.target_lang)


def preparation(options: argparse.Namespace, language: str) -> Preparation:
    return Preparation(language, options.normalize, options.tokenize, options.lowercase)


def texts(options: argparse.Namespace) -> Iterator[tuple[Path, str, str]]:
    """Every text that was named: where it is, its name in the folder, and its language."""
    for split in SPLITS:
        prefix = getattr(options, f"{split}pref")
        for language in languages(options) if prefix else ():
            path = Path(f"{prefix}.{language}")
            if not path.is_file():
                raise InputError(f"there is no {path}: --{split}pref names what stands before .{language}")
            yield path, f"{split}.{options.source_lang}-{options.target_lang}.{language}", language


def check_options(options: argparse.Namespace, merges: bool) -> None:
    """What was named is there and can be used, before the long work begins."""
    for side, language in sides(options):
        codes, model = getattr(options, f"{side}_codes") or options.codes, getattr(options, f"{side}_unigram", None)
        if bool(codes) + bool(model) + bool(getattr(options, "merges", None)) != 1:
            others = f", --merges, or --{side}-unigram" if merges else ""
            raise InputError(f"say what segments {language}: --codes or --{side}-codes{others}")
        if codes:
            read_segmenter(Path(codes), side)
        if model:
            UnigramModel(Path(model), side)
        if given := getattr(options, f"{side}dict"):
            Dictionary.load(given)


@contextlib.contextmanager
def new_folder(options: argparse.Namespace) -> Iterator[Path]:
    """A folder under another name, which takes its own when all of it is made."""
    target = Path(options.destdir)
    if target.exists() and not options.overwrite:
        raise InputError(f"{target} exists already. To make it anew, add --overwrite")
    if target.exists() and not (target / RECORD).is_file():
        raise InputError(f"{target} is not a data folder, so it is not overwritten")
    if any(path.resolve().is_relative_to(target.resolve()) for path, _, _ in texts(options)):
        raise InputError(f"{target} holds the text that it would be made from")
    if not target.absolute().parent.is_dir():
        raise InputError(f"{target} cannot be made: there is no folder {target.absolute().parent}")
    folder = Path(tempfile.mkdtemp(prefix=target.name + ".", suffix=".part", dir=target.absolute().parent))
    try:
        yield folder
        folder.chmod(0o755)
        old = folder.with_suffix(".old")
        if target.exists():
            os.rename(target, old)
        os.rename(folder, target)
        shutil.rmtree(old, ignore_errors=True)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def finish(options: argparse.Namespace, folder: Path) -> None:
    """Codes or models, the record of the preparation and dictionaries; and a word on what was made."""
    write_preparation(folder, *(preparation(options, language) for language in languages(options)))
    for side, language in sides(options):
        codes, model = getattr(options, f"{side}_codes") or options.codes, getattr(options, f"{side}_unigram", None)
        if getattr(options, "merges", None):
            text = DataFolder(folder, *languages(options)).text("train", language)
            learn_codes(text, folder / f"codes.{language}", options.merges)
        if codes:
            shutil.copyfile(codes, folder / f"codes.{language}")
        if model:
            shutil.copyfile(model, folder / f"unigram.{language}.model")
    made = DataFolder(folder, *languages(options))
    for split in SPLITS:
        if prefix := getattr(options, f"{split}pref"):
            counts = [len(Corpus(made.text(split, language))) for language in languages(options)]
            if 0 in counts:
                raise InputError(f"{prefix}.{languages(options)[counts.index(0)]} is empty")
            if counts[0] != counts[1]:
                names = " and ".join(f"{prefix}.{language}" for language in languages(options))
                raise InputError(
                    f"{names} have {counts[0]} and {counts[1]} lines: they must be translations, line by line"
                )
            print(f"{split}: {counts[0]} pairs")
    for side, language in sides(options):
        if given := getattr(options, f"{side}dict"):
            shutil.copyfile(given, folder / f"dict.{language}.txt")
    write_dictionaries(options, made)


def learn_codes(text: Path, codes: Path, merges: int) -> None:
    print(f"learning {merges} merges for {codes.name}", flush=True)
    progress = Progress()
    learned = learn(count_words(text), merges, progress=progress.counting(codes.name, "merges"))
    progress.clear()
    with whole(codes) as part:
        part.write_bytes(learned.text().encode())


def write_dictionaries(options: argparse.Namespace, folder: DataFolder) -> None:
    """Those that were not handed in, of the training text."""
    counts = {
        language: count_side(options, folder, side, language)
        for side, language in (("src", folder.source), ("tgt", folder.target))
        if not getattr(options, f"{side}dict", None)
    }
    if options.joined_dictionary and counts:
        if len(counts) < 2:
            raise InputError("--joined-dictionary makes one dictionary for both sides, and one was handed in")
        joined: Counter[str] = sum(counts.values(), Counter())
        for pieces in counts.values():  # adding counters loses what comes 0 times
            joined.update(dict.fromkeys(pieces, 0))
        counts = dict.fromkeys(counts, joined)
    for language, pieces in counts.items():
        dictionary = make_dictionary(pieces, options.threshold, options.nwords)
        path = folder.path / f"dict.{language}.txt"
        with whole(path) as part:
            dictionary.save(str(part))
        print(f"dict.{language}.txt: {len(dictionary)} entries, with {dictionary.nspecial} symbols of fairseq's")


def count_side(options: argparse.Namespace, folder: DataFolder, side: str, language: str) -> Counter[str]:
    text = folder.text("train", language)
    model = folder.path / f"unigram.{language}.model"
    if model.is_file() and (folder.path / f"codes.{language}").is_file():
        raise InputError(f"{folder.path} has both codes.{language} and {model.name}: a folder is for one of them")
    if model.is_file():
        return count_unigram(UnigramModel(model, side), text)
    return count_bpe(read_segmenter(folder.path / f"codes.{language}", side), text, options.vocabulary)


def copy_text(path: Path, to: Path) -> None:
    shutil.copyfile(path, to)
    try:
        Corpus(to)
    except InputError as error:
        raise InputError(str(error).replace(str(to), str(path))) from None


def read_lines(path: Path) -> Iterator[str]:
    """Lines end at \\n and nowhere else; what is not UTF-8 is an error with its line."""
    with path.open("rb") as file:
        yield from decode_lines(file, path)


def prepare_text(
    path: Path, to: Path, steps: Preparation, progress: Progress | None = None, processes: int | None = None
) -> None:
    lines = read_lines(path)
    chunks = iter(lambda: list(islice(lines, _LINES)), [])
    progress, done = progress or Progress(), 0
    with multiprocessing.Pool(processes, initializer=_set_preparation, initargs=(steps,)) as pool, to.open("wb") as out:
        for prepared in pool.imap(_prepare, chunks):
            out.write("".join(line + "\n" for line in prepared).encode())
            done += len(prepared)
            progress.show(f"prepared {done} lines of {path}")
    progress.clear()


_preparation = Preparation("")  # of a process that prepares text


def _set_preparation(steps: Preparation) -> None:
    global _preparation
    _preparation = steps


def _prepare(lines: list[str]) -> list[str]:
    return [" ".join(_preparation.prepare(line).split("\n")) for line in lines]


def join_text(path: Path, to: Path, codes: Path, side: str) -> None:
    """Puts words together, and looks whether the codes take them apart again as they were."""
    segmenter = read_segmenter(codes, side)
    stream = segmenter.stream(split="whitespace")
    different, lines, example, segmented = 0, 0, "", False
    progress = Progress()
    with to.open("wb") as out:
        for number, line in enumerate(read_lines(path), 1):
            pieces = line.split()
            if special := next((piece for piece in pieces if piece in SPECIAL), None):
                raise InputError(
                    f"{path}, line {number}: the piece {special!r} is a symbol of fairseq's own: write the word "
                    "differently"
                )
            words = segmenter.desegment(pieces)
            again = stream.text(words.encode()).decode().split()
            lines += 1
            segmented = segmented or any(piece.endswith(SEPARATOR) for piece in pieces)
            if again != pieces:
                different += 1
                example = (
                    example or f"line {number} is\n  {' '.join(pieces)}\nand with these codes\n  {' '.join(again)}"
                )
            out.write(words.encode() + b"\n")
            progress.show(f"put together {lines} lines of {path}")
    progress.clear()
    if not segmented and to.name.startswith("train."):
        raise InputError(f"{path} holds no {SEPARATOR}, so it is not segmented: use `python -m fairseq_plugins data`")
    if different:
        sentence = f"{path}: {different} of {lines} lines are not what {codes} makes of their words: {example}"
        if different > lines / 2:
            raise InputError(f"{sentence}\nName the codes that the text was segmented with")
        print(f"warning: {sentence}")
