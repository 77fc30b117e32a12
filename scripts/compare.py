"""Compares systems on a test set by paired bootstrap, SacreBLEU's own:
python -m scripts.compare RUN ... --results FILE ... --output FILE

Every two systems of a group are compared, on 1000 resampled test sets. Writes for each pair the difference of BLEU, the
probability that chance alone would have made it (p, of one tail, as SacreBLEU has it; 1 if the scores are equal), and
whether that is below 0.05; and the best system with those that are not significantly worse, which is what the paper
prints in bold.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import sacrebleu
from sacrebleu.significance import PairedTest

from bpe_dropout import InputError

from .kept import translations_of
from .resampling import SAMPLES
from .runs import Run, plan_run
from .score import bleu_of, read_both
from .stage import Stage, read_json, testset_of, write_json

LEVEL = 0.05
EQUAL = 1e-9  # a difference of scores that is none


def main() -> None:
    stage = Stage(__doc__)
    stage.add_argument("runs", nargs="+", metavar="RUN", help="runs of one group")
    stage.add_argument(
        "--results",
        type=Path,
        nargs="+",
        required=True,
        metavar="FILE",
        help="of each run: result.json, or the copy of it in experiments/results, with its translations",
    )
    stage.add_testset()
    stage.add_argument("--references", type=Path, required=True, metavar="FILE", help="the untokenized test text")
    stage.add_argument("--output", type=Path, required=True, metavar="FILE", help="the comparison")
    stage.add_configs()
    options = stage.parse_args()
    runs = [Run.parse(name) for name in options.runs]
    if len({run.group for run in runs}) != 1:
        raise InputError("only runs that differ in nothing but their method can be compared")
    plan = plan_run(runs[0], options.configs)
    testset_of(options)  # there is one
    if len(options.results) != len(runs):
        raise InputError(f"{len(runs)} runs need as many results, and {len(options.results)} are given")
    results = {run.name: read_json(result) for run, result in zip(runs, options.results, strict=True)}
    check_texts(results)
    texts, references, scores = {}, list[str](), {}
    for run, result in zip(runs, options.results, strict=True):
        texts[run.name], references = read_both(translations_of(result), options.references)
        scores[run.name] = results[run.name]["bleu"]
        found = bleu_of(plan).corpus_score(texts[run.name], [references]).score
        if abs(found - scores[run.name]) > EQUAL:
            raise InputError(
                f"{translations_of(result)} has a BLEU of {found:.2f}, and {result} says {scores[run.name]:.2f}: they "
                f"are not of the same translations. Remove both, and `make {run.name}`"
            )
    head = {"group": runs[0].group, "test set": options.test_set, "bleu": scores}
    comparison = {**head, **compare(texts, references, bleu_of(plan), scores)}
    write_json(options.output, comparison)


def check_texts(results: dict[str, Any]) -> None:
    """An error if two systems were trained on other text, as on two machines that have not drawn the same part of a
    corpus, say. Results have a checksum of each file that the training read; merges and dictionaries may differ."""
    seen = dict[str, tuple[str, str]]()
    for run, result in results.items():
        for file, found in result.get("training", {}).get("data", {}).items():
            first, there = seen.setdefault(file, (run, found))
            if file.startswith(("train.", "valid.")) and found != there:
                raise InputError(
                    f"{first} and {run} were not trained on the same text: {file} differs. Remove the result that is "
                    f"of another text, and `make` it again"
                )


def compare(texts: dict[str, list[str]], references: list[str], bleu: Any, scores: dict[str, float]) -> dict[str, Any]:
    pairs = []
    signature = ""
    for first, second in itertools.combinations(texts, 2):
        test = PairedTest(
            [(first, texts[first]), (second, texts[second])],
            {"BLEU": bleu},
            [references],
            test_type="bs",
            n_samples=SAMPLES,
        )
        signatures, results = test()
        signature = str(signatures["BLEU"])
        difference = scores[second] - scores[first]
        # Chance makes a difference of 0 or more every time. SacreBLEU says 1/1001 where all resampled scores are equal.
        p = results["BLEU"][1].p_value if abs(difference) > EQUAL else 1.0
        pairs.append({"systems": [first, second], "difference": difference, "p": p, "significant": p < LEVEL})
    return {"signature": signature, "pairs": pairs, "best": best(scores, pairs), "sacrebleu": sacrebleu.__version__}


def best(scores: dict[str, float], pairs: list[dict[str, Any]]) -> list[str]:
    """The best system, and those whose difference from it is not significant."""
    top = max(scores, key=lambda name: scores[name])
    worse = {name for pair in pairs if top in pair["systems"] and pair["significant"] for name in pair["systems"]}
    return [name for name in scores if name == top or name not in worse]


if __name__ == "__main__":
    main()
