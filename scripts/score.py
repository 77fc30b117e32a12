"""Scores a run's translations of a test set, and writes its result: python -m scripts.score RUN --test-set NAME ...

BLEU as the paper has it: SacreBLEU on detokenized text against the untokenized references, lowercased (mixed case for
runs on cased text), tokenized as 13a, `zh` for Chinese, characters for Japanese; its signature is kept. chrF beside it.
Writes result.json: scores, signatures, BLEU on resampled test sets (scripts/resampling.py), the whole configuration,
what the training came to, and on which machine.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sacrebleu.metrics import BLEU, CHRF

from bpe_dropout import InputError

from .resampling import resample, write_scores
from .runs import Plan
from .stage import Stage, plan_of, read_json, testset_of, write_json


def main() -> None:
    stage = Stage(__doc__)
    stage.add_run()
    stage.add_testset()
    stage.add_argument("--references", type=Path, required=True, metavar="FILE", help="the untokenized test text")
    stage.add_argument("--translations", type=Path, required=True, metavar="FILE", help="test.txt of scripts.generate")
    stage.add_argument("--training", type=Path, required=True, metavar="FILE", help="training.json of scripts.train")
    stage.add_argument("--counts", type=Path, required=True, metavar="FILE", help="counts.json of the words")
    stage.add_argument("--vocabularies", type=Path, nargs="*", default=[], metavar="FILE", help="of scripts.learn")
    stage.add_argument("--output", type=Path, required=True, metavar="FILE", help="result.json")
    options = stage.parse_args()
    plan = plan_of(options)
    testset_of(options)  # there is one
    hypotheses, references = read_both(options.translations, options.references)
    training = read_json(options.training)
    result = {
        "run": plan.run.name,
        "group": plan.run.group,
        "test set": options.test_set,
        **score(plan, hypotheses, references),
        "resampled bleu": write_scores(resample(bleu_of(plan), tokenization_of(plan), hypotheses, references)),
        "updates": training["updates"],
        "length ratios": training["length ratios"],
        "unk shares": training["unk shares"],
        "configuration": plan.settings(),
        "scoring": plan.scoring(options.test_set, options.configs),
        "text": read_json(options.counts),
        "vocabularies": {path.name.removesuffix(".json"): read_json(path) for path in options.vocabularies},
        "training": training,
        "generation": read_json(options.translations.with_name("generation.json")),
        "versions": training.pop("versions"),
        "machine": training.pop("machine"),
    }
    write_json(options.output, result)
    print(f"{plan.run.name}, {options.test_set}: BLEU {result['bleu']:.2f}, chrF {result['chrf']:.2f}", flush=True)


def read_both(translations: Path, references: Path) -> tuple[list[str], list[str]]:
    texts = [path.read_text("utf-8").removesuffix("\n").split("\n") for path in (translations, references)]
    if len(texts[0]) != len(texts[1]):
        raise InputError(f"{translations} has {len(texts[0])} lines and {references} has {len(texts[1])}")
    return texts[0], texts[1]


def bleu_of(plan: Plan) -> BLEU:
    return BLEU(lowercase=not plan.run.cased, tokenize=tokenization_of(plan))


def tokenization_of(plan: Plan) -> str:
    return plan.corpus.languages[plan.run.target].bleu


def score(plan: Plan, hypotheses: list[str], references: list[str]) -> dict[str, Any]:
    bleu, chrf = bleu_of(plan), CHRF(lowercase=not plan.run.cased)
    found, found_chrf = bleu.corpus_score(hypotheses, [references]), chrf.corpus_score(hypotheses, [references])
    return {
        "bleu": found.score,
        "bleu signature": str(bleu.get_signature()),
        "bleu details": str(found),
        "chrf": found_chrf.score,
        "chrf signature": str(chrf.get_signature()),
    }


if __name__ == "__main__":
    main()
