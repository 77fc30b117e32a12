"""A user dir for the tests: the plugin, and a criterion that writes down what it is given.

Every batch of the trainer becomes a line of JSON in $RECORD/RANK.jsonl: whether it is for training, the numbers of its
pairs, and their tokens without padding. A process that is killed may leave half a line.
"""

import json
import os
from pathlib import Path

import torch
from fairseq.criterions import register_criterion
from fairseq.criterions.label_smoothed_cross_entropy import (
    LabelSmoothedCrossEntropyCriterion,
    LabelSmoothedCrossEntropyCriterionConfig,
)

import fairseq_plugins  # noqa: F401


@register_criterion("recording", dataclass=LabelSmoothedCrossEntropyCriterionConfig)
class RecordingCriterion(LabelSmoothedCrossEntropyCriterion):
    def forward(self, model, sample, reduce=True):
        loss, size, logged = super().forward(model, sample, reduce)
        rank = torch.distributed.get_rank() if torch.distributed.is_initialized() else 0
        record = {
            "training": model.training,
            "id": sample["id"].tolist(),
            "source": unpadded(sample["net_input"]["src_tokens"]),
            "target": unpadded(sample["target"]),
            "shape": [*sample["net_input"]["src_tokens"].shape, *sample["target"].shape],
            "loss": loss.item(),
            "plain": sample.get("pieces"),
        }
        with (Path(os.environ["RECORD"]) / f"{rank}.jsonl").open("a") as file:
            file.write("\n" + json.dumps(record))
        return loss, size, logged


def unpadded(tokens):
    return [[token for token in line if token != 1] for line in tokens.tolist()]
