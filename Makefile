# Everything a person needs, each a command that sets up what is missing.
VENV ?= .venv
BIN := $(VENV)/bin
PYTHON ?= python3
export HF_HUB_DISABLE_TELEMETRY := 1
export TOKENIZERS_PARALLELISM := false

.PHONY: demo test lint format clean
demo: $(VENV)/ready
	$(BIN)/symbal demo --out demo-out

test: $(VENV)/ready
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# torch first and by itself: pip then takes one build of it instead of backtracking over many.
$(VENV)/ready: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet torch torchvision
	$(BIN)/python -m pip install --quiet --editable '.[lite,dev]'
	touch $@

clean:
	rm -rf $(VENV) demo-out build *.egg-info
