# make reproduce: the main job on real data.  make test: the tests.  make check: style, types, layering.
# make docs: the documentation, in site/.  make graph: the picture of the rooms, docs/images/rooms.svg.
# Each sets up what it needs first, in .venv; PYTHON chooses the interpreter that makes it.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: help setup test check reproduce docs graph clean
help:
	@sed -n 's/^# //p' Makefile

.venv/.ready: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

setup: .venv/.ready

test: setup
	$(BIN)/python -m pytest -q -n auto

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

reproduce: setup
	$(BIN)/evenhand reproduce --out results

docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

graph: setup
	$(BIN)/python docs/import_graph.py

clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
