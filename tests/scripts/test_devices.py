"""GPUs that are pretended: who may use which, and how many runs go at once."""

import os
import signal
import subprocess
import sys

from scripts.corpora import ROOT
from scripts.devices import count_gpus, runs_at_once
from scripts.slots import try_to_take, wait_for

HOLDER = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from scripts.slots import wait_for
print(",".join(wait_for(sys.argv[2].split(","), int(sys.argv[3]), folder=Path(sys.argv[4]))), flush=True)
sys.stdin.read()
"""


def hold(names: str, count: int, folder) -> tuple[subprocess.Popen, str]:
    """A process that takes GPUs, and which it took."""
    command = [sys.executable, "-c", HOLDER, str(ROOT), names, str(count), str(folder)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    return process, process.stdout.readline().strip()


def test_each_process_has_gpus_of_its_own_until_it_is_killed(tmp_path):
    one, first = hold("0,1,2", 1, tmp_path)
    other, second = hold("0,1,2", 2, tmp_path)
    try:
        assert (first, second) == ("0", "1,2")
        assert try_to_take(["0", "1", "2"], 1, tmp_path) == {}
        other.send_signal(signal.SIGKILL)
        other.wait()
        assert try_to_take(["0", "1", "2"], 3, tmp_path) == {}, "all or none"
        taken = wait_for(["0", "1", "2"], 2, folder=tmp_path)
        assert list(taken) == ["1", "2"]
        for lock in taken.values():
            os.close(lock)
    finally:
        for process in (one, other):
            process.kill()
            process.wait()


def test_without_gpus_torch_is_not_imported():
    """It takes longer than most stages."""
    code = "import sys; from scripts.devices import find_devices as f; f({'CUDA_VISIBLE_DEVICES': ''}); "
    code += "assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_the_gpu_of_windows(tmp_path):
    (tmp_path / "dxg").touch()
    assert count_gpus({}, tmp_path) == 1


def test_gpus_of_a_machine(tmp_path):
    assert count_gpus({}, tmp_path) == 0
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm"):
        (tmp_path / name).touch()
    assert count_gpus({}, tmp_path) == 2
    assert count_gpus({"CUDA_VISIBLE_DEVICES": "1"}, tmp_path) == 1
    assert count_gpus({"CUDA_VISIBLE_DEVICES": ""}, tmp_path) == 0
    assert runs_at_once(count_gpus({"CUDA_VISIBLE_DEVICES": "0,2,4,6"}), 2) == 2
