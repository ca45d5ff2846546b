# Everything sets itself up: a Python >= 3.11 with venv, and make, are all that is needed.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.stamp-dev
UV     := $(BIN)/uv
COMPILE := $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url --no-annotate
PYTEST := $(BIN)/pytest -n 2 --dist worksteal

.PHONY: demo test lint type proto proto-check lock lock-check bench matrix soak fuzz kubectl clean venv fmt

demo: $(STAMP)
	$(BIN)/drakit demo

test: $(STAMP)
	$(PYTEST) -m "not matrix and not soak and not browser and not fuzz"

venv: $(STAMP)

$(STAMP): requirements/dev.txt requirements/uv.txt pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/uv.txt
	VIRTUAL_ENV=$(VENV) $(UV) pip sync --quiet --require-hashes requirements/dev.txt requirements/uv.txt
	VIRTUAL_ENV=$(VENV) $(UV) pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

fmt: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

type: $(STAMP)
	$(BIN)/mypy

proto: $(STAMP)
	$(BIN)/python -m grpc_tools.protoc -I proto --python_out=. --pyi_out=. --grpc_python_out=. $(sort $(wildcard proto/drakit/_proto/*.proto))

proto-check: proto
	git diff --exit-code -- drakit/_proto

lock: $(STAMP)
	$(COMPILE) pyproject.toml --extra driver -o requirements/run.txt
	$(COMPILE) pyproject.toml --extra all --group dev -o requirements/dev.txt
	$(COMPILE) --group build -o requirements/build.txt

lock-check: $(STAMP)
	cp requirements/run.txt $(VENV)/run.txt && $(COMPILE) pyproject.toml --extra driver -o $(VENV)/run.txt && diff -u requirements/run.txt $(VENV)/run.txt
	cp requirements/build.txt $(VENV)/build.txt && $(COMPILE) --group build -o $(VENV)/build.txt && diff -u requirements/build.txt $(VENV)/build.txt
	cp requirements/dev.txt $(VENV)/dev.txt && $(COMPILE) pyproject.toml --extra all --group dev -o $(VENV)/dev.txt && diff -u requirements/dev.txt $(VENV)/dev.txt

bench: $(STAMP)
	for bench in $(filter-out bench/inputs.py,$(wildcard bench/*.py)); do $(BIN)/python $$bench || exit 1; done

matrix: $(STAMP)
	$(PYTEST) -m matrix

soak: $(STAMP)
	$(PYTEST) -m soak

fuzz: $(STAMP)
	$(PYTEST) -m fuzz

clean:
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .import_linter_cache
