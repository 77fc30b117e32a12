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
rm -rf "$build" build/sanitize-source
sh scripts/copy_package.sh build/sanitize-source
BPE_DROPOUT_SANITIZE=1 "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps \
  --target "$build" ./build/sanitize-source
grep -q __asan_init "$build"/bpe_dropout/_core*.so || { echo "sanitize: the build is not sanitized" >&2; exit 1; }

export PYTHONPATH="$PWD/$build" PYTHONMALLOC=malloc BPE_DROPOUT_FROM="$PWD/$build"
export LD_PRELOAD="$asan $ubsan $stdcxx"
# Python itself leaks by design; everything else ends the run.
export ASAN_OPTIONS=detect_leaks=0:abort_on_error=0 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1

echo "sanitize: fuzzing codes files and text for $seconds s"
"$venv/bin/python" -P tests/fuzz.py --seconds "$seconds"
echo "sanitize: the core's tests"
# Without those whose time goes into plain Python, and those that start a Python of their own.
slow='real_text or real_words or any_table or vocabulary or import_is_light or another_process'
slow="$slow or every_character or against_draws or japanese or simulation_fits or long_words or documented"
# Nor torch's workers: what is forked while a thread of torch is within the sanitizer waits forever.
"$venv/bin/pytest" -q -p no:cacheprovider tests/bpe_dropout --ignore=tests/bpe_dropout/test_cli.py \
  --ignore-glob='*/test_torch*' --ignore='tests/bpe_dropout/test_huggingface.py' -k "not ($slow)"
