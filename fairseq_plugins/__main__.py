"""python -m fairseq_plugins            prints the folder to name as fairseq's --user-dir
python -m fairseq_plugins data          makes a data folder from plain text and codes
python -m fairseq_plugins convert       makes a data folder from text that is segmented already, with @@
python -m fairseq_plugins dictionary    makes the dictionaries of a data folder, of either vocabulary of the paper
python -m fairseq_plugins average       averages checkpoints
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from bpe_dropout import InputError
from bpe_dropout.files import describe


def main(arguments: Sequence[str] | None = None) -> int:
    options = make_parser().parse_args(arguments)
    if not hasattr(options, "run"):
        print(Path(__file__).parent)
        return 0
    try:
        options.run(options)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"error: {describe(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return 130
    return 0


def make_parser() -> argparse.ArgumentParser:
    from .averaging import average
    from .data import convert_data, make_data, make_dictionaries

    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m fairseq_plugins", description=__doc__, formatter_class=plain)
    commands = parser.add_subparsers(metavar="COMMAND")

    data = commands.add_parser(
        "data",
        help="make a data folder from plain text and codes",
        description="Makes a data folder from plain text and codes: words, codes, dictionaries. For example\n\n"
        "  python -m fairseq_plugins data --source-lang en --target-lang de --trainpref corpus/train \\\n"
        "      --validpref corpus/dev --codes codes --destdir DATA\n\n"
        "reads corpus/train.en and so on. Text is taken as it is, words with spaces between them, unless --normalize,\n"
        "--tokenize or --lowercase is given: raw text is then prepared so, here and in interactive use later.",
        formatter_class=plain,
    )
    add_texts(data)
    add_preparation(data, "")
    data.add_argument(
        "--already-prepared",
        action="store_true",
        help="the text has been through these steps already: only record them, for interactive use",
    )
    data.add_argument("--merges", type=int, metavar="N", help="learn N merges of each side, in place of --codes")
    data.add_argument("--src-unigram", metavar="FILE", help="a sentencepiece unigram model, in place of codes")
    data.add_argument("--tgt-unigram", metavar="FILE", help="the same for the target side")
    data.set_defaults(run=make_data)

    convert = commands.add_parser(
        "convert",
        help="make a data folder from text that is segmented already",
        description="Makes a data folder from text that is segmented with @@, and its codes and dictionaries: what\n"
        "people have who have trained with fairseq before. For example\n\n"
        "  python -m fairseq_plugins convert --source-lang en --target-lang de --trainpref bpe/train \\\n"
        "      --validpref bpe/valid --codes bpe/codes --srcdict data-bin/dict.en.txt \\\n"
        "      --tgtdict data-bin/dict.de.txt --destdir DATA\n\n"
        "Codes that are not those of the text are noticed.",
        formatter_class=plain,
    )
    add_texts(convert)
    add_preparation(convert, " (only recorded: the text has been through it)")
    convert.set_defaults(run=convert_data)

    dictionary = commands.add_parser(
        "dictionary",
        help="make the dictionaries of a data folder",
        description="Makes dict.*.txt of a data folder anew, from its training text and its codes.",
    )
    dictionary.add_argument("folder", metavar="DATA", help="the data folder")
    dictionary.add_argument("-s", "--source-lang", metavar="SRC", help="source language, if the folder has several")
    dictionary.add_argument("-t", "--target-lang", metavar="TGT", help="target language, if the folder has several")
    add_dictionary(dictionary)
    dictionary.set_defaults(run=make_dictionaries)

    averaging = commands.add_parser(
        "average",
        help="average checkpoints",
        description="Averages checkpoints, and says which. For example\n\n"
        "  python -m fairseq_plugins average --last 5 checkpoints --output checkpoints/average.pt\n"
        "  python -m fairseq_plugins average a.pt b.pt --output ab.pt",
        formatter_class=plain,
    )
    averaging.add_argument("checkpoints", nargs="+", metavar="PATH", help="checkpoints, or with --last their folder")
    averaging.add_argument("--last", type=int, metavar="N", help="the last N of a folder")
    averaging.add_argument(
        "--by",
        choices=("epoch", "update"),
        default="epoch",
        help="the last by epoch (checkpoint7.pt) or by update (checkpoint_3_1500.pt) (default: %(default)s)",
    )
    averaging.add_argument(
        "-o", "--output", required=True, metavar="FILE", help="the average, written whole or not at all"
    )
    averaging.set_defaults(run=average)
    return parser


def add_texts(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-s", "--source-lang", required=True, metavar="SRC", help="source language")
    parser.add_argument("-t", "--target-lang", required=True, metavar="TGT", help="target language")
    parser.add_argument("--trainpref", required=True, metavar="PREFIX", help="training text: PREFIX.SRC and PREFIX.TGT")
    parser.add_argument("--validpref", metavar="PREFIX", help="validation text")
    parser.add_argument("--testpref", metavar="PREFIX", help="test text")
    parser.add_argument("--destdir", required=True, metavar="DATA", help="the folder to make")
    parser.add_argument("--codes", metavar="FILE", help="merges of both sides, as subword-nmt writes them")
    parser.add_argument("--src-codes", metavar="FILE", help="merges of the source side")
    parser.add_argument("--tgt-codes", metavar="FILE", help="merges of the target side")
    parser.add_argument("--srcdict", metavar="FILE", help="a dictionary of the source side, in place of a new one")
    parser.add_argument("--tgtdict", metavar="FILE", help="a dictionary of the target side, in place of a new one")
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
    parser.add_argument("--threshold", type=int, default=-1, metavar="N", help="leave out what comes less than N times")
    parser.add_argument("--nwords", type=int, default=-1, metavar="N", help="keep the N most frequent")
    parser.add_argument("--overwrite", action="store_true", help="make anew what is there already")


def add_preparation(parser: argparse.ArgumentParser, note: str) -> None:
    parser.add_argument("--normalize", action="store_true", help="normalise punctuation as Moses does" + note)
    parser.add_argument("--tokenize", action="store_true", help="tokenize as Moses does" + note)
    parser.add_argument("--lowercase", action="store_true", help="make letters small" + note)


if __name__ == "__main__":
    sys.exit(main())
