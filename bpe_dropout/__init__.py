"""BPE-dropout (Provilkov et al., 2020): Algorithm 1, sampled exactly, at the speed of a table look-up.

>>> from bpe_dropout import Segmenter
>>> segmenter = Segmenter.from_codes("codes")
>>> segmenter.segment("unrelated words")
['un@@', 'related', 'words']
>>> segmenter.segment("unrelated words", dropout=0.1, seed=7)
['un@@', 'rel@@', 'ated', 'words']

Needs numpy and the compiled core; neither torch nor fairseq.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .codes import Codes, read_vocabulary
from .errors import InputError
from .rules import Rule
from .segmenter import Segmenter

if TYPE_CHECKING:
    from .calibration import Calibration, calibrate
    from .corpus import Corpus, Ragged, Sampler
    from .dictionary import Dictionary
    from .draws import choose, first_bits
    from .learning import learn
    from .lists import BoundedSampler
    from .merge_counts import count_merges
    from .most_probable import MostProbable

__all__ = [
    "BoundedSampler",
    "Calibration",
    "Codes",
    "Corpus",
    "Dictionary",
    "InputError",
    "MostProbable",
    "Ragged",
    "Rule",
    "Sampler",
    "Segmenter",
    "calibrate",
    "choose",
    "count_merges",
    "first_bits",
    "learn",
    "read_vocabulary",
]

__version__: str

# What needs numpy is imported when it is first asked for: `import bpe_dropout` takes milliseconds.
_LATER = {
    "Calibration": "calibration",
    "calibrate": "calibration",
    "Corpus": "corpus",
    "Ragged": "corpus",
    "Sampler": "corpus",
    "Dictionary": "dictionary",
    "choose": "draws",
    "first_bits": "draws",
    "learn": "learning",
    "BoundedSampler": "lists",
    "MostProbable": "most_probable",
    "count_merges": "merge_counts",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return _version()
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_LATER[name]}", __name__), name)


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("bpe-dropout")
    except PackageNotFoundError:
        return "unknown"  # on the path, but not installed
