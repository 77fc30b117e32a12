"""Scores the translations of a run, and writes its result: python -m scripts.score RUN --references FILE ...

BLEU as the paper has it: SacreBLEU on detokenized text against the untokenized references, lowercased (mixed case for
runs on cased text), tokenized as 13a, `zh` for Chinese, characters for Japanese; its signature is kept. chrF beside it.
Writes result.json: scores, signatures, the whole configuration, what the training came to, versions and the machine.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

from sacrebleu.metrics import BLEU, CHRF

from bpe_dropout import InputError

from .corpora import ROOT
from .runs import Plan
from .stage import Stage, plan_of, read_json, write_json

PACKAGES = ("bpe-dropout", "fairseq-fixed", "torch", "numpy", "subword-nmt", "sentencepiece", "sacremoses", "sacrebleu")


def main() -> None:
    stage = Stage(__doc__)
    stage.add_run()
    stage.add_argument("--references", type=Path, required=True, metavar="FILE", help="the untokenized test text")
    stage.add_argument("--translations", type=Path, required=True, metavar="FILE", help="test.txt of scripts.generate")
    stage.add_argument("--counts", type=Path, required=True, metavar="FILE", help="counts.json of the words")
    stage.add_argument("--vocabularies", type=Path, nargs="*", default=[], metavar="FILE", help="of scripts.learn")
    stage.add_argument("--output", type=Path, required=True, metavar="FILE", help="result.json")
    options = stage.parse()
    plan = plan_of(options)
    hypotheses, references = read_both(options.translations, options.references)
    folder = options.translations.parent
    training = read_json(folder / "training.json")
    result = {
        "run": plan.run.name,
        "group": plan.run.group,
        **score(plan, hypotheses, references),
        "updates": training["updates"],
        "length ratios": training["length ratios"],
        "unk shares": training["unk shares"],
        "configuration": plan.settings(),
        "text": read_json(options.counts),
        "vocabularies": {path.name.removesuffix(".json"): read_json(path) for path in options.vocabularies},
        "training": training,
        "generation": read_json(folder / "generation.json"),
        "versions": versions(),
        "machine": machine(),
    }
    write_json(options.output, result)
    print(f"{plan.run.name}: BLEU {result['bleu']:.2f}, chrF {result['chrf']:.2f}", flush=True)


def read_both(translations: Path, references: Path) -> tuple[list[str], list[str]]:
    texts = [path.read_text("utf-8").removesuffix("\n").split("\n") for path in (translations, references)]
    if len(texts[0]) != len(texts[1]):
        raise InputError(f"{translations} has {len(texts[0])} lines and {references} has {len(texts[1])}")
    return texts[0], texts[1]


def bleu_of(plan: Plan) -> BLEU:
    return BLEU(lowercase=not plan.run.cased, tokenize=plan.corpus.languages[plan.run.target].bleu)


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


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    done = subprocess.run(
        ["git", "-C", str(ROOT), "describe", "--always", "--dirty"], capture_output=True, text=True, check=False
    )
    return {**found, "commit": done.stdout.strip() or "unknown"}


def machine() -> dict[str, Any]:
    import torch

    gpus = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
    return {"system": platform.system(), "processor": processor(), "cores": os.cpu_count(), "gpus": gpus}


def processor() -> str:
    """The name of the processor; of a virtual one, what it says of itself."""
    info = Path("/proc/cpuinfo")
    names = (
        [line.split(":", 1)[1].strip() for line in info.read_text().split("\n") if line.startswith("model name")]
        if info.exists()
        else []
    )
    return names[0] if names else platform.processor() or platform.machine()


if __name__ == "__main__":
    main()
