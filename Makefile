# What a newcomer and a contributor run. `make` alone lists the targets.
PYTHON ?= python3
VENV ?= .venv
WORKERS ?= 3
OUT ?= out/quick
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet

.DEFAULT_GOAL := help
.PHONY: help demo test lint check check-slow newcomer docs rankings real defaults heavy-defaults lock proto clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*  ## \(.*\)/\1 \2/p' Makefile | while read -r name text; do \
	  printf '  make %-14s %s\n' "$$name" "$$text"; done

demo: $(VENV)/.run  ## environment, install, the quick study, its tables and plots
	$(BIN)/halftruth run studies/toml/quick.toml --out $(OUT) $$(test ! -e $(OUT)/study.json || echo --resume)
	$(BIN)/halftruth report $(OUT)
	@echo "Tables and plots are in $(OUT)/ (plots: $(OUT)/figures/). Your own data: $(BIN)/halftruth fit --help"

# Three processes keep two cores busy, since one often waits. Tests and the processes that they start read bytecode that
# others wrote, even where the environment forbids to write any.
test: $(VENV)/.dev  ## environment, install, the tests, in WORKERS=3 processes
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -q -n $(WORKERS)

lint: $(VENV)/.dev  ## format, style, types, the border
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint test  ## all that a change must pass

check-slow: $(VENV)/.dev  ## full grids and soak tests
	$(BIN)/python -m pytest -q -m slow

newcomer: $(VENV)/.run  ## clone, plot, own file, federation, as README.md says, timed from nothing: ten minutes
	$(BIN)/python -P tests/newcomer.py

SITE ?= out/site

# Tutorials run while it is built, and a warning is an error.
docs: $(VENV)/.docs  ## the documentation as a site, its tutorials run: some minutes
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/sphinx-build -W --keep-going -q -b html -c docs/site -d $(SITE)/.kept . $(SITE)
	@echo "The site is in $(SITE)/docs/site/index.html"

DATA ?= ../shared/data/pairwise

real: $(VENV)/.run  ## the tables of docs/REAL_STUDIES.md: an hour
	$(BIN)/halftruth real $(dir $(DATA))

rankings: $(VENV)/.run  ## the tables of docs/RANKINGS.md: minutes
	$(BIN)/python -m studies.rankings $(DATA) && $(BIN)/python -m studies.ties $(DATA)

defaults: $(VENV)/.run  ## the table of docs/DEFAULTS.md: minutes
	for law in gaussian sphere; do $(BIN)/halftruth run studies/toml/defaults.toml --set problem.features=$$law \
	  --out out/defaults-$$law $$(test ! -e out/defaults-$$law/study.json || echo --resume); done
	$(BIN)/python -m studies.defaults out/defaults-gaussian out/defaults-sphere

heavy-defaults: $(VENV)/.run  ## the tables of docs/HEAVY_DEFAULTS.md: an hour
	$(BIN)/python -m studies.heavy_defaults out/heavy
	$(BIN)/python -m studies.slopes out/heavy

# `make lock FLAGS=--upgrade` takes newer versions; without it only what pyproject.toml asks for changes.
lock:  ## write requirements.lock anew
	@tools=$$(mktemp -d) && trap 'rm -rf "$$tools"' EXIT && $(PYTHON) -m venv "$$tools" && \
	"$$tools/bin/python" -m pip install --quiet uv && \
	"$$tools/bin/uv" pip compile --quiet --universal --python-version 3.11 --fork-strategy fewest --extra dev \
	  --no-emit-index-url --no-annotate --no-header $(FLAGS) pyproject.toml --output-file requirements.lock && \
	{ echo '# Exact versions of everything a run and a check need, for Python 3.11 to 3.13; made by `make lock`.'; \
	  cat requirements.lock; } > "$$tools/lock" && cp "$$tools/lock" requirements.lock

# The oldest generator whose code runs on every protobuf that pyproject.toml admits.
proto:  ## generate protocol/*_pb2.py from the wire schemas
	@tools=$$(mktemp -d) && trap 'rm -rf "$$tools"' EXIT && $(PYTHON) -m venv "$$tools" && \
	"$$tools/bin/python" -m pip install --quiet grpcio-tools==1.68.1 mypy-protobuf==3.6.0 'setuptools<81' && \
	PATH="$$tools/bin:$$PATH" "$$tools/bin/python" -m grpc_tools.protoc --proto_path=. --python_out=. --mypy_out=quiet:. \
	  protocol/halftruth.proto protocol/shuffler.proto

clean:  ## remove environment, builds and caches; keeps out/
	rm -rf .venv build dist *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Nothing is installed twice: a stamp is as new as the files that say what to install.
$(VENV)/.run: requirements.lock pyproject.toml | $(VENV)/.made
	@echo "Installing exact versions into $(VENV): a minute or two"
	$(PIP) --constraint requirements.lock --editable .
	@touch $@

$(VENV)/.dev: requirements.lock pyproject.toml | $(VENV)/.made
	@echo "Installing exact versions into $(VENV): a minute or two"
	$(PIP) --constraint requirements.lock --editable '.[dev]'
	@touch $(VENV)/.run $@

$(VENV)/.docs: $(VENV)/.dev
	$(PIP) --constraint requirements.lock --editable '.[dev,docs]'
	@touch $@

$(VENV)/.made:
	@command -v $(PYTHON) > /dev/null || { echo "expected python >= 3.11 as $(PYTHON), found none; try make PYTHON=python3.12"; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "expected python >= 3.11, got $$($(PYTHON) --version 2>&1); try make PYTHON=python3.12"; exit 2; }
	@$(PYTHON) -m venv $(VENV) || { echo "could not make an environment; on Debian: apt install python3-venv"; exit 1; }
	@touch $@
