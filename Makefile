# Two commands for a fresh machine with Python 3.11+ and git: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test lint bench gpu-test clean

# A scratch repository from nothing: init, one experiment on the CPU, the verdict, the commit and the plan
demo: $(STAMP)
	@set -e; perfplan="$$PWD/$(BIN)/perfplan"; scratch=$$(mktemp -d); cd "$$scratch"; \
	git init -q; git config user.name demo; git config user.email demo@example.org; \
	say() { printf '\n$$ %s\n' "$$*"; "$$@"; }; perfplan() { "$$perfplan" "$$@"; }; \
	say perfplan init; \
	say perfplan run experiments/example.yaml; \
	say git --no-pager log -1; \
	say cat plans/*_PERF_PLAN.md; \
	printf '\nThe repository is in %s\n' "$$scratch"

test: $(STAMP) lint
	$(BIN)/python -m pytest -n 2 --dist loadfile -q

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Whole processes, side by side; docs/speed.md and docs/h200-anchors.md hold the figures
bench: $(STAMP)
	$(BIN)/python tests/benchmarks/cli_speed.py

gpu-test: $(STAMP)
	$(BIN)/python -m pytest -q tests/gpu

clean:
	rm -rf $(VENV) build *.egg-info

# torch comes first and by itself: constraints.txt pins the build that pip finds for the CPU
$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "perfplan needs Python 3.11 or newer")'
	test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]' 'triton>=3.6,<3.10'
	touch $@
