# Weir's commands. They need bash, git and Go (the version in go.mod); `make test` needs a C compiler too, for
# the race detector. Tools are built from modules that pin them (hack/lint, hack/tools) and kept in a cache
# directory, $XDG_CACHE_HOME/weir or ~/.cache/weir; nothing is installed on the machine.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
BUILD_FLAGS = -trimpath -buildvcs=false -ldflags '-s -w -X main.version=$(VERSION)'
PHASE := hack/phase.sh

# What `make generate` writes.
GENERATED := api/v1alpha1/zz_generated.deepcopy.go config/crd/bases

CONTROLLER_GEN = $$(hack/tool.sh hack/tools sigs.k8s.io/controller-tools/cmd/controller-gen)
GOLANGCI_LINT = $$(hack/tool.sh hack/lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint)

##@ Using it

.PHONY: run
run: build ## Serve config/samples on this machine, with a receiver for its webhook. RUN_ARGS: flags of weir dev
	@hack/run.sh $(RUN_ARGS)

.PHONY: build
build: check-go ## Build bin/weir (the operator and weir dev), bin/collector (the tenant pods) and bin/receiver
	@$(PHASE) build go build $(BUILD_FLAGS) -o bin/ . ./collector ./hack/receiver

.PHONY: clean
clean: ## Remove what build and run leave in the checkout: bin and .weir
	rm -rf bin .weir

##@ Testing it

.PHONY: test
test: check-go check-cc ## Run all tests with the race detector, against a real Redis. TEST_ARGS: flags of go test
	@$(PHASE) test go test -race -timeout 20m $(TEST_ARGS) ./...

PKG ?= ./...
NAME ?= .

.PHONY: test-one
test-one: check-go check-cc ## Run the tests that match NAME in PKG, verbosely: make test-one PKG=./collector/event NAME=Parse
	@$(PHASE) test go test -race -count=1 -v -run '$(NAME)' $(TEST_ARGS) $(PKG)

.PHONY: bench
bench: check-go ## Run the benchmarks that match NAME in PKG
	@$(PHASE) bench go test -run '^$$' -bench '$(NAME)' -benchmem $(TEST_ARGS) $(PKG)

FUZZTIME ?= 10s

.PHONY: fuzz
fuzz: check-go ## Run each fuzz target that matches NAME for FUZZTIME (10s)
	@hack/fuzz.sh '$(FUZZTIME)' '$(NAME)'

##@ Changing it

.PHONY: generate
generate: check-go ## Write what is generated anew: deep copies and the CustomResourceDefinition
	@tool="$(CONTROLLER_GEN)"; $(PHASE) generate "$$tool" object crd paths=./api/... output:crd:dir=config/crd/bases

.PHONY: fmt
fmt: check-go ## Format the code
	@tool="$(GOLANGCI_LINT)"; $(PHASE) fmt "$$tool" fmt

.PHONY: lint
lint: check-go ## Run the linters of .golangci.yml
	@tool="$(GOLANGCI_LINT)"; $(PHASE) lint "$$tool" run

.PHONY: verify
verify: check-go ## Prove that generated files are fresh, modules tidy, the code formatted and go vet content
	@$(PHASE) 'verify: generated files are fresh' hack/verify.sh generated $(GENERATED)
	@$(PHASE) 'verify: go.mod is tidy' hack/verify.sh modules
	@$(PHASE) 'verify: the code is formatted' hack/verify.sh format
	@$(PHASE) 'verify: go vet' go vet ./...

##@ Finding out

.PHONY: help
help: ## List these commands
	@awk 'BEGIN { FS = ":.*## "; print "Usage: make COMMAND [VARIABLE=VALUE…]" } \
	  /^##@ / { printf "\n%s\n", substr($$0, 5) } \
	  /^[a-z-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: check-go
check-go:
	@hack/check-go.sh

.PHONY: check-cc
check-cc:
	@command -v "$${CC:-$$(go env CC)}" >/dev/null || { \
	  echo "the race detector needs a C compiler: apt-get install gcc libc6-dev, or the like" >&2; exit 1; }
