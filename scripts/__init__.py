"""The reproduction, one stage a file: `python -m scripts.STAGE --help`. experiments/Snakefile puts them together."""
