"""Averages the last checkpoints of a training: python -m scripts.average training.json --output FILE

Which they are stands in training.json: the five latest (the paper averages five), up to where the training stopped.
"""

from __future__ import annotations

from pathlib import Path

from fairseq_plugins.averaging import average

from .stage import Stage, read_json


def main() -> None:
    stage = Stage(__doc__)
    stage.add_argument("training", type=Path, metavar="FILE", help="training.json of scripts.train")
    stage.add_argument("--output", type=Path, required=True, metavar="FILE", help="the average")
    options = stage.parse_args()
    paths = [options.training.parent / name for name in read_json(options.training)["checkpoints"]]
    average(paths, options.output)


if __name__ == "__main__":
    main()
