# `make demo` and `make test` need nothing but make: packages, virtual environment and the rest are seen to.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV := .venv
BIN := $(VENV)/bin
JOBS ?= $(shell nproc)
BOARD ?= stm32f405
EXAMPLE := examples/vww
MODELS ?= models
OUTPUT ?= docs

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: $(VENV)/.light ## run a person detector on a picture, on an emulated board (BOARD=stm32f405)
	@echo "picture: $(EXAMPLE)/person.png"
	$(BIN)/mcudeploy run $(EXAMPLE)/model.onnx --board $(BOARD) --emulate \
	    --input $(EXAMPLE)/person.npy --expected $(EXAMPLE)/person_expected.npy

.PHONY: test
test: lint $(VENV)/.packages $(VENV)/.independent ## ruff, mypy, gcc -fanalyzer, and all tests on JOBS workers
	$(BIN)/python benchmarks/analyse.py quick
	$(BIN)/python -m pytest -n $(JOBS) --durations=40 --durations-min=5

.PHONY: weekly
weekly: $(VENV)/.ready $(VENV)/.packages $(VENV)/.independent ## all tests with whole sweeps, of which `test` has samples: for once a week
	$(BIN)/python -m pytest -n $(JOBS) -m "" --hypothesis-profile=weekly

.PHONY: faults
faults: $(VENV)/.ready $(VENV)/.packages ## seed the bugs of benchmarks/faults.toml, and say which test files catch each: three hours, for once a week
	$(BIN)/python benchmarks/faults.py --jobs $(JOBS)

.PHONY: quick
quick: lint ## lint, and the tests of what changed against BASE=main: at most 5 minutes
	$(BIN)/python .ci/quick $(or $(BASE),main)

.PHONY: core
core: $(VENV)/.ready ## tests of the core in a copy without mcudeploy/extensions
	$(BIN)/python .ci/core

.PHONY: analyse
analyse: $(VENV)/.ready $(VENV)/.packages ## gcc -fanalyzer, cppcheck with MISRA and clang-tidy on all C: 10 minutes, for once a week
	@.ci/packages cppcheck clang-tidy
	$(BIN)/python benchmarks/analyse.py

.PHONY: lint
lint: $(VENV)/.ready ## ruff, mypy and the phrases that docs/glossary.md bans
	$(BIN)/ruff check .
	$(BIN)/mypy
	.ci/wording

.PHONY: docs
docs: $(VENV)/.ready ## the documentation site, in site/; fails for links that lead nowhere
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

.PHONY: docs-test
docs-test: $(VENV)/.ready $(VENV)/.packages ## run the commands of all tutorials and of docs/skill.md: 15 minutes, for once a week
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[search]'
	$(BIN)/python benchmarks/tutorials.py
	$(BIN)/python benchmarks/tutorials.py --pages docs/first-evening
	$(BIN)/python benchmarks/tutorials.py skill --pages docs

.PHONY: league
league: $(VENV)/.ready $(VENV)/.packages ## other tools on the networks in MODELS=models, docs/league.md: up to two hours, for once a week
	$(BIN)/python benchmarks/league.py $(MODELS) --output $(OUTPUT)/league.md

.PHONY: dist
dist: $(VENV)/.ready ## wheel and sdist, built twice and compared, in dist/
	$(BIN)/python benchmarks/distributions.py

.PHONY: figures
figures: $(VENV)/.ready $(VENV)/.packages ## tables of README and docs, from the models in MODELS=DIR: half an hour
	$(BIN)/python benchmarks/figures.py --models $(or $(MODELS),$(error MODELS=DIR names the folder of the models))

.PHONY: size
size: $(VENV)/.ready $(VENV)/.packages ## arena, flash, stack and instructions of the example, beside those of BASE=main
	$(BIN)/python benchmarks/size.py --board $(BOARD) --base $(or $(BASE),main)

.PHONY: setup
setup: $(VENV)/.ready $(VENV)/.packages ## packages and virtual environment only

.PHONY: clean
clean: ## remove everything that make made
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist site
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.packages: .ci/packages
	@.ci/packages
	@mkdir -p $(VENV) && touch $@

$(VENV)/.independent: .ci/independent | $(VENV)/.ready
	@.ci/independent $(VENV)
	@ls $(VENV)/independent/*.missing >/dev/null 2>&1 || touch $@

$(VENV)/.ready: pyproject.toml .ci/venv | $(VENV)/.packages
	@PYTHON="$(PYTHON)" .ci/venv $(VENV) dev
	@touch $@

# What users install; a virtual environment that has more stays as it is.
$(VENV)/.light: pyproject.toml .ci/venv .ci/packages
	@if [ -e $(VENV)/.ready ]; then $(MAKE) --no-print-directory $(VENV)/.ready; \
	else .ci/packages --demo && PYTHON="$(PYTHON)" .ci/venv $(VENV); fi
	@touch $@
