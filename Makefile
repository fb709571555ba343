# make reproduce: the main job on real data.  make test: the tests but a few slow ones.  make slow: those.
# make check: style, types, layering.
# make docs: the documentation, in site/.  make graph: the picture of the rooms, docs/images/rooms.svg.
# make lowest: some tests with the lowest versions that pyproject.toml allows.  make bounds: compiled loops with every
# index checked.  make constraints: constraints.txt, the versions that were tested.
# Each sets up what it needs first, in .venv; PYTHON chooses the interpreter that makes it.
PYTHON ?= python3
BIN := .venv/bin
# Each worker takes a row of tests, so that what neighbours share is made once, and the first to end helps the other.
PYTEST := -m pytest -q -n auto --dist worksteal

.PHONY: help setup test slow lowest bounds constraints check reproduce docs graph clean
help:
	@sed -n '/^#/!q; s/^# //p' Makefile

.venv/.ready: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

setup: .venv/.ready

test: setup
	$(BIN)/python $(PYTEST) -m "not slow"
	@echo "A few slow tests are left out: make slow runs them."

# Only the files that have such tests are read.
slow: setup
	$(BIN)/python $(PYTEST) -m slow $$(grep -rl --include='*.py' 'mark\.slow' tests)

.venv-lowest/.ready: pyproject.toml
	test -x .venv-lowest/bin/python || $(PYTHON) -m venv .venv-lowest
	$(PYTHON) -c "import tomllib; told = tomllib.load(open('pyproject.toml', 'rb'))['project']; \
	  print(*(name.replace('>=', '==') for name in \
	          told['dependencies'] + told['optional-dependencies']['parquet'] \
	          + told['optional-dependencies']['excel']), sep='\n')" > .venv-lowest/lowest.txt
	.venv-lowest/bin/python -m pip install --quiet --disable-pip-version-check --editable . \
	  --requirement .venv-lowest/lowest.txt pytest pytest-xdist hypothesis polars
	touch $@

# Old libraries warn in newer ones that they use: warnings are no errors here.
lowest: .venv-lowest/.ready
	NUMBA_CACHE_DIR=.venv-lowest/numba .venv-lowest/bin/python $(PYTEST) -W default -p no:cacheprovider \
	  tests/tables tests/cli/test_far_dates.py tests/cli/test_predict.py tests/workflow/test_deployed.py \
	  tests/test_jit.py tests/test_atomic.py

# Machine code of its own: the usual one has no checks.
bounds: setup
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=.venv/numba-bounds $(BIN)/python $(PYTEST) \
	  tests/rewards tests/bandits/kernels tests/boosting/test_ascent.py tests/boosting/test_trees.py \
	  tests/metrics/test_gower.py tests/baselines/test_prototypes.py \
	  tests/baselines/test_chaining.py tests/baselines/test_adversarial.py

constraints: setup
	{ echo '# The versions that the tests ran with (make constraints): pip install evenhand -c constraints.txt'; \
	  $(BIN)/python -m pip freeze --exclude-editable | grep '^[A-Za-z0-9._-]*==' ; } > constraints.txt

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
	rm -rf .venv .venv-lowest build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
