# Everything runs in .venv, which `make .venv/ready` sets up from constraints.txt.
PYTHON ?= python3
BIN := .venv/bin
STACKS ?=
FLEET := playbooks/pytorch/fleet.yaml

.PHONY: rehearse test test-all test-slow test-cluster lint types layers bench docs clean

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

rehearse: .venv/ready
	$(BIN)/runfleet rehearse $(STACKS)

test: .venv/ready
	$(BIN)/python -m pytest -q -n auto -m 'not slow and not cluster'

test-all: .venv/ready lint types layers
	$(BIN)/python -m pytest -q -n auto -m 'not cluster'

test-slow: .venv/ready lint types layers
	$(BIN)/python -m pytest -q -n auto -m 'slow and not cluster'

# Needs a real API server: found by KUBEBUILDER_ASSETS or PATH, else built once with Go.
test-cluster: .venv/ready
	$(BIN)/python -m pytest -q -m cluster tests/cluster

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/ready
	$(BIN)/pyright

layers: .venv/ready
	$(BIN)/lint-imports

bench: .venv/ready
	$(BIN)/python -m benchmarks

docs: .venv/ready
	$(BIN)/python -m runfleet.cli.reference docs/reference

clean:
	rm -rf .venv out dist build
