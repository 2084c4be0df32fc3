# Everything here sets itself up: Python 3.11 or later, a C++20 compiler and make are enough.

PYTHON ?= python3
CXX ?= g++
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q
CORES := $(shell getconf _NPROCESSORS_ONLN)

SOURCES := pyproject.toml CMakeLists.txt $(shell find native src -name '*.[ch]pp' -o -name '*.py' -o -name '*.pyi' -o -name '*.csv' -o -name '*.css' -o -name '*.js' -o -name '*.html' -o -name '*.svg')
HEADERS := $(wildcard native/*.hpp native/*/*.hpp)
TESTS := $(patsubst native/tests/%.cpp,%,$(wildcard native/tests/*_test.cpp))
.SECONDARY:  # objects are kept
CXXFLAGS := -std=c++20 -Inative -Wall -Wextra -Wpedantic -Wconversion -Werror -ffp-contract=off
SANITIZED := -Og -g1 -fsanitize=address,undefined -fno-sanitize-recover=all

# With LIMEN_THOROUGH in the environment, tests draw more at random and none is cut short.
OUT := build$(if $(LIMEN_THOROUGH),/thorough)
USUAL := $(if $(LIMEN_THOROUGH),-DLIMEN_THOROUGH)
QUICK := $(if $(LIMEN_THOROUGH),,-DLIMEN_QUICK)

.PHONY: demo serve-demo test native-test python-check sanitize clang-test aarch64-test x86-test \
        python-sanitize thread-sanitize lint types stubs lowest api-check check thorough docs coverage bench \
        bench-native bench-spark trust-laws study-trust study wheels audit clean

## The main job on a small real data set.
demo: $(VENV)/installed
	@$(BIN)/limen demo
	@mkdir -p build
	@$(BIN)/limen demo --csv > build/scores.csv
	@printf '\n$$ limen fit scores.csv --false-negative 5\n'
	@$(BIN)/limen fit build/scores.csv --false-negative 5

## The service, with a real stream of scores and late labels played into it.
serve-demo: $(VENV)/serve
	@$(BIN)/python examples/serve_demo.py

## Every test that needs no other program: Python, documentation examples, C++.
test:
	@$(MAKE) --no-print-directory --jobs=$(CORES) $(VENV)/test $(TESTS:%=$(OUT)/native/%)
	LIMEN_NATIVE_TESTS=$(OUT)/native $(BIN)/python -m pytest -rs -m "not check" $(SPREAD)
SPREAD := --numprocesses=$(CORES) --dist=worksteal

## The C++ tests alone, without Python.
native-test: $(TESTS:%=$(OUT)/native/%)
	$(run)

## The tests that need Spark, a browser, boosting libraries, other projects' tests or the site.
python-check: $(VENV)/check
	$(BIN)/python -m pytest -rs -m check

# Where a tool is missing, one line says what was not run; .ci/run repeats it at its end.
having = $(if $(shell command -v $(1)),$(2))
run = @$(if $^,set -e; for test in $^; do echo "$(1) $$test"; $(1) $$test; done,$(skip))
skip = echo "skipped: $@, as $(needs) cannot be found"

## The C++ tests under address and undefined-behaviour sanitizers.
sanitize: $(TESTS:%=$(OUT)/sanitized/%)
	$(run)

## The C++ tests built by the other compiler.
clang-test: needs := clang++
clang-test: $(call having,clang++,$(foreach level,$(if $(LIMEN_THOROUGH),1 2 3,2),$(TESTS:%=$(OUT)/clang-O$(level)/%)))
	$(run)

## The C++ tests on another architecture.
aarch64-test: needs := aarch64-linux-gnu-g++ or qemu-aarch64
aarch64-test: $(call having,aarch64-linux-gnu-g++,$(call having,qemu-aarch64,$(TESTS:%=$(OUT)/aarch64/%)))
	$(call run,qemu-aarch64)

## The kernels on processors without AVX2, and without AVX-512 (qemu has none).
x86-test: needs := qemu-x86_64
x86-test: $(call having,qemu-x86_64,$(OUT)/native/kernels_test)
	$(call run,qemu-x86_64 -cpu Nehalem)
	$(call run,qemu-x86_64 -cpu max)

# Python as it is with limen's core sanitized: the sanitizer must be there before anything else,
# and its reports, which end the process, must not be captured with it.
under = PYTHONPATH=$(CURDIR)/build/$(1) PYTHONMALLOC=malloc ASAN_OPTIONS=detect_leaks=0 LIMEN_THOROUGH= \
        LD_PRELOAD="$$($(CXX) -print-file-name=lib$(1).so) $$($(CXX) -print-file-name=libstdc++.so)" \
        $(BIN)/python
sanitized = @if $(call under,$(1)) -c ""; then \
            $(call under,$(1)) -c "import limen; assert '/$(1)/' in limen.__file__" && \
            $(call under,$(1)) -m pytest --capture=sys -rs $(2); \
            else echo "skipped: $@, as the sanitizer does not start on this machine"; fi
tests_of = $(patsubst %,tests/test_%.py,$(1))

## The Python tests that reach deepest into the core, under the same sanitizers; at length all.
python-sanitize: build/asan/installed
	$(call sanitized,asan,$(if $(LIMEN_THOROUGH),,$(call tests_of,arithmetic batch calibrator columns extremes merge semantics service storage venn_abers)))

## Threads that share one object, under the thread sanitizer. It sees what the core reads and
## writes, and every lock, that of Python too; what NumPy reads and writes it does not see.
thread-sanitize: build/tsan/installed
	$(call sanitized,tsan,-k thread $(call tests_of,semantics merge calibrator ledger ledger_groups locks readers venn_abers))

lint: $(VENV)/check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run -Werror $(shell find native -name '*.[ch]pp')

types: $(VENV)/check
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest limen._core --allowlist tests/stubtest_allowlist.txt
	$(BIN)/python tests/typed_uses.py
	$(BIN)/mypy --strict --config-file= tests/typed_uses.py
	$(BIN)/pyright --pythonpath $(BIN)/python tests/typed_uses.py
	$(BIN)/ty check --python $(VENV) tests/typed_uses.py
	$(BIN)/pyrefly check --python-interpreter-path $(BIN)/python tests/typed_uses.py

## The types of the core, made anew of its bindings; a test compares them.
stubs: $(VENV)/check
	$(BIN)/python native/stubs.py > build/_core.pyi
	mv build/_core.pyi src/limen/_core.pyi
	$(BIN)/ruff check --quiet --select F,I --fix src/limen/_core.pyi
	$(BIN)/ruff format --quiet src/limen/_core.pyi

## The lowest versions that pyproject.toml allows, and the tests that use them. They have wheels for
## the oldest Python alone; river is apart, because it needs a newer NumPy than the others.
lowest: needs := Python 3.11
lowest: $(if $(shell $(PYTHON) -c "import sys; sys.exit(sys.version_info[:2] != (3, 11))" && echo yes),build/lowest/installed build/lowest-river/installed)
	$(if $^,$(call at_lowest,lowest) && $(call at_lowest,lowest-river),@$(skip))

at_lowest = OMP_NUM_THREADS=1 build/$(1)/bin/python -m pytest -o filterwarnings=default $(call tests_of,$($(1)_TESTS))
lowest_EXTRAS := sklearn boosting plots frames cli serve
lowest_TESTS := cli columns console duckdb frames narrowing plots recipes saved_elsewhere serve_http sklearn_calibration sklearn_scoring venn_abers
lowest-river_EXTRAS := river sklearn frames
lowest-river_TESTS := river

build/lowest/installed build/lowest-river/installed: build/%/installed: $(VENV)/check
	$(PYTHON) -m venv --clear $(@D)
	$(BIN)/uv pip install -q --python $(@D)/bin/python --resolution lowest-direct -r pyproject.toml $($*_EXTRAS:%=--extra %) --group test
	cp -r $(VENV)/lib/python3.11/site-packages/limen $(VENV)/lib/python3.11/site-packages/limen-*.dist-info $(@D)/lib/python3.11/site-packages
	@touch $@

## The HTTP interface of a real server, tried by schemathesis from its own description.
api-check: $(VENV)/check
	$(BIN)/python tests/api_check.py $(if $(LIMEN_THOROUGH),200,5)

## What must hold besides the tests. Those that cannot be divided come early, so that two jobs at a
## time end together.
check: python-check lowest python-sanitize thread-sanitize lint types api-check sanitize clang-test \
       aarch64-test x86-test

## The same at length, for changes to the core: more examples, and new ones in every run.
thorough:
	LIMEN_THOROUGH=1 $(MAKE) test $(VENV)/check
	LIMEN_THOROUGH=1 $(MAKE) --jobs=$(CORES) --output-sync check

## The documentation site, offline, in build/site/.
docs: $(VENV)/docs
	$(BIN)/python docs/site/build.py

## How much of Python and C++ the tests run; writes docs/coverage.txt.
coverage: $(VENV)/coverage $(TESTS:%=$(OUT)/coverage/%)
	rm -f build/coverage/python* build/coverage/*.gcda
	$(BIN)/coverage run -m pytest
	$(BIN)/coverage combine -q
	@set -e; for test in $(TESTS:%=$(OUT)/coverage/%); do echo "$$test"; $$test; done
	@{ echo 'Python, lines and branches, by every test:'; echo; \
	  $(BIN)/coverage report; \
	  echo; echo 'C++, lines, by the native tests alone (the bindings are tested from Python):'; echo; \
	  $(BIN)/gcovr --root native --exclude '.*test.*' --merge-lines build/coverage; \
	} > docs/coverage.txt
	@grep TOTAL docs/coverage.txt

## Speed as ratios against peers, answers verified first; writes benchmarks/results/.
bench: $(VENV)/bench
	$(BIN)/python -m benchmarks

## The trees alone, each instruction set forced, against the standard library; writes the same place.
bench-native: $(OUT)/bench/trees_bench
	$(PYTHON) -m benchmarks.native $<

## Answers about a Spark frame, against reading it and against Spark ML; writes the same place.
ROWS ?= 1000000
bench-spark: $(VENV)/bench-spark
	$(BIN)/python -m benchmarks.spark $(ROWS)

## The laws behind intervals and evidence, by simulation; writes benchmarks/results/trust/.
trust-laws: $(VENV)/installed
	$(BIN)/python -m benchmarks.trust_constants
	$(BIN)/python -m benchmarks.trust_coverage
	$(BIN)/python -m benchmarks.trust_false_alarms
	$(BIN)/python -m benchmarks.trust_floors
	$(BIN)/python -m benchmarks.trust_proposals

## What thresholds cost on new rows, limen's and others', on scored sets; writes the same place.
STUDY_DATA ?= ../shared/data/open
study-trust: $(VENV)/bench
	$(BIN)/python -m benchmarks.trust_study $(STUDY_DATA)
	$(BIN)/python -m benchmarks.trust_groups $(STUDY_DATA)
	$(BIN)/python -m benchmarks.trust_streams $(STUDY_DATA)

## The methods of the paper, peers and limen on the same rows, resumable; writes
## benchmarks/results/study/, then docs/study.md. PARTS="new_rows floors" runs these alone.
study: $(VENV)/study
	$(BIN)/python -m benchmarks.study $(PARTS)

## Wheels for Linux on x86_64 and aarch64, in dist/, checked and tried; needs debootstrap, qemu-user
## and, for those who are not root, fakeroot.
wheels: $(VENV)/wheels
	$(BIN)/python tools/wheels.py

## Known vulnerabilities of the newest versions of all that pyproject.toml names; asks the index.
audit: $(VENV)/audit
	@mkdir -p build
	$(BIN)/uv pip compile -q pyproject.toml --all-extras $(audit_GROUPS:%=--group %) -o build/audited.txt
	$(BIN)/pip-audit --requirement build/audited.txt --no-deps --disable-pip
audit_GROUPS := test docs coverage check bench study wheels

clean:
	rm -rf build $(VENV)

# What pyproject.toml says that these of its extras and groups need, and `build` and `limen`.
needs_of = $$($(BIN)/python -c "import sys, tomllib; given = tomllib.load(open('pyproject.toml', 'rb')); needs = given['project']['optional-dependencies'] | given['dependency-groups'] | {'build': given['build-system']['requires'], 'limen': given['project']['dependencies']}; print(*(need for name in sys.argv[1:] for need in needs[name]))" $(1))
# uv installs in seconds what takes pip a minute; where it cannot be had, pip does it.
install = @echo "Installing into $(VENV): $(1) ..."; set -- $(call needs_of,$(1)) $(2); \
          $(BIN)/uv pip install -q --python $(BIN)/python "$$@" || $(PIP) install "$$@"

$(BIN)/python:
	@echo "Making $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)

$(VENV)/tools: $(BIN)/python pyproject.toml
	@$(PIP) install uv || true
	$(call install,build limen,$(foreach tool,cmake ninja,$(if $(shell command -v $(tool)),,$(tool))))
	@touch $@

# The package is installed as a user would install it, and again whenever a source changes; what did
# not change is not compiled again.
$(VENV)/installed: $(VENV)/tools $(SOURCES) README.md tools/index_page.py native/sbom.cdx.json.in
	@mkdir -p build
	@echo "Compiling limen's core (its trees and memories, its bindings, nanobind) and installing limen into $(VENV) ..."
	@$(BIN)/python native/progress.py build/installing.txt $(BIN)/python -m pip install -v \
	    --no-build-isolation --no-deps -Cbuild-dir=build/core .
	@touch $@

# The extras and groups of pyproject.toml that each job needs; test and check use every library that
# limen meets.
test_NEEDS := test sklearn river plots frames cli serve
check_NEEDS := $(test_NEEDS) check boosting spark-connect docs study
docs_NEEDS := docs
serve_NEEDS := serve
coverage_NEEDS := $(check_NEEDS) coverage
wheels_NEEDS := wheels
audit_NEEDS := audit
bench_NEEDS := bench cli
study_NEEDS := study plots
bench-spark_NEEDS := spark

$(VENV)/test $(VENV)/check $(VENV)/docs $(VENV)/serve $(VENV)/coverage $(VENV)/bench $(VENV)/study $(VENV)/bench-spark: $(VENV)/%: $(VENV)/installed
	$(call install,$($*_NEEDS))
	@touch $@

$(VENV)/wheels $(VENV)/audit: $(VENV)/%: $(VENV)/tools
	$(call install,$($*_NEEDS))
	@touch $@

# The ways to build the C++ tests: a name, a compiler and its flags. What many of them use is compiled
# once for each way.
define built
$(OUT)/$(1)/%.o: native/tests/%.cpp $(HEADERS)
	@mkdir -p $$(@D)
	@echo "$$@"
	@$(2) $(CXXFLAGS) $(3) -c $$< -o $$@
$(OUT)/$(1)/map_average.o: native/samples/map_average.cpp $(HEADERS)
	@mkdir -p $$(@D)
	@echo "$$@"
	@$(2) $(CXXFLAGS) $(3) -c $$< -o $$@
$(OUT)/$(1)/instances.o: native/instances.cpp $(HEADERS)
	@mkdir -p $$(@D)
	@echo "$$@"
	@$(2) $(CXXFLAGS) $(3) -c $$< -o $$@
$(OUT)/$(1)/%: $(OUT)/$(1)/%.o $(OUT)/$(1)/instances.o $(OUT)/$(1)/map_average.o
	@$(2) $(3) $$^ -o $$@
endef
$(eval $(call built,native,$(CXX),-O2 $(USUAL)))
$(eval $(call built,bench,$(CXX),-O3))
$(eval $(call built,sanitized,$(CXX),$(SANITIZED) $(QUICK)))
$(eval $(call built,coverage,$(CXX),-O1 --coverage -DLIMEN_QUICK))
$(eval $(call built,aarch64,aarch64-linux-gnu-g++,-O2 -static $(QUICK)))
$(foreach level,1 2 3,$(eval $(call built,clang-O$(level),clang++,-O$(level))))

# limen with a sanitizer in its core, and with warnings as errors.
asan_FLAGS := $(SANITIZED)
tsan_FLAGS := -Og -g1 -fsanitize=thread
build/%/installed: $(VENV)/test
	@mkdir -p $(@D)
	CXXFLAGS="$($*_FLAGS)" $(BIN)/python native/progress.py $(@D)/installing.txt \
	    $(BIN)/python -m pip install -v --no-build-isolation --no-deps --upgrade --target $(@D) \
	    -Cbuild-dir=$(@D)/core -Ccmake.build-type=Check \
	    -Ccmake.define.LIMEN_WARNINGS_ARE_ERRORS=ON .
	@touch $@
