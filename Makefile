# make verify   create .venv, install everything, run the main job
# make test     the same, run the tests
# make test-all the long forms too (about half an hour)
# make check    ruff and the type checker

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
OUT ?= staleproof-verify
# A file of tests to a worker, at most four: tests of the engine start processes of their own.
WORKERS ?= -n auto --maxprocesses 4 --dist loadfile
PYTEST_ARGS ?=

.PHONY: verify test test-all check format clean

verify: $(INSTALLED)
	$(BIN)/staleproof verify --out $(OUT) --overwrite

test: $(INSTALLED)
	$(BIN)/python -m pytest $(WORKERS) $(PYTEST_ARGS)

test-all: $(INSTALLED)
	$(BIN)/python -m pytest $(WORKERS) -m "slow or not slow" $(PYTEST_ARGS)

check: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(INSTALLED)
	$(BIN)/ruff check --fix .

# Made again when a dependency or a pin changes; the editable install follows the sources by itself.
$(INSTALLED): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "make: $(PYTHON) is $$($(PYTHON) --version 2>&1); Python 3.11 or newer is needed (make PYTHON=...)" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check -q -c constraints.txt -e '.[proofs,optimizers,dev]'
	@touch $(INSTALLED)

clean:
	rm -rf $(VENV) build dist *.egg-info
