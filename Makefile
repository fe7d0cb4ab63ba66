# Two commands for a newcomer: `make demo` and `make test`. Each prepares what it needs by itself.

PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
TEST ?= tests
# Compiled modules are kept, whatever the shell says: each `ballast` that a test starts would compile them all anew.
export PYTHONDONTWRITEBYTECODE =
# Processes that share the tests: two more than cores, since many wait for brokers, and six at most, since brokers take the cores.
PROCESSES ?= $(shell n=$$(nproc 2>/dev/null || echo 4); echo $$(( n < 4 ? n + 2 : 6 )))
# Of simulated runs with faults.
SEEDS ?= 10000
FIRST ?= 0

# How long `make chaos` goes on, and on which kind of cluster; SEED repeats a schedule.
MINUTES ?= 10
KIND ?= kraft

.PHONY: help setup demo test chaos check seeds bench docs fresh fresh-user lock schemas changelog format clean

help:
	@echo "make demo     a five-broker Kafka on this machine, unbalanced, and balanced again by Ballast"
	@echo "make test     every test (as root on Debian it installs system packages; NO_SYSTEM_INSTALL=1 forbids it)"
	@echo "make chaos    faults at random on a real cluster, and what must hold in spite of them (SEED=7 MINUTES=30 KIND=kraft|zookeeper)"
	@echo "make check    format, lint, types, layers and the quick unit tests"
	@echo "make seeds    10,000 simulated runs with faults; SEEDS and FIRST choose others"
	@echo "make bench    the measurements behind the figures in docs/"
	@echo "make fresh    both commands in a pristine Debian 12 (fresh-user: as an ordinary user; FRESH=demo, FRESH_TEST=tests/unit)"
	@echo "make setup    only the environment: .venv/bin/ballast works afterwards"
	@echo "make docs     docs/ as a site in build/site"
	@echo "make lock     resolve the locks afresh (UPGRADE=1 moves the pins)"

setup: python
	@$(PYTHON) bootstrap setup

demo: python
	@$(PYTHON) bootstrap demo
	@$(BIN)/ballast sandbox demo

test: python
	@$(PYTHON) bootstrap test
	@$(BIN)/python -m pytest -n $(PROCESSES) --no-loadscope-reorder --durations=20 --durations-min=10 $(TEST)

chaos: setup
	@$(BIN)/python -m tests.chaos --minutes $(MINUTES) --kind $(KIND) $(if $(SEED),--seed $(SEED))

check: python
	@$(PYTHON) bootstrap check
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python tools/commit_subjects.py
	@$(BIN)/python -m pytest -q -n auto -m "not slow" tests/unit

seeds: setup
	@$(BIN)/python -m tests.sim.seeds --seeds $(SEEDS) --first $(FIRST)

bench: setup
	@$(BIN)/python -m bench

fresh: python
	@$(PYTHON) tools/fresh.py root

fresh-user: python
	@$(PYTHON) tools/fresh.py person

lock: python
	@$(PYTHON) bootstrap lock
	@$(PYTHON) bootstrap setup
	@$(BIN)/python tools/lock_jars.py

docs: setup
	@$(BIN)/mkdocs build --quiet --strict
	@echo "build/site/index.html"

schemas: setup
	@$(BIN)/python tools/json_schemas.py

changelog: setup
	@$(BIN)/python tools/changelog.py

format: setup
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

clean:
	rm -rf .venv build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

.PHONY: python
python:
	@test -n "$(PYTHON)" || { echo "Ballast needs Python 3.11 or newer, with venv (Debian: apt-get install python3-venv)." >&2; exit 2; }
