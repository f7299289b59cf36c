# Two commands matter: `make demo` and `make test`. Both set everything up first.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help setup demo test fast check format lock bench clean

help:
	@echo "make demo    audit the bundled sample and say where the run is"
	@echo "make test    the whole suite, checks included"
	@echo "make fast    the tests that need neither benchmark files nor patience"
	@echo "make check   ruff, mypy, import-linter"
	@echo "make bench   the benchmarks of benchmarks/ (needs ROUTEPRISM_DATA)"
	@echo "make lock    compile requirements.txt again from pyproject.toml"

setup: $(READY)

$(READY): pyproject.toml requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
		{ echo "RoutePrism needs Python 3.10 or newer; say make PYTHON=python3.x"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
		--no-deps --no-build-isolation -e .
	@touch $@

demo: setup
	$(BIN)/routeprism demo --run runs/demo

test: check
	$(BIN)/python -m pytest

fast: setup
	$(BIN)/python -m pytest -m "not slow and not realdata"

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: setup
	$(BIN)/python benchmarks/help_time.py
	$(BIN)/python benchmarks/personamem_audit.py
	$(BIN)/python benchmarks/streaming_audit.py

lock: setup
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile pyproject.toml --group dev --universal --python-version 3.10 \
		--no-emit-index-url --no-header --output-file requirements.txt

clean:
	rm -rf $(VENV) runs .mypy_cache .ruff_cache .pytest_cache .hypothesis
