# Two commands do all the set-up: `make demo` and `make test`. Everything that they install or build outside Debian's
# packages and Rust's toolchains goes to one folder: PORTAL_CACHE.

SHELL := /bin/bash
.DEFAULT_GOAL := help

export PORTAL_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/portal
# Outside the clone, so that a new clone need not compile every dependency again.
export CARGO_TARGET_DIR ?= $(PORTAL_CACHE)/target
export PATH := $(PORTAL_CACHE)/tools/bin:$(PORTAL_CACHE)/python/bin:$(PATH)
export KUBERNETES_VERSION
# The documentation's generator tells of its successor on every run.
export NO_MKDOCS_2_WARNING := 1

SIZE ?= control
# Where `make install-manifest` writes, and the program that it asks.
DIST ?= dist
PORTAL ?=
KIT = cargo build --locked --package portal-test-kit && $(CARGO_TARGET_DIR)/debug/portal-test-kit
# A suite that runs in a small cluster needs neither root nor images.
SUITE_SIZE = $(if $(filter-out full operator pages,$(SUITE)),$(if $(filter control faults,$(SUITE)),control,core),full)
# Most parts of the bench need no cluster.
bench_cluster = $(if $(BENCH),$(filter admission audit clusters engine lookups operator,$(BENCH)),all)
existing = $(filter 1,$(DEMO_EXISTING))

.PHONY: help
help: ## Show this list
	@echo "Portal, a Kubernetes policy engine. What make can do:"
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## Show Portal at work on a real local cluster (DEMO_EXISTING=1: on the cluster of KUBECONFIG)
	@tests/setup.sh rust $(if $(existing),,go node) $(if $(IMAGE),,image)
	@$(if $(existing),,$(KIT) prepare full)
	@$(KIT) demo

.PHONY: test
test: ## Run every test and sum up (SUITE=name: only that one)
	@tests/setup.sh rust go $(if $(filter full,$(SUITE_SIZE)),node image) checks site
	@$(KIT) prepare $(SUITE_SIZE)
	@CARGO_NET_OFFLINE=true GOPROXY=off $(CARGO_TARGET_DIR)/debug/portal-test-kit test $(SUITE)

.PHONY: test-faults
test-faults: ## Run long histories, storms and soaks, of which make test tries a share (SUITE=name, PORTAL_SEED=first)
	@tests/setup.sh rust go
	@$(KIT) prepare core
	@CARGO_NET_OFFLINE=true GOPROXY=off $(CARGO_TARGET_DIR)/debug/portal-test-kit test-faults $(SUITE)

.PHONY: bench
bench: ## Measure what the parts cost (BENCH=name: only that part)
	@tests/setup.sh rust go bench $(if $(bench_cluster),node image checks,$(if $(filter allocators gator,$(BENCH)),image))
	@$(if $(bench_cluster),$(KIT) prepare full)
	@$(KIT) bench $(BENCH)

.PHONY: fuzz
fuzz: ## Look for inputs that break the parsers and the evaluator (FUZZ_RUNS=executions, KEEP=1: keep what is found)
	@tests/setup.sh rust go fuzz
	@$(KIT) fuzz $(if $(filter 1,$(KEEP)),--keep)

.PHONY: prepare
prepare: ## Install, download and build everything that tests need
	@tests/setup.sh rust go node image checks site
	@$(KIT) prepare full

.PHONY: generate
generate: ## Write the files that are generated from the code
	@tests/setup.sh rust
	@PORTAL_UPDATE=1 cargo test --quiet --locked --test pure generated::
	@git status --short -- crds docs

.PHONY: image
image: ## Build the container image that users get
	@tests/setup.sh rust image
	@$(KIT) image

.PHONY: install-manifest
install-manifest: ## Write the manifests of an installation into a folder (IMAGE=image, DIST=folder)
	@test -n '$(IMAGE)' || { echo 'say which image to install: make install-manifest IMAGE=registry.example/portal:v1' >&2; exit 1; }
	@$(if $(PORTAL),,tests/setup.sh rust && cargo build --locked --quiet)
	@mkdir -p '$(DIST)'
	@set -e; portal='$(or $(PORTAL),$(CARGO_TARGET_DIR)/debug/portal)'; \
	  "$$portal" generate crds > '$(DIST)/crds.yaml'; \
	  "$$portal" generate install --image '$(IMAGE)' > '$(DIST)/install.yaml'; \
	  "$$portal" generate action-roles > '$(DIST)/action-roles.yaml'; \
	  "$$portal" generate report-crds > '$(DIST)/report-crds.yaml'; \
	  "$$portal" generate kustomization > '$(DIST)/kustomization.yaml'
	@echo "the manifests are in $(DIST)/: docs/getting-started/install.md tells what each is"

.PHONY: docs
docs: ## Build the documentation site into site/
	@tests/setup.sh site
	@mkdocs build --strict
	@echo "the site is in site/; 'make docs-serve' shows it"

.PHONY: docs-serve
docs-serve: ## Serve the documentation on loopback while you write
	@tests/setup.sh site
	@mkdocs serve

.PHONY: cluster
cluster: ## Start a cluster that stays (SIZE=core|control|full, PORT=any free one)
	@tests/setup.sh rust go $(if $(filter full,$(SIZE)),node image)
	@$(KIT) prepare $(SIZE)
	@$(KIT) up $(SIZE) $(if $(PORT),--port $(PORT))

.PHONY: cluster-down
cluster-down: ## Stop every cluster that stays
	@tests/setup.sh rust
	@$(KIT) down
