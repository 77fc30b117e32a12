"""Averages the checkpoints of a training: python -m scripts.average training.json --output FILE

Which they are is in training.json: the five latest, as the paper has it, or the five in a row with the best mean dev
BLEU, as the model's file in configs/models says. Then all checkpoints are removed, unless --keep-checkpoints is given.
The average and the record of the training are also in the folder `finished` beside them, so that neither stage ever has
to be done again (scripts/finished.py).
"""

from __future__ import annotations

from pathlib import Path

from bpe_dropout.averaging import average

from .finished import finish, restore_average
from .stage import Stage, read_json


def main() -> None:
    stage = Stage(__doc__)
    stage.add_argument("training", type=Path, metavar="FILE", help="training.json of scripts.train")
    stage.add_argument("--output", type=Path, required=True, metavar="FILE", help="the average")
    stage.add_argument("--keep-checkpoints", action="store_true", help="do not remove any")
    options = stage.parse_args()
    folder = options.training.parent
    if restore_average(folder, options.training, options.output):
        return
    average([folder / name for name in read_json(options.training)["checkpoints"]], options.output)
    if not options.keep_checkpoints:
        finish(folder, options.training, options.output)


if __name__ == "__main__":
    main()
