"""python -m fairseq_plugins            prints the folder to name as fairseq's --user-dir
python -m fairseq_plugins average       averages checkpoints
python -m fairseq_plugins data | convert | dictionary    the same as bpe-dropout data | convert | dictionary
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from bpe_dropout import InputError
from bpe_dropout.files import clean_up_on_sigterm, describe


def main(arguments: Sequence[str] | None = None) -> int:
    options = make_parser().parse_args(arguments)
    if not hasattr(options, "run"):
        print(Path(__file__).parent)
        return 0
    clean_up_on_sigterm()
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
    from bpe_dropout.data.commands import add_commands

    from .averaging import average

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
    return parser


if __name__ == "__main__":
    sys.exit(main())
