"""Progress of long work: one line that is rewritten on a terminal, or a line in the log now and then."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable


class Progress:
    """Shows how far the work is.

    On a terminal, a line that is rewritten, once the work takes longer than a moment. Elsewhere nothing, or with
    `every` a line every so many seconds; `say` prints those lines, for example a logger's `info`, and then the terminal
    is left alone.
    """

    def __init__(self, every: float | None = None, say: Callable[[str], None] | None = None) -> None:
        self._every, self._say = every, say
        self._terminal = say is None and sys.stderr.isatty()
        self._start = self._said = time.monotonic()
        self._shown = False

    @property
    def is_due(self) -> bool:
        """Whether a line that is shown now would be seen."""
        now = time.monotonic()
        if self._terminal:
            return now - self._start > 1 and now - self._said > 0.2
        return self._every is not None and now - self._said >= self._every

    def show(self, text: str) -> None:
        if not self.is_due:
            return
        self._said = time.monotonic()
        if self._terminal:
            self._shown = True
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
        elif self._say:
            self._say(text)
        else:
            print(text, file=sys.stderr, flush=True)

    def clear(self) -> None:
        if self._shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)

    def counting(self, what: str, unit: str = "", scale: float = 1) -> Callable[[int, int | None], None]:
        """A function of how much is done and how much there is: "reading train.en: 3 of 12 MB, 25%"."""
        start = time.monotonic()

        def count(done: int, total: int | None) -> None:
            if self.is_due:
                of = f" of {total / scale:.0f}" if total else ""
                share = f", {done / total:.0%}" if total else ""
                rate = done / max(time.monotonic() - start, 1e-9) / scale
                self.show(f"{what}: {done / scale:.0f}{of} {unit}{share}, {rate:.0f} a second")

        return count
