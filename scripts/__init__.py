"""The reproduction, one file per stage: `python -m scripts.STAGE --help`. experiments/Snakefile connects them."""
