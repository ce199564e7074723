# Two commands to know: `make run` and `make test`. Each sets up what it needs in .venv first.
PYTHON ?= python3
BIN := .venv/bin
PORT ?= 8501

# All processors compile what pip would compile on one. Some packages carry files for other Pythons: no error here.
define install
$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -r $(1)
$(BIN)/python -m compileall -qq -j 0 .venv/lib || true
endef

.PHONY: run test check test-gpu setup clean

run: .venv/ready
	$(BIN)/streamlit run app.py --server.port=$(PORT)

test: .venv/ready-dev
	$(BIN)/python -m pytest -m "not gpu" -n 3

check: .venv/ready-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy app.py pages engine storage tests benchmarks

test-gpu:
	$(PYTHON) -m pytest -m gpu tests/gpu

setup: .venv/ready-dev

.venv/ready: requirements.txt
	@command -v g++ >/dev/null || { echo "Tilewright needs g++ to compile kernels (Debian: apt install g++)"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(call install,requirements.txt)
	touch $@

.venv/ready-dev: .venv/ready requirements-dev.txt
	$(call install,requirements-dev.txt)
	touch $@

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache
