# `make demo` shows the idea, `make check` and `make test` check it. Every target sets itself up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --constraint constraints.txt

.PHONY: help setup demo test lint check docs mutants torture bench newest results readme clean
help:
	@echo "make setup    the virtual environment with everything in it; the others do it by themselves"
	@echo "make demo     train the toy and the digits, write a picture and report.html (a few minutes)"
	@echo "make lint     format, lint, types, layers and the written parts of the documents"
	@echo "make check    make lint, doctests and the quick tests"
	@echo "make test     every test and doctest"
	@echo "make docs     the documentation as a site that opens from disk: build/docs/site/index.html"
	@echo "make mutants  wrong lines put into the code one at a time: which does no test notice? (half an hour)"
	@echo "make torture  kills, bad inputs, full disks: is anything lost or wrong? (20 minutes; MINUTES=5 for less)"
	@echo "make bench    the benchmarks, printed as ratios of one run"
	@echo "make newest   the fast tests with the newest versions of everything; says what breaks"
	@echo "make results  every committed result again (long; complete runs are not run again)"
	@echo "make readme   tables, tree and figures of README and docs from the committed results"
	@echo "make clean    remove the virtual environments and the caches"

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit("ova needs Python 3.11 or newer; try make PYTHON=python3.11" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)

# torch first and by its exact version. On macOS it is the build for CPUs. On Linux the usual index has
# the one for CUDA alone, with 2.7 GB of packages that no CPU can use (constraints.txt pins these too):
# TORCH_INDEX names an index of CPU builds, in which torch and nothing else is looked for beside the
# usual one; its version there has "+cpu" behind it and is taken before the other. No --require-hashes:
# pip then wants them of the package itself, too, and a CPU build has others than the usual one.
TORCH_INDEX ?=
$(VENV)/.run: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) "$$(grep '^torch==' constraints.txt)"
	$(PIP) --editable '.[dev]'
	@touch $@

setup: $(VENV)/.run

# Two processes of one thread each are quicker than one of two, and take these three by turns; through
# `cat`, they print lines instead of bars that would draw over each other.
DEMO := 'toy --seeds 2 --only softmax,ova' 'toy --seeds 2 --only dm,ova-dm' digits
demo: SHELL := bash
demo: .SHELLFLAGS := -o pipefail -c
demo: setup
	printf '%s\n' $(DEMO) | OMP_NUM_THREADS=1 xargs -P 2 -L 1 $(BIN)/ova run --out runs | cat
	$(BIN)/ova report runs/toy runs/digits --output report.html --figures artefacts/demo
	@echo "Look at artefacts/demo/toy-landscape.png first: colour is confidence, far from all classes"
	@echo "softmax and ova are sure, ova-dm is not. Then open report.html in a browser."

# Each process begins with a half of the tests and takes over from the other when it is done: what
# the tests of a file share is made once.
TESTS := $(BIN)/python -m pytest --quiet --numprocesses 2 --dist worksteal --doctest-modules src tests

lint: setup
	$(BIN)/ruff format --check src tests benchmarks mutants torture docs/*.py docs/site results
	$(BIN)/ruff check src tests benchmarks mutants torture docs/*.py docs/site results
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python docs/make_docs.py --check

check: lint
	$(TESTS) -m "not slow and not browser"

test: setup
	$(BIN)/python tests/find_chromium.py
	$(TESTS)

docs: setup
	$(BIN)/python -m docs.site --run build/docs

mutants: setup
	$(BIN)/python -m mutants

MINUTES ?= 20
MOST ?= 1000000
torture: setup
	$(BIN)/python -m torture --minutes $(MINUTES) --most $(MOST)

# These train networks for tens of minutes to answer one question each; their first lines say which.
LONG := ball own_clinc trial trial_verdicts
bench: setup
	@for file in $(filter-out $(LONG:%=benchmarks/%.py),$(wildcard benchmarks/*.py)); do \
		echo "== $$file"; $(BIN)/python $$file || exit 1; done
	@echo "left out, because they train for tens of minutes: $(LONG:%=benchmarks/%.py)"

newest:
	PYTHON=$(PYTHON) .ci/newest

results: $(VENV)/.run
	$(BIN)/python results/collect.py --time
	$(BIN)/ova run $$($(BIN)/python results/collect.py --recipes) --out runs
	$(BIN)/python results/collect.py runs
	$(BIN)/python results/figures.py

GALLERY := toy-landscape toy-embedding cifar10-desk-severity cifar10-desk-threshold digits-histogram
readme: $(VENV)/.run
	$(BIN)/ova report results --output report.html --figures artefacts/figures --format png
	mkdir -p docs/figures && cp $(GALLERY:%=artefacts/figures/%.png) docs/figures/
	$(BIN)/python docs/make_docs.py

clean:
	rm -rf $(VENV) $(VENV)-newest .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
