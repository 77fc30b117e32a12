"""Kills the tiny graph at random moments, resumes each time, and compares what is made with a graph that nobody killed:

    python tests/scripts/random_kills.py --kills 20

Files must be the same, byte for byte, but for times. tests/scripts/test_system.py does it with a few kills.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))

from tests.patience import PATIENCE  # noqa: E402
from tests.scripts.tiny import Work  # noqa: E402

RUN = "mine.en-de.bpe-dropout.tiny.seed1"
TOGETHER = 5  # kills of one graph
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
TIMES = ("seconds", "seconds of translating", "seconds in all")
FOLDER = "data/folders/mine.en-de.bpe.en300-de300"
MADE = ("data/raw", "data/words", FOLDER, f"experiments/results/{RUN}.json")
OF_RUN = ("training.json", "test.words", "test.txt", "generation.json", "result.json")


def kill_at_random(work: Work, kills: int, choose: random.Random, longest: float) -> int:
    """Starts the graph, and kills it after a random time, at most so often; then lets it end. How often it did."""
    for number in range(1, kills + 1):
        process = work.start("run", RUN, KEEP_CHECKPOINTS="")
        try:
            out, _ = process.communicate(timeout=choose.uniform(0, longest))
        except subprocess.TimeoutExpired:
            kind = choose.choice(SIGNALS)
            os.killpg(process.pid, kind)
            print(f"{number} of {kills}: {kind.name}; the latest file was {latest(work)}", flush=True)
            try:
                process.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
        else:
            assert process.returncode == 0, out
            return number - 1
    work.call("run", RUN, KEEP_CHECKPOINTS="")
    return kills


def latest(work: Work) -> str:
    paths = [path for path in work.made.rglob("*") if path.is_file() and ".snakemake" not in path.parts]
    return str(max(paths, key=lambda path: path.stat().st_mtime).relative_to(work.made)) if paths else "nothing"


def read_made(work: Work) -> dict[str, bytes]:
    """What the graph has made, by name, without times."""
    places = [work.made / place for place in MADE] + [work.run(RUN) / name for name in OF_RUN]
    files = [path for place in places for path in ([place] if place.is_file() else sorted(place.rglob("*")))]
    return {str(path.relative_to(work.made)): read(path) for path in files if path.is_file() and is_kept(path)}


def is_kept(path: Path) -> bool:
    """Not what a training keeps of a text, or a process that was killed has left."""
    return path.name in OF_RUN or path.suffix not in (".words", ".part")


def read(path: Path) -> bytes:
    if path.suffix != ".json":
        return path.read_bytes()
    return json.dumps(json.loads(path.read_text("utf-8"), object_hook=without_times), indent=1).encode()


def without_times(record: dict) -> dict:
    return {key: value for key, value in record.items() if key not in TIMES}


def compare(one: Work, other: Work) -> None:
    expected, found = read_made(one), read_made(other)
    assert {f"experiments/results/{RUN}.json", f"{FOLDER}/codes.en", "data/words/mine.en-de/train.de"} <= set(expected)
    assert set(expected) == set(found)
    different = [name for name, content in expected.items() if found[name] != content]
    assert not different, f"{', '.join(different)} differ between {one.made} and {other.made}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20, metavar="N", help="how often (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the random moments (default: %(default)s)")
    parser.add_argument("--folder", type=Path, metavar="FOLDER", help="a new folder to work in; kept")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        choose = random.Random(options.seed)
        words = ["".join(choose.choices("aeinorst", k=choose.randint(2, 7))) for _ in range(300)]
        lines = [" ".join(choose.choices(words, k=10)) for _ in range(1000)]
        whole = Work(folder / "whole", lines)
        begin = time.monotonic()
        whole.call("run", RUN)
        longest = time.monotonic() - begin
        print(f"without a kill it takes {longest:.0f} s", flush=True)
        done = 0
        while done < options.kills:
            killed = Work(Path(tempfile.mkdtemp(dir=folder)), lines)
            done += kill_at_random(killed, min(TOGETHER, options.kills - done), choose, longest)
            compare(whole, killed)
            print(f"the same files, after {done} kills in all", flush=True)


if __name__ == "__main__":
    main()
