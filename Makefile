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

# What has a go.mod of its own below hack and tests that need no cluster. Their tests are run each time (-count=1): of
# files outside of their module, such as the guides and the Dockerfile, Go's test cache sees no change.
MODULES := hack/clickhouse hack/clients hack/cluster hack/guides hack/image hack/s3 hack/prometheus

# What `make generate` writes.
GENERATED := api/v1alpha1/zz_generated.deepcopy.go collector/platforms/zz_generated.deepcopy.go \
  collector/sources/zz_generated.deepcopy.go config/crd/bases config/rbac/role.yaml charts/weir/files \
  docs/reference/flags.md docs/reference/chart-values.md docs/reference/conditions.md docs/reference/platforms/coverage.md docs/reference/personal-data.md \
  collector/snippet/weir.min.js collector/dashboard/static/packages

CONTROLLER_GEN = $$(hack/tool.sh hack/tools sigs.k8s.io/controller-tools/cmd/controller-gen)
ESBUILD = $$(hack/tool.sh hack/tools github.com/evanw/esbuild/cmd/esbuild)
GOLANGCI_LINT = $$(hack/tool.sh hack/lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint)

##@ Using it

.PHONY: run
run: build ## Serve config/samples on this machine, with a receiver for its webhook. RUN_ARGS: flags of weir dev. HOOK: HOST:PORT of the receiver. CLICKHOUSE: 1 to keep events in a ClickHouse
	@HOOK='$(HOOK)' CLICKHOUSE='$(CLICKHOUSE)' hack/run.sh $(RUN_ARGS)

.PHONY: build
build: check-go ## Build bin/weir (weir dev), bin/weir-operator, bin/collector (the tenant pods) and bin/receiver
	@$(PHASE) build go build $(BUILD_FLAGS) -o bin/ ./cli/weir ./collector ./hack/receiver
	@$(PHASE) 'build: the operator' go build $(BUILD_FLAGS) -o bin/weir-operator .

.PHONY: image
image: check-go ## Pack the image without a container engine, as bin/images/weir.tar: docker load and ctr images import take it
	@VERSION='$(VERSION)' $(PHASE) image hack/image.sh weir

.PHONY: dist
dist: check-go ## Pack bin/weir for Linux and macOS on amd64 and arm64, with checksums, in bin/dist
	@VERSION='$(VERSION)' $(PHASE) dist hack/dist.sh

.PHONY: demo
demo: check-go ## Weir in a cluster, from nothing to numbers: kind's, else a node made of this machine (root; it asks). DEMO_ARGS: see hack/demo.sh
	@hack/demo.sh up $(DEMO_ARGS)

.PHONY: demo-down
demo-down: ## Put back everything that demo made
	@hack/demo.sh down

.PHONY: clean
clean: ## Remove what build and run leave in the checkout: bin and .weir
	rm -rf bin .weir

##@ Testing it

.PHONY: check
check: check-go ## The first signal: build, vet, lint, and the tests of the packages that start no server (hack/units.sh)
	@$(PHASE) 'check: build' go build ./...
	@$(PHASE) 'check: go vet' go vet ./...
	@$(PHASE) 'check: unit tests' hack/units.sh $(TEST_ARGS)
	@$(MAKE) --no-print-directory lint

.PHONY: test
test: check-go check-cc ## Run all tests with the race detector, against a real Redis, a real API server, a real browser and ClickHouse's engine. TEST_ARGS: flags of go test
	@hack/kube.sh helm >/dev/null; hack/package.sh chromium >/dev/null; hack/npm.sh hack/clients >/dev/null; hack/npm.sh hack/judges >/dev/null; hack/clickhouse.sh >/dev/null; assets=$$(hack/kube.sh); KUBEBUILDER_ASSETS=$$assets $(PHASE) test go test -race -timeout 30m $(TEST_ARGS) ./...
	@for module in $(MODULES); do (cd $$module; ../../$(PHASE) "test: $$module" go test -race -count=1 $(TEST_ARGS) ./...); done

.PHONY: examples
examples: check-go ## Run the guides' examples in all six languages, and the dashboard's; they need curl, node, python3, php with curl, ruby with webrick, and a JDK
	@$(PHASE) examples go test ./docs -count=1 -run 'Examples' $(TEST_ARGS) -runtimes go,js,python,php,ruby,java
	@$(PHASE) "examples: the dashboard's" go test ./cli/weir -count=1 -run SettingsTexts $(TEST_ARGS) -snippets curl,node,php,python,go,segment

.PHONY: e2e
e2e: check-go ## Use Weir in a cluster and hurt it there: a node made of this machine (root; it asks), or yours: KUBECONFIG_E2E, IMG. See hack/e2e.sh
	@$(PHASE) e2e hack/e2e.sh

PKG ?= ./...
NAME ?= .

.PHONY: test-one
test-one: check-go check-cc ## Run the tests that match NAME in PKG, verbosely: make test-one PKG=./collector/event NAME=Parse
	@$(PHASE) test go test -race -count=1 -v -run '$(NAME)' $(TEST_ARGS) $(PKG)

.PHONY: bench
bench: check-go ## Run the benchmarks that match NAME in PKG
	@$(PHASE) bench go test -run '^$$' -bench '$(NAME)' -benchmem $(TEST_ARGS) $(PKG)
	@if [ '$(PKG)' = ./... ]; then $(MAKE) --no-print-directory bench-collect bench-read; fi

.PHONY: bench-collect
bench-collect: check-go ## Load the collector end to end, in turn with a bare handler: three minutes. BENCH_ARGS: see hack/bench/collect
	@go build $(BUILD_FLAGS) -o bin/collector ./collector
	@wrk=$$(hack/package.sh wrk); $(PHASE) bench-collect go run ./hack/bench/collect -wrk "$$wrk" $(BENCH_ARGS)

.PHONY: bench-deliver
bench-deliver: check-go ## Deliver to a local sink, in turn with a bare consumer of the same stream, five rounds each
	@$(PHASE) bench-deliver go test ./collector/deliver -run '^$$' -bench 'Delivery|Lake' -benchtime 5x $(TEST_ARGS)

BACKUP_EVENTS ?= 200000

.PHONY: bench-backup
bench-backup: check-go ## Back up a Property of BACKUP_EVENTS (200,000) while events come in, and restore it. BACKUP_ARGS: see hack/bench/backup
	@$(PHASE) bench-backup go run ./hack/bench/backup -events $(BACKUP_EVENTS) $(BACKUP_ARGS)

.PHONY: bench-operator
bench-operator: check-go ## Measure the operator with 1,000 Properties on a real API server: ten minutes. OPERATOR_ARGS: see hack/bench/operator
	@go build $(BUILD_FLAGS) -o bin/weir-operator .
	@assets=$$(hack/kube.sh); $(PHASE) bench-operator go run ./hack/bench/operator -assets "$$assets" $(OPERATOR_ARGS)

READ_EVENTS ?= 10000000

.PHONY: bench-read
bench-read: check-go check-cc ## Ask the read API and DuckDB the same about READ_EVENTS (10 million: 4 GB, minutes). READ_ARGS: see hack/duckbench
	@$(PHASE) bench-read hack/bench-read.sh -events $(READ_EVENTS) $(READ_ARGS)

HISTORY_EVENTS ?= 100000000

.PHONY: bench-history
bench-history: check-go check-cc ## Ask a history of HISTORY_EVENTS (100 million: 10 GB of disk, half an hour) and SQL by hand the same. HISTORY_ARGS: see hack/bench/history
	@server=$$(hack/clickhouse.sh); $(PHASE) bench-history go run ./hack/bench/history -server "$$server" -events $(HISTORY_EVENTS) $(HISTORY_ARGS)

SOAK_KILLS ?= 200
SOAK_DELIVERERS ?= 100
SOAK_EVENTS ?= 10000
SOAK_REPEATS ?= 10

.PHONY: shards
shards: check-go ## Prove how a history's tables lie in a cluster, on Debian's ClickHouse and ZooKeeper, which it fetches; half a minute
	@$(PHASE) shards go test -tags shards -count=1 $(TEST_ARGS) ./hack/shards

.PHONY: test-valkey
test-valkey: check-go ## Run the tests of what Redis keeps, and of Redis that fails, on Debian's Valkey, which it fetches, where there is no redis-server on the PATH; minutes
	@valkey=$$(hack/package.sh valkey-server); PATH=$$(dirname "$$valkey"):$$PATH $(PHASE) test-valkey go test -count=1 -timeout 30m $(TEST_ARGS) \
	  ./collector ./collector/stream ./collector/deliver ./collector/role ./collector/redisserver/...

.PHONY: soak
soak: check-go ## Kill collectors and Redis again and again under load, and prove exactness at full size; takes an hour or more
	@$(PHASE) soak go test ./collector -count=1 -v -parallel 1 -timeout 150m \
	  -run 'Crashes|TheSameEvents|Failover|TakesOver|Sentinel|Outage|TooMuch|Abuse|Hang|RollingRestart' \
	  -soak.kills $(SOAK_KILLS) -soak.events $(SOAK_EVENTS) -soak.repeats $(SOAK_REPEATS) -soak.outage 2s -soak.standstill 30s \
	  -soak.abuses 100 -soak.waiting 3500 -soak.restarts 20
	@go build $(BUILD_FLAGS) -o bin/collector ./collector
	@$(PHASE) soak-deliver go test ./collector/deliver -count=1 -v -timeout 20m -run AreKilled \
	  -soak.kills $(SOAK_DELIVERERS) -soak.collector '$(CURDIR)/bin/collector'

FUZZTIME ?= 10s

.PHONY: fuzz
fuzz: check-go ## Run each fuzz target that matches NAME for FUZZTIME (10s)
	@hack/fuzz.sh '$(FUZZTIME)' '$(NAME)'

##@ Changing it

.PHONY: generate
generate: check-go ## Write what is generated anew: deep copies, the CustomResourceDefinition, the operator's role, the chart's copies of these, pages of docs/reference, the snippet, the dashboard's vendored modules
	@tool="$(CONTROLLER_GEN)"; $(PHASE) generate "$$tool" object crd rbac:roleName=weir-operator paths=./api/... paths=./collector/platforms paths=./collector/sources \
	  paths=./controllers/... \
	  output:crd:dir=config/crd/bases output:rbac:dir=config/rbac
	@hack/chart.sh
	@go run ./hack/reference
	@tool="$(ESBUILD)"; $(PHASE) 'generate: the snippet' "$$tool" --log-level=warning --minify --target=es2021 collector/snippet/weir.js \
	  --outfile=collector/snippet/weir.min.js --allow-overwrite
	@tool="$(ESBUILD)"; $(PHASE) 'generate: what the dashboard takes of others' hack/vendor.sh "$$tool"

.PHONY: screenshots
screenshots: check-go ## Take the pictures of the guides to the dashboard and the console anew, of a made-up past
	@hack/package.sh chromium >/dev/null; hack/kube.sh >/dev/null; $(PHASE) screenshots go test ./cli/weir ./controllers/console -run TheGuidesPictures -count=1 -update

.PHONY: fmt
fmt: check-go ## Format the code
	@tool="$(GOLANGCI_LINT)"; $(PHASE) fmt "$$tool" fmt

.PHONY: lint
lint: check-go ## Run the linters of .golangci.yml
	@tool="$(GOLANGCI_LINT)"; $(PHASE) lint "$$tool" run

.PHONY: verify
verify: check-go ## Prove that generated files are fresh, modules tidy, the code formatted, go vet content, links lead somewhere and no function unused
	@$(PHASE) 'verify: generated files are fresh' hack/verify.sh generated $(GENERATED)
	@$(PHASE) 'verify: go.mod is tidy' hack/verify.sh modules . $(MODULES)
	@$(PHASE) 'verify: the code is formatted' hack/verify.sh format
	@$(PHASE) 'verify: go vet' go vet ./...
	@for module in $(MODULES); do (cd $$module; ../../$(PHASE) "verify: go vet: $$module" go vet ./...); done
	@tool=$$(hack/tool.sh hack/tools golang.org/x/tools/cmd/deadcode); $(PHASE) 'verify: nothing is there for tests alone' hack/verify.sh deadcode "$$tool"
	@$(PHASE) 'verify: what the docs name is there' go test ./docs -count=1 -skip Examples

.PHONY: release-check
release-check: verify lint ## Check what is to be released and leave it in bin/release; takes minutes. GOVULNDB: another vulnerability database
	@GOVULNDB='$(GOVULNDB)' $(PHASE) release-check hack/release-check.sh

##@ Finding out

.PHONY: help
help: ## List these commands
	@awk 'BEGIN { FS = ":.*## "; print "Usage: make COMMAND [VARIABLE=VALUE…]" } \
	  /^##@ / { printf "\n%s\n", substr($$0, 5) } \
	  /^[a-z0-9-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: check-go
check-go:
	@hack/check-go.sh

.PHONY: check-cc
check-cc:
	@command -v "$${CC:-$$(go env CC)}" >/dev/null || { \
	  echo "the race detector needs a C compiler: apt-get install gcc libc6-dev, or the like" >&2; exit 1; }
