"""Translates a test set with a run's model: python -m scripts.generate RUN --test-set NAME --folder DATA --checkpoint
FILE --output FOLDER

fairseq-generate with beam 4 and lenpen 0.6, the paper's numbers, on plain BPE (or the best segmentation of a unigram
model). Writes FOLDER/test.words, the model's words, FOLDER/test.txt, the same detokenized, one translation per line in
the order of the test set, and generation.json, with the distribution of their lengths in pieces and the versions of
what has made them. A test set whose text is changed is made first, in FOLDER/data.

fairseq divides a translation's log probability by length^0.6; Vaswani et al. (2017), who have 0.6, too, divide it by
((5 + length) / 6)^0.6, which favours long translations less. The paper does not say which of them it means.
"""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from pathlib import Path

from bpe_dropout import InputError
from bpe_dropout.data.folder import DataFolder
from bpe_dropout.data.preparation import read_preparation
from bpe_dropout.files import clean_up_on_sigterm, whole

from .arguments import common_arguments, without_place
from .commands import run_logged
from .devices import Devices, environment_of, one_device
from .machine import versions, weights_of
from .runs import BEAM, LENPEN, Plan
from .stage import Reporter, Stage, plan_of, testset_of, write_json
from .testsets import TestSet, change_folder

SUBSET = "test"


def main() -> None:
    stage = Stage(__doc__)
    stage.add_run()
    stage.add_testset()
    stage.add_argument("--folder", type=Path, required=True, metavar="DATA", help="its data folder")
    stage.add_argument("--checkpoint", type=Path, required=True, metavar="FILE", help="the averaged checkpoint")
    stage.add_argument("--output", type=Path, required=True, metavar="FOLDER", help="where translations go")
    options = stage.parse_args()
    clean_up_on_sigterm()  # what it started ends, too
    plan = plan_of(options)
    generate(plan, testset_of(options), options.folder, options.checkpoint, options.output, one_device())


def generate(plan: Plan, testset: TestSet, folder: Path, checkpoint: Path, output: Path, devices: Devices) -> None:
    folder, change = change_folder(testset, folder, output / "data", plan.run.source)
    data = DataFolder(folder, plan.run.source, plan.run.target)
    sentences = count_lines(data.text(SUBSET, plan.run.source))
    printed = output / f"{SUBSET}.generated"
    report = Reporter()

    def tick() -> None:
        if report.is_due:
            report.show(f"{plan.run.name}: translated {count_lines(printed, b'H-')} of {sentences} sentences")

    begin = time.monotonic()
    arguments = generate_arguments(plan, folder, checkpoint, devices)
    command = [str(Path(sys.executable).parent / "fairseq-generate"), *arguments]
    run_logged(command, output / "generate.log", environment=environment_of(plan, devices), output=printed, tick=tick)
    report.clear()
    text = printed.read_text("utf-8")
    words = read_hypotheses(text)
    if sorted(words) != list(range(sentences)):
        raise InputError(f"{printed} has {len(words)} translations of {sentences} sentences; remove it and try again")
    preparation = read_preparation(folder, plan.run.target)
    for name, lines in (
        (f"{SUBSET}.words", [words[number] for number in range(sentences)]),
        (f"{SUBSET}.txt", [preparation.restore(words[number]) for number in range(sentences)]),
    ):
        with whole(output / name) as part:
            part.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    lengths = read_lengths(text)
    took = re.findall(r"Translated .*? in ([\d.]+)s", (output / "generate.log").read_text("utf-8"))
    record = {
        "beam": BEAM,
        "lenpen": LENPEN,
        "model": weights_of(checkpoint),
        "sentences": sentences,
        "pieces": sum(length * count for length, count in lengths.items()),
        "lengths": lengths,
        "seconds of translating": float(took[-1]) if took else None,
        "seconds in all": round(time.monotonic() - begin, 2),
        "fairseq-generate": without_place(arguments),
        "versions": versions(),
        **({"change": change} if change else {}),
    }
    write_json(output / "generation.json", record)
    print(f"{plan.run.name}: translated {sentences} sentences in {record['seconds in all']} s", flush=True)


def generate_arguments(plan: Plan, folder: Path, checkpoint: Path, devices: Devices) -> list[str]:
    return [
        *common_arguments(plan, folder),
        *("--path", str(checkpoint), "--gen-subset", SUBSET, "--beam", str(BEAM), "--lenpen", str(LENPEN)),
        *(
            "--remove-bpe",
            plan.method.method.symbol,
            "--max-tokens",
            str(plan.model.tokens_at_once),
            "--no-progress-bar",
        ),
        *(["--fp16"] if devices.gpus else ["--cpu"]),
    ]


def read_hypotheses(text: str) -> dict[int, str]:
    """The words of each sentence, by its number.

    >>> read_hypotheses("S-1 x\\nH-1\\t-0.5\\tein haus\\nD-1\\t-0.5\\tein haus\\n")
    {1: 'ein haus'}
    """
    lines = (line.split("\t", 2) for line in text.split("\n") if line.startswith("H-"))
    return {int(number[2:]): words for number, _, words in lines}


def read_lengths(text: str) -> dict[int, int]:
    """How many translations have how many pieces. fairseq gives a score to each piece and to the end.

    >>> read_lengths("P-1\\t-0.5 -0.1 -0.2\\nP-0\\t-0.3 -0.4\\nP-2\\t-0.1 -0.1\\n")
    {1: 2, 2: 1}
    """
    lines = (line.split("\t")[1] for line in text.split("\n") if line.startswith("P-"))
    return dict(sorted(Counter(len(line.split()) - 1 for line in lines).items()))


def count_lines(path: Path, prefix: bytes = b"") -> int:
    with path.open("rb") as file:
        return sum(line.startswith(prefix) for line in file)


if __name__ == "__main__":
    main()
