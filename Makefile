# `make` alone prints this help. T= narrows a run: make test T=tests/store, make demo T=--keep
.DEFAULT_GOAL := help
PY := .venv/bin/python
unexport PYTHONDONTWRITEBYTECODE

help: ## show this help
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1|/' | column -t -s '|'

setup: .venv/.ready ## make the virtual environment (.venv) with everything pinned

.venv/.ready: requirements/dev.txt pyproject.toml
	@test -x $(PY) || python3 -m venv .venv 2>/dev/null || \
	  { rm -rf .venv; python3 -m pip install --quiet --user --break-system-packages uv && python3 -m uv venv --seed --quiet .venv; } || \
	  { echo "Sluice needs Python 3.11 or newer with venv or pip: apt-get install python3-venv" >&2; exit 1; }
	@$(PY) -m pip --version >/dev/null 2>&1 || $(PY) -m ensurepip --upgrade >/dev/null
	$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(PY) -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

fmt: setup ## format and fix what can be fixed
	$(PY) -m ruff format .
	$(PY) -m ruff check --fix .

lint: setup ## style, imports between layers, sizes
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	.venv/bin/lint-imports --no-cache

types: setup ## mypy, strict on app
	$(PY) -m mypy

check: lint types ## all that needs no running part

assets: setup ## build the control plane for the tests, once (ten minutes, kept in the cache)
	$(PY) -m tests.cluster.build

test: assets ## all tests, on a real Postgres and a real Kubernetes control plane (both started here)
	$(PY) -m pytest $(T)

conformance: setup ## decisions against vector files: DIR=folder [FAMILIES="a b"]
	$(PY) -m tests.conformance $(or $(DIR),$(error name the folder: make conformance DIR=...)) $(FAMILIES)

demo: setup ## two teams, a 16-node GPU cluster in a process, about 30 jobs, start to end
	$(PY) -m app demo $(T)

demo-real: setup ## the same on a real control plane (built at the first run, ten minutes)
	$(PY) -m tests.cluster.demo $(T)

serve: setup ## the service, for the cluster of KUBECONFIG
	$(PY) -m app serve $(T)

bench: setup ## admissions a second, cost of the service, events a second
	$(PY) -m tests.bench $(T)

bench-core: setup ## what decisions cost, without network or database
	$(PY) -m tests.bench core $(T)

openapi: setup ## write openapi/ anew from the models
	$(PY) -m app openapi openapi

clean: ## remove what was made here, the embedded database included
	rm -rf .venv .sluice .mypy_cache .ruff_cache .pytest_cache .hypothesis dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: help setup assets fmt lint types check test conformance demo demo-real serve bench bench-core openapi clean
