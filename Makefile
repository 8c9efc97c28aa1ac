# Market Relay. `make up` and `make test` do all the set-up themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ARGS ?=
READY := $(VENV)/.ready
SOURCES := $(wildcard proto/relay/protocol/v1/*.proto) proto/hatch_build.py pyproject.toml clients/python/pyproject.toml requirements.lock \
	accelerator/pyproject.toml accelerator/Cargo.lock $(shell find accelerator/*/src -name "*.rs")

.PHONY: up down test check format wheel bench soak fuzz compose-test lock jars clean help

help:            ## show these targets
	@grep -hE '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 16

up: $(READY)     ## run the whole platform on this machine (make up ARGS=--once)
	@$(BIN)/relay up $(ARGS)

down: $(READY)   ## stop it
	@$(BIN)/relay down

test: $(READY)   ## run the tests (make test ARGS="tests/unit -k relay")
	@sh tests/run.sh $(BIN)/pytest $(ARGS)

check: $(READY)  ## style, types, import layers; changes nothing
	@sh tests/check.sh $(BIN)

wheel: $(READY)  ## build wheels of the accelerator into accelerator/dist
	@sh accelerator/wheel.sh $(BIN)

format: $(READY) ## the only target that changes files
	@$(BIN)/ruff check --fix . ; $(BIN)/ruff format . ; cd accelerator && cargo fmt

bench: $(READY)  ## measure; JSON into benchmarks/results
	@$(BIN)/python -m benchmarks $(ARGS)

soak: $(READY)   ## the whole kill matrix and other long runs
	@MARKET_RELAY_RANDOM_EXAMPLES=1 $(BIN)/pytest -m soak $(ARGS)

fuzz:            ## ten million mutated SBE messages, market messages, records, numbers and wire frames, a fiftieth of that of schemas (needs cargo; SBE_FUZZ_SEED, SBE_FUZZ_INPUTS)
	@cd accelerator && SBE_FUZZ_INPUTS=$${SBE_FUZZ_INPUTS:-10000000} CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 cargo test --release --locked -p relay-accel-codec --test fuzz --test fuzz_records --test fuzz_market --test wire_fuzz

compose-test: $(READY) ## the same platform in containers: up, history, down, up again
	@$(BIN)/python -m tests.compose $(ARGS)

jars: $(READY)   ## fetch the jars of Kafka and Spark
	@$(BIN)/relay doctor --fetch

lock:            ## resolve the dependencies anew into requirements.lock
	@$(BIN)/uv pip compile -q --universal --generate-hashes --no-annotate --no-header --python-version 3.11 --all-extras --group dev pyproject.toml clients/python/pyproject.toml --no-emit-package market-relay --no-emit-package market-relay-client -o requirements.lock

clean:           ## remove the environment and what was built (never data)
	@rm -rf $(VENV) relay/protocol/v1 .mypy_cache .ruff_cache .pytest_cache .import_linter_cache build dist

$(READY): $(SOURCES)
	@sh ./setup.sh "$(PYTHON)" "$(VENV)"
	@touch $@
