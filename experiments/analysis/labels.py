"""What runs, methods and languages are called in a table."""

from __future__ import annotations

from pathlib import Path

from bpe_dropout import InputError
from scripts.runs import Run, plan_run, read_method

LANGUAGES = {
    "ar": "Arabic",
    "de": "German",
    "en": "English",
    "fr": "French",
    "ja": "Japanese",
    "vi": "Vietnamese",
    "zh": "Chinese",
}


def language_title(code: str) -> str:
    return LANGUAGES.get(code, code)


def direction_title(run: Run) -> str:
    """
    >>> direction_title(Run("iwslt15", "en", "vi", "bpe", "base"))
    'En-Vi'
    """
    return f"{run.source.capitalize()}-{run.target.capitalize()}"


def system_title(run: Run, configs: Path) -> str:
    try:
        title = read_method(run.method, configs).title
    except InputError:
        title = run.method
    ps = [f"{p / 100:g}" for p in (run.p, run.target_p) if p is not None]
    return f"{title}, p = {' / '.join(ps)}" if ps else title


def text_title(run: Run, configs: Path) -> str:
    """demo En-Fr, 4k pairs, 500 pieces, cased"""
    more = [f"{run.subset} pairs"] if run.subset else []
    sizes = vocabulary_title(run, configs)
    more += [f"{sizes} pieces"] if sizes else []
    more += ["cased"] if run.cased else []
    return ", ".join([f"{run.dataset} {direction_title(run)}", *more])


def vocabulary_title(run: Run, configs: Path) -> str:
    """
    >>> from scripts.corpora import CONFIGS
    >>> vocabulary_title(Run.parse("iwslt15.en-zh.bpe.base.seed1"), CONFIGS)
    '4k / 16k'
    """
    try:
        sizes = plan_run(run, configs).vocabularies
    except InputError:  # a run whose corpus is no longer there
        return short(run.vocabulary) if run.vocabulary else ""
    return " / ".join(dict.fromkeys(short(sizes[one]) for one in (run.source, run.target)))


def group_title(run: Run, configs: Path) -> str:
    """demo En-Fr, 1k pieces (small, seed 1)"""
    return f"{text_title(run, configs)} ({model_title(run)})"


def model_title(run: Run) -> str:
    return f"{run.model}, seed {run.seed}"


def short(number: int) -> str:
    """
    >>> short(4000), short(500), short(133317), short(16000000)
    ('4k', '500', '133k', '16m')
    """
    if number >= 1_000_000:
        return f"{number / 1e6:.3g}m"
    return f"{number / 1000:.3g}k" if number >= 1000 else str(number)
