# The entry point. `make demo` and `make test` work on a fresh Debian 12 machine: they install what is missing (testbed/setup) and
# build what is out of date. See CONTRIBUTING.md for what each target is for.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build

PYTHON  ?= python3
QUICK   ?=
# The Spark that tests, demo and benches run, and the oldest supported line.
release_of = $(shell awk -F'\t' '$$3 == "$(1)" { print $$2 }' testbed/spark-versions.tsv)
SPARK     := $(call release_of,newest)
SPARK_OLD := $(call release_of,oldest)

PLATFORM := linux-$(shell uname -m)
VENV     := build/venv-$(SPARK)
VENV_OLD := build/venv-$(SPARK_OLD)
CHECKED     := build/checked/venv-$(SPARK)
CHECKED_OLD := build/checked/venv-$(SPARK_OLD)
RUST_SOURCES := $(shell find crates -name '*.rs' -o -name Cargo.toml) Cargo.toml Cargo.lock
JVM_SOURCES  := $(shell find jvm -path '*/target' -prune -o -type f -print)
PYTHON_SOURCES := $(shell find python -type f -not -path '*/dist/*' -not -path '*/__pycache__/*' -not -path '*/.*')

.PHONY: build tools jar wheel checked-tools demo test test-parts test-format test-rust test-beds test-tools test-gnu test-jvm test-buckets test-spark \
  test-spark-remote test-spark-old test-changed python-of-tests seed-of-tests test-group test-all package \
  packages release fuzz bench fmt clean

build: tools jar wheel

tools: target/release/pfind
checked-tools: target/checked/pfind
jar: jvm/spark/target/millstream-spark.jar
wheel: build/wheel.stamp

build/THIRD-PARTY-LICENSES: packaging/third-party-licenses packaging/crates.py Cargo.lock
	mkdir -p $(@D)
	packaging/third-party-licenses > $@.new
	mv $@.new $@

# Everything is built with one of two cargo profiles: `release` is what users get and benches measure, `checked` is what
# tests run (Cargo.toml).
# $(1): the profile; $(2): where native code, wheel and environments go; $(3): the modules' build directory
define variant
target/$(1)/pfind $(2)/native/$(PLATFORM)/libmillstream_jni.so &: $$(RUST_SOURCES) $$(wildcard jvm/spark/src/main/resources/millstream/*)
	testbed/setup build
	tests/timed build cargo build --profile $(1) --locked $$(FEATURES_$(1))
	install -D target/$(1)/libmillstream_jni.so $(2)/native/$(PLATFORM)/libmillstream_jni.so
	touch target/$(1)/pfind

$(2)/native/THIRD-PARTY-LICENSES: build/THIRD-PARTY-LICENSES
	install -D -m 644 $$< $$@

jvm/spark/$(3)/millstream-spark.jar: $(2)/native/$(PLATFORM)/libmillstream_jni.so $(2)/native/THIRD-PARTY-LICENSES $$(JVM_SOURCES)
	tests/timed build $$(MAVEN) $$(MAVEN_$(1)) -DskipTests package
	touch $$@

$(2)/wheel.stamp: jvm/spark/$(3)/millstream-spark.jar target/$(1)/pfind $$(PYTHON_SOURCES) | build/venv-build/ready
	rm -rf $$(WHEELS_$(1))
	MILLSTREAM_BUILT_TOOLS=target/$(1) MILLSTREAM_BUILT_JAR=$$< tests/timed build build/venv-build/bin/python -m build --wheel --outdir $$(WHEELS_$(1)) python
	touch $$@

# An environment with one Spark and our wheel in it.
$(2)/venv-%/ready: $(2)/wheel.stamp python/requirements-test.txt
	test -x $(2)/venv-$$*/bin/python || $$(PYTHON) -m venv $(2)/venv-$$*
	tests/timed build $(2)/venv-$$*/bin/python -m pip -q install pyspark==$$* -r python/requirements-test.txt
	$(2)/venv-$$*/bin/python -m pip -q install --force-reinstall --no-deps $$(WHEELS_$(1))/*.whl
	touch $$@
endef
MAVEN := mvn -B -q -f jvm/pom.xml
MAVEN_checked := -Pchecked
# The features that tests need, so that cargo does not compile everything once with and once without them.
FEATURES_checked := --features millstream-vfs/contract,millstream-wire/vectors
WHEELS_release := python/dist
WHEELS_checked := build/checked/dist
$(eval $(call variant,release,build,target))
$(eval $(call variant,checked,build/checked,target/checked))

build/venv-build/ready: python/requirements-build.txt
	$(PYTHON) -m venv build/venv-build
	build/venv-build/bin/python -m pip -q install -r python/requirements-build.txt
	touch $@

build/venv-format/ready: tests/requirements-format.txt
	$(PYTHON) -m venv build/venv-format
	build/venv-format/bin/python -m pip -q install -r $<
	touch $@

demo: tools $(VENV)/ready
	testbed/setup demo
	$(VENV)/bin/python bench/demo.py

# Everything, two parts at a time, each with its output in one piece; in the end, where the time went. Random tests take their
# seed from the commit, so that a run can be repeated; MILLSTREAM_SEED=N is another.
JOBS := 2
SEED = $(shell printf %d 0x$$(git rev-parse --short=8 HEAD 2>/dev/null || echo 1))
test: export MILLSTREAM_SEED ?= $(SEED)
test:
	testbed/setup build test gnu s3
	@tests/timed --begin
	@status=0; $(MAKE) --no-print-directory --jobs $(JOBS) --output-sync=target test-parts || status=$$?; tests/timed --show; exit $$status

# The longest come early.
test-parts: test-format test-spark test-rust test-spark-old test-jvm test-spark-remote test-buckets test-tools test-beds test-gnu

test-format: build/venv-format/ready
	testbed/setup build
	tests/timed $@ tests/format

test-rust:
	testbed/setup build test
	$(PYTHON) tests/architecture/check_dependencies.py
	tests/timed clippy cargo clippy --profile checked --all-targets --locked -- -D warnings
	tests/timed build cargo test --profile checked --locked --lib --test '*' --no-run
	tests/timed $@ testbed/in-memory cargo test --profile checked --locked --lib --test '*'

test-beds:
	testbed/setup build test
	tests/timed $@ testbed/in-memory $(PYTHON) -m unittest discover -s testbed/tests -v
	$(PYTHON) -m unittest discover -s bench/tests -v
	$(PYTHON) -m unittest discover -s tests -p 'test_*.py' -v
	$(PYTHON) -m unittest discover -s tests/packaging -v

test-tools: checked-tools
	testbed/setup build test
	tests/timed $@ testbed/in-memory $(PYTHON) -m unittest discover -s tests/tools -v

# The published tests of GNU coreutils and findutils: here a sample, all of them in the group gnu.
test-gnu: checked-tools
	testbed/setup build test gnu
	tests/timed $@ testbed/in-memory tests/gnu/run --sample

test-jvm: jvm/spark/target/checked/millstream-spark.jar
	tests/timed $@ testbed/in-memory bash -c '$(MAVEN) -Pchecked verify "-Dtest.tmp=$${TMPDIR:-/tmp}"'

# A share of the cases, another one with every commit; the groups spark-4.3-N and spark-4.0-N run all of them.
SHARE := auto/4
SHARE_REMOTE := auto/60
SHARE_OLD := auto/12
# First, in any case, the queries whose tasks get a plan, on a cluster: with a local master, executors have the driver's classes.
test-spark: $(CHECKED)/ready
	testbed/setup build test s3
	tests/timed $@ testbed/in-memory $(CHECKED)/bin/python -m pytest -q tests/spark/cases/test_switches.py -k executors_get_the_jar
	tests/timed $@ testbed/in-memory $(CHECKED)/bin/python -m pytest -q --share $(SHARE) --durations=20 python/tests tests/spark

test-spark-remote: $(CHECKED)/ready
	testbed/setup build test s3
	tests/timed $@ testbed/in-memory $(CHECKED)/bin/python -m pytest -q --share $(SHARE_REMOTE) tests/spark/cases/slow_remote_reads.py \
	  tests/spark/cases/slow_remote_same_as_stock.py tests/spark/cases/slow_remote_compressed.py

test-spark-old: $(CHECKED_OLD)/ready
	testbed/setup build test s3
	tests/timed $@ testbed/in-memory $(CHECKED_OLD)/bin/python -m pytest -q --share $(SHARE_OLD) tests/spark

# psync with S3 buckets; waits for retries most of the time.
test-buckets: checked-tools $(CHECKED)/ready
	testbed/setup build test s3
	tests/timed $@ testbed/in-memory $(CHECKED)/bin/python -m pytest -q tests/buckets

# The tests that a change can affect, in a few minutes.
test-changed: build/venv-format/ready
	testbed/setup build test s3
	tests/changed $(SINCE)

python-of-tests:
	@echo $(CHECKED)/bin/python

seed-of-tests:
	@echo $(SEED)

# Tests that are too long for `make test`: one group of `tests/groups list`, or all of them, which takes hours.
test-group: checked-tools $(CHECKED)/ready $(CHECKED_OLD)/ready
	tests/groups run $(GROUP)

test-all: test
	tests/groups run $$(tests/groups list | cut -d' ' -f1)

# The release artifacts, in dist, installed and run in clean root directories.
package: release $(CHECKED)/ready
	build/venv-package/bin/python -m unittest discover -s tests/packaging -p 'slow_*.py' -v

# Packages, wheel and jar for systems with glibc 2.28 or newer.
release: build/venv-package/ready build/THIRD-PARTY-LICENSES
	testbed/setup build package
	build/venv-package/bin/python packaging/release

# Only the .deb and the .rpm of the tools, in build/packages.
packages: build/venv-package/ready
	testbed/setup build package
	build/venv-package/bin/python packaging/build

build/venv-package/ready: packaging/requirements.txt python/requirements-build.txt
	$(PYTHON) -m venv build/venv-package
	build/venv-package/bin/python -m pip -q install -r packaging/requirements.txt
	touch $@

fuzz:
	fuzz/run

bench: tools $(VENV)/ready $(VENV_OLD)/ready
	testbed/setup build bench slow write
	bench/report $(if $(QUICK),--quick)

fmt: build/venv-format/ready
	tests/format --fix

clean:
	rm -rf build dist target python/dist jvm/*/target
