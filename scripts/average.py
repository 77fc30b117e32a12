"""Averages the last checkpoints of a training: python -m scripts.average training.json --output FILE

Which they are stands in training.json: the five latest (the paper averages five), up to where the training stopped.
"""

from __future__ import annotations

from pathlib import Path

import torch

from fairseq_plugins.averaging import average_states

from .stage import Stage, read_json, whole


def main() -> None:
    stage = Stage(__doc__)
    stage.add_argument("training", type=Path, metavar="FILE", help="training.json of scripts.train")
    stage.add_argument("--output", type=Path, required=True, metavar="FILE", help="the average")
    options = stage.parse()
    paths = [options.training.parent / name for name in read_json(options.training)["checkpoints"]]
    state = average_states(paths)
    with whole(options.output) as part:
        torch.save(state, part)
    print(f"{options.output}: the average of {', '.join(path.name for path in paths)}", flush=True)


if __name__ == "__main__":
    main()
