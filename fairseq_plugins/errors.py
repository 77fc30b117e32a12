"""Bad input ends a fairseq command with a sentence. Everything else keeps its traceback, and scripts their own hook."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

from bpe_dropout import InputError


def is_fairseq_command(program: str) -> bool:
    """Whether the file that Python runs is one of fairseq's commands.

    >>> is_fairseq_command("/usr/bin/fairseq-train"), is_fairseq_command("site-packages/fairseq_cli/train.py")
    (True, True)
    >>> is_fairseq_command("fairseq_experiments/train.py")
    False
    """
    path = Path(program)
    return path.name.startswith("fairseq-") or path.parent.name == "fairseq_cli"


def sentence_of(error: BaseException) -> str | None:
    """What is wrong with the input, if that is what the error says.

    With several GPUs, fairseq runs in processes, whose errors come as text.
    """
    if isinstance(error, InputError):
        return str(error)
    if type(error).__name__ != "ProcessRaisedException":
        return None
    *_, sentence = re.split(r"^(?:bpe_dropout|fairseq_plugins)(?:\.\w+)+: ", str(error), flags=re.MULTILINE)
    return sentence.rstrip() if sentence != str(error) else None


def say_sentences(hook: Any) -> Any:
    """`sys.excepthook`, if this is a command of fairseq's: a user's script keeps its own."""
    if not is_fairseq_command(getattr(sys.modules["__main__"], "__file__", None) or ""):
        return hook

    def say(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        sentence = sentence_of(error)
        if sentence is None:
            hook(kind, error, trace)
        else:
            sys.stdout.flush()
            print(f"error: {sentence}", file=sys.stderr)

    return say
