# Thin: every target is one command of the library. `make help` lists them.
PROFILE ?= quick
ONLY ?= *
WORKERS ?=
VENV := .venv
PYTHON := $(VENV)/bin/python
COMMAND := $(VENV)/bin/leak-atlas
# Compiling all that is installed takes as long as installing it; what is imported is compiled then, and kept.
INSTALL := $(PYTHON) -m pip install --quiet --disable-pip-version-check --no-compile -c requirements.lock -e
unexport PYTHONDONTWRITEBYTECODE
export OMP_WAIT_POLICY := PASSIVE

# What a user gives reaches the shell as variables of its own, unread: PROFILE='x;cmd' is the name of no profile.
override PROFILE := $(value PROFILE)
override ONLY := $(value ONLY)
override WORKERS := $(value WORKERS)
export PROFILE ONLY WORKERS

.DEFAULT_GOAL := help
.PHONY: help env reproduce check test api lab app report site bench clean

help: ## what there is
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 20
	@echo "  PROFILE=$$PROFILE  ONLY='layers/*'  WORKERS=2 choose what reproduce takes; report takes PROFILE"

env: $(VENV)/.ready ## make the environment in .venv
$(VENV)/.ready: pyproject.toml requirements.lock
	python3 -m venv $(VENV)
	$(INSTALL) .
	touch $@

# What checks and tests need beyond it. Tests take warnings for errors, those of others' code as it is compiled too.
$(VENV)/.dev: $(VENV)/.ready
	$(INSTALL) '.[dev]'
	$(PYTHON) -m compileall -qq -j0 $(VENV)/lib || true
	touch $@

reproduce: env ## execute every notebook of PROFILE and leave pages and an index in outputs/runs/PROFILE
	@set -f; $(COMMAND) reproduce --profile "$$PROFILE" $${WORKERS:+--workers "$$WORKERS"} -- $$ONLY

check: $(VENV)/.dev ## lint, formatting and types
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m mypy

# The tests of a module share what they make, so that they go to one process.
test: $(VENV)/.dev ## pass the tests
	$(PYTHON) -m pytest -n logical --maxprocesses 4 --dist loadscope

lab: env ## JupyterLab on this machine, notebooks opening as notebooks
	JUPYTER_CONFIG_PATH=$(CURDIR)/notebooks/.jupyter $(VENV)/bin/jupyter lab --ip=127.0.0.1 $(if $(filter 0,$(shell id -u)),--allow-root) --LabApp.default_url=/lab/tree/start.py notebooks

app: $(VENV)/.app ## the explorers without code, on this machine; `make reproduce` first, or each begins with training
	$(COMMAND) app

$(VENV)/.app: $(VENV)/.ready
	$(INSTALL) '.[app]'
	touch $@

api: env ## pages of the library's docstrings in outputs/api
	$(INSTALL) '.[docs]'
	$(PYTHON) -W ignore -m pdoc leak_atlas --output-directory outputs/api

report: env ## clean the executed notebooks of PROFILE into outputs/reports and refresh the table of docs/findings.md
	$(COMMAND) report "$$PROFILE"

site: env ## every published report as a page, under one index, in outputs/site: to be read without a server
	$(COMMAND) site

bench: env ## measure what the library promises, as ratios in one run
	$(PYTHON) -m bench

clean: ## remove the environment; results stay
	rm -rf $(VENV)
