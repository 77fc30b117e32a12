"""Transformer base, as configs/ have it for every direction and system of the paper, is built and takes two updates on
a few hundred tokens, on the CPU: so that none of them breaks on the day somebody brings a GPU. `make smoke-base` runs
all 36; `make test` runs three. Dictionaries have the paper's sizes, filled up with pieces that no text has."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from bpe_dropout.cli import main as bpe_dropout
from scripts.arguments import train_arguments
from scripts.corpora import ROOT
from scripts.devices import Devices
from scripts.learn import learn
from scripts.runs import MAIN, Plan, find_targets, plan_run

SOME = ("iwslt15.en-zh.bpe-dropout.base.seed1", "wmt14.de-en.unigram.base.seed1", "aspec.ja-en.bpe.base.seed1")

# Article 1 of the Universal Declaration of Human Rights, in two sentences, which the tests take many times over.
TEXT = {
    "en": [
        "all human beings are born free and equal in dignity and rights .",
        "they are endowed with reason and conscience and should act towards one another in a spirit of brotherhood .",
    ],
    "de": [
        "alle menschen sind frei und gleich an würde und rechten geboren .",
        "sie sind mit vernunft und gewissen begabt und sollen einander im geist der brüderlichkeit begegnen .",
    ],
    "fr": [
        "tous les êtres humains naissent libres et égaux en dignité et en droits .",
        "ils sont doués de raison et de conscience et doivent agir dans un esprit de fraternité .",
    ],
    "vi": [
        "mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm và quyền lợi .",
        "mọi người đều được ban cho lý trí và lương tâm và cần phải đối xử với nhau trong tình anh em .",
    ],
    "ar": [
        "يولد جميع الناس أحرارا متساوين في الكرامة والحقوق .",
        "وقد وهبوا عقلا وضميرا وعليهم أن يعامل بعضهم بعضا بروح الإخاء .",
    ],
    "zh": [
        "人人生而自由，在尊严和权利上一律平等。",
        "他们赋有理性和良心，并应以兄弟关系的精神相对待。",
    ],
    "ja": [
        "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。",
        "人間は、理性と良心とを授けられており、互いに同胞の精神をもって行動しなければならない。",
    ],
}


def pytest_generate_tests(metafunc):
    targets = find_targets()
    every = [run.name for name in MAIN for run in targets[name].runs]
    assert set(SOME) < set(every)
    metafunc.parametrize("name", every if metafunc.config.getoption("--all-directions") else SOME)


def make_folder(plan: Plan, folder: Path) -> Path:
    for split, times in (("train", 4), ("valid", 1)):
        for language in plan.corpus.pair:
            (folder / f"{split}.{language}").write_text("".join(f"{line}\n" for line in TEXT[language] * times))
    options = []
    for side, language in zip(("src", "tgt"), plan.corpus.pair, strict=True):
        method, name = plan.method.method, plan.method.method.given
        characters = {piece for word in " ".join(TEXT[language]).split() for piece in (*word[:-1], f"{word[-1]} ")}
        learn(method, folder / f"train.{language}", len(characters) + 20, folder / f"{name}.{language}", 1)
        options += [f"--{side}-{name}", str(folder / f"{name}.{language}")]
    source, target = plan.corpus.pair
    texts = ["--trainpref", str(folder / "train"), "--validpref", str(folder / "valid")]
    data = folder / "DATA"
    assert bpe_dropout(["data", "-s", source, "-t", target, *texts, *options, "--destdir", str(data)]) == 0
    for language, size in plan.vocabularies.items():
        path = data / f"dict.{language}.txt"
        pieces = [line for line in path.read_text().splitlines() if not line.startswith("madeupword")]
        filled = [f"filled{number} 0" for number in range(size - len(pieces))]
        path.write_text("".join(f"{line}\n" for line in (*pieces, *filled)))
    return data


def test_two_updates(name, tmp_path):
    plan = plan_run(next(run for target in find_targets().values() for run in target.runs if run.name == name))
    arguments = train_arguments(plan, make_folder(plan, tmp_path), tmp_path / "out", Devices())
    command = [str(Path(sys.executable).parent / "fairseq-train"), *arguments, "--max-update", "2", "--no-save"]
    command += ["--log-interval", "1", "--num-workers", "0", "--validate-interval-updates", "2"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout[-3000:]
    losses = [float(loss) for loss in re.findall(r'\| train_inner \| .*?"loss": "([\d.]+)"', done.stdout)]
    assert len(losses) == 2
    assert all(0 < loss < 30 for loss in losses)
    assert re.search(r'\| valid \| .*"valid_bleu": "[\d.]+"', done.stdout)
    parameters = int(re.search(r"num\. shared model params: ([\d,]+)", done.stdout)[1].replace(",", ""))
    # 6 + 6 layers of 512 and 2048 dimensions, and an embedding for each side, the target's for the softmax, too.
    sizes = {language: plan.vocabularies[language] + 4 for language in plan.corpus.pair}
    assert parameters == 44_138_496 + 512 * sum(sizes.values())
    shutil.rmtree(tmp_path)
