"""BPE-dropout in fairseq: `fairseq-train DATA --user-dir fairseq_plugins --bpe bpe_dropout --arch transformer ...`

Importing this registers the methods as BPEs, `bpe_dropout` and `unigram_regularization`, the tokenizer `characters`,
and the task `translation_bpe_dropout`, which also takes the place of fairseq's `translation`; and it fixes how fairseq
loads and saves checkpoints. All that it replaces in fairseq and torch is listed in patches.py. `python -m
fairseq_plugins` prints the folder to name as --user-dir.
"""

try:
    import fairseq  # noqa: F401
except ImportError as error:
    raise ImportError(
        "fairseq_plugins needs fairseq, which cannot be imported here "
        f"({error}). `make setup` installs it; in an environment of your own: install torch, then "
        "`pip install --no-build-isolation --no-deps fairseq-fixed` and `pip install 'bpe-dropout[fairseq]'`"
    ) from error

from . import characters, methods, patches, task

patches.install()

__all__ = ["characters", "methods", "patches", "task"]
