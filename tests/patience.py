"""How long tests wait. No test depends on how fast the machine is: a limit only ends what would never end, so it is one
that no machine needs."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 1200.0  # seconds


def wait_until(condition: Callable[[], object], said: Callable[[], str] = lambda: "") -> None:
    """Returns once the condition holds; `said` is what to show if it never does."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, said()
        time.sleep(0.02)
