# Two commands to know: `make run` and `make test`. Each sets up what it needs in .venv first.
PYTHON ?= python3
BIN := .venv/bin
PORT ?= 8501

.PHONY: run test test-all check test-gpu scale setup clean

run: .venv/ready
	@$(BIN)/python serve.py $(PORT)

# Tests start hundreds of processes: what one has compiled the others read, whatever the environment says.
test test-all: export PYTHONDONTWRITEBYTECODE :=
# Long tests take turns: each runs on every tenth day.
test: .venv/ready-dev
	$(BIN)/python -m pytest -m "not gpu" -n 3 --turn today

test-all: .venv/ready-dev
	$(BIN)/python -m pytest -m "not gpu" -n 3

check: .venv/ready-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy -n 2 app.py serve.py pages engine storage tests benchmarks

test-gpu:
	$(PYTHON) -m pytest -m gpu tests/gpu tests/engine/evaluator/toolchains

# A run of 20,000 iterations goes on while a browser shows each kind of page: two to three minutes on quiet cores.
scale: .venv/ready-dev
	$(BIN)/python -m benchmarks.dashboard_scale --runs 4 --iterations 20000 --loads 0 --only "long run" \
		--minutes 1 --lines 1 --most-mb 600

setup: .venv/ready-dev

.venv/ready: requirements.txt
	@PYTHON="$(PYTHON)" sh setup.sh $< $@

# What the tests need holds what the dashboard needs: one installation, two marks.
.venv/ready-dev: requirements-dev.txt requirements-ranking.txt requirements.txt
	@PYTHON="$(PYTHON)" sh setup.sh $< $@ .venv/ready

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache
