#!/bin/sh
# Copies what the package is built from, and nothing that was built: sh scripts/copy_package.sh FOLDER
# A build in such a copy and the usual one do not take each other's files for their own.
set -eu
folder=$1
cd "$(dirname "$0")/.."
mkdir -p "$folder"
cp -R pyproject.toml setup.py MANIFEST.in README.md LICENSE bpe_dropout fairseq_plugins "$folder"
find "$folder" \( -name __pycache__ -o -name '*.so' \) -prune -exec rm -rf {} +
