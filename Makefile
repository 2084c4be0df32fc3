# Everything here sets itself up: Python 3.11 or later, a C++20 compiler and make are enough.

PYTHON ?= python3
CXX ?= g++
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q

SOURCES := pyproject.toml CMakeLists.txt $(shell find native src -name '*.[ch]pp' -o -name '*.py' -o -name '*.pyi' -o -name '*.csv' -o -name '*.css' -o -name '*.js')
HEADERS := $(wildcard native/*.hpp)
NATIVE_TESTS := $(patsubst native/%.cpp,build/native/%,$(wildcard native/*_test.cpp))
SANITIZED_TESTS := $(patsubst native/%.cpp,build/sanitized/%,$(wildcard native/*_test.cpp))
CXXFLAGS := -std=c++20 -Wall -Wextra -Wpedantic -Wconversion -Werror -ffp-contract=off

.PHONY: demo test python-test native-test sanitize lint types check bench trust-laws clean

## The main job on a small real data set.
demo: $(VENV)/installed
	@$(BIN)/limen demo
	@mkdir -p build
	@$(BIN)/limen demo --csv > build/scores.csv
	@printf '\n$$ limen fit scores.csv --false-negative 5\n'
	@$(BIN)/limen fit build/scores.csv --false-negative 5

## Every test: Python, documentation examples, C++.
test: python-test native-test

python-test: $(VENV)/test
	$(BIN)/python -m pytest

native-test: $(NATIVE_TESTS)
	@set -e; for test in $^; do echo "$$test"; $$test; done

## The C++ tests under address and undefined-behaviour sanitizers.
sanitize: $(SANITIZED_TESTS)
	@set -e; for test in $^; do echo "$$test (sanitized)"; $$test; done

lint: $(VENV)/check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/check
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest limen._core --allowlist tests/stubtest_allowlist.txt

## What must hold besides the tests.
check: lint types sanitize

## Speed as ratios against peers, answers verified first; writes benchmarks/results/.
bench: $(VENV)/bench
	$(BIN)/python -m benchmarks

## The laws behind intervals and evidence, by simulation; writes benchmarks/results/trust/.
trust-laws: $(VENV)/installed
	$(BIN)/python -m benchmarks.trust_constants
	$(BIN)/python -m benchmarks.trust_coverage
	$(BIN)/python -m benchmarks.trust_false_alarms

clean:
	rm -rf build $(VENV)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# The package is installed as a user would install it, and again whenever a source changes.
$(VENV)/installed: $(BIN)/python $(SOURCES) README.md
	$(PIP) install .
	@touch $@

# The extras of pyproject.toml that each job needs; the tests use every library limen meets.
test_EXTRAS := test sklearn river plots frames cli report
check_EXTRAS := check
bench_EXTRAS := bench cli

$(VENV)/test $(VENV)/check $(VENV)/bench: $(VENV)/%: $(VENV)/installed
	$(PIP) install $$($(BIN)/python -c "import sys, tomllib; extras = tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']; print(*(need for name in sys.argv[1:] for need in extras[name]))" $($*_EXTRAS))
	@touch $@

build/native/%: native/%.cpp $(HEADERS)
	@mkdir -p $(@D)
	$(CXX) $(CXXFLAGS) -O2 $< -o $@

build/sanitized/%: native/%.cpp $(HEADERS)
	@mkdir -p $(@D)
	$(CXX) $(CXXFLAGS) -Og -g1 -fsanitize=address,undefined -fno-sanitize-recover=all -DLIMEN_SANITIZED $< -o $@
