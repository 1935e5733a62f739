# make run    everything installed and built, then the first experiment
# make check  formats, lints, types and the tests of units: no guest, no root, under three minutes
# make test   everything installed and built, then the tests
# make test-all  those, and the tests that take too long for them (PART=2/8: an eighth of these)
# make setup  that part alone; after it the command is .venv/bin/joj
# make help   lists the rest

.DEFAULT_GOAL := help
.PHONY: help run test test-all setup packages python test-packages full-packages agent \
	agent-arm64 collector image cure linked wheel image-oci docs findings man deb release check lint \
	lint-agent lint-python lint-imports lint-javascript coverage test-agent test-flash fuzz test-python test-seconds \
	test-host format requirements clean

# joj and Python are started some hundred times: what they compile of jojlab is kept.
unexport PYTHONDONTWRITEBYTECODE

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' Makefile

# joj run builds the guest image itself when there is none yet.
run: python agent ## what one commit costs: runs experiments/first-look and shows it
	.venv/bin/joj run experiments/first-look

setup: python agent image ## installs packages, builds agent, environment and guest image

packages:
	@setup/packages.sh packages.txt packages-agent.txt
	@setup/rust.sh

python: packages
	@setup/python.sh

test-packages:
	@setup/packages.sh packages-test.txt

full-packages: python
	@setup/packages.sh packages-full.txt
	@setup/locked.sh full >.venv/locked-full.txt
	@.venv/bin/pip install -q --disable-pip-version-check --require-hashes \
		-r .venv/locked-full.txt

# Paths are mapped away, so that the agent's bytes do not depend on where it was built. Of two that
# match the last one counts.
MAPPED := $(HOME)=/home $(CURDIR)=/jojlab
agent: export CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS = -C target-feature=+crt-static \
	$(MAPPED:%=--remap-path-prefix=%)
agent: export CFLAGS = $(MAPPED:%=-ffile-prefix-map=%)
agent: packages
	@echo "setup: building the agent"
	@cargo build --release --quiet

# The agent for arm64, on a machine of either kind: docs/arm64.md.
ARM64 := aarch64-unknown-linux-gnu
ARM64_LIBRARIES := $(CURDIR)/target/arm64/usr
agent-arm64: export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS = \
	-C target-feature=+crt-static -L native=$(ARM64_LIBRARIES)/lib/aarch64-linux-gnu \
	$(MAPPED:%=--remap-path-prefix=%)
agent-arm64: export CFLAGS_aarch64_unknown_linux_gnu = $(MAPPED:%=-ffile-prefix-map=%) \
	-I$(ARM64_LIBRARIES)/include -I$(ARM64_LIBRARIES)/include/aarch64-linux-gnu
agent-arm64: packages ## joj-agent for arm64: target/aarch64-unknown-linux-gnu/release
	@setup/packages.sh packages-arm64.txt
	@setup/arm64.sh
	@echo "setup: building the agent for arm64"
	@cargo build --release --quiet --target $(ARM64)

# Beside the agent. What is linked into it, TLS in C by ring, is built by nothing else.
UPLOADER := --manifest-path agent/uploader/Cargo.toml --target-dir target
collector: export CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS = -C target-feature=+crt-static \
	$(MAPPED:%=--remap-path-prefix=%)
collector: export CFLAGS = $(MAPPED:%=-ffile-prefix-map=%)
collector: agent ## joj-agent and joj-uploader, which devices of a fleet need
	@echo "setup: building the uploader"
	@cargo build --release --quiet $(UPLOADER)

image: python agent
	@.venv/bin/joj doctor --build

cure: packages ## vfs/build: the VFS that makes commits cheap, for both processors (docs/cure.md)
	@setup/packages.sh packages-arm64.txt
	@$(MAKE) -s -C vfs
	@$(MAKE) -s -C vfs CC=aarch64-linux-gnu-gcc BUILD=build/arm64

# What is packed has the time of the commit.
linked wheel man deb release: export SOURCE_DATE_EPOCH := \
	$(shell git log -1 --format=%ct 2>/dev/null || echo 0)

linked: python agent agent-arm64
	@.venv/bin/python setup/linked.py

wheel: linked cure ## dist/*.whl: joj with all that it needs; pipx install dist/*.whl
	@rm -rf dist
	@.venv/bin/hatchling build -t wheel

# BASE is an image of Debian 12, and OCI_OPTIONS are further words for buildah, as
# `--isolation chroot --network host` in a container without privileges.
BASE ?= docker.io/library/debian:12
image-oci: wheel ## an OCI image, jojlab, with joj and all that its lab needs, by buildah
	buildah build $(OCI_OPTIONS) --build-arg BASE=$(BASE) -t jojlab .

docs: python ## the site: target/site/index.html
	@.venv/bin/sphinx-build -W -q -b html -d target/docs docs target/site

# A script exits with 1 where the fault is.
findings: ## docs/findings: what its scripts find on this machine, as root; they change nothing
	@for script in $(filter-out %_disk.py,$(wildcard docs/findings/*.py)); do \
		echo "$$script"; python3 -B $$script || [ $$? = 1 ] || exit 2; done

man: python ## man pages of every command: target/man
	@.venv/bin/sphinx-build -W -q -b man -d target/docs docs target/man

deb: wheel man collector ## dist/*.deb: joj for this Debian, with all its Python packages; the collector
	@setup/deb.sh
	@setup/collector-deb.sh

# From a commit without changes: the version of pyproject.toml, with the notes of CHANGELOG.md.
release: deb ## dist/*: wheel, .deb, agents for devices, SBOM, notes, sums; the same bytes each time
	@setup/release.sh

# What may be skipped where everything could be run: tests/skips.toml.
ifeq ($(shell id -u),0)
test test-all test-agent test-python: export JOJ_SKIPS = listed
endif

# Three at a time before the tests of Python, so that no processor waits for the one that the image
# boots on. Those run in three processes, one of which waits for a clock or a disk as a rule.
test: packages test-packages ## every check, and the tests but those of test-all
	$(MAKE) --jobs=3 --output-sync=line setup lint test-flash test-agent
	$(MAKE) test-python

# Those of tests/full and those marked `full`, the uploader's, more inputs of the flash model, and the
# fuzzing of the agent. A part has tests of Python by their seconds in tests/full/seconds.json (make
# test-seconds), so that each takes some 15 minutes of two cores, and a part of the fuzzing's inputs.
# Another release of Debian takes an hour: make test-host.
PART ?=
ifeq ($(PART),)
test-all: test ## make test, and what takes too long for it; PART=2/6: a sixth of that alone
else
SPLIT := --group $(firstword $(subst /, ,$(PART))) --splits $(lastword $(subst /, ,$(PART)))
endif
SECONDS_KEPT := --durations-path tests/full/seconds.json
test-all: packages test-packages full-packages setup collector agent-arm64
	cargo clippy --quiet $(UPLOADER) --all-targets -- -D warnings
	cargo test --quiet $(UPLOADER)
	.venv/bin/pytest -q -n 2 $(HANGS_END) -m 'full and not host' $(SECONDS_KEPT) $(SPLIT)
	$(MAKE) -s -C kernel/flash/test check SEQUENCES=3400 FUZZ_RUNS=20000
	FUZZ_PART=$(PART) $(MAKE) fuzz

test-seconds: ## the full tier once, and what each of its tests takes: tests/full/seconds.json
	.venv/bin/pytest -q -n 2 $(HANGS_END) -m 'full and not host' $(SECONDS_KEPT) --store-durations

test-host: packages test-packages full-packages setup ## this checkout on a fresh Debian 13: an hour
	.venv/bin/pytest -q -m host

# Of the tests in jojlab none starts a guest; the agent's that trace this machine are in agent/live.
check: python lint test-flash ## lints, and the tests of units: no guest and no root, in three minutes
	$(LINTED) cargo test --quiet --bins
	.venv/bin/pytest -q -n 2 $(HANGS_END) jojlab tests/tidy

lint: lint-agent lint-python ## formatting, lints and types of the three zones and setup/

# The lints of `cargo clippy --workspace --all-targets -- -D warnings`, by its own driver in place of
# the compiler, in the build whose tests are run: cargo clippy would read all dependencies once
# more. All targets in one build: the program alone has other features of its dependencies than its
# tests, and the largest of them would be built twice. tests/tidy/test_lints.py plants faults.
LINTED := RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=-Dwarnings

lint-agent: packages
	cargo fmt --all --check
	cargo fmt --manifest-path agent/uploader/Cargo.toml --check
	$(LINTED) cargo build --quiet --workspace --all-targets

lint-python: python test-packages lint-imports lint-javascript
	.venv/bin/ruff check --quiet conftest.py jojlab tests bench setup docs/conf.py docs/findings
	.venv/bin/ruff format --quiet --check conftest.py jojlab tests bench setup docs/conf.py docs/findings
	.venv/bin/mypy
	shellcheck setup/*.sh gate/*.sh .ci/run

# Which rooms may import which ([tool.importlinter] of pyproject.toml), and that what is imported is
# declared. Tests may look up to any room: a copy of the product without them is checked.
lint-imports: python
	@rm -rf target/product
	@mkdir -p target/product
	@find jojlab -name '*.py' ! -name 'test_*' -exec cp --parents -t target/product {} +
	@cd target/product && $(CURDIR)/.venv/bin/lint-imports --no-cache --no-logo \
		$(CURDIR)/pyproject.toml >contracts.txt || { cat contracts.txt; exit 1; }
	@.venv/bin/deptry --no-ansi target/product 2>&1 | grep -v ^Assuming >target/product/declared.txt; \
		grep -q '^Success' target/product/declared.txt || { cat target/product/declared.txt; exit 1; }

lint-javascript: python
	.venv/bin/oxlint --quiet --deny correctness jojlab/report

test-flash: packages test-packages ## the flash model in user space: unit, property and fuzz tests
	$(MAKE) -s -C kernel/flash/test check
	$(MAKE) -s -C kernel/nand/test check
	$(MAKE) -s -C kernel/memory_model/test check

coverage: python test-packages ## lines of jojlab that the tests of units run: target/coverage
	.venv/bin/pytest -q -n 2 --cov=jojlab --cov-report=term:skip-covered \
		--cov-report=html:target/coverage jojlab

fuzz: ## mutates 21 million inputs of the agent's parsers and plans; FUZZ_INPUTS=N for each
	cargo test --bins --config profile.test.package.joj-agent.opt-level=2 \
		fuzz_ -- --ignored --nocapture

test-agent: agent lint-agent ## the agent's own tests
	$(LINTED) cargo test --quiet --workspace

# A test that waits without end is named within 15 minutes, with the stacks of its threads; then
# the run is over, as pytest-xdist would give the same test to the next process.
HANGS_END := -o faulthandler_timeout=900 -o faulthandler_exit_on_timeout=true --max-worker-restart=0
test-python: setup ## the engineer's side, and what crosses the zones
	.venv/bin/pytest -q -n 3 $(HANGS_END)

format: ## formats Rust and Python
	cargo fmt --all
	cargo fmt --manifest-path agent/uploader/Cargo.toml
	.venv/bin/ruff format --quiet conftest.py jojlab tests bench setup docs/conf.py docs/findings
	.venv/bin/ruff check --quiet --fix conftest.py jojlab tests bench setup docs/conf.py docs/findings

requirements: ## locks the Python packages of pyproject.toml; UPGRADE=--upgrade: newest versions
	setup/requirements.sh $(UPGRADE)

clean: ## removes what was built here; the caches in the user's folder stay (joj cache --empty)
	rm -rf target .venv dist
