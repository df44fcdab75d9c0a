# The commands of the project. `make demo` and `make test` need only Python 3.11 or newer and make.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: help install demo test lint format docs bench-speed bench-scale clean

help:
	@echo "make demo         create the environment, fit a model, write demo/report.html"
	@echo "make test         run linters, type checks and all tests"
	@echo "make lint         run ruff and mypy"
	@echo "make format       format the code"
	@echo "make docs         build the documentation into site/"
	@echo "make bench-speed  measure training against plain loops, and predictions, on this machine"
	@echo "make bench-scale  fit 100 million rows from disk, kill processes, predict a folder by several workers"
	@echo "make clean        remove the environment and everything that was built"

install: $(STAMP)

$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("nkcme needs Python 3.11 or newer, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	touch $(STAMP)

demo: install
	$(BIN)/nkcme demo --out demo

test: lint
	# By file: tests of one file share compiled programs. (xdist's groups do nothing in pytest 9.2.)
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: install
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: install
	$(BIN)/mkdocs build --strict

bench-speed: install
	$(BIN)/python -m benchmarks speed
	$(BIN)/python -m benchmarks rl-speed
	$(BIN)/python -m benchmarks runtime-speed
	$(BIN)/python -m benchmarks start-speed
	$(BIN)/python -m benchmarks fit-speed
	$(BIN)/python -m benchmarks busy-speed

bench-scale: install
	$(BIN)/python -m benchmarks scale-predict
	$(BIN)/python -m benchmarks scale

clean:
	rm -rf $(VENV) demo site dist .mypy_cache .ruff_cache .pytest_cache
