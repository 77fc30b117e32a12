#!/bin/sh
# Runs the segmenter's tests on the newest Python of this machine that is newer than the one of .venv, in an environment
# of its own: sh scripts/test_newest_python.sh .venv
# A Python on PATH counts, and one of pyenv, which need not be on PATH. Where there is none, it says so and is done.
set -eu
venv=$1
build=$PWD/build/newest

# Released, not a free-threaded build, with what environments and extensions are made with.
usable='
import ensurepip, os, sys, sysconfig, venv
header = os.path.join(sysconfig.get_path("include"), "Python.h")
sys.exit(sys.version_info.releaselevel != "final" or "t" in sys.abiflags or not os.path.exists(header))
'
newest_python() {
  than=$("$venv/bin/python" -c 'import sys; print(sys.version_info.minor)')
  pyenv=$(pyenv root 2>/dev/null || true)
  minor=30
  while [ "$minor" -gt "$than" ]; do
    for python in "python3.$minor" "$pyenv/versions/3.$minor".*/bin/python; do
      # On PATH it may be a shim of pyenv that only says how to choose one.
      if "$python" -c "$usable" >/dev/null 2>&1; then
        echo "$python"
        return
      fi
    done
    minor=$((minor - 1))
  done
}

python=$(newest_python)
if [ -z "$python" ]; then
  echo "test-newest: skipped, since there is no Python here that is newer than $("$venv/bin/python" --version)"
  exit 0
fi
echo "test-newest: the segmenter's tests on $("$python" --version), $python"
rm -rf "$build"
sh scripts/copy_package.sh "$build/source"
"$python" -m venv "$build/venv"
"$build/venv/bin/python" -m pip install --quiet --disable-pip-version-check "$build/source[test]"

# The build in this environment is tested, and not the sources in this folder.
PYTHONSAFEPATH=1 BPE_DROPOUT_FROM="$build/venv" "$build/venv/bin/pytest" -q -p no:cacheprovider tests/bpe_dropout
