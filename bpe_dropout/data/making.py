"""Makes data folders: from plain text and codes, or from what people already have, text with @@.

Text that is prepared here is prepared on all cores, and how is recorded in the folder. A folder appears when it is
whole; one that exists already is left alone unless --overwrite is given. commands.py has the options.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from ..codes import read_piece_counts
from ..cores import count_cores
from ..corpus import Corpus
from ..dictionary import SPECIAL, Dictionary
from ..errors import InputError
from ..files import left_by_the_killed, part_of, whole
from ..learning import count_words, describe_fewer, learn
from ..lines import decode_lines
from ..methods import METHODS, Method, bpe, method_of
from ..progress import Progress
from .folder import DataFolder
from .moses import escapes
from .preparation import RECORD, STEPS, Preparation, write_preparation
from .vocabulary import count_pieces, dictionary_entries, read_corpus

SPLITS = ("train", "valid", "test")
_LINES = 2000


def make_data(options: argparse.Namespace) -> None:
    """From plain text."""
    methods = check_options(options)
    preparations = {language: preparation(options, language) for language in languages(options)}
    with new_folder(options) as folder:
        copy_given(options, folder, methods)
        for path, name, language in texts(options):
            check_unsegmented(path)
            if options.already_prepared or not any(preparations[language].steps.values()):
                copy_text(path, folder / name)
            else:
                prepare_text(path, folder / name, preparations[language])
        finish(options, folder)


def convert_data(options: argparse.Namespace) -> None:
    """From segmented text: pieces are joined to words, and the codes must split these into the same pieces."""
    methods = check_options(options)
    with new_folder(options) as folder:
        copy_given(options, folder, methods)
        for path, name, language in texts(options):
            role = "src" if language == options.source_lang else "tgt"
            codes = Path(given(options, role, methods[language]) or "")
            join_text(path, folder / name, codes, load(folder, methods[language], role, language))
        finish(options, folder)


def make_dictionaries(options: argparse.Namespace) -> None:
    """The dictionaries of a folder that has words, and codes or unigram models."""
    folder = DataFolder(options.folder, options.source_lang, options.target_lang)
    there = [
        path for path in (folder.path / f"dict.{name}.txt" for name in (folder.source, folder.target)) if path.exists()
    ]
    if there and not options.overwrite:
        raise InputError(f"{there[0]} exists already. To replace it, add --overwrite")
    write_dictionaries(options, folder)


def languages(options: argparse.Namespace) -> tuple[str, str]:
    return options.source_lang, options.target_lang


def roles(options: argparse.Namespace) -> tuple[tuple[str, str], ...]:
    """src and tgt, as options name them, with their languages."""
    return ("src", options.source_lang), ("tgt", options.target_lang)


def given(options: argparse.Namespace, role: str, method: Method) -> str | None:
    """The file that was given for a role: --src-codes, or --codes."""
    return getattr(options, f"{role}_{method.given}", None) or getattr(options, method.given, None)


def given_by(options: argparse.Namespace, role: str, method: Method) -> str:
    """The option that gave it."""
    return f"--{role}-{method.given}" if getattr(options, f"{role}_{method.given}", None) else f"--{method.given}"


def preparation(options: argparse.Namespace, language: str) -> Preparation:
    return Preparation(language, **{step: getattr(options, step) for step in STEPS if step != "escape"})


def texts(options: argparse.Namespace) -> Iterator[tuple[Path, str, str]]:
    """Every text that was named: where it is, its name in the folder, and its language."""
    for split in SPLITS:
        prefix = getattr(options, f"{split}pref")
        for language in languages(options) if prefix else ():
            path = Path(f"{prefix}.{language}")
            if not path.is_file():
                raise InputError(f"there is no {path}: --{split}pref names what comes before .{language}")
            yield path, f"{split}.{options.source_lang}-{options.target_lang}.{language}", language


def check_options(options: argparse.Namespace) -> dict[str, Method]:
    """Checks what was named before the long work begins. Gives the method of each language."""
    methods = {}
    if options.source_lang == options.target_lang:
        raise InputError(f"source and target are both {options.source_lang}; give the two sides different names")
    merges, threshold = getattr(options, "merges", None), options.vocabulary_threshold
    for option, number in (("--merges", merges), ("--vocabulary-threshold", threshold)):
        if number is not None and number < 1:
            raise InputError(f"{option} is a whole number from 1 on, not {number}")
    if options.glossaries:
        bpe.check_glossaries(options.glossaries)
        if options.tokenize:
            raise InputError(
                "--glossaries with --tokenize: the tokenizer would split what they match. Tokenize the text first, so "
                "that tags stay whole, and leave out --tokenize"
            )
    for role, language in roles(options):
        named = [method for method in METHODS.values() if given(options, role, method)]
        learns = bool(getattr(options, "merges", None))
        if len(named) + learns > 1:
            ways = [given_by(options, role, method) for method in named] + ["--merges"] * learns
            raise InputError(f"{' and '.join(ways)} are two ways to segment {language}: leave one of them out")
        if not named and not learns:
            ways = [f"--{method.given} or --{role}-{method.given}" for method in METHODS.values()]
            if not hasattr(options, "merges"):
                ways = ways[:1]
            else:
                ways.append("--merges")
            raise InputError(f"say what segments {language}: {', or '.join(ways)}")
        method = bpe.METHOD if learns else named[0]
        methods[language] = method
        if file := given(options, role, method):
            if not Path(file).is_file():
                raise InputError(
                    f"there is no {file}: {given_by(options, role, method)} names a file of {method.learned}"
                )
            method.load(Path(file), role)
        pieces = getattr(options, f"{role}_pieces")
        if method is not bpe.METHOD and (pieces or options.vocabulary_threshold or options.glossaries):
            raise InputError("--vocabulary-threshold, --src-pieces, --tgt-pieces and --glossaries are for BPE")
        if pieces and not Path(pieces).is_file():
            raise InputError(f"there is no {pieces}: --{role}-pieces names a file of subword-nmt get-vocab")
        if pieces:
            read_piece_counts(pieces)
        if named_dictionary := getattr(options, f"{role}dict"):
            Dictionary.load(named_dictionary)
    return methods


@contextlib.contextmanager
def new_folder(options: argparse.Namespace) -> Iterator[Path]:
    """A folder under a temporary name, which is renamed when it is whole."""
    name, target = options.destdir, Path(os.path.realpath(options.destdir))  # of a link, what it points to
    restore_or_remove(target)
    if target.exists() and not options.overwrite:
        raise InputError(f"{name} exists already. To replace it, add --overwrite")
    if target.exists() and not (target / RECORD).is_file():
        raise InputError(f"{name} is not a data folder, so it is not overwritten")
    check_nothing_is_lost(options)
    if any(path.resolve().is_relative_to(target) for path, _, _ in texts(options)):
        raise InputError(f"{name} holds the text that it would be made from")
    if not target.parent.is_dir():
        raise InputError(f"{name} cannot be made: there is no folder {target.parent}")
    try:
        folder = part_of(target)
        folder.mkdir()
    except OSError as error:
        raise InputError(f"{name} cannot be made: {error.strerror}") from None
    try:
        yield folder
        check_nothing_is_lost(options)
        old = folder.with_suffix(".old")
        if target.exists():
            os.rename(target, old)
        os.rename(folder, target)
        shutil.rmtree(old, ignore_errors=True)
    except BaseException:
        old = folder.with_suffix(".old")
        if old.exists() and not target.exists():
            os.rename(old, target)
        shutil.rmtree(folder, ignore_errors=True)
        raise


def restore_or_remove(target: Path) -> None:
    """A folder that was being replaced when the process was killed."""
    for old in left_by_the_killed(target, ".old"):
        if target.exists():
            shutil.rmtree(old, ignore_errors=True)
        else:
            os.rename(old, target)


def check_nothing_is_lost(options: argparse.Namespace) -> None:
    """A folder that is replaced holds nothing but what is made here."""
    folder = Path(options.destdir)
    there = {path.name for path in folder.iterdir()} if folder.exists() else set()
    made = names_made(options)
    unfinished = {name for name in there if name.endswith(".part") and any(name.startswith(f"{one}.") for one in made)}
    others = sorted(there - made - unfinished)
    if others:
        listed = ", ".join(others[:5]) + (f" and {len(others) - 5} more" if len(others) > 5 else "")
        raise InputError(
            f"{folder} also holds {listed}, which would be lost: move that elsewhere, or choose another folder"
        )


def names_made(options: argparse.Namespace) -> set[str]:
    """All files that a data folder of these languages may have."""
    source, target = languages(options)
    texts = {f"{split}.{source}-{target}.{language}" for split in SPLITS for language in languages(options)}
    files = ("dict.{}.txt", bpe.PIECES, *(method.file for method in METHODS.values()))
    kept = {file.format(language) for file in files for language in languages(options)}
    return {RECORD, bpe.GLOSSARIES, *kept, *texts, *(f"{text}.words" for text in texts)}


def finish(options: argparse.Namespace, folder: Path) -> None:
    """Adds merges that are to be learned, the record of the preparation and dictionaries; prints what was made."""
    write_preparation(folder, *(recorded(options, folder, language) for language in languages(options)))
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
    if getattr(options, "merges", None):
        learn_codes(options, made)
    write_pieces(options, made)
    for role, language in roles(options):
        if named := getattr(options, f"{role}dict"):
            shutil.copyfile(named, folder / f"dict.{language}.txt")
    write_dictionaries(options, made)


def recorded(options: argparse.Namespace, folder: Path, language: str) -> Preparation:
    """What the folder records of its text. Text tokenized elsewhere may have Moses' escapes: the text shows it."""
    steps, text = preparation(options, language), DataFolder(folder, *languages(options)).text("train", language)
    lines = enumerate(read_lines(text), 1)
    found = next(((number, escape) for number, line in lines for escape in escapes(line)), None)
    if found:
        print(
            f"warning: {options.trainpref}.{language}, line {found[0]}: {found[1]} is an escape of Moses, and dropout "
            "breaks it into characters. To avoid that, make the folder from text without escapes: --unescape does it"
        )
    return replace(steps, escape=steps.tokenize and found is not None)


def copy_given(options: argparse.Namespace, folder: Path, methods: Mapping[str, Method]) -> None:
    """What was given to segment with: codes or models, the pieces that may be used, and glossaries."""
    if options.glossaries:
        bpe.write_glossaries(folder, options.glossaries)
    for role, language in roles(options):
        if named := given(options, role, methods[language]):
            shutil.copyfile(named, methods[language].file_of(folder, language))
        if pieces := getattr(options, f"{role}_pieces"):
            bpe.write_pieces(folder, language, read_piece_counts(pieces), options.vocabulary_threshold)


def load(folder: Path, method: Method, role: str, language: str) -> Any:
    return method.load(method.file_of(folder, language), role, language)


def learn_codes(options: argparse.Namespace, folder: DataFolder) -> None:
    """Merges of each side, or, for a joined dictionary, one set of merges of both."""
    counts = {language: bpe.count_for_learning(folder, language) for language in languages(options)}
    if options.joined_dictionary:
        together: Counter[str] = Counter()
        for one in counts.values():
            together.update(one)
        counts = dict.fromkeys(counts, together)
    learned = None
    for language, words in counts.items():
        name = " and ".join(counts) if options.joined_dictionary else language
        if learned is None or not options.joined_dictionary:
            print(f"learning {options.merges} merges of {name}", flush=True)
            progress = Progress()
            learned = learn(words, options.merges, min_frequency=2, progress=progress.counting("learning", "merges"))
            progress.clear()
            if len(learned.pairs) < options.merges:
                print(describe_fewer(len(learned.pairs), options.merges, 2))
            if not any(right.endswith("</w>") for _, right in learned.pairs):
                raise InputError(f"{len(learned.pairs)} merges of {name} are too few: none of them ends a word")
        with whole(bpe.METHOD.file_of(folder.path, language)) as part:
            part.write_bytes(learned.text().encode())


def write_pieces(options: argparse.Namespace, folder: DataFolder) -> None:
    """Sennrich's recipe for joint merges: of the pieces of each side, only those that occur often enough in it."""
    for role, language in roles(options):
        if options.vocabulary_threshold and not getattr(options, f"{role}_pieces"):
            model = load(folder.path, bpe.METHOD, role, language)
            counts = count_pieces(model.segmenter, read_corpus(folder.text("train", language)))
            bpe.write_pieces(folder.path, language, counts, options.vocabulary_threshold)


def write_dictionaries(options: argparse.Namespace, folder: DataFolder) -> None:
    """Those that were not given, from the training text."""
    counts = {}
    for role, language in (("src", folder.source), ("tgt", folder.target)):
        if not getattr(options, f"{role}dict", None):
            method = method_of(folder.path, language)
            model = load(folder.path, method, role, language)
            counts[language] = method.count(model, folder.text("train", language), options.vocabulary)
    if options.joined_dictionary and counts:
        if len(counts) < 2:
            raise InputError("--joined-dictionary makes one dictionary for both sides, but one was given")
        joined: Counter[str] = sum(counts.values(), Counter())
        for pieces in counts.values():  # adding counters loses what occurs 0 times
            joined.update(dict.fromkeys(pieces, 0))
        counts = dict.fromkeys(counts, joined)
    for language, pieces in counts.items():
        entries = dictionary_entries(pieces, options.threshold, options.nwords)
        if not any(count for _, count in entries):
            raise InputError(f"--threshold and --nwords leave no piece of {language} in its dictionary")
        with whole(folder.path / f"dict.{language}.txt") as part:
            part.write_text("".join(f"{piece} {count}\n" for piece, count in entries), "utf-8")
        print(f"dict.{language}.txt: {len(entries) + len(SPECIAL)} entries, with {len(SPECIAL)} symbols of fairseq's")


def check_unsegmented(path: Path) -> None:
    """Text that is segmented already would be segmented once more."""
    counts = count_words(path).items() if path.stat().st_size else []
    words_in_all = sum(count for _, count in counts)
    for sign, found, advice in (
        ("@@", str.endswith, "Use `bpe-dropout convert`, which joins it"),
        ("▁", str.startswith, "Join it first, with sentencepiece's spm_decode"),
    ):
        marked = sum(count for word, count in counts if found(word, sign))
        if marked * 100 > words_in_all:
            raise InputError(f"{path} is segmented already: {marked} of its {words_in_all} words have {sign}. {advice}")


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
    with (
        multiprocessing.Pool(processes or count_cores(), initializer=_set_preparation, initargs=(steps,)) as pool,
        to.open("wb") as out,
    ):
        for prepared in pool.imap(_prepare, chunks):
            out.write("".join(line + "\n" for line in prepared).encode())
            done += len(prepared)
            progress.show(f"prepared {done} lines of {path}")
        # They end by themselves. Where it is busy, one may still be starting, and would miss a signal to end.
        pool.close()
        pool.join()
    progress.clear()


_preparation = Preparation("")  # of a process that prepares text


def _set_preparation(steps: Preparation) -> None:
    global _preparation
    _preparation = steps


def _prepare(lines: list[str]) -> list[str]:
    return [" ".join(_preparation.prepare(line).split("\n")) for line in lines]


def join_text(path: Path, to: Path, codes: Path, model: bpe.BpeModel) -> None:
    """Joins pieces to words, and checks that the codes split these into the same pieces."""
    segmenter = model.segmenter
    stream = segmenter.stream(split="whitespace")
    different, lines, marked, example, segmented = 0, 0, 0, "", False
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
            marked += any(piece.startswith("▁") for piece in pieces)
            segmented = segmented or any(piece.endswith(bpe.SEPARATOR) for piece in pieces)
            if again != pieces:
                different += 1
                example = (
                    example or f"line {number} is\n  {' '.join(pieces)}\nand with these codes\n  {' '.join(again)}"
                )
            out.write(words.encode() + b"\n")
            progress.show(f"joined {lines} lines of {path}")
    progress.clear()
    if not segmented and to.name.startswith("train."):
        if lines and marked * 2 > lines:
            raise InputError(
                f"{path} was segmented by sentencepiece (▁), and `convert` is for {bpe.SEPARATOR}. Join it with "
                "spm_decode, and make the folder with `bpe-dropout data`"
            )
        raise InputError(f"{path} holds no {bpe.SEPARATOR}, so it is not segmented: use `bpe-dropout data`")
    if different:
        sentence = f"{path}: {different} of {lines} lines are not what {codes} makes of their words: {example}"
        if different > lines / 2:
            raise InputError(f"{sentence}\nName the codes that the text was segmented with")
        print(f"warning: {sentence}")
