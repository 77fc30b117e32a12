#!/bin/sh
# Builds the core with the address and undefined-behaviour sanitizers, apart from the usual build, and runs
# the core's tests and a fuzz with it: sh scripts/sanitize.sh .venv [SECONDS_OF_FUZZ]
set -eu
venv=$1
seconds=${2:-30}
build=build/sanitize
compiler=${CXX:-c++}

asan=$("$compiler" -print-file-name=libasan.so)
ubsan=$("$compiler" -print-file-name=libubsan.so)
stdcxx=$("$compiler" -print-file-name=libstdc++.so)
[ "$asan" != libasan.so ] || { echo "sanitize: $compiler has no address sanitizer; install GCC's libasan" >&2; exit 1; }

echo "sanitize: building"
rm -rf "$build"
BPE_DROPOUT_SANITIZE=1 "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps \
  --target "$build" .

export PYTHONPATH="$PWD/$build" PYTHONMALLOC=malloc BPE_DROPOUT_FROM="$PWD/$build"
export LD_PRELOAD="$asan $ubsan $stdcxx"
# Python itself leaks by design; everything else ends the run.
export ASAN_OPTIONS=detect_leaks=0:abort_on_error=0 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1

echo "sanitize: fuzzing codes files and text for $seconds s"
"$venv/bin/python" -P tests/fuzz.py --seconds "$seconds"
echo "sanitize: the core's tests"
# Without those whose time goes into plain Python, and those that start a Python of their own.
"$venv/bin/pytest" -q -p no:cacheprovider tests/bpe_dropout --ignore=tests/bpe_dropout/test_cli.py \
  -k "not real_text and not real_words and not any_table and not vocabulary and not import_is_light
      and not another_process and not every_character and not against_draws and not japanese
      and not simulation_fits and not long_words and not documented and not sampling_as_printed"
