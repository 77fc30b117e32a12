#!/bin/sh
# Sets up a virtual environment with everything the project needs: sh scripts/setup.sh .venv
# PYTHON names the interpreter to make it from (default: python3).
set -eu
venv=$1
python=${PYTHON:-python3}

stop() {
  echo "setup: $*" >&2
  exit 1
}

command -v "$python" >/dev/null 2>&1 ||
  stop "there is no $python here. Install Python 3.11 or newer, or name one: make setup PYTHON=python3.11"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
  stop "$("$python" --version 2>&1) is too old. Python 3.11 or newer is needed; name one: make setup PYTHON=python3.11"
command -v "${CXX:-c++}" >/dev/null 2>&1 || command -v g++ >/dev/null 2>&1 || command -v clang++ >/dev/null 2>&1 ||
  stop "there is no C++ compiler here (GCC 9 or newer, or Clang 10 or newer). On Debian and Ubuntu: apt-get install g++"

"$python" -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' ||
  stop "Python.h, which C++ extensions are built with, is missing. On Debian and Ubuntu: apt-get install python3-dev"

if [ ! -x "$venv/bin/python" ]; then
  echo "setup: making $venv"
  "$python" -m venv "$venv" ||
    stop "could not make $venv. On Debian and Ubuntu, venv is a package of its own: apt-get install python3-venv"
fi
pip="$venv/bin/python -m pip install --quiet --disable-pip-version-check"

# torch first, since fairseq is built with it. Its CPU build is a tenth of the size: it is taken where there is no GPU
# and an index offers it.
# TORCH says which to take in any case: TORCH=torch==2.13.0 on a cluster whose GPUs are not where this runs.
torch=${TORCH:-torch==2.13.0}
if ! "$venv/bin/python" -c 'import torch' 2>/dev/null; then
  echo "setup: installing $torch into $venv"
  if [ -z "${TORCH:-}" ] && [ "$(uname -s)" = Linux ] && ! nvidia-smi -L >/dev/null 2>&1; then
    said=$(mktemp)
    if ! $pip "$torch+cpu" 2>"$said" &&
      ! $pip --index-url https://download.pytorch.org/whl/cpu --retries 0 --timeout 20 "$torch+cpu" 2>"$said"; then
      echo "setup: its build for CPUs could not be installed ($(tail -n 1 "$said")); taking $torch, which may be larger"
      $pip "$torch"
    fi
    rm -f "$said"
  else
    $pip "$torch"
  fi
fi
# fairseq is built beside the rest, which takes as long. Without isolation and dependencies: an isolated build would
# fetch a second torch, of several GB. What matters for speed asks for -O3 itself; the rest, which nothing here uses, is
# built in half the time without.
built=
if ! "$venv/bin/python" -c 'import fairseq' 2>/dev/null; then
  $pip 'setuptools>=77' wheel cython 'numpy>=1.26' cffi
  wheels=$(mktemp -d)
  trap 'rm -rf "$wheels"' EXIT
  CFLAGS="-O0 -g0" "$venv/bin/python" -m pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps \
    --wheel-dir "$wheels" fairseq-fixed==0.12.3.1 &
  built=$!
fi
echo "setup: installing the project and what it needs into $venv, and building fairseq (two or three minutes)"
$pip --editable '.[dev,fairseq,reproduction]'
if [ -n "$built" ]; then
  wait "$built" || stop "fairseq could not be built; see above"
  $pip --no-deps "$wheels"/*.whl
fi
