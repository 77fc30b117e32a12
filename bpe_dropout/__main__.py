"""`python -m bpe_dropout` is the command `bpe-dropout`."""

import sys

from .cli import main

sys.exit(main())
