"""python -m fairseq_plugins            prints the folder to name as fairseq's --user-dir
python -m fairseq_plugins average       averages checkpoints
python -m fairseq_plugins translate     translates text, reading it in several segmentations
python -m fairseq_plugins data | convert | dictionary    the same as bpe-dropout data | convert | dictionary
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bpe_dropout import InputError
from bpe_dropout.files import clean_up_on_sigterm, describe

TRANSLATE = """Translates text, one sentence per line, reading each sentence in several segmentations. For example

  python -m fairseq_plugins translate DATA --path checkpoints/average.pt --beam 4 < text > translations
  python -m fairseq_plugins translate DATA --path checkpoints/average.pt --beam 4 --segmentations 16 < text

A model that was trained with BPE-dropout, or with --bpe unigram_regularization, can read a sentence in any
segmentation. With --segmentations K it translates the K most probable ones, and takes the translation with the best
score; or it reads them all at once. One segmentation is plain BPE, as in fairseq-interactive, whose options can all be
given, too."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = make_parser()
    options, others = parser.parse_known_args(arguments)
    takes_others = getattr(options, "takes_others", False)
    if others and not takes_others:
        parser.error(f"unrecognized arguments: {' '.join(others)}")
    if not hasattr(options, "run"):
        print(Path(__file__).parent)
        return 0
    clean_up_on_sigterm()
    try:
        options.run(options, *([others] if takes_others else []))
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
    from bpe_dropout.averaging import average
    from bpe_dropout.data.commands import add_commands

    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m fairseq_plugins", description=__doc__, formatter_class=plain)
    commands = parser.add_subparsers(metavar="COMMAND")

    add_commands(commands)

    averaging = commands.add_parser(
        "average",
        help="average checkpoints",
        description="Averages checkpoints, and says which. For example\n\n"
        "  python -m fairseq_plugins average --last 5 checkpoints --output checkpoints/average.pt\n"
        "  python -m fairseq_plugins average a.pt b.pt --output ab.pt",
        formatter_class=plain,
    )
    averaging.add_argument(
        "checkpoints", nargs="+", type=Path, metavar="PATH", help="checkpoints, or with --last their folder"
    )
    averaging.add_argument("--last", type=int, metavar="N", help="the last N of a folder")
    averaging.add_argument(
        "--by",
        choices=("epoch", "update"),
        default="epoch",
        help="the last by epoch (checkpoint7.pt) or by update (checkpoint_3_1500.pt) (default: %(default)s)",
    )
    averaging.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE", help="the average, written whole or not at all"
    )
    averaging.set_defaults(run=lambda options: average(options.checkpoints, options.output, options.last, options.by))
    add_translate(commands, plain)
    return parser


def add_translate(commands: Any, formatter: Any) -> None:
    translating = commands.add_parser(
        "translate",
        help="translate text, reading it in several segmentations",
        usage="%(prog)s DATA --path FILE [--segmentations K] [...] [options of fairseq-interactive]",
        description=TRANSLATE,
        formatter_class=formatter,
        allow_abbrev=False,
    )
    translating.add_argument(
        "--segmentations", type=int, default=1, metavar="K", help="read the K most probable segmentations (default: 1)"
    )
    translating.add_argument(
        "--combine",
        choices=("score", "average"),
        default="score",
        help="take the translation with the best score, or average the next token's probabilities (default: score)",
    )
    translating.add_argument(
        "--draws", action="store_true", help="read K segmentations that are drawn, with --seed, not the most probable"
    )
    translating.add_argument(
        "-p", "--dropout", metavar="P",
        help="the p of their probabilities, or a rule such as rank:0.05..0.2 (default: as the model was trained; 0.1 "
        "if without dropout)",
    )  # fmt: skip
    translating.add_argument(
        "--words", action="store_true", help="the input is words as in the data folder, and so is the output"
    )
    translating.add_argument(
        "-o", "--output", metavar="FILE", help="translations, written whole or not at all (default: standard output)"
    )

    def run(options: argparse.Namespace, others: list[str]) -> None:
        from . import translation

        translation.translate(options, others)

    translating.set_defaults(run=run, takes_others=True)


if __name__ == "__main__":
    sys.exit(main())
