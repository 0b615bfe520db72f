# Everything runs in .venv, which the first target makes and fills once per pyproject.toml.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.installed
DOCS_READY := .venv/.installed-docs

.DEFAULT_GOAL := help
.PHONY: help demo test lint format bench docs clean

help:  ## show this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed; name one: make PYTHON=python3.12" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

$(DOCS_READY): $(READY)
	$(BIN)/python -m pip install --quiet --editable '.[dev,docs]'
	@touch $@

demo: $(READY)  ## index the documents in docs/ and ask them a question, offline
	$(BIN)/arag models fetch
	$(BIN)/arag index docs --kb .arag
	$(BIN)/arag ask "How many tokens does a chunk have?" --kb .arag

test: $(READY)  ## run every test
	$(BIN)/python -m pytest -n 2 --dist worksteal

lint: $(READY)  ## check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)  ## put the code in shape
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY)  ## measure retrieval quality and speed
	$(BIN)/python -m benchmarks

docs: $(DOCS_READY)  ## write the generated pages and build the site into site/
	$(BIN)/python -m agentic_rag.cli.reference docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

clean:  ## remove what make made; the knowledge base .arag stays
	rm -rf .venv site dist build .mypy_cache .pytest_cache .ruff_cache .hypothesis
