#!/bin/sh
# Installs the tools that `make bench` measures against: sh scripts/setup_bench.sh .venv
set -eu
venv=$1
pip="$venv/bin/python -m pip install --quiet --disable-pip-version-check"
"$venv/bin/python" -c 'import pyonmttok, sentencepiece, tokenizers, youtokentome' 2>/dev/null && exit 0
echo "bench: installing the tools to measure against"
$pip --editable '.[dev,bench]'
# YouTokenToMe's build wants Cython and setuptools to be there already.
$pip 'cython<4' setuptools wheel
$pip --no-build-isolation 'youtokentome==1.0.6'
