# Where everything starts; the work is done elsewhere. `make help` lists the targets.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := pyproject.toml setup.py $(wildcard bpe_dropout/core/*.h bpe_dropout/core/*.cpp)

REPRODUCE := $(BIN)/python -m scripts.reproduce
REPORT := $(BIN)/python -m experiments.analysis
PROFILE ?= local
SEED ?= 1
OF_RUNS := $(if $(RUNS),--runs $(RUNS))
export WORD P SEEDS TOKENS REPEATS # of a figure of merges, of a table of neighbours, of times

.DEFAULT_GOAL := help
.PHONY: help setup test test-newest check bench sanitize list plan report smoke-base clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20
	@echo '  make demo         text to scores with BPE and BPE-dropout, in a quarter of an hour; the same for every target of the list'
	@echo '  make study        tries what the paper claims on small models, on a CPU: days; it resumes'
	@echo '  make table-main   one table or figure of the report, in the terminal, too: table-NAME, figure-NAME, study-NAME'
	@echo '  make fill-table-main  runs what a table or figure needs and was not run yet: fill-NAME'
	@echo '  for a target: GPUS=2 gives each run 2 GPUs (1, and as many runs at once as there are GPUs; 0: the CPU),'
	@echo '                SEED="1 2 3" runs three seeds, KEEP_CHECKPOINTS=1 keeps checkpoints of finished runs,'
	@echo '                PROFILE=slurm runs it on Slurm, where MAX_MINUTES=N limits a job'

setup: $(VENV)/.ready ## everything the project needs, in .venv

# Built again when the compiled core or the dependencies change.
$(VENV)/.ready: $(SOURCES) scripts/setup.sh
	@PYTHON="$(PYTHON)" sh scripts/setup.sh $(VENV)
	@touch $@

test: setup ## all tests
	$(BIN)/pytest -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder

test-newest: setup ## the segmenter's tests on the newest Python of this machine
	@sh scripts/test_newest_python.sh $(VENV)

check: setup ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: setup ## speed against other tools and stock fairseq, for docs/speed.md; ROWS="...": only these; BASE=REV: against that commit
	@$(if $(BASE),,sh scripts/setup_bench.sh $(VENV))
	@$(BIN)/python -m experiments.bench $(ROWS) $(if $(BASE),--base $(BASE))

sanitize: setup ## the core's tests and a fuzz, under the address and undefined-behaviour sanitizers
	@sh scripts/sanitize.sh $(VENV)

list: setup ## the targets of the reproduction, such as demo and iwslt15-en-vi, and what they need
	@$(REPRODUCE) list

plan: setup ## what TARGET would do: make plan TARGET=iwslt15-en-vi
	@$(REPRODUCE) plan $(TARGET) --profile $(PROFILE) --seed $(SEED) $(OF_RUNS) -- $(ARGUMENTS)

report: setup ## what was found of the paper's claims, the study, and the paper's tables, in experiments/report; RUNS="...": of your own runs
	@$(REPORT) report $(RUNS)

# One table or figure: make table-main, make figure-p, make study-main; in configs/paper and configs/study.
table-%: setup
	@$(REPORT) $@ $(RUNS)
figure-%: setup
	@$(REPORT) $@ $(RUNS)
study-%: setup
	@$(REPORT) $@ $(RUNS)

smoke-base: setup ## builds Transformer base for every direction and system of the paper, and takes two updates
	$(BIN)/pytest tests/scripts/test_base.py --all-directions -n auto --maxprocesses 4

clean: ## remove everything that was built
	rm -rf $(VENV) build dist *.egg-info bpe_dropout/*.so .pytest_cache .mypy_cache .ruff_cache .hypothesis

# Whatever has no rule above is a target of the reproduction, or a mistake, which is reported.
.DEFAULT:
	@$(MAKE) --silent --no-print-directory setup
	@$(REPRODUCE) run $@ --profile $(PROFILE) --seed $(SEED) $(OF_RUNS) -- $(ARGUMENTS)
