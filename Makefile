# `make demo` shows smokegeo at work, `make test` runs everything; both set up .venv first.
# Another interpreter: make demo PYTHON=python3.13

PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
SELECT ?= slow or not slow
TESTS ?= tests

.PHONY: help demo test lint format setup setup-dev runs clean

help:
	@echo "make demo     set up .venv, run smokegeo on sample data, say where the results lie"
	@echo "make test     set up .venv with the test extras, run the whole suite"
	@echo "make lint     style (ruff) and types (mypy)"
	@echo "make format   let ruff rewrite the code"
	@echo "make clean    remove .venv and the demo's results"
	@echo "Options: PYTHON=python3.13 (default python3), VENV=.venv"

demo: setup
	@$(BIN)/python scripts/demo.py

test: setup-dev
	@$(BIN)/python -m pytest -n 2 --dist worksteal -m "$(SELECT)" $(TESTS)

lint: setup-dev
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy

format: setup-dev
	@$(BIN)/ruff check --fix . && $(BIN)/ruff format .

setup: runs
	@$(PYTHON) scripts/bootstrap.py --venv $(VENV)

setup-dev: runs
	@$(PYTHON) scripts/bootstrap.py --venv $(VENV) --dev

# A version manager's shim exists as a command and still fails: only running it tells.
runs:
	@$(PYTHON) -c pass 2>/dev/null || { echo "Error: '$(PYTHON)' does not run. Install Python 3.11 or later, or name one: make PYTHON=python3.13" >&2; exit 2; }

clean:
	rm -rf $(VENV) demo
