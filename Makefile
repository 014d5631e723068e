# Two commands matter: `make demo` shows the idea, `make test` checks it. Both set themselves up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --constraint constraints.txt

.PHONY: help demo test check bench results readme clean
help:
	@echo "make demo     train the toy and the digits, write report.html (5 minutes after the install)"
	@echo "make test     every test"
	@echo "make check    format, lint, types, layers, doctests and the fast tests"
	@echo "make bench    every benchmark, printed as ratios of one run"
	@echo "make results  every committed result again (long; complete runs are not run again)"
	@echo "make readme   tables, tree and figures of README and docs from the committed results"
	@echo "make clean    remove the virtual environment and the caches"

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit("ova needs Python 3.11 or newer; try make PYTHON=python3.11" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)

# torch first and by its exact version: a plain "torch" may bring gigabytes that a CPU cannot use.
$(VENV)/.run: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) "$$(grep '^torch==' constraints.txt)"
	$(PIP) --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.run
	$(PIP) --editable '.[dev]'
	@touch $@

demo: $(VENV)/.run
	$(BIN)/ova run toy digits --out runs
	$(BIN)/ova report runs/toy runs/digits --output report.html

test: $(VENV)/.dev
	$(BIN)/python tests/find_chromium.py
	$(BIN)/python -m pytest --numprocesses 2

check: $(VENV)/.dev
	$(BIN)/ruff format --check src tests benchmarks docs/*.py results
	$(BIN)/ruff check src tests benchmarks docs/*.py results
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python docs/make_docs.py --check
	$(BIN)/python -m pytest --quiet --doctest-modules src
	$(BIN)/python -m pytest --quiet --numprocesses 2 -m "not slow and not browser"

bench: $(VENV)/.dev
	@for name in heads large_k start frozen metrics corruptions training threshold; do \
		echo "== benchmarks/$$name.py"; $(BIN)/python benchmarks/$$name.py || exit 1; done

results: $(VENV)/.run
	$(BIN)/python results/collect.py --time
	$(BIN)/ova run $(foreach file,$(wildcard results/*/runs.jsonl),--recipe $(file)) --out runs
	$(BIN)/python results/collect.py runs
	$(BIN)/python results/figures.py

GALLERY := toy-landscape toy-embedding cifar10-desk-severity cifar10-desk-threshold digits-histogram
readme: $(VENV)/.run
	$(BIN)/ova report results --output report.html --figures artefacts/figures --format png
	mkdir -p docs/figures && cp $(GALLERY:%=artefacts/figures/%.png) docs/figures/
	$(BIN)/python docs/make_docs.py

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
