"""How long it takes to translate the test set (section 5.5, table 4).

The model is loaded once, and the whole test set translated again and again, as fairseq-generate does it; the first time
does not count, since it warms up. REPEATS says how often (10; the paper: 1000). Reading and segmenting the text is not
in it. Times are of one machine: a table divides them by the smallest.
python -m experiments.analysis.timing RUN --folder DATA --checkpoint FILE --output FILE
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from bpe_dropout import InputError
from scripts.devices import Devices, environment_of, one_device
from scripts.generate import generate_arguments
from scripts.machine import machine
from scripts.runs import Plan
from scripts.stage import Reporter

from .measurement import begin, record


def main() -> None:
    plan, options = begin("timing", __doc__)
    repeats = read_repeats(os.environ.get("REPEATS") or "10")
    devices = one_device()
    if threads := environment_of(plan, devices).get("OMP_NUM_THREADS"):
        torch.set_num_threads(int(threads))  # as many as fairseq-generate has
    translate = load(plan, options.folder, options.checkpoint, devices)
    found = measure(translate, repeats, f"{plan.run.name}: ")
    record("timing", plan, options, {**found, "machine": machine()})


def read_repeats(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise InputError(f"REPEATS is a number of translations from 1 on, not {text}")
    return int(text)


def measure(translate: Callable[[], int], repeats: int, of: str = "") -> dict[str, Any]:
    """`translate` translates everything, and says how many pieces that were."""
    report = Reporter()
    pieces = translate()
    times = []
    for number in range(repeats):
        begin = time.perf_counter()
        translate()
        times.append(time.perf_counter() - begin)
        mean = statistics.fmean(times)
        report.show(f"{of}translated the test set {number + 1} of {repeats} times, in {mean:.2f} s each")
    report.clear()
    spread = statistics.stdev(times) if repeats > 1 else 0.0
    return {"seconds": statistics.fmean(times), "deviation": spread, "repeats": repeats, "pieces": pieces}


def load(plan: Plan, folder: Path, checkpoint: Path, devices: Devices) -> Callable[[], int]:
    """What fairseq-generate does before and while it translates, without what it prints."""
    from fairseq import options, tasks, utils
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf

    from fairseq_plugins.translation import load_models

    parser = options.get_generation_parser()
    arguments = generate_arguments(plan, folder, checkpoint, devices)
    config = convert_namespace_to_omegaconf(options.parse_args_and_arch(parser, arguments))
    task = tasks.setup_task(config.task)
    models, saved = load_models(config, task, on_gpu=bool(devices.gpus))
    subset = config.dataset.gen_subset
    task.load_dataset(subset, task_cfg=saved.task)
    generator = task.build_generator(models, config.generation)
    batches = task.get_batch_iterator(
        dataset=task.dataset(subset),
        max_tokens=config.dataset.max_tokens,
        max_positions=utils.resolve_max_positions(task.max_positions(), *(model.max_positions() for model in models)),
        required_batch_size_multiple=config.dataset.required_batch_size_multiple,
    ).next_epoch_itr(shuffle=False)
    samples = [utils.move_to_cuda(batch) if devices.gpus else batch for batch in batches]

    def translate() -> int:
        pieces = 0
        for sample in samples:
            for hypotheses in task.inference_step(generator, models, sample):
                pieces += len(hypotheses[0]["tokens"])
        return pieces

    return translate


if __name__ == "__main__":
    main()
