"""The commands of data folders, `bpe-dropout data | convert | dictionary`; making.py does the work."""

from __future__ import annotations

import argparse
from typing import Any

from ..methods import METHODS, Method
from .making import convert_data, make_data, make_dictionaries

PLAIN = argparse.RawDescriptionHelpFormatter


def add_commands(commands: Any) -> None:
    """Adds them to a parser's commands."""
    data = commands.add_parser(
        "data",
        help="make a data folder from plain text and codes",
        description="Makes a data folder from plain text and codes: words, codes, dictionaries. For example\n\n"
        "  bpe-dropout data --source-lang en --target-lang de --trainpref corpus/train \\\n"
        "      --validpref corpus/dev --codes codes --destdir DATA\n\n"
        "reads corpus/train.en and so on. Text is taken as it is, words with spaces between them, unless --normalize,\n"
        "--unescape, --tokenize or --lowercase is given: raw text is then prepared so, here and in interactive use.",
        formatter_class=PLAIN,
    )
    add_texts(data, list(METHODS.values()))
    add_preparation(data, "")
    data.add_argument(
        "--already-prepared",
        action="store_true",
        help="the text has been through these steps already: only record them, for interactive use",
    )
    data.add_argument(
        "--merges",
        type=int,
        metavar="N",
        help="learn N merges from each side; with --joined-dictionary, N merges from both sides together",
    )
    data.set_defaults(run=make_data)

    convert = commands.add_parser(
        "convert",
        help="make a data folder from text that is segmented already",
        description="Makes a data folder from text that is segmented with @@, its codes and its dictionaries: what\n"
        "you have if you have trained with fairseq before. For example\n\n"
        "  bpe-dropout convert --source-lang en --target-lang de --trainpref bpe/train \\\n"
        "      --validpref bpe/valid --codes bpe/codes --srcdict data-bin/dict.en.txt \\\n"
        "      --tgtdict data-bin/dict.de.txt --destdir DATA\n\n"
        "Codes that do not match the text are noticed.",
        formatter_class=PLAIN,
    )
    add_texts(convert, [METHODS["bpe"]])
    add_preparation(convert, " (only recorded: the text has been through it)")
    convert.set_defaults(run=convert_data)

    dictionary = commands.add_parser(
        "dictionary",
        help="make the dictionaries of a data folder",
        description="Makes dict.*.txt of a data folder from its training text and its codes.",
    )
    dictionary.add_argument("folder", metavar="DATA", help="the data folder")
    dictionary.add_argument("-s", "--source-lang", metavar="SRC", help="source language, if the folder has several")
    dictionary.add_argument("-t", "--target-lang", metavar="TGT", help="target language, if the folder has several")
    add_dictionary(dictionary)
    dictionary.set_defaults(run=make_dictionaries)


def add_texts(parser: argparse.ArgumentParser, methods: list[Method]) -> None:
    parser.add_argument("-s", "--source-lang", required=True, metavar="SRC", help="source language")
    parser.add_argument("-t", "--target-lang", required=True, metavar="TGT", help="target language")
    parser.add_argument("--trainpref", required=True, metavar="PREFIX", help="training text: PREFIX.SRC and PREFIX.TGT")
    parser.add_argument("--validpref", metavar="PREFIX", help="validation text")
    parser.add_argument("--testpref", metavar="PREFIX", help="test text")
    parser.add_argument("--destdir", required=True, metavar="DATA", help="the folder to make")
    for method in methods:
        parser.add_argument(f"--{method.given}", metavar="FILE", help=f"{method.learned} of both sides")
        parser.add_argument(f"--src-{method.given}", metavar="FILE", help=f"{method.learned} of the source side")
        parser.add_argument(f"--tgt-{method.given}", metavar="FILE", help=f"{method.learned} of the target side")
    parser.add_argument(
        "--vocabulary-threshold",
        type=int,
        metavar="N",
        help="use only the pieces of a side that occur N times in its text: for merges learned from both sides",
    )
    parser.add_argument(
        "--src-pieces",
        metavar="FILE",
        help="take the counts of source pieces from this file of subword-nmt get-vocab, and not from the text",
    )
    parser.add_argument("--tgt-pieces", metavar="FILE", help="the same for the target side")
    parser.add_argument("--glossaries", nargs="+", metavar="REGEX", help="what these match is not split, as '<BT>'")
    parser.add_argument("--srcdict", metavar="FILE", help="use this dictionary for the source side")
    parser.add_argument("--tgtdict", metavar="FILE", help="use this dictionary for the target side")
    add_dictionary(parser)


def add_dictionary(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--vocabulary",
        choices=("plain", "dropout"),
        default="plain",
        help="the dictionary has the pieces of the training text under plain BPE, or also every piece that dropout can "
        "make (default: %(default)s)",
    )
    parser.add_argument("--joined-dictionary", action="store_true", help="one dictionary for both sides")
    parser.add_argument("--threshold", type=int, default=-1, metavar="N", help="omit what occurs less than N times")
    parser.add_argument("--nwords", type=int, default=-1, metavar="N", help="keep the N most frequent")
    parser.add_argument("--overwrite", action="store_true", help="replace what is there already")


def add_preparation(parser: argparse.ArgumentParser, note: str) -> None:
    parser.add_argument("--normalize", action="store_true", help="normalize punctuation as Moses does" + note)
    parser.add_argument(
        "--unescape", action="store_true", help="undo the escapes of Moses: &apos; becomes ' and so on" + note
    )
    parser.add_argument("--tokenize", action="store_true", help="tokenize as Moses does, without escapes" + note)
    parser.add_argument("--lowercase", action="store_true", help="lowercase" + note)
