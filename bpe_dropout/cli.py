"""Learns merges, segments text with BPE and BPE-dropout, and makes data folders.

    bpe-dropout learn -s 4000 < train.tok.en > codes
    bpe-dropout apply -c codes < train.tok.en > train.bpe.en
    bpe-dropout apply -c codes -p 0.1 --seed 1 < train.tok.en > train.bpe-dropout.en
    bpe-dropout distribution -c codes -p 0.1 unrelated
    bpe-dropout calibrate -c codes --ratio 1.25 < train.tok.zh
    bpe-dropout data --help                   data folders for training

Text is UTF-8, one sentence per line, tokenized into words with spaces between them.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import stat
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from .codes import Codes
from .errors import CarriageReturn, InputError, LineError, OutOfReach, check_number, check_threads
from .files import clean_up_on_sigterm, describe, open_input, open_output, write
from .learning import count_words, describe_fewer, find_return, learn, merges_asked_for, read_counts
from .lines import blocks_of_lines
from .progress import Progress
from .rules import FORMS, Rule, has_schedule, read_dropout
from .segmenter import Segmenter

SIDES = {"source": 0, "target": 1}
MOST = 20  # segmentations that are shown of a word
Outcomes = dict[tuple[str, ...], float]


def main(arguments: Sequence[str] | None = None) -> int:
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `bpe-dropout apply ... | head` ends quietly
    clean_up_on_sigterm()
    warnings.showwarning = lambda message, *_: print(f"bpe-dropout: warning: {message}", file=sys.stderr)
    if sys.stdin is None or sys.stdout is None or sys.stderr is None:
        return fail("standard input, output and error must be open")
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    options = make_parser().parse_args(arguments)
    try:
        options.run(options)
        sys.stdout.flush()
    except InputError as error:
        return fail(str(error))
    except OSError as error:
        with contextlib.suppress(OSError):  # what could not be written is not tried again at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return fail(describe(error))
    except KeyboardInterrupt:
        print("\nbpe-dropout: interrupted", file=sys.stderr)
        return 130
    return 0


def fail(sentence: str) -> int:
    print(f"bpe-dropout: error: {sentence}", file=sys.stderr)
    return 1


class ShowVersion(argparse.Action):
    """argparse's own action would look the version up for every command."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from . import __version__

        print(f"bpe-dropout {__version__}")
        parser.exit()


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bpe-dropout", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action=ShowVersion, nargs=0, help="show the version and exit")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: object, summary: str, details: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}.\n\n{details}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        sub.set_defaults(run=run)
        return sub

    apply = command(
        "apply",
        run_apply,
        "segment text into pieces",
        "Without -p this is BPE. Each line becomes what BPE.process_line of subword-nmt makes of it, byte for byte.\n"
        "Lines end at \\n only; the command `subword-nmt apply-bpe` also ends them at \\r and at U+2028.\n\n"
        "With -p 0.1 it is BPE-dropout. Dropout is for training, drawn anew in every epoch: to segment a text with\n"
        "dropout once, and then train on it for many epochs, is a mistake. Each side of a parallel text needs its\n"
        "own draws; this is epoch 3 of both:\n\n"
        "  bpe-dropout apply -c codes.en -p 0.1 --epoch 3 --side source < train.en > train.3.en\n"
        "  bpe-dropout apply -c codes.de -p 0.1 --epoch 3 --side target < train.de > train.3.de",
    )
    add_files(apply, "text to segment", "segmented text")
    add_segmenter(apply)
    add_dropout(apply)
    apply.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the draws (default: %(default)s)")
    add_epoch(apply, "each epoch has draws of its own (default: 0)")
    apply.add_argument(
        "--side",
        choices=SIDES,
        default="source",
        help="the side of a parallel text: with the same seed, both draw independently (default: %(default)s)",
    )
    apply.add_argument(
        "--threads",
        type=int,
        default=1,
        metavar="N",
        help="threads; the output is the same with any number (default: %(default)s)",
    )

    learn = command(
        "learn",
        run_learn,
        "learn merges from text",
        "The merges are those that subword-nmt's function learn_bpe learns. Lines end at \\n only.",
    )
    add_files(learn, "text to learn from", "codes file")
    learn.add_argument(
        "-s",
        "--symbols",
        type=int,
        default=10000,
        metavar="N",
        help="number of merges (default: %(default)s)",
    )
    learn.add_argument(
        "--min-frequency",
        type=int,
        default=2,
        metavar="N",
        help="stop when no pair occurs N times (default: %(default)s)",
    )
    learn.add_argument(
        "-t",
        "--total-symbols",
        action="store_true",
        help="count the characters too: --symbols is then about the size of the vocabulary",
    )
    learn.add_argument(
        "--dict-input",
        action="store_true",
        help="the input is not text, but a dictionary: in each line a word, a space and its count",
    )

    distribution = command(
        "distribution",
        run_distribution,
        "show every segmentation of a word with its exact probability",
        "For example: bpe-dropout distribution -c codes -p 0.1 unrelated\n\n"
        "A long word has too many segmentations to list. Of such a word, the most probable are found without the\n"
        "others, with their exact probabilities, too.",
    )
    add_segmenter(distribution)
    add_dropout(distribution, default=0.1)
    add_epoch(distribution, "the epoch")
    distribution.add_argument("words", nargs="+", metavar="WORD")
    distribution.add_argument(
        "-n",
        "--most",
        type=int,
        metavar="N",
        help=f"show the N most probable; 0 shows all (default: {MOST}, and all with --json)",
    )
    distribution.add_argument("--json", action="store_true", help="print them as JSON, one line per word")

    calibrate = command(
        "calibrate",
        run_calibrate,
        "find the dropout p that makes text longer by a wanted ratio",
        "The paper's p = 0.1 makes English and French about 1.25 times longer; Chinese and Japanese need a p of\n"
        "their own for that. Expected lengths are exact for frequent words; rare and long ones are drawn.",
    )
    calibrate.add_argument("-i", "--input", metavar="FILE", help="text to calibrate on (default: standard input)")
    add_segmenter(calibrate)
    calibrate.add_argument(
        "--ratio",
        type=float,
        default=1.25,
        metavar="R",
        help="wanted length, relative to BPE (default: %(default)s)",
    )
    calibrate.add_argument(
        "--rule",
        default="1",
        metavar="RULE",
        help="find the scale of this rule of dropout, such as rank:0..1, and not a p for all merges",
    )
    calibrate.add_argument("--json", action="store_true", help="print the result as JSON")

    from .data.commands import add_commands

    add_commands(commands)
    return parser


def add_files(parser: argparse.ArgumentParser, reads: str, writes: str) -> None:
    parser.add_argument("-i", "--input", metavar="FILE", help=f"{reads} (default: standard input)")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help=f"{writes}, written whole or not at all (default: standard output)",
    )


def add_segmenter(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-c", "--codes", required=True, metavar="FILE", help="merges, as `learn` and subword-nmt write them"
    )
    parser.add_argument(
        "--end-of-word",
        action=argparse.BooleanOptionalAction,
        help='needed for a file without any "</w>": --no-end-of-word if words have no mark at their end, as in '
        "GPT-2's merges.txt; --end-of-word if these are codes of subword-nmt, but only a few",
    )
    parser.add_argument("-m", "--merges", type=int, default=-1, metavar="N", help="use only the first N merges")
    parser.add_argument(
        "-s",
        "--separator",
        default="@@",
        metavar="S",
        help="marks a piece that is not the end of its word (default: %(default)s)",
    )
    parser.add_argument(
        "--vocabulary",
        metavar="FILE",
        help="split the pieces that are not in this file, made by subword-nmt get-vocab",
    )
    parser.add_argument(
        "--vocabulary-threshold",
        type=int,
        metavar="N",
        help="use only the pieces of the vocabulary that occur at least N times",
    )
    parser.add_argument("--glossaries", nargs="+", metavar="REGEX", help="do not split what these match")


def add_dropout(parser: argparse.ArgumentParser, default: float = 0.0) -> None:
    parser.add_argument(
        "-p",
        "--dropout",
        default=default,
        metavar="P",
        help="the probability that a merge is dropped, from 0 to 1 (default: %(default)s), or a rule that gives each "
        f"merge its own: {FORMS}",
    )


def add_epoch(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument(
        "--epoch", type=int, metavar="N", help=f"{what}; needed for a schedule, which begins with epoch 1"
    )


def dropout_of(options: argparse.Namespace) -> float | Rule:
    try:
        return read_dropout(options.dropout)
    except InputError as error:
        raise InputError(f"-p: {error}") from None


def read_segmenter(options: argparse.Namespace) -> Segmenter:
    segmenter = Segmenter.from_codes(
        options.codes,
        merges=options.merges,
        vocabulary=options.vocabulary,
        vocabulary_threshold=options.vocabulary_threshold,
        glossaries=options.glossaries,
        separator=options.separator,
        end_of_word=options.end_of_word,
    )
    if not options.separator and segmenter.codes.end_of_word:
        raise InputError("with an empty --separator, words could not be told from pieces; it is for --no-end-of-word")
    return segmenter


def run_apply(options: argparse.Namespace) -> None:
    check_threads(options.threads)
    dropout = dropout_of(options)
    if isinstance(dropout, Rule):
        dropout.at(options.epoch)  # an error if it needs one and there is none
    stream = read_segmenter(options).stream(dropout, threads=options.threads)
    name = options.input or "standard input"
    with open_input(options.input) as source, open_output(options.output, *files_read(options, dropout)) as out:
        progress, size = Progress(), size_of(source)
        show = progress.counting("segmenting", "MB", 1e6)
        lines = done = 0
        for block in blocks_of_lines(source):
            try:
                segmented = stream.text(
                    block, options.seed, epoch=options.epoch, side=SIDES[options.side], first_line=lines
                )
            except LineError as error:
                raise InputError(f"{name}, {error}") from None
            write(out, segmented)
            lines += block.count(b"\n")
            done += len(block)
            show(done, size)
        progress.clear()


def files_read(options: argparse.Namespace, dropout: float | Rule) -> list[str | Path]:
    """What `apply` reads, and so does not write over."""
    files = [options.input or "-", options.codes, options.vocabulary]
    if isinstance(dropout, Rule) and dropout.path:
        files.append(Path(options.codes).parent / dropout.path)
    return [file for file in files if file]


def run_learn(options: argparse.Namespace) -> None:
    progress = Progress()
    with open_output(options.output, options.input or "-") as out:
        counts = read_counts(options.input) if options.dict_input else count_words(options.input)
        name = options.input or "standard input"
        try:
            codes = learn(
                counts,
                options.symbols,
                min_frequency=options.min_frequency,
                total_symbols=options.total_symbols,
                progress=progress.counting("learning", "merges"),
            )
            asked = check_learned(codes, counts, options)
            write(out, codes.text().encode())
        except CarriageReturn as error:
            line = find_return(name) if os.path.isfile(name) else None
            raise InputError(f"{name}{f', line {line}' if line else ''}: {error}") from None
        except InputError as error:
            raise InputError(f"{name}: {error}") from None
        progress.clear()
    if len(codes.pairs) < asked:
        print(f"bpe-dropout: {describe_fewer(len(codes.pairs), asked, options.min_frequency)}", file=sys.stderr)


def check_learned(codes: Codes, counts: Mapping[str, int], options: argparse.Namespace) -> int:
    """An error if nothing was learned; gives how many merges were asked for."""
    asked = merges_asked_for(counts, options.symbols, options.total_symbols)
    if asked < 1:
        raise InputError(
            f"its characters alone are {options.symbols - asked} symbols, so there is nothing left to learn; ask for "
            "more --symbols, or leave out --total-symbols"
        )
    if not codes.pairs:
        raise InputError(
            f"no pair of characters occurs {options.min_frequency} times, so there is nothing to learn; take more "
            "text, or a lower --min-frequency"
        )
    return asked


def run_distribution(options: argparse.Namespace) -> None:
    dropout, segmenter = dropout_of(options), read_segmenter(options)
    if options.most is not None:
        check_number("the number of segmentations (-n; 0: all of them)", options.most)
    for word in options.words:
        try:
            outcomes, listed = segmenter.distribution(word, dropout, epoch=options.epoch), True
        except OutOfReach:
            if options.most == 0:
                raise
            best = segmenter.most_probable(word, dropout, options.most or MOST, epoch=options.epoch)
            outcomes, listed = {tuple(pieces): p for pieces, p in best}, False
        if options.json:
            told = {"word": word, "dropout": dropout, **({} if options.epoch is None else {"epoch": options.epoch})}
            print(json.dumps({**told, **as_json(outcomes, options.most, listed)}, ensure_ascii=False, default=str))
        else:
            print_distribution(word, dropout, options, outcomes, listed)


def as_json(outcomes: Outcomes, most: int | None, listed: bool) -> dict[str, Any]:
    """All segmentations, or the most probable of them, and then the probability of all others."""
    shown = list(outcomes.items())[: most or None]
    segmentations = [{"pieces": pieces, "probability": p} for pieces, p in shown]
    others = {} if listed and len(shown) == len(outcomes) else {"others": max(0.0, 1 - sum(p for _, p in shown))}
    return {"segmentations": segmentations, **others}


def print_distribution(
    word: str, dropout: float | Rule, options: argparse.Namespace, outcomes: Outcomes, listed: bool
) -> None:
    """All segmentations, or the most probable of them; `listed` says whether all are known."""
    if listed:
        length = sum(p * len(pieces) for pieces, p in outcomes.items())
        told = f"{len(outcomes)} segmentations, {length:.3f} pieces on average"
    else:
        told = f"too many segmentations to list, the {len(outcomes)} most probable"
    epoch = f" in epoch {options.epoch}" if has_schedule(dropout) else ""
    print(f"{word}  (p = {dropout:g}{epoch}: {told})")
    shown = list(outcomes.items())[: MOST if options.most is None else options.most or None]
    for pieces, p in shown:
        print(f"  {p:11.9f}  {' '.join(pieces)}")
    if not listed:
        print(f"  {1 - sum(outcomes.values()):11.9f}  all others")
    elif len(shown) < len(outcomes):
        rest = sum(p for _, p in list(outcomes.items())[len(shown) :])
        print(f"  {rest:11.9f}  {len(outcomes) - len(shown)} others; -n 0 shows all")


def run_calibrate(options: argparse.Namespace) -> None:
    from .calibration import calibrate

    segmenter, counts = read_segmenter(options), count_words(options.input)
    line = Progress()
    found = calibrate(
        segmenter,
        counts,
        options.ratio,
        rule=options.rule,
        progress=lambda p, ratio: line.show(f"tried {p:.4f}: {ratio:.4f} times"),
    )
    line.clear()
    if options.json:
        print(
            json.dumps(
                {
                    "p": found.p,
                    "rule": str(found.rule),
                    "ratio": found.ratio,
                    "plain_length": found.plain_length,
                    "exact_share": found.exact_share,
                }
            )
        )
        return
    by_frequency = found.rule.kind == "frequency"
    p = f"p = {found.p:.6f}" if found.rule.number is not None else f"{'' if by_frequency else '-p '}{found.rule}"
    print(f"{p} makes this text {found.ratio:.4f} times longer ({found.plain_length} pieces without dropout)")
    if by_frequency:
        print(
            "a rule by frequency is for training (fairseq, PyTorch, Corpus), where there is a text to count merges in"
        )
    if found.exact_share < 1:
        print(f"exact for {found.exact_share:.1%} of the words; the others, rare or long, were drawn at least 8 times")


def size_of(source: BinaryIO) -> int | None:
    try:
        status = os.fstat(source.fileno())
    except (OSError, ValueError):
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


if __name__ == "__main__":
    sys.exit(main())
