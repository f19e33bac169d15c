# The one door. `make demo` and `make test` work on a fresh Debian 12 machine: they install what is missing (testbed/setup) and
# build what is out of date. See CONTRIBUTING.md for what each target is for.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build

PYTHON  ?= python3
QUICK   ?=
# The Spark that tests, demo and benches run, and the oldest line that is supported.
SPARK     := 4.3.0
SPARK_OLD := 4.0.1

PLATFORM := linux-$(shell uname -m)
NATIVE   := build/native/$(PLATFORM)/libmillstream_jni.so
LICENSES := build/native/THIRD-PARTY-LICENSES
JAR      := jvm/spark/target/millstream-spark.jar
VENV     := build/venv-$(SPARK)
VENV_OLD := build/venv-$(SPARK_OLD)
RUST_SOURCES := $(shell find crates -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock
JVM_SOURCES  := $(shell find jvm -path '*/target' -prune -o -type f -print)

.PHONY: build tools jar wheel demo test test-rust test-beds test-tools test-gnu test-jvm test-spark test-group test-all package packages release fuzz bench fmt clean

build: tools jar wheel

tools: target/release/pfind

target/release/pfind $(NATIVE) &: $(RUST_SOURCES) $(wildcard jvm/spark/src/main/resources/millstream/*)
	testbed/setup build
	cargo build --release --locked
	install -D target/release/libmillstream_jni.so $(NATIVE)
	touch target/release/pfind

$(LICENSES): packaging/third-party-licenses packaging/crates.py Cargo.lock
	mkdir -p $(@D)
	packaging/third-party-licenses > $@.new
	mv $@.new $@

jar: $(JAR)

$(JAR): $(NATIVE) $(LICENSES) $(JVM_SOURCES)
	mvn -B -q -f jvm/pom.xml -DskipTests package
	touch $@

wheel: build/wheel.stamp

build/wheel.stamp: $(JAR) target/release/pfind $(shell find python -type f -not -path '*/dist/*' -not -path '*/__pycache__/*' -not -path '*/.*')
	$(PYTHON) -m venv build/venv-build
	build/venv-build/bin/pip -q install -r python/requirements-build.txt
	rm -rf python/dist
	build/venv-build/bin/python -m build --wheel python
	touch $@

# An environment with one Spark and our wheel in it.
build/venv-%/ready: build/wheel.stamp python/requirements-test.txt
	test -x build/venv-$*/bin/python || $(PYTHON) -m venv build/venv-$*
	build/venv-$*/bin/pip -q install pyspark==$* -r python/requirements-test.txt
	build/venv-$*/bin/pip -q install --force-reinstall --no-deps python/dist/*.whl
	touch $@

demo: tools $(VENV)/ready
	testbed/setup demo
	$(VENV)/bin/python bench/demo.py

test: test-rust test-beds test-tools test-gnu test-jvm test-spark

test-rust:
	testbed/setup build test
	cargo fmt --check
	cargo clippy --all-targets --locked -- -D warnings
	cargo check --locked --manifest-path fuzz/Cargo.toml --target-dir target/fuzz-check
	$(PYTHON) tests/architecture/check_dependencies.py
	cargo test --locked

test-beds:
	testbed/setup build test
	$(PYTHON) -m unittest discover -s testbed/tests -v
	$(PYTHON) -m unittest discover -s bench/tests -v
	$(PYTHON) -m unittest discover -s tests -p 'test_*.py' -v
	$(PYTHON) -m unittest discover -s tests/packaging -v

test-tools: tools
	testbed/setup build test
	$(PYTHON) -m unittest discover -s tests/tools -v

# The published tests of GNU coreutils and findutils: here a sample, all of them in the group gnu.
test-gnu: tools
	testbed/setup build test gnu
	tests/gnu/run --sample

test-jvm: $(JAR)
	mvn -B -q -f jvm/pom.xml verify

# A share that changes with every commit; all of them in the groups spark-4.3-N and spark-4.0-N. A test that is named runs in any case.
SHARE := auto/24
SHARE_REMOTE := auto/90
SHARE_OLD := auto/120
# First, in any case, the queries whose tasks get a plan, on a cluster: with a local master, executors have the driver's classes.
test-spark: $(VENV)/ready $(VENV_OLD)/ready
	testbed/setup build test s3
	$(VENV)/bin/python -m pytest -q tests/spark/test_switches.py -k executors_get_the_jar
	$(VENV)/bin/python -m pytest -q --share $(SHARE) python/tests tests/spark
	$(VENV)/bin/python -m pytest -q --share $(SHARE_REMOTE) tests/spark/slow_remote_reads.py tests/spark/slow_remote_same_as_stock.py \
	  tests/spark/slow_remote_compressed.py
	$(VENV_OLD)/bin/python -m pytest -q --share $(SHARE_OLD) tests/spark

# Tests that are too long for `make test`: one group of `tests/groups list`, or all of them, which takes hours.
test-group: tools $(VENV)/ready $(VENV_OLD)/ready
	tests/groups run $(GROUP)

test-all: test
	tests/groups run $$(tests/groups list | cut -d' ' -f1)

# What is published, in dist, installed and run in clean root directories.
package: release $(VENV)/ready
	build/venv-package/bin/python -m unittest discover -s tests/packaging -p 'slow_*.py' -v

# Packages, wheel and jar for systems with glibc 2.28 or newer.
release: build/venv-package/ready $(LICENSES)
	testbed/setup build package
	build/venv-package/bin/python packaging/release

# Of these, the .deb and the .rpm of the tools alone, in build/packages.
packages: build/venv-package/ready
	testbed/setup build package
	build/venv-package/bin/python packaging/build

build/venv-package/ready: packaging/requirements.txt python/requirements-build.txt
	$(PYTHON) -m venv build/venv-package
	build/venv-package/bin/pip -q install -r packaging/requirements.txt
	touch $@

fuzz:
	fuzz/run

bench: tools $(VENV)/ready $(VENV_OLD)/ready
	testbed/setup build bench slow write
	bench/report $(if $(QUICK),--quick)

fmt:
	cargo fmt

clean:
	rm -rf build dist target python/dist jvm/*/target
